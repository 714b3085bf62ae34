"""`hardsave`: finds the command, loads only that, and turns errors into exit codes."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import click

from hardsave import logs
from hardsave.cli.command import EVERY_COMMON, LazyGroup, common_options
from hardsave.cli.errors import Exit, as_data, exit_for, in_lines
from hardsave.cli.hints import Invocation
from hardsave.cli.render import glyphs
from hardsave.cli.tree import COMMANDS, SECTIONS
from hardsave.errors import HardsaveError
from hardsave.wording import in_our_words

PROGRAM = "hardsave"


class Program(LazyGroup):
    """The whole tree, listed by its sections."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, entries in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, entry.help) for name, entry in entries.items()])


@click.group(
    PROGRAM, cls=Program, entries=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@common_options(EVERY_COMMON)
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
    invocation = Invocation(COMMANDS, _here())
    try:
        ended = cli.main(given, PROGRAM, standalone_mode=False, obj=invocation)
        sys.stdout.flush()
        return int(ended or Exit.DONE)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return Exit.USAGE
    except click.ClickException as error:
        return _report(given, _usage_exit(error), _usage_message(error))
    except HardsaveError as error:
        return _report(given, exit_for(error), invocation.in_context(in_our_words(str(error))))
    except (KeyboardInterrupt, click.Abort):
        return _report(given, Exit.INTERRUPTED, "interrupted")
    except BrokenPipeError:
        _give_up_streams()  # the program that read our output has ended
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
    """A program that starts us with a stream closed wants nothing of it; but the next file that is
    opened must not get its number."""
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
            from hardsave.values.text import dumps  # --help does not pay for it

            print(dumps(as_data(exit, message), indent=2), flush=True)
        except OSError:  # perhaps that is what went wrong
            _give_up_streams()
        else:
            return exit
    with suppress(OSError):
        print(_harmless(f"hardsave: {in_lines(message)}"), file=sys.stderr)
    _give_up_streams()
    return exit


def _harmless(message: str) -> str:
    """A message may quote an agent or a file name, which must not drive the terminal."""
    from hardsave import wording

    return wording.passage(message)


def _usage_exit(error: click.ClickException) -> Exit:
    return Exit.USAGE if isinstance(error, click.UsageError) else Exit.FAILED


def _usage_message(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    hint = f" (see '{context.command_path} --help')" if context is not None else ""
    return " ".join(error.format_message().split()).rstrip(".") + hint
