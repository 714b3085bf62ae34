"""`hardsave`: finds the command, loads only that, and turns errors into exit codes.

The table below is all that `hardsave --help` needs: no command is imported for it.
"""

import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from hardsave import logs
from hardsave.cli import glyphs
from hardsave.cli.command import global_options
from hardsave.cli.errors import Exit, as_data, exit_for, in_our_words
from hardsave.cli.hints import Place
from hardsave.errors import HardsaveError
from hardsave.tuples import NamedTuple

PROGRAM = "hardsave"


class Entry(NamedTuple):
    """Where a command lives, and its help in one line."""

    module: str
    help: str


SECTIONS: dict[str, dict[str, Entry]] = {
    "Save and look": {
        "init": Entry("init", "Let Claude Code and Codex save by themselves, through their hooks."),
        "run": Entry("run", "Run any agent, with its workspace watched and saved."),
        "save": Entry(
            "save", "Save the files of this workspace, and the state that goes with them."
        ),
        "log": Entry("log", "Show what was saved, newest first, with its branches."),
        "show": Entry("show", "Show one checkpoint: its messages, its files, its state."),
        "diff": Entry("diff", "Show what changed between two checkpoints, or since the last."),
        "search": Entry("search", "Find words in what was said and saved, files apart."),
        "status": Entry("status", "Show what has changed here since the last checkpoint."),
        "timelines": Entry("timelines", "List the timelines."),
        "stats": Entry("stats", "Show how much is stored, and where."),
    },
    "Agents at work": {
        "submit": Entry("jobs", "Queue a job for an agent, in this workspace."),
        "checkpoints": Entry("jobs", "List the jobs of agents, and what can be resumed."),
        "inspect": Entry(
            "jobs", "Show one job: how far it is, what was said, which tools it called."
        ),
        "resume": Entry(
            "jobs", "Queue a job again that failed or was killed; it goes on where it was."
        ),
        "approve": Entry("jobs", "Let a job make the call that it has asked about."),
        "deny": Entry("jobs", "Let a job go on without the call that it has asked about."),
        "worker": Entry("jobs", "Run the jobs that are queued, with agents of your own."),
        "workflow": Entry(
            "workflow", "Run the agents that a file names, one after the other, or check the file."
        ),
    },
    "Go back": {
        "rewind": Entry("rewind", "Take state, files or both back to a checkpoint."),
        "undo": Entry("undo", "Take back the latest rewind, fork, deletion or import."),
        "redo": Entry("undo", "Do again what the latest undo took back."),
        "ops": Entry("undo", "List what was done and can be taken back."),
        "fork": Entry("fork", "Start another timeline from a checkpoint."),
        "bisect": Entry("bisect", "Find the checkpoint that broke something."),
    },
    "Work": {
        "tasks": Entry("tasks", "Work that survives its process: list, add, answer."),
        "recover": Entry(
            "recover", "Put tasks of dead processes back to work, and tell what happened."
        ),
    },
    "Carry and keep": {
        "export": Entry("transfer", "Write timelines, with their history, into one file."),
        "import": Entry("transfer", "Add what an export holds and is not here yet."),
        "delete": Entry("remove", "Delete a checkpoint or a timeline; undo brings it back."),
        "clear": Entry("remove", "Delete all checkpoints of a timeline; undo brings them back."),
        "retain": Entry("retain", "Let old checkpoints go, for good."),
        "purge": Entry("purge", "Remove something from every file of the store, for good."),
        "gc": Entry("upkeep", "Remove what no checkpoint leads to."),
        "compact": Entry("upkeep", "Make the store small and quick to read."),
    },
    "Check and mend": {
        "verify": Entry("verify", "Read everything once, to know that it can be read."),
        "repair": Entry("verify", "Save what can be read of a damaged store."),
        "doctor": Entry("doctor", "Prove that saving and restoring works here."),
        "trust": Entry("trust", "Let all of this project's hardsave.yaml count, as it is now."),
        "demo": Entry("demo", "Show agents that are really killed, and go on."),
        "completion": Entry("completion", "Print what lets a shell complete commands and refs."),
    },
}
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class Commands(click.Group):
    """The commands by their sections, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module = import_module(f"hardsave.cli.commands.{entry.module}")
        found: click.Command = module.COMMANDS[cmd_name]
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not ctx.resilient_parsing:
            ctx.fail(_unknown(args[0]))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, entries in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, entry.help) for name, entry in entries.items()])


def _unknown(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, COMMANDS, n=1)
    return f"there is no command {name!r}" + (f"; is it {near[0]!r}?" if near else "")


@click.group(PROGRAM, cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@global_options
@click.version_option(package_name="hardsave", message="%(prog)s %(version)s")
def cli(**_given: Any) -> None:
    """Checkpoints, undo and time travel for AI agents and their files.

    REF names a checkpoint: @ is the head, @~2 two before it, main:7 by number, or its name, or
    the beginning of its id. 'hardsave COMMAND --help' shows examples.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _fill_in_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=glyphs.SPELT)  # no text is a reason to fail
    logs.spell(_harmless)
    place = Place(COMMANDS, _here())
    try:
        ended = cli.main(given, PROGRAM, standalone_mode=False, obj=place)
        sys.stdout.flush()
        return int(ended or Exit.DONE)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return Exit.USAGE
    except click.ClickException as error:
        return _report(given, _usage_exit(error), _usage_message(error))
    except HardsaveError as error:
        return _report(given, exit_for(error), place.aimed(in_our_words(str(error))))
    except (KeyboardInterrupt, click.Abort):
        return _report(given, Exit.INTERRUPTED, "interrupted")
    except BrokenPipeError:
        _give_up_streams()  # whoever read us has had enough
        return Exit.FAILED
    except OSError as error:
        about = f"{error.filename}: " if error.filename is not None else ""
        return _report(given, Exit.FAILED, f"{about}{error.strerror or error}")
    except Exception as error:  # noqa: BLE001 # ours, and to be told in full
        import traceback

        print(_harmless(traceback.format_exc()), end="", file=sys.stderr)
        return _report(given, Exit.FAILED, f"a fault of hardsave itself: {error!r}")


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:  # an agent may have removed it
        return ""


def _fill_in_streams() -> None:
    """Whoever starts us with a stream closed wants nothing of it, and not that the next file that
    is opened gets its number."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    sys.stdin = sys.stdin or open(0, encoding="utf-8")  # noqa: SIM115 # for as long as we live
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8")  # noqa: SIM115


def _give_up_streams() -> None:
    """What cannot be written goes nowhere: Python would try again at its end, and complain."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def _report(given: Sequence[str], exit: Exit, message: str) -> int:
    """Say what went wrong, in the form that was asked for."""
    before_other_commands = given[: given.index("--")] if "--" in given else given
    if "--json" in before_other_commands:
        try:
            print(json.dumps(as_data(exit, message), indent=2), flush=True)
        except OSError:  # perhaps that is what went wrong
            _give_up_streams()
        else:
            return exit
    with suppress(OSError):
        print(_harmless(f"hardsave: {message}"), file=sys.stderr)
    _give_up_streams()
    return exit


def _harmless(message: str) -> str:
    """What somebody else wrote may stand in a message, of an error or of a report."""
    from hardsave.cli import words

    return words.passage(message)


def _usage_exit(error: click.ClickException) -> Exit:
    return Exit.USAGE if isinstance(error, click.UsageError) else Exit.FAILED


def _usage_message(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    hint = f" (see '{context.command_path} --help')" if context is not None else ""
    return " ".join(error.format_message().split()).rstrip(".") + hint
