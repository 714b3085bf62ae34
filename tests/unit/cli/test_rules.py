"""What holds for every command, whichever it is."""

import json
import re
from pathlib import Path
from typing import Any

import click
import pytest

import hardsave
from hardsave.cli.errors import Exit
from hardsave.cli.main import COMMANDS, SECTIONS, cli
from tests.unit.cli.conftest import Run, talk
from tests.unit.cli.office import furnish

CONTEXT = click.Context(cli)


def every_command() -> list[str]:
    """All that can be typed: `log`, `tasks`, `tasks add`."""
    names = []
    for name in COMMANDS:
        command = cli.get_command(CONTEXT, name)
        below = command.commands if isinstance(command, click.Group) else {}
        names += [name, *(f"{name} {each}" for each in below)]
    return names


EVERY = every_command()
ESCAPE = "\x1b"

# What each command needs to be called at all.
ARGUMENTS = {
    "show": ["@"],
    "diff": ["@~1"],
    "search": ["plan"],
    "rewind": ["@~1"],
    "fork": ["@~1"],
    "bisect": ["@~1", "@", "--", "test", "!", "-f", "b.txt"],
    "export": ["out.hardsave"],
    "import": ["in.hardsave"],
    "delete": ["@~1"],
    "clear": ["session-1"],
    "purge": ["@~1"],
    "completion": ["bash"],
    "demo": ["files"],
    "tasks add": ["t9"],
    "tasks show": ["t1"],
    "tasks start": ["t1", "--", "true"],
    "tasks retry": ["t1"],
    "tasks cancel": ["t1"],
    "tasks answer": ["t1", "yes"],
    "submit": ["fresh", "--prompt", "Do"],
    "inspect": ["fix"],
    "resume": ["fix"],
    "approve": ["asks"],
    "deny": ["asks"],
    "worker": ["--agents", "agents.py:AGENTS", "--until-idle"],
    "workflow": ["run", "flow.yaml", "--agents", "agents.py:AGENTS"],
}
ANSWERING = sorted({*EVERY} - {"run"})  # `run` becomes another program, and answers nothing
MAKING = {
    "init",
    "save",
    "import",
    "completion",
    "doctor",
    "demo",
    "run",
    "trust",
    "tasks add",
    "workflow",
    "tasks settings",
    "submit",
}  # a store, or without one
WITH_JOBS = {"checkpoints", "inspect", "resume", "approve", "deny", "worker", "workflow"}
ASKING: dict[str, list[str]] = {
    "init": [],
    "rewind": [],
    "purge": [],
    "repair": [],
    "retain": ["--keep", "1"],
}
A_TASK = ["tasks", "add", "t1"]
BEFORE = {
    "tasks show": [A_TASK],
    "tasks start": [A_TASK],
    "tasks cancel": [A_TASK],
    "tasks retry": [A_TASK, ["tasks", "cancel", "t1"]],
    "import": [["export", "in.hardsave"]],
    "undo": [["rewind", "@~1", "--yes"]],
    "redo": [["rewind", "@~1", "--yes"], ["undo"]],
}


def found(name: str) -> click.Command:
    command = cli.get_command(CONTEXT, name.partition(" ")[0])
    assert command is not None
    return command.commands[name.partition(" ")[2]] if " " in name else command  # type: ignore[attr-defined] # a group


def called(name: str, *more: str) -> list[str]:
    """A command as somebody types it; options before the other program of a bisection."""
    return [*name.split(), *more, *ARGUMENTS.get(name, [])]


def ask() -> None:
    """A task that waits for an answer."""
    with hardsave.open() as vault:
        vault.tasks.add("t1")
        with vault.tasks.attempt("t1") as attempt:
            attempt.ask("may I?")


def agreed(name: str, run: Run, *more: str) -> list[str]:
    """The same where it has something to do, with --yes if it would ask."""
    if name in WITH_JOBS:
        furnish(Path.cwd())
    for arguments in BEFORE.get(name, []):
        assert run(*arguments).code == Exit.DONE
    if name == "tasks answer":
        ask()
    return called(name, *more, *(["--yes", *ASKING[name]] if name in ASKING else []))


@pytest.mark.parametrize("name", EVERY)
def test_every_command_can_be_told_the_same(name: str) -> None:
    options = {option for parameter in found(name).params for option in parameter.opts}
    assert {"--json", "--store", "--timeline", "-C"} <= options


@pytest.mark.parametrize("name", EVERY)
def test_every_command_has_examples_that_can_be_parsed(name: str) -> None:
    examples = [line.split() for line in found(name).examples.strip().splitlines()]  # type: ignore[attr-defined]  # ours
    assert examples
    for words in examples:
        assert " ".join(words[1:]).startswith(name)
        options = [word for word in words if re.fullmatch(r"--?[a-z-]+", word)]
        before_program = options[: options.index("--")] if "--" in words else options
        known = {option for parameter in found(name).params for option in parameter.opts}
        assert {*before_program} - known - {"--"} <= {"-q"}


@pytest.mark.parametrize("name", EVERY)
def test_the_list_of_commands_says_what_each_says_of_itself(name: str) -> None:
    text = found(name).help or ""
    short = " ".join(text.partition("\n\n")[0].split())
    assert short == COMMANDS[name].help if name in COMMANDS else short


@pytest.mark.parametrize("name", EVERY)
def test_every_command_answers_with_json_where_nothing_was_saved(name: str, run: Run) -> None:
    ran = run(*called(name, "--json"))
    answer = json.loads(ran.out)
    assert ran.code in {*Exit}
    assert ("error" in answer) == (ran.code not in (Exit.DONE,))
    if ran.code:
        assert answer["error"]["exit"] == ran.code
        assert answer["error"]["message"]


@pytest.mark.parametrize("name", ANSWERING)
def test_every_command_answers_with_json_in_a_project(name: str, run: Run, session_1: Path) -> None:
    ran = run(*agreed(name, run, "--json"))
    assert json.loads(ran.out) is not None
    assert ran.code == Exit.DONE, ran
    assert ESCAPE not in ran.out + ran.err


@pytest.mark.parametrize("name", ANSWERING)
def test_every_command_speaks_to_people_without_colour_where_nobody_looks(
    name: str, run: Run, session_1: Path
) -> None:
    ran = run(*agreed(name, run))
    assert ran.code == Exit.DONE, ran
    assert ESCAPE not in ran.out + ran.err


NAMED_BADLY = "a\u202eb"  # what is behind it would be read from right to left
FREE = sorted({*ANSWERING} - WITH_JOBS - {*BEFORE} - {"tasks answer", "demo"})


@pytest.mark.parametrize("name", FREE)
def test_what_others_have_written_does_not_turn_the_text_around(
    name: str, run: Run, project: Path
) -> None:
    content = "text" if name == "diff" else "text\u202e"  # lines of a patch are for programs
    with hardsave.open() as vault:
        line = vault.timeline(NAMED_BADLY)
        for number in range(3):
            Path(f"{NAMED_BADLY}{number}.txt").write_text(f"{content}\n")
            state = {"messages": talk(f"plan \u202e{number}"), NAMED_BADLY: number}
            line.save(
                state,
                name=f"{NAMED_BADLY}{number}",
                status=f"{NAMED_BADLY}{number}",
                description=NAMED_BADLY,
                metadata={NAMED_BADLY: NAMED_BADLY},
                workspace=".",
            )
    typed = [*name.split(), *ARGUMENTS.get(name, [])]
    if name == "clear":
        typed = ["clear", NAMED_BADLY]
    if name == "bisect":
        typed = ["bisect", "@~2", "@", "--", "test", "!", "-f", f"{NAMED_BADLY}1.txt"]
    more = [*ASKING.get(name, []), "--yes"] if name in ASKING else []
    ran = run(*typed, *more)
    assert ran.code == Exit.DONE, ran
    assert "\u202e" not in ran.out + ran.err


@pytest.mark.parametrize("name", ASKING)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_what_asks_first_refuses_where_nobody_can_answer(
    name: str, form: list[str], run: Run, session_1: Path
) -> None:
    before = run("log", "--all", "--json").data
    ran = run(*called(name, *ASKING[name], *form))
    assert ran.code == Exit.USAGE
    assert "--yes" in (ran.data["error"]["message"] if form else ran.err)
    assert run("log", "--all", "--json").data == before


@pytest.mark.parametrize("name", EVERY)
def test_wrong_usage_of_any_command_is_exit_2_and_json_if_asked_for(name: str, run: Run) -> None:
    assert run(*name.split(), "--nonsense").code == Exit.USAGE
    ran = run(*name.split(), "--nonsense", "--json")
    assert ran.code == Exit.USAGE
    assert ran.data["error"]["kind"] == "usage"
    assert ran.err == ""


@pytest.mark.parametrize("name", sorted({*EVERY} - MAKING))
def test_a_store_that_was_named_and_is_not_there_is_not_made_by_looking(
    name: str, run: Run, tmp_path: Path
) -> None:
    ran = run(
        *called(name, "--store", str(tmp_path / "typo.db"), *(["--yes"] if name in ASKING else []))
    )
    assert ran.code == Exit.NOT_FOUND, ran
    assert not (tmp_path / "typo.db").exists()


@pytest.mark.parametrize("option", ["--store", "--timeline"])
@pytest.mark.parametrize("name", EVERY)
def test_what_an_unset_variable_names_is_not_the_usual_one(
    name: str, option: str, run: Run, session_1: Path
) -> None:
    for typed in ([option, "", *name.split()], called(name, option, "")):
        ran = run(*typed)
        assert ran.code == Exit.USAGE, ran
        assert f"Invalid value for '{option}': it is empty" in ran.err


def test_every_command_stands_in_one_section() -> None:
    names = [name for entries in SECTIONS.values() for name in entries]
    assert len(names) == len({*names}) == len(cli.list_commands(CONTEXT))


def test_every_module_of_commands_is_in_the_list() -> None:
    import hardsave.cli.commands as room

    (folder,) = room.__path__
    modules = {path.stem for path in Path(folder).glob("*.py")} - {"__init__"}
    assert modules == {entry.module for entry in COMMANDS.values()}


@pytest.mark.parametrize("before", [True, False])
def test_paths_are_meant_from_the_directory_that_was_named(
    before: bool, run: Run, session_1: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("export", "in.hardsave")
    monkeypatch.chdir(tmp_path)
    there = ["-C", "project"]
    arguments = [*there, "import", "in.hardsave"] if before else ["import", *there, "in.hardsave"]
    assert run(*arguments, "--json").data["skipped"] == 3
    assert Path.cwd() == tmp_path
    assert run("log", "-C", "nowhere", "--json").data["error"]["kind"] == "usage"


def test_options_may_stand_before_the_command_too(
    run: Run, session_1: Path, tmp_path: Path
) -> None:
    answer: list[Any] = run("-C", str(session_1), "--json", "--timeline", "session-1", "log").data
    assert len(answer) == 3
