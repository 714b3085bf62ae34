import re
from pathlib import Path

import pytest

import hardsave
from hardsave import wording
from hardsave.cli import errors
from hardsave.cli.errors import Exit
from tests.unit.cli.conftest import Run

LIBRARY = Path(hardsave.__file__).parent


@pytest.mark.parametrize(
    ("error", "exit"),
    [
        (hardsave.NotFound("x"), 3),
        (hardsave.Conflict("x"), 4),
        (hardsave.Corrupt("x"), 5),
        (hardsave.Unavailable("x"), 6),
        (hardsave.Misuse("x"), 2),
        (hardsave.Unstorable("x", "y"), 2),
        (hardsave.LeaseLost("x"), 4),
        (hardsave.StepUnknown("x"), 1),
        (hardsave.HardsaveError("x"), 1),
        (OSError("x"), 1),
    ],
)
def test_every_error_has_its_exit_code(error: Exception, exit: int) -> None:
    assert errors.exit_for(error) == exit


def test_every_branch_of_the_tree_has_a_code_of_its_own() -> None:
    branches = hardsave.HardsaveError.__subclasses__()
    ours = {branch for branch in branches if branch.__module__ == "hardsave.errors"}
    ours -= {hardsave.StepUnknown}  # work that failed, in an unusual way
    codes = {errors.exit_for(branch("x")) for branch in ours}
    assert len(codes) == len(ours)
    assert Exit.FAILED not in codes


def test_what_the_library_says_is_said_in_the_words_of_the_command_line() -> None:
    assert wording.in_our_words("there is nothing to undo; see operations()").endswith(
        "see 'hardsave undo --list'"
    )
    assert wording.in_our_words("scope='mine' or scope='everyone'") == "--mine or --everyone"


def test_a_long_message_is_told_in_lines_with_each_hint_on_its_own() -> None:
    paths = ", ".join(f"src/module_{number}.py (fix-parser)" for number in range(6))
    told = errors.in_lines(f"others have changed: {paths} and 3 more; --mine does one; --all both")
    assert told.splitlines() == [
        "others have changed:",
        "  src/module_0.py (fix-parser), src/module_1.py (fix-parser),",
        "  src/module_2.py (fix-parser), src/module_3.py (fix-parser),",
        "  src/module_4.py (fix-parser), src/module_5.py (fix-parser) and 3 more",
        "--mine does one",
        "--all both",
    ]
    prose = f"{'x' * 200}.yaml:1: store is a URL, or the path of its file, not 'x.db', or none"
    for whole in ("a: b, c, d; e", f"there is no {'x' * 200}; see: 'hardsave log'", prose):
        assert errors.in_lines(whole) == whole


def test_a_refused_rewind_fits_the_terminal(run: Run, project: Path) -> None:
    with hardsave.open() as vault:
        vault.timeline("one").save({}, workspace=".")
        for number in range(14):
            (project / f"module_{number}.py").write_text("x")
        vault.timeline("two").save({}, workspace=".")
        vault.timeline("one").save({"turn": 2}, workspace=".")
    lines = run("rewind", "one:1", "--yes").err.splitlines()
    assert lines[0] == "hardsave: other sessions have changed this workspace since:"
    assert " and 4 more" in lines[-3]
    assert lines[-2].startswith("--mine takes back")
    assert lines[-1].startswith("--everyone takes back")
    assert max(map(len, lines)) <= 80


def test_who_cannot_undo_what_was_saved_on_is_told_what_takes_it_away(run: Run) -> None:
    run("save")
    run("fork", "@", "../try-1")
    run("-C", "../try-1", "save")
    refused = run("undo", "--timeline", "try-1")
    assert refused.code == Exit.CONFLICT
    assert "see try-1:2; delete the whole timeline with 'hardsave timelines delete'" in refused.err
    assert run("timelines", "delete", "--timeline", "try-1").code == Exit.DONE


@pytest.mark.parametrize(
    ("typed", "then"),
    [
        (["show", "@", "--file", "none"], "'hardsave show REF --full' lists what was"),
        (["timelines", "delete", "--timeline", "none"], "'hardsave timelines' lists them"),
        (["show", "none:1"], "'hardsave timelines' lists them"),
        (
            ["store", "purge", "--whole", "--timeline", "none", "--yes"],
            "'hardsave timelines' lists them",
        ),
        (["store", "import", "/dev/null"], "name a file that 'hardsave store export' made"),
        (["worker", "--agents", "none.py:AGENTS"], "--agents is FILE.py:NAME or MODULE:NAME"),
    ],
)
def test_what_was_named_and_is_not_there_is_followed_by_where_to_look(
    run: Run, session_1: Path, typed: list[str], then: str
) -> None:
    ran = run(*typed)
    assert ran.code != 0
    assert ran.err.rstrip().endswith(f"; {then}")


def test_every_phrase_that_is_translated_is_one_that_the_library_says() -> None:
    rooms = ("objects", "vault", "timeline", "stores", "workspace", "tasks", "runtime")
    sources = [path.read_text() for room in rooms for path in (LIBRARY / room).rglob("*.py")]
    said = re.sub(r'"\s*f?"', "", "\n".join(sources))  # texts that run over two lines
    assert [phrase for phrase in wording.WORDS if phrase not in said] == []


def test_a_store_that_cannot_be_opened_is_said_how_to_repair(run: Run, session_1: Path) -> None:
    """In words that can be typed, and they help."""
    path = Path(run("store", "stats", "--json").data["store"].removeprefix("sqlite:///"))
    for each in path.parent.glob("store.db-backup*"):
        each.unlink()
    data = bytearray(path.read_bytes())
    data[100:4096] = bytes(3996)
    path.write_bytes(data)
    ran = run("log")
    assert ran.code == Exit.DAMAGED
    assert "run 'hardsave store repair', which saves what can be read" in ran.err
    told = [each for each in run("doctor", "--json").data if each["what"] == "store"]
    assert told[0]["remedy"] == "do as it says, then look again"
    assert "repair()" not in told[0]["message"]
    assert run("store", "repair", "--yes").code in (Exit.DONE, Exit.DAMAGED)
    assert run("log").code == Exit.DONE
