"""`log` by prompt and step, over all sessions of a directory."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

import hardsave
from hardsave import StepSummary, Timeline
from hardsave.cli.log_query import Shape
from hardsave.cli.render import console
from hardsave.cli.session import Session, Settings
from tests.unit.cli.conftest import Run

FIRST = "claude-0b6e1f2a-5c1d-4e8f-9a3b-2f6e8d7c1a90"
SECOND = "codex-7d63e7b0-f288-46b6-abcd-2f90475a4877"


class Agent:
    """Saves as the hooks of an agent CLI do."""

    def __init__(self, line: Timeline, project: Path) -> None:
        self._line, self._project = line, project
        self._said: list[dict[str, Any]] = []
        self._calls = 0

    def prompt(self, text: str) -> None:
        step = StepSummary(prompt=text)
        self._save(f"before: {text}", "UserPromptSubmit", step, title=text)
        self._said.append({"role": "user", "content": text})

    def call(self, command: str, file: str = "") -> None:
        """A call that writes a file; told of when it ends, and once more with all of its turn."""
        self._calls += 1
        if file:
            (self._project / file).write_text(f"{self._calls}\n")
        id = f"toolu_{self._calls}"
        used = {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}
        self._said.append({"role": "assistant", "content": [used]})
        for hook, known in (("PostToolUse", id), ("PostToolBatch", "")):
            step = StepSummary(call=f"Bash({command})", call_id=known, phase="after")
            self._save(f"after Bash: {command}", hook, step, tool="Bash", tool_use_id=known)

    def answer(self, text: str) -> None:
        self._said.append({"role": "assistant", "content": text})
        self._save("answered", "Stop", StepSummary())

    def end(self) -> None:
        self._save("session ended", "SessionEnd", StepSummary(), status="ended")

    def _save(
        self,
        description: str,
        hook: str,
        step: StepSummary,
        title: str = "",
        status: str = "running",
        **about: str,
    ) -> None:
        self._line.save(
            {"messages": [*self._said]},
            workspace=self._project,
            description=description,
            metadata={"hook": hook, **{key: value for key, value in about.items() if value}},
            status=status,
            step=step,
            title=title,
        )


@pytest.fixture
def two_sessions(project: Path) -> Path:
    with hardsave.open() as vault:
        first = Agent(vault.timeline(FIRST), project)
        first.prompt("Fix the parser, which crashes")
        first.call("make", "b.txt")
        first.answer("It is fixed.")
        first.end()
        second = Agent(vault.timeline(SECOND), project)
        second.prompt("Write the tests")
        second.call("touch tests", "c.txt")
        second.call("rm a.txt")
        second.answer("All pass.")
        second.prompt("Now the docs")
        second.answer("Done.")
        second.end()
    return project


def marks(text: str) -> list[tuple[str, str, str]]:
    """The mark, the ref and the last word of each row."""
    rows = [line.split() for line in text.splitlines()]
    return [(row[0], row[1], row[-1]) for row in rows]


def test_a_prompt_has_its_steps_beneath_it_and_a_call_is_one_row(
    run: Run, two_sessions: Path
) -> None:
    assert marks(run("log").out) == [
        (">", ":7", "docs"),
        ("@", ":9", "Done."),
        (">", ":1", "tests"),
        ("○", ":6", "pass."),
        ("○", ":5", "a.txt)"),
        ("○", ":3", "tests)"),
        (">", "fix-parser-which:1", "crashes"),
        ("○", "fix-parser-which:5", "fixed."),
        ("○", "fix-parser-which:3", "Bash(make)"),
    ]


def test_prompts_alone_are_one_row_each(run: Run, two_sessions: Path) -> None:
    rows = run("log", "--prompts").out.splitlines()
    assert [row.split()[1] for row in rows] == [":7", ":1", "fix-parser-which:1"]
    assert "3 steps  Write the tests" in rows[1]
    assert "+1" in rows[2]


@pytest.mark.parametrize("blank", ["", "  \n"])
def test_a_session_that_began_with_an_empty_prompt_is_listed(
    blank: str, run: Run, project: Path
) -> None:
    with hardsave.open() as vault:
        agent = Agent(vault.timeline(FIRST), project)
        agent.prompt(blank)
        agent.answer("What shall I do?")
    assert marks(run("log").out) == [(">", ":1", "prompt)"), ("@", ":2", "do?")]
    assert "(empty prompt)" in run("log", "--prompts").out


def test_where_nothing_was_prompted_prompts_say_so(run: Run, project: Path) -> None:
    run("save")
    told = run("log", "--prompts").err
    assert told == "nothing was prompted here; 'hardsave log' shows what was saved\n"


def test_steps_alone_are_one_row_each_with_the_branches(run: Run, two_sessions: Path) -> None:
    run("rewind", ":5", "--yes")
    with hardsave.open() as vault:
        vault.timeline(SECOND).append(
            {"messages": [{"role": "assistant", "content": "Another way."}]}, workspace="."
        )
    rows = run("log", "--steps", "-n", "5").out.splitlines()
    assert [row.split("  ")[0] for row in rows] == ["@", "│ ×", "│ ×", "├─╯", "○", "○"]
    assert rows[0].endswith("Another way.")


def test_after_a_rewind_a_log_shows_where_the_head_is_and_what_was_left_behind(
    run: Run, two_sessions: Path
) -> None:
    run("rewind", ":5", "--yes")
    assert marks(run("log", "-n", "2").out) == [
        (">", ":7", "docs"),
        ("×", ":9", "Done."),
        (">", ":1", "tests"),
        ("×", ":6", "pass."),
        ("@", ":5", "a.txt)"),
        ("○", ":3", "tests)"),
    ]
    run("rewind", ":7", "--yes")
    assert marks(run("log", "-n", "1").out)[0] == ("@", ":7", "docs")


def test_a_limit_counts_prompts_and_steps_that_follow_none(run: Run, two_sessions: Path) -> None:
    run("save", "-t", "main", "-m", "by hand")
    run("save", "-t", "main", "-m", "again")
    assert [ref for _, ref, _ in marks(run("log", "-n", "3").out)] == [
        *("main:2", "main:1", "write-tests:7", "write-tests:9")
    ]
    assert len(run("log", "-n", "3", "--prompts").out.splitlines()) == 3
    assert len([*filter(None, run("log", "-n", "3", "--steps").out.splitlines())]) == 3
    assert len(run("log", "-n", "3", "--json").data) == 3


def test_one_session_is_named_by_a_beginning_of_its_short_name(
    run: Run, two_sessions: Path
) -> None:
    rows = marks(run("log", "-t", "fix").out)
    assert [ref for _, ref, _ in rows] == [f"fix-parser-which:{n}" for n in (1, 5, 3)]
    assert run("show", "fix:3").code == run("show", "codex-7:3").code == run("show", ":3").code == 0
    assert run("diff", "fix:1", "write:1").code == 0


def test_all_that_is_asked_for_by_two_options_is_refused(run: Run, two_sessions: Path) -> None:
    assert run("log", "--prompts", "--steps").code == 2
    assert run("log", "--follow", "--steps").code == 2
    assert run("log", "--all", "-t", "fix").code == 2


def test_programs_get_every_checkpoint_or_prompts_with_steps(run: Run, two_sessions: Path) -> None:
    every = run("log", "--json").data
    assert len(every) == 14
    assert every[0]["ref"] == f"{SECOND}:9"
    prompts = run("log", "--prompts", "--json").data
    assert [(each["prompt"], each["session"], len(each["steps"])) for each in prompts] == [
        ("Now the docs", "write-tests", 1),
        ("Write the tests", "write-tests", 3),
        ("Fix the parser, which crashes", "fix-parser-which", 2),
    ]
    step = run("log", "--steps", "--json").data[2]
    assert (step["step"], len(step["checkpoints"])) == ("Bash(rm a.txt)", 2)


def test_what_is_filtered_is_a_list_of_steps(run: Run, two_sessions: Path) -> None:
    assert marks(run("log", "--status", "ended").out) == [
        ("@", ":9", "ended"),
        ("○", "fix-parser-which:5", "ended"),
    ]


def test_sessions_are_listed_with_title_agent_and_age(run: Run, two_sessions: Path) -> None:
    newest, oldest = run("timelines").out.splitlines()
    assert newest.split()[:4] == ["write-tests", "codex", "9", "checkpoints"]
    assert newest.endswith("Write the tests")
    assert oldest.endswith("Fix the parser, which crashes")
    assert run("timelines", "--json").data[0]["short_name"] == "write-tests"


@pytest.mark.parametrize(
    "typed",
    [
        *("log", "log --prompts", "log --steps", "log --all", "log -t fix", "timelines", "status"),
        *("show fix:3", "show :3", "diff fix:1 :9", "search pass", "rewind :3 --dry-run"),
        *("rewind fix:3 --dry-run", "rewind fix:3 --yes", "rewind --before 0s --dry-run"),
        *("rewind fix:3 --everyone --yes", "rewind :3 --yes", "fork fix:3 --name other"),
        *("undo --list", "delete fix:3", "timelines delete -t fix", "timelines clear -t fix"),
        *("doctor", "show fix:99", "show :99", "log -t nosuch", "bisect fix:1 fix:5 -- true"),
        *("store verify", "store retain --keep 1 -t fix", "store purge fix:3 --yes"),
        *("undo", "redo"),
        *("save -t fix", "store export out.hardsave -t fix"),
    ],
)
def test_no_command_prints_the_name_that_a_program_made(
    typed: str, run: Run, two_sessions: Path
) -> None:
    run("rewind", ":5", "--yes")
    ran = run(*typed.split())
    assert "a fault of hardsave" not in ran.err
    printed = ran.out + ran.err + run("undo", "--list").out + run("log").out
    assert FIRST not in printed
    assert SECOND not in printed


@pytest.mark.parametrize(("width", "age"), [(80, "now"), (200, "now")])
def test_a_row_fits_its_terminal_and_uses_a_wide_one(
    width: int, age: str, two_sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "Explain in detail " + "why this has to be as it is " * 5
    with hardsave.open() as vault:
        agent = Agent(vault.timeline(SECOND), two_sessions)
        agent.prompt(long)
        agent.call("x" * 300, "d.txt")
    lines = drawn(width)
    assert max(map(len, lines)) == width
    assert all(len(line) <= width for line in lines)
    assert lines[0].split()[:3] == [">", ":10", age]
    assert "+1" in lines[1]
    assert (long.strip()[:100] in lines[0]) is (width == 200)
    assert any("Bash(make)  b.txt" in line for line in lines) is (width == 200)


def test_what_a_user_changed_by_hand_stands_beside_the_prompt_that_follows(
    two_sessions: Path, run: Run
) -> None:
    (two_sessions / "b.txt").write_text("by hand\n")
    with hardsave.open() as vault:
        Agent(vault.timeline(SECOND), two_sessions).prompt("Go on")
    row = run("log").out.splitlines()[0].split()
    assert [row[0], row[1], *row[3:]] == ["@", ":10", "~1", "Go", "on"]


def test_a_narrow_terminal_has_room_for_titles(two_sessions: Path) -> None:
    from hardsave.cli.commands import timelines

    for lines in (
        drawn(60, "prompts"),
        shown(60, lambda session: timelines._lines(session, session.timelines.every)),
    ):
        assert any(line.endswith("Fix the parser, which crashes") for line in lines)
        assert max(map(len, lines)) <= 60


def drawn(width: int, shape: Shape | None = None) -> list[str]:
    """A log as a terminal of so many columns shows it, without colours."""
    from hardsave.cli.commands import log as command
    from hardsave.cli.log_query import Asked, Wanted, told

    def lines(session: Session) -> list[Text]:
        asked = Asked(session.timelines.saved, shape, Wanted(30), is_limited=False)
        return command._drawn(session, told(session, asked))

    return shown(width, lines)


def shown(width: int, lines: Callable[[Session], list[Text]]) -> list[str]:
    with Session(Settings()) as session:
        session.out.__dict__["console"] = made = console.console(
            io.StringIO(), width=width, terminal=True
        )
        for line in lines(session):
            with made.capture() as captured:
                console.put(made, line)
            made.file.write(captured.get())
        made.file.seek(0)
        return [_plain(line) for line in made.file.read().splitlines()]


def _plain(line: str) -> str:
    return Text.from_ansi(line).plain


def test_each_state_that_a_program_saves_is_a_row(run: Run, project: Path) -> None:
    with hardsave.open() as vault:
        line = vault.timeline("agent")
        for number, status in enumerate(("running", "testing", "passed")):
            line.save({"plan": number}, workspace=".", description=f"step {number}", status=status)
        line.save({"plan": 2}, workspace=".", description="once more", status="passed")
        vault.timeline("plain").save({"n": 1}, workspace=".")
        vault.timeline("plain").append({"n": 2}, workspace=".")
    told = run("log", "--timeline", "agent").out
    assert [f"step {number}" in told for number in range(3)] == [True] * 3
    assert "once more" in told
    assert len(run("log", "--timeline", "plain").out.splitlines()) == 2
