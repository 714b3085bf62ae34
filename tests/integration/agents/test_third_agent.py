"""An agent CLI that Hardsave does not come with, installed as a package, and all that works for it.

Each command is a process of its own, in an environment in which that package is installed.
"""

import json
import shlex
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hardsave
from tests.integration.agents import parrot
from tests.integration.agents.stage import UNTIL_ANSWERED, Stage

METADATA = "Metadata-Version: 2.1\nName: hardsave-parrot\nVersion: 1.0\n"
ENTRY = "[hardsave.agents]\nparrot = hardsave_parrot:SPEC\n"


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has Hardsave and Parrot; the folder of its programs."""
    base = tmp_path_factory.mktemp("installed")
    venv.create(base, symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(base), "platbase": str(base)}))
    (site / "hardsave_parrot.py").write_text(Path(parrot.__file__).read_text())
    about = site / "hardsave_parrot-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(METADATA)
    (about / "entry_points.txt").write_text(ENTRY)
    found = [sysconfig.get_path("purelib"), str(Path(hardsave.__file__).parents[1])]
    (site / "ours.pth").write_text("\n".join(found) + "\n")
    program = base / "bin" / "parrot"
    program.write_text(f"#!{base}/bin/python\nfrom hardsave_parrot import main\nmain()\n")
    program.chmod(0o755)
    return base / "bin"


class ParrotStage(Stage):
    """Parrot in a project, with a nest of its own."""

    def __init__(self, folder: Path, programs: Path) -> None:
        super().__init__(folder, "nest", "PARROT_NEST")
        self.environment["PATH"] = f"{programs}:{self.environment['PATH']}"
        self._python = str(programs / "python")

    def ours(self, *words: str) -> list[str]:
        return [self._python, "-P", "-m", "hardsave", *words]

    def hardsave(self, *arguments: str) -> Any:
        done = self.run(self.ours(*arguments, "--json"), {})
        assert done.returncode == 0, done
        return json.loads(done.stdout)

    def parrot(self, *words: str) -> list[str]:
        done = self.run(["parrot", *words], {})
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout.splitlines()

    def found(self) -> dict[str, Any]:
        """What the doctor says of it."""
        done = self.run(self.ours("doctor", "--json"), {})
        (finding,) = [each for each in json.loads(done.stdout) if each["what"] == "Parrot"]
        return dict(finding)


@pytest.fixture
def stage(tmp_path: Path, installation: Path) -> Iterator[ParrotStage]:
    made = ParrotStage(tmp_path, installation)
    yield made
    made.wait_until(lambda: made.daemons() == [])


def test_its_hooks_save_every_step_and_a_rewind_says_how_it_goes_on(stage: ParrotStage) -> None:
    (installed,) = stage.hardsave("init", "--yes")
    assert (installed["agent"], installed["changed"]) == ("Parrot", True)
    stage.parrot("run echo one > a.txt", "run echo two > a.txt", "hello")
    (line,) = stage.hardsave("timelines")
    steps = stage.hardsave("log", "--timeline", line["name"])[::-1]
    hooks = ["UserPromptSubmit", "PostToolUse", "Stop"]
    assert [each["metadata"]["hook"] for each in steps] == [
        *hooks, *hooks, "UserPromptSubmit", "Stop", "SessionEnd",
    ]  # fmt: skip
    assert {each["metadata"]["agent"] for each in steps} == {"parrot"}
    assert steps[0]["description"] == "before: run echo one > a.txt"

    done = stage.hardsave("rewind", steps[1]["id"], "--yes")
    assert stage.files() == {"a.txt": "one\n"}
    back = done["conversation"]
    assert back["command"] == f"parrot --resume {back['session']}"
    _, *words = shlex.split(back["command"])
    assert stage.parrot(*words, "recall") == ["run echo one > a.txt, recall"]
    (again,) = stage.hardsave("timelines")
    assert again["name"] == line["name"]
    assert stage.hardsave("log", "--timeline", line["name"])[0]["status"] == "ended"


def test_the_first_hook_of_a_session_leaves_a_daemon_that_answers_the_next(
    stage: ParrotStage,
) -> None:
    """The project is known from its variable alone, which the hook hands on."""
    stage.hardsave("init", "--yes")
    stage.parrot(f"run {UNTIL_ANSWERED}echo one > a.txt", "hello")
    stage.wait_until(lambda: stage.daemons() == [])
    assert sum(stage.answered()) >= 4, stage.story()
    assert len(stage.hardsave("log")) == 6, stage.story()


def test_run_reads_the_conversation_where_no_hook_calls(stage: ParrotStage) -> None:
    prompts = ["run sleep 2", "run sleep 0.5; echo one > a.txt; sleep 2"]
    done = stage.run(stage.ours("run", "--timeline", "t", "--", "parrot", *prompts), {})
    assert done.returncode == 0, done
    assert "'hardsave init' saves it at every step" in done.stderr
    saved = stage.saved()
    last = saved[-1]
    assert last.metadata["agent"] == "parrot"
    assert '"prompt"' in last.lines
    assert '"answer"' in last.lines
    _, call = [each for each in map(json.loads, last.lines.splitlines()) if "input" in each]
    (made,) = [each.metadata["changed_by"] for each in saved if "changed_by" in each.metadata]
    told = {"tool": "run", "tool_use_id": call["id"]}
    assert made == [{"calls": [told], "paths": ["a.txt"], "count": 1}]
    done = stage.hardsave("rewind", last.id, "--yes")
    _, *words = shlex.split(done["conversation"]["command"])
    assert stage.parrot(*words, "recall") == [", ".join([*prompts, "recall"])]


def test_its_user_is_warned_in_its_own_way_while_nothing_is_saved(stage: ParrotStage) -> None:
    stage.hardsave("init", "--yes")
    done = stage.run(["parrot", "hello"], stage.broken())
    warned, again, answer = done.stdout.splitlines()
    assert answer == "hello"
    for line in (warned, again):
        assert line.startswith("squawk: hardsave: the last")
        assert "NOT saved" in line


def test_the_doctor_knows_whether_it_calls_us_and_init_undoes_itself(stage: ParrotStage) -> None:
    hooks = stage.config / "hooks.txt"
    hooks.write_text("colour: green\n")
    assert stage.found()["message"] == "does not call us; 'hardsave init' changes that"
    stage.hardsave("init", "--yes")
    assert stage.found()["message"] == "calls us at asked, did, said, left"
    (stage.config / "asleep").touch()
    assert "asleep is there" in stage.found()["message"]
    stage.hardsave("init", "--undo", "--yes")
    assert hooks.read_text() == "colour: green\n"
    stage.hardsave("init", "--project", "--yes")
    assert len(parrot.read_hooks((stage.project / ".parrot.txt").read_text())) == 4


def test_a_package_that_cannot_be_loaded_keeps_no_other_agent_from_saving(
    stage: ParrotStage, installation: Path
) -> None:
    place = next(installation.parent.rglob("hardsave_parrot.py"))
    text = place.read_text()
    place.write_text("raise RuntimeError('broken')\n")
    try:
        done = stage.run(stage.ours("doctor"), {})
        assert "Claude Code" in done.stdout
        assert "Parrot" not in done.stdout
        assert "the agent CLI of hardsave-parrot cannot be loaded" in done.stderr
    finally:
        place.write_text(text)
