"""Commands on a real pseudo-terminal, as a user there sees them."""

import os
import re
import shlex
import signal

import pytest

import hardsave
from hardsave import StepSummary
from hardsave.cli.picker.feed import FIRST
from tests.integration.cli.conftest import HARDSAVE, Project
from tests.integration.cli.screen import Screen

COLOUR = re.compile(rb"\x1b\[[0-9;]*3[0-9](;[0-9;]*)?m")
UP, DOWN = "\x1b[A", "\x1b[B"
PLANNED = ("state  session-1:5 → session-1:3  5 → 3 messages", "files  1 changed")


def test_a_checkpoint_is_picked_seen_in_full_confirmed_and_taken_back(project: Project) -> None:
    (project.path / "parser.py").write_text("ruined\n")
    with project.screen("rewind") as seen:
        for text in ("Enter rewind", "> @ All green", "5 steps"):
            seen.wait_for(text)
        seen.type("plan")
        seen.wait_for("  1 step")
        for text in ("session-1:3, after this step", "> ● plan-ready A plan", *PLANNED):
            seen.wait_for(text)  # the disk is looked at a moment later
        seen.type("\x04")
        seen.wait_for("-ruined")
        seen.type("\x1b")
        seen.wait_for("Tab both")
        seen.type("\r")
        seen.wait_for("rewind?")
        for text in (*PLANNED, "    ~ parser.py"):
            seen.wait_for(text)
        seen.type("d\n")
        seen.wait_for("-ruined")
        assert project.files() == {"parser.py": "ruined\n"}
        seen.type("y\n")
        assert seen.ended() == 0
        assert "hardsave undo --timeline session-1" in seen.text
        assert seen.is_as_before()
    assert project.files() == {"parser.py": "# a line\n" * 3}
    assert project.run("undo").returncode == 0
    assert project.files() == {"parser.py": "ruined\n"}


def test_a_filter_finds_the_oldest_moment_of_the_oldest_session_and_goes_back_at_once(
    project: Project,
) -> None:
    """They are read in pages: the first has the newest alone."""
    with hardsave.open() as vault:
        for number in range(FIRST):
            name = f"claude-00000000-0000-4000-8000-00000000000{number % 5}"
            (project.path / "parser.py").write_text(f"# {number}\n")
            vault.timeline(name).save(
                {"messages": [{"role": "user", "content": f"Make it {number}"}]},
                step=StepSummary(prompt=f"Make it {number}"),
                workspace=project.path,
            )
    with project.screen("rewind", width=120) as seen:
        for text in ("claude-00000000-5", "> @   Make it 239", "6 sessions, 240 prompts, 5 steps"):
            seen.wait_for(text)
        seen.type("fix the")
        for text in ("1 session, 1 step", "> ○ Please fix the parser", "~ parser.py"):
            seen.wait_for(text)
        assert "files of other sessions since go back too" in seen.text
        seen.type("\x07")  # go on, without a question
        assert seen.ended() == 0
        assert "rewound session-1 to session-1:1" in seen.text
    assert project.files() == {"parser.py": "# a line\n"}


def test_a_command_that_is_printed_can_be_copied_from_a_narrow_terminal(project: Project) -> None:
    """A line that we break is two: copied, they are two commands."""
    with project.screen("rewind", "@~1", "--yes", width=30) as seen:
        assert seen.ended() == 0
        assert b"take it back with: hardsave undo --timeline session-1" in seen.raw
    with project.screen("undo", width=30) as seen:
        assert seen.ended() == 0
        assert b"do it again with: hardsave redo --timeline session-1" in seen.raw


def test_a_terminal_without_our_drawings_gets_letters(project: Project) -> None:
    assert project.run("save", "漢字" * 60).returncode == 0
    with project.screen("rewind", PYTHONIOENCODING="ascii") as seen:
        for text in ("^v move", "rewind to", "-- session-1:6", "> @ ??????"):
            seen.wait_for(text)
        assert "\\u" not in seen.text
        seen.type("\x03")
        assert seen.ended() == 130
    assert project.run("undo").returncode == 3  # and nothing was done


def test_tab_chooses_only_the_state(project: Project) -> None:
    with project.screen("rewind") as seen:
        seen.wait_for("Tab both")
        seen.type(DOWN + DOWN + "\t")
        seen.wait_for("Tab state")
        seen.type("\r")
        seen.wait_for("rewind?")
        seen.type("y\n")
        assert seen.ended() == 0
    assert project.files() == {"parser.py": "# a line\n" * 5}
    assert '"ref": "session-1:3"' in project.run("show", "@", "--json").stdout


def test_an_answer_of_no_or_nothing_changes_nothing(project: Project) -> None:
    for answer in ("n\n", "\n", "\x04"):
        with project.screen("rewind", "@~2") as seen:
            seen.wait_for("rewind?")
            seen.type(answer)
            assert seen.ended() == 1
            assert "nothing was done" in seen.text
    assert project.run("undo", "--list", "--json").stdout.strip() == "[]"


def test_the_picker_follows_the_size_of_its_window(project: Project) -> None:
    with project.screen("rewind", width=100, height=30) as seen:
        seen.wait_for("Enter rewind")
        seen.resize(50, 12)
        seen.wait_until(lambda: seen.lines[11].endswith("Esc leave"))
        seen.wait_for("─" * 10)
        assert sum(line.startswith("> ") for line in seen.lines) == 1
        seen.resize(120, 40)
        seen.wait_until(lambda: seen.lines[39].startswith("↑↓ move"))
        seen.wait_for(" │ session-1:5, after this step")  # beside the list
        assert "─" * 10 not in seen.text
        seen.type("\x1b")
        assert seen.ended() == 1


def test_the_picker_fits_its_window_with_any_stdout_and_environment(
    project: Project,
) -> None:
    inside = f"{shlex.join(HARDSAVE)} rewind | cat"
    size = {"COLUMNS": "200", "LINES": "60"}
    with Screen(
        ["/bin/sh", "-c", inside],
        cwd=project.path,
        environment={**project.environment, **size},
        width=50,
        height=12,
    ) as seen:
        seen.wait_until(lambda: seen.lines[11].endswith("Esc leave"))
        assert seen.lines[0].startswith("rewind to")
        assert max(map(len, seen.lines)) == 50
        seen.type("\x1b")
        seen.ended()


@pytest.mark.parametrize(
    ("how", "code"), [("\x03", 130), ("\x1b", 1), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_however_the_picker_ends_the_terminal_is_as_it_was(
    how: str | signal.Signals, code: int, project: Project
) -> None:
    with project.screen("rewind") as seen:
        seen.wait_for("Enter rewind")
        assert not seen.is_as_before()
        if isinstance(how, str):
            seen.type(how)
        else:
            os.kill(seen.process.pid, how)
        assert seen.ended() == code
        assert seen.is_as_before()
        assert seen.raw.count(b"\x1b[?1049h") == seen.raw.count(b"\x1b[?1049l") == 1
        assert seen.raw.rindex(b"\x1b[?25h") > seen.raw.rindex(b"\x1b[?25l")
    assert project.run("undo", "--list", "--json").stdout.strip() == "[]"


def test_ctrl_c_at_a_question_is_exit_130_and_does_nothing(project: Project) -> None:
    with project.screen("rewind", "@~2") as seen:
        seen.wait_for("rewind?")
        seen.type("\x03")
        assert seen.ended() == 130
        assert "Traceback" not in seen.text
        assert seen.is_as_before()
    assert project.run("undo", "--list", "--json").stdout.strip() == "[]"


def test_a_log_has_colours_on_a_terminal_and_none_elsewhere(project: Project) -> None:
    with project.screen("log") as seen:
        assert seen.ended() == 0
        assert COLOUR.search(seen.raw)
        assert "@  session-1:5" in seen.text
    assert "\x1b" not in project.run("log").stdout


def test_no_color_is_honoured(project: Project) -> None:
    for command in (["log"], ["show", "@"], ["diff", "@~1"], ["doctor"]):
        with project.screen(*command, NO_COLOR="1") as seen:
            assert seen.ended() == 0
            assert not COLOUR.search(seen.raw)


def test_lines_of_a_log_are_cut_where_the_terminal_ends(project: Project) -> None:
    with project.screen("log", width=40) as seen:
        assert seen.ended() == 0
        lines = [line for line in seen.lines if line]
        assert len(lines) == 5
        assert lines[-1].endswith("…")
        assert not any(" ago" in line or "messages" in line for line in lines)  # others need room


def test_a_long_diff_goes_through_the_pager(project: Project) -> None:
    pager = 'sh -c "echo PAGED; cat"'
    with project.screen("diff", "@~4", height=8, PAGER=pager) as seen:
        assert seen.ended() == 0
        assert b"PAGED" in seen.raw
        assert b"+# a line" in seen.raw
    with project.screen("diff", "@~4", height=100, PAGER=pager) as seen:
        assert seen.ended() == 0
        assert b"PAGED" not in seen.raw
    with project.screen("diff", "@~4", height=8, PAGER="no-such-pager") as seen:
        assert seen.ended() == 0
        assert b"+# a line" in seen.raw


def test_json_on_a_terminal_asks_nothing(project: Project) -> None:
    with project.screen("rewind", "@~2", "--json") as seen:
        assert seen.ended() == 2
        assert '"kind": "usage"' in seen.text


def test_a_log_that_is_followed_shows_what_is_saved_until_ctrl_c(project: Project) -> None:
    with project.screen("log", "--follow") as seen:
        seen.wait_for("Ctrl-C ends it")
        assert project.run("save", "by-hand").returncode == 0
        seen.wait_for("session-1:6  by-hand")
        seen.type("\x03")
        assert seen.ended() == 130


def test_a_path_is_shown_as_a_whole_however_narrow_the_terminal(project: Project) -> None:
    """Lists are cut; a path that is cut cannot be copied."""
    for command in (["store", "stats"], ["doctor"]):
        with project.screen(*command, width=50, height=60) as seen:
            assert seen.ended() == 0
            assert "projects/project-" in "".join(seen.lines)
            assert "store.db" in "".join(seen.lines)


def test_long_texts_go_on_below_where_they_began(project: Project) -> None:
    with project.screen("doctor", width=60, height=60) as seen:
        assert seen.ended() == 0
        first = next(line for line in seen.lines if "save and restore" in line)
        after = seen.lines[seen.lines.index(first) + 1]
        assert len(after) - len(after.lstrip()) == first.index("files and state")


def test_init_names_the_files_that_it_asks_about_and_shows_their_lines_if_asked(
    project: Project,
) -> None:
    for agent in ("claude", "codex", "qwen"):
        (project.path.parent / f".{agent}").mkdir()
    settings = project.path.parent / ".claude" / "settings.json"
    with project.screen("init", width=250, height=24) as seen:
        seen.wait_for("write this? yes (y), diff (d), no (n)")
        named = [line for line in seen.lines if line.startswith("+ ")]
        assert named[0] == f"+ Claude Code, hooks: {settings}"
        assert len(named) == 5
        assert not settings.exists()
        seen.type("d\n")
        seen.wait_for("-m hardsave rewind --yes REF")
        seen.type("y\n")
        seen.wait_for(f"Claude Code: hooks installed in {settings}")
        assert seen.ended() == 0
    assert "PostToolBatch" in settings.read_text()


def test_where_others_worked_a_user_is_asked_whose_changes_go_back(project: Project) -> None:
    with hardsave.open() as vault:
        (project.path / "theirs.py").write_text("theirs\n")
        vault.timeline("session-2").save({}, workspace=project.path, status="running")
    before = project.files()
    typed = ("rewind", "session-1:1", "--timeline", "session-1")
    asked = "whose changes go back? mine alone (m), everyone's (e), nothing (n)"
    with project.screen(*typed) as seen:
        seen.wait_for(asked)
        assert "theirs.py (session-2)" in seen.text
        seen.type("n\n")
        assert seen.ended() == 1
        assert "nothing was done" in seen.text
    assert project.files() == before
    for answer, left in (("m", {"theirs.py": "theirs\n"}), ("e", {})):
        with project.screen(*typed) as seen:
            seen.wait_for(asked)
            seen.type(f"{answer}\n")
            seen.wait_for("rewind? yes (y)")
            seen.type("y\n")
            assert seen.ended() == 0
        assert project.files() == {"parser.py": "# a line\n", **left}
        assert project.run("undo", "--timeline", "session-1").returncode == 0
    assert project.run(*typed).returncode == 4
