"""From nothing to the first rewind: a wheel, an empty directory, an agent that ruins its work.

The agent is a shell script that calls the hooks which `init` has installed, as Claude Code would;
and Claude Code itself, where it is there.
"""

import json
import os
import re
import resource
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from hardsave.runtime.scripted import Call, Reply, ScriptedModel
from tests.integration.agents.test_claude_code import CLAUDE

ROOT = Path(__file__).parents[2]
SECONDS = 60  # of machine time, in all
AGENT = """
hook() { printf '{"session_id": "s", "hook_event_name": "%s", "transcript_path": "%s",
  "cwd": "%s", "tool_name": "Bash", "tool_use_id": "%s"}' "$1" "$HOME/t.jsonl" "$PWD" "$2" |
  sh -c "$HOOK"; }
say() { printf '{"type": "%s", "message": {"role": "%s", "content": "%s"}}\\n' \
  "$1" "$1" "$2" >> "$HOME/t.jsonl"; }
say user 'write it'
echo 'print("it works")' > app.py
say assistant 'written'; hook PostToolUse t1
rm -rf app.py; echo ruins > other.txt
say assistant 'improved'; hook Stop t2
"""
CLAIMS_TOO_MUCH = """
import resource
from hardsave.errors import Corrupt
from hardsave.objects.codec import Codec
resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))
try:
    Codec().decode(bytes.fromhex("ddffffffff"))  # an array of four billion
except Corrupt:
    print("refused")
"""
ASKED_FOR_A_MODEL = """
from pydantic_ai.capabilities import AbstractCapability
from hardsave.runtime.loop.capability import Keeping
assert callable(AbstractCapability.get_wrapper_model)  # else a busy model is asked once
print(Keeping.__name__)
"""

pytestmark = pytest.mark.torture


class Newcomer:
    """A user with a wheel and a home of their own."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.project = base / "project"
        self.project.mkdir()
        (base / ".claude").mkdir()
        self.bin = base / "venv" / "bin"
        self.environment = {
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(base),
            "LANG": "C.UTF-8",
        }

    def run(self, *words: str, **environment: str) -> str:
        done = subprocess.run(
            words,
            cwd=self.project,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def install(self, wheel: Path | str, *more: str) -> None:
        self.run(sys.executable, "-m", "venv", str(self.bin.parent))
        settings = {key: value for key, value in os.environ.items() if key.startswith("PIP_")}
        done = subprocess.run(
            [str(self.bin / "pip"), "install", "--quiet", str(wheel), *more],
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            pytest.skip(f"pip finds no packages here: {done.stderr.strip()[-300:]}")

    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in sorted(self.project.iterdir())}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (made,) = place.glob("*.whl")
    return made


def _machine_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_from_a_wheel_to_the_first_rewind_within_a_minute(
    wheel: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    began = _machine_seconds()
    one = Newcomer(tmp_path)
    one.install(wheel)
    assert "+" in one.run("hardsave", "init", "--yes")
    hooks = json.loads((tmp_path / ".claude/settings.json").read_text())["hooks"]
    command = hooks["Stop"][0]["hooks"][0]["command"]
    said = one.run("hardsave", "run", "--timeline", "t", "--", "sh", "-c", AGENT, HOOK=command)
    assert "saving" in said
    assert one.files() == {"other.txt": "ruins\n"}
    log = json.loads(one.run("hardsave", "log", "-t", "t", "--json"))
    (written,) = [each for each in log if each["metadata"].get("tool_use_id") == "t1"]
    assert written["messages"] == 2
    assert "after Bash" in one.run("hardsave", "log", "-t", "t")
    back = one.run("hardsave", "rewind", written["id"], "--timeline", "t", "--files", "--yes")
    assert "hardsave undo" in back
    assert one.files() == {"app.py": 'print("it works")\n'}
    one.run("hardsave", "undo", "--timeline", "t")
    assert one.files() == {"other.txt": "ruins\n"}
    took = _machine_seconds() - began
    record_property("machine_seconds", took)
    assert took < SECONDS


def test_the_oldest_packages_that_are_allowed_will_do(wheel: Path, tmp_path: Path) -> None:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*about["dependencies"], *about["optional-dependencies"]["agents"]]
    found = [re.match(r"([\w.-]+)[^>]*>=([\d.]+)", each) for each in asked]
    oldest = tmp_path / "oldest.txt"
    oldest.write_text("".join(f"{each[1]}=={each[2]}\n" for each in found if each))
    assert all(found), found
    one = Newcomer(tmp_path)
    one.install(f"{wheel}[agents]", "--constraint", str(oldest))
    (one.project / "app.py").write_text("one\n")
    one.run("hardsave", "save", "first")
    (one.project / "app.py").unlink()
    one.run("hardsave", "rewind", "first", "--yes")
    assert one.files() == {"app.py": "one\n"}
    assert "first" in one.run("hardsave", "log")
    assert "saved, destroyed, restored and compared" in one.run("hardsave", "doctor")
    assert one.run("python", "-c", CLAIMS_TOO_MUCH) == "refused\n"
    assert one.run("python", "-c", ASKED_FOR_A_MODEL) == "Keeping\n"


@pytest.mark.skipif(CLAUDE is None, reason="Claude Code is not installed")
def test_claude_code_with_a_daemon_from_a_wheel(wheel: Path, tmp_path: Path) -> None:
    assert CLAUDE is not None
    one = Newcomer(tmp_path)
    one.install(wheel)
    one.run("hardsave", "init", "--yes")

    def bash(command: str, id: str) -> Call:
        return Call("Bash", {"command": command, "description": "run it"}, id=id)

    script = [
        Reply("I write it.", (bash("echo one > app.py", "toolu_1"),)),
        Reply("I improve it.", (bash("rm app.py", "toolu_2"),)),
        Reply("Done."),
    ]
    with ScriptedModel(script) as model:
        one.run(
            *("hardsave", "run", "--timeline", "t", "--", CLAUDE, "-p"),
            *("--dangerously-skip-permissions", "write it"),
            ANTHROPIC_BASE_URL=model.anthropic_url,
            ANTHROPIC_API_KEY="none",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            DISABLE_TELEMETRY="1",
            DISABLE_AUTOUPDATER="1",
            IS_SANDBOX="1",
        )
    assert one.files() == {}
    log = json.loads(one.run("hardsave", "log", "-t", "t", "--json"))
    calls = [each["metadata"].get("tool_use_id") for each in log]
    assert calls.count("toolu_1") == calls.count("toolu_2") == 1
    (first,) = [each for each in log if each["metadata"].get("tool_use_id") == "toolu_1"]
    back = one.run("hardsave", "rewind", first["id"], "--timeline", "t", "--yes")
    assert "claude --resume" in back
    assert one.files() == {"app.py": "one\n"}
    one.run("hardsave", "undo", "--timeline", "t")
    assert one.files() == {}
