"""What holds for every command, whichever it is."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest

import hardsave
from hardsave.cli.command import ALSO_REMOTE, EVERY_COMMON, HERE, ON_A_TIMELINE
from hardsave.cli.errors import Exit
from hardsave.cli.main import cli
from hardsave.cli.tree import COMMANDS, JOBS, SECTIONS, Branch, Entry
from hardsave.runtime.webhooks import disabled
from tests.unit.cli.conftest import Run, talk
from tests.unit.cli.jobs_project import make_jobs

CONTEXT = click.Context(cli)


def every_command() -> list[str]:
    """All that can be typed: `log`, `tasks`, `tasks add`."""
    names = []
    for name, entry in COMMANDS.items():
        below = entry.commands if isinstance(entry, Branch) else {}
        names += [name, *(f"{name} {each}" for each in below)]
    return names


def entry_of(name: str) -> Entry | Branch:
    top, _, below = name.partition(" ")
    found = COMMANDS[top]
    return found.commands[below] if below and isinstance(found, Branch) else found


EVERY = every_command()
ESCAPE = "\x1b"

A_RECEIVER = "https://ci.example/hooks/done"

# What each command needs to be called at all.
ARGUMENTS = {
    "show": ["@"],
    "diff": ["@~1"],
    "search": ["plan"],
    "rewind": ["@~1"],
    "fork": ["@~1"],
    "bisect": ["@~1", "@", "--", "test", "!", "-f", "b.txt"],
    "store export": ["out.hardsave"],
    "store import": ["in.hardsave"],
    "store copy": ["../a.db", "sqlite:///../b.db"],
    "delete": ["@~1"],
    "move": ["../nosuch"],
    "timelines clear": ["--timeline", "session-1"],
    "timelines delete": ["--timeline", "session-1"],
    "store purge": ["@~1"],
    "completion": ["bash"],
    "demo": ["files"],
    "tasks add": ["t9"],
    "tasks show": ["t1"],
    "tasks start": ["t1", "--", "true"],
    "tasks run": ["--until-idle", "--", "true"],
    "tasks retry": ["t1"],
    "tasks cancel": ["t1"],
    "tasks answer": ["t1", "yes"],
    "jobs submit": ["fresh", "--prompt", "Do"],
    "jobs show": ["fix"],
    "jobs resume": ["fix"],
    "jobs watch": ["done"],
    "jobs approve": ["asks"],
    "jobs deny": ["asks"],
    "jobs delete": ["fix"],
    "worker": ["--agents", "agents.py:AGENTS", "--until-idle"],
    "serve": ["--host", "203.0.113.7"],  # is refused: there is no token
    "ui": ["--host", "203.0.113.7"],
    "token add": ["ci"],
    "token revoke": ["ci"],
    "webhook remove": ["1f6c0a52"],
    "webhook enable": [A_RECEIVER],
    "workflow run": ["flow.yaml", "--agents", "agents.py:AGENTS"],
    "workflow check": ["flow.yaml"],
}
# Becomes another program; needs a command below it; needs a project that was moved (`test_move`);
# speaks a protocol of its own (`test_mcp`); stays (`tests/integration/server`).
SILENT = {"run", "workflow", "move", "mcp", "serve", "ui"}
ANSWERING = sorted({*EVERY} - SILENT)
MAKING = {
    "store copy",
    "init",
    "save",
    "store import",
    "completion",
    "doctor",
    "demo",
    "run",
    "mcp",
    "serve",
    "ui",
    "token",
    "token add",
    "token list",
    "token revoke",
    "trust",
    "move",
    "tasks add",
    "tasks run",
    "workflow",
    "workflow run",
    "workflow check",
    "tasks settings",
    "jobs submit",
}  # a store, or without one
WITH_JOBS = {
    "jobs",
    "jobs list",
    "jobs show",
    "jobs resume",
    "jobs watch",
    "jobs approve",
    "jobs deny",
    "jobs delete",
    "worker",
    "workflow run",
    "workflow check",
}
ASKING: dict[str, list[str]] = {
    "init": [],
    "rewind": [],
    "store purge": [],
    "store repair": [],
    "store retain": ["--keep", "1"],
}
A_TASK = ["tasks", "add", "t1"]
BEFORE = {
    "tasks show": [A_TASK],
    "tasks start": [A_TASK],
    "tasks cancel": [A_TASK],
    "tasks retry": [A_TASK, ["tasks", "cancel", "t1"]],
    "store import": [["store", "export", "in.hardsave"]],
    "store copy": [["save", "--store", "../a.db"]],
    "token revoke": [["token", "add", "ci"]],
    "webhook remove": [["webhook", "add"]],
    "webhook enable": [["webhook", "list"]],
    "undo": [["rewind", "@~1", "--yes"]],
    "redo": [["rewind", "@~1", "--yes"], ["undo"]],
}


def found(name: str) -> click.Command:
    command: click.Command | None = cli
    for word in name.split():
        assert isinstance(command, click.Group)
        command = command.get_command(CONTEXT, word)
    assert command is not None
    return command


def options_of(name: str) -> set[str]:
    return {option for parameter in found(name).params for option in parameter.opts}


def called(name: str, *more: str) -> list[str]:
    """A command as it is typed; options before the other program of a bisection."""
    return [*name.split(), *more, *ARGUMENTS.get(name, [])]


def ask() -> None:
    """A task that waits for an answer."""
    with hardsave.open() as vault:
        vault.tasks.add("t1")
        with vault.tasks.attempt("t1") as attempt:
            attempt.ask("may I?")


def disable() -> None:
    """A receiver that wants no more callbacks."""
    with hardsave.open() as vault:
        disabled.disable(vault.tasks, A_RECEIVER, datetime.now(UTC))


def agreed(name: str, run: Run, *more: str) -> list[str]:
    """The same where it has something to do, with --yes if it would ask."""
    if name in WITH_JOBS:
        make_jobs(Path.cwd())
    for arguments in BEFORE.get(name, []):
        assert run(*arguments).code == Exit.DONE
    if name == "tasks answer":
        ask()
    if name == "webhook enable":
        disable()
    if name == "webhook remove":
        return [*name.split(), *more, run("webhook", "list", "--json").data["secrets"][0]["id"]]
    return called(name, *more, *(["--yes", *ASKING[name]] if name in ASKING else []))


ABOUT_A_TIMELINE = [
    *["log", "show", "diff", "search", "status", "save", "rewind", "undo", "redo", "fork"],
    *["bisect", "delete", "timelines delete", "timelines clear"],
    *["store purge", "store verify", "store retain", "store export"],
]
# Of the common options, those that mean something to a command; to all others, those of HERE.
TAKES = {
    **dict.fromkeys(ABOUT_A_TIMELINE, ON_A_TIMELINE),
    "log": EVERY_COMMON,
    **dict.fromkeys(["jobs", *(f"jobs {name}" for name in JOBS)], ALSO_REMOTE),
    **dict.fromkeys(["run", "mcp"], ("--store", "--timeline", "-C")),
    **dict.fromkeys(["completion", "demo"], ("--json",)),
    **dict.fromkeys(
        ["trust", "move", "init", "workflow check", "tasks settings", "store copy"],
        ("--json", "-C"),
    ),
}
GIVEN = {"--json": [], "--store": ["sqlite:///x.db"], "--timeline": ["session-1"], "-C": ["."]}
REFUSED = [
    (name, option)
    for name in EVERY
    for option in ON_A_TIMELINE
    if option not in TAKES.get(name, HERE)
]


@pytest.mark.parametrize("name", EVERY)
def test_every_command_has_the_common_options_that_mean_something_to_it(name: str) -> None:
    common = options_of(name) & {*EVERY_COMMON}
    assert common == {*TAKES.get(name, HERE)}


@pytest.mark.parametrize(("name", "option"), REFUSED)
def test_an_option_that_means_nothing_to_a_command_is_refused(
    name: str, option: str, run: Run, session_1: Path
) -> None:
    before = run("log", "--all", "--json").data
    given = [option, *GIVEN[option]]
    typed = [called(name, *given)]
    if not isinstance(entry_of(name), Branch):  # whose default refuses it by its own name
        typed.append([*given, *called(name)])
    for words in typed:
        ran = run(*words)
        said = ran.data["error"]["message"] if option == "--json" else ran.err
        assert ran.code == Exit.USAGE, ran
        assert f"{option} means nothing to 'hardsave {name}'; leave it out" in said
    assert run("log", "--all", "--json").data == before


@pytest.mark.parametrize("name", [n for n in EVERY if "--server" not in TAKES.get(n, HERE)])
def test_a_server_is_refused_by_a_command_that_cannot_ask_one(name: str, run: Run) -> None:
    given = ["--server", "http://localhost:1"]
    is_group = isinstance(entry_of(name), Branch)
    for words in (called(name, *given), *([] if is_group else [[*given, *called(name)]])):
        ran = run(*words)
        assert ran.code == Exit.USAGE, ran
        assert f"--server means nothing to 'hardsave {name}" in ran.err


@pytest.mark.parametrize("name", EVERY)
def test_every_command_has_examples_that_can_be_parsed(name: str) -> None:
    examples = [line.split() for line in found(name).examples.strip().splitlines()]  # type: ignore[attr-defined]  # ours
    assert examples
    for words in examples:
        assert " ".join(words[1:]).startswith(name)
        options = [word for word in words if re.fullmatch(r"--?[a-z-]+", word)]
        before_program = options[: options.index("--")] if "--" in words else options
        known = {
            option
            for each in (words[1], " ".join(words[1:3]))
            if each in EVERY
            for option in options_of(each)
        }
        assert {*before_program} - known - {"--"} <= {"-q"}


@pytest.mark.parametrize("name", EVERY)
def test_the_list_of_commands_says_what_each_says_of_itself(name: str) -> None:
    text = found(name).help or ""
    short = " ".join(text.partition("\n\n")[0].split())
    assert short == entry_of(name).help


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
def test_every_command_speaks_to_people_without_colour_outside_of_a_terminal(
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
    if name in ("timelines clear", "timelines delete"):
        typed = [*name.split(), "--timeline", NAMED_BADLY]
    if name == "bisect":
        typed = ["bisect", "@~2", "@", "--", "test", "!", "-f", f"{NAMED_BADLY}1.txt"]
    more = [*ASKING.get(name, []), "--yes"] if name in ASKING else []
    ran = run(*typed, *more)
    assert ran.code == Exit.DONE, ran
    assert "\u202e" not in ran.out + ran.err


@pytest.mark.parametrize("name", ASKING)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_what_asks_first_refuses_where_there_is_no_terminal(
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


NAMING = [(n, o) for n in EVERY for o in ("--store", "--timeline") if (n, o) not in REFUSED]


@pytest.mark.parametrize(("name", "option"), NAMING)
def test_what_an_unset_variable_names_is_not_the_usual_one(
    name: str, option: str, run: Run, project: Path
) -> None:
    has_one = option in ARGUMENTS.get(name, [])  # and of two, the second would count
    behind = [*name.split(), option, ""] if has_one else called(name, option, "")
    for typed in ([option, "", *name.split()], behind):
        ran = run(*typed)
        assert ran.code == Exit.USAGE, ran
        assert f"{option}': it is empty; name one, or leave it out" in ran.err


def test_every_command_stands_in_one_section() -> None:
    names = [name for entries in SECTIONS.values() for name in entries]
    assert len(names) == len({*names}) == len(cli.list_commands(CONTEXT))


def test_every_module_of_commands_is_in_the_list() -> None:
    import hardsave.cli.commands as room

    (folder,) = room.__path__
    paths = [path.relative_to(folder).with_suffix("") for path in Path(folder).rglob("*.py")]
    modules = {".".join(path.parts) for path in paths if path.name != "__init__"}
    every = [entry_of(name) for name in EVERY]
    assert modules == {entry.module for entry in every if isinstance(entry, Entry)}


@pytest.mark.parametrize("before", [True, False])
def test_paths_are_meant_from_the_directory_that_was_named(
    before: bool, run: Run, session_1: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("store", "export", "in.hardsave")
    monkeypatch.chdir(tmp_path)
    there = ["-C", "project"]
    typed = ["store", "import"]
    arguments = [*there, *typed] if before else [*typed, *there]
    assert run(*arguments, "in.hardsave", "--json").data["skipped"] == 3
    assert Path.cwd() == tmp_path
    assert run("log", "-C", "nowhere", "--json").data["error"]["kind"] == "usage"


def test_options_may_stand_before_the_command_too(
    run: Run, session_1: Path, tmp_path: Path
) -> None:
    answer: list[Any] = run("-C", str(session_1), "--json", "--timeline", "session-1", "log").data
    assert len(answer) == 3


REPOSITORY = Path(__file__).parents[3]
NAMED = re.compile(
    r"(?<=['`])hardsave (?:-C \S+ |--store \S+ )*(?P<top>[a-z]+)(?: (?P<below>[a-z]+)\b)?"
)


def texts() -> list[Path]:
    pages = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")]
    pages += (REPOSITORY / "docs" / "howto").glob("*.md")
    code = [*(REPOSITORY / "src").rglob("*.py"), *(REPOSITORY / "examples").rglob("*.py")]
    return [page for page in pages if page.name != "CHANGELOG.md"] + code


def is_there(top: str, below: str | None) -> bool:
    entry = COMMANDS.get(top)
    return entry is not None and (
        not isinstance(entry, Branch) or below is None or below in entry.commands
    )


def test_every_command_that_a_text_names_is_there() -> None:
    named = [(path, each) for path in texts() for each in NAMED.finditer(path.read_text())]
    assert len(named) > 100
    wrong = [f"{path}: {each[0]}" for path, each in named if not is_there(each[1], each[2])]
    assert wrong == []
