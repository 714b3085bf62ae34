"""What is typed by habit is answered with the command that does it here."""

import pytest

from hardsave.cli import habits
from hardsave.cli.errors import Exit
from hardsave.cli.tree import COMMANDS, Branch
from tests.unit.cli.conftest import Run


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("restore", "to go back: 'hardsave rewind'"),
        ("list", "to see what was saved: 'hardsave log'"),
        ("checkpoints", "to see what was saved: 'hardsave log'"),
        ("history", "to see what was saved: 'hardsave log'"),
        ("resume", "to go on with an agent: 'hardsave rewind @ --resume'"),
        ("stash", "to save: 'hardsave save'"),
        ("server", "to serve jobs over HTTP: 'hardsave serve'"),
        ("uninstall", "to take the hooks of agents out: 'hardsave init --undo'"),
        ("get", "see 'hardsave --help'"),
        ("compare", "to see what has changed: 'hardsave diff'"),
        ("st", "to see which files have changed: 'hardsave status'"),
        ("verify", "to check the store: 'hardsave store verify'"),
        ("restor", "to go back: 'hardsave rewind'"),
        ("stauts", "is it 'status'?"),
        ("lgo", "is it 'log'?"),
    ],
)
def test_a_word_of_habit_or_a_typo_is_answered_with_the_command(
    typed: str, answer: str, run: Run
) -> None:
    ran = run(typed)
    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert ran.err == f"hardsave: there is no command {typed!r}; {answer}\n"
    assert run("--json", typed).data["error"]["message"].endswith(answer)


def test_a_word_that_is_like_no_other_is_answered_with_the_help(run: Run) -> None:
    assert run("xyzzy").err == "hardsave: there is no command 'xyzzy'; see 'hardsave --help'\n"
    assert run("tasks", "xyzzy").err.endswith("in 'hardsave tasks'; see 'hardsave tasks --help'\n")
    assert run("tasks", "shwo").err.endswith("in 'hardsave tasks'; is it 'show'?\n")


@pytest.mark.parametrize(
    "options", [("jobs", "list", "--all"), ("tasks", "list", "-n", "5", "--state", "failed")]
)
def test_a_group_alone_takes_the_options_of_its_default(options: tuple[str, ...], run: Run) -> None:
    group, default, *more = options
    assert run(group, *more, "--json") == run(group, default, *more, "--json")
    assert run(group, *more, "--json").code == Exit.DONE
    assert run(group, "--nonsense").code == Exit.USAGE


@pytest.mark.parametrize("word", habits.MEANT)
def test_every_habit_is_answered_with_a_command_that_there_is(word: str) -> None:
    assert word not in COMMANDS
    purpose, typed = habits.MEANT[word]
    assert purpose.startswith("to ")
    top, _, below = typed.partition(" ")
    entry = COMMANDS.get(top)
    assert top in ("--help", "--version") or entry is not None
    if isinstance(entry, Branch):
        assert below == "" or below in entry.commands
