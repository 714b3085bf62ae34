"""What all commands have in common: their options, their help, and the session they get."""

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

import click

from hardsave.cli.arguments import COMMON, TIMELINE, before, settings
from hardsave.cli.errors import Exit
from hardsave.cli.hints import Invocation
from hardsave.cli.tree import Branch, Entry
from hardsave.errors import NotFound

F = TypeVar("F", bound=Callable[..., Any])

Body = Callable[..., Exit | None]
"""Gets the session, and what was typed. None is `Exit.DONE`."""


def _change_directory(ctx: click.Context, param: click.Parameter, directory: str | None) -> None:
    """-C, before other arguments are parsed: paths among them are relative to that directory."""
    if directory is not None:
        if ctx.resilient_parsing:  # for a shell that completes; the context is closed before
            with contextlib.suppress(OSError):
                os.chdir(directory)
            return
        invocation = ctx.obj if isinstance(ctx.obj, Invocation) else Invocation()
        invocation.change_directory(directory)
        if not os.path.isdir(directory):
            raise click.BadParameter(
                f"there is no directory {directory!r}. If it was removed, make it again, empty: "
                f"'{invocation.command('rewind')}' brings its files back"
            )
        try:
            ctx.with_resource(contextlib.chdir(directory))
        except FileNotFoundError:  # the one that this was started in was removed: no way back
            os.chdir(directory)


def not_empty(ctx: click.Context, param: click.Parameter, given: Any) -> Any:
    """Refuse an empty name: a shell variable that is not set does not mean "the usual one", which
    would be purged then."""
    is_empty = "" in given if isinstance(given, tuple) else given == ""
    if is_empty and not ctx.resilient_parsing:
        raise click.BadParameter("it is empty; name one, or leave it out")
    return given


_COMMON = {
    "--json": click.option(
        "--json", "as_json", is_flag=True, help="Answer with JSON, for programs."
    ),
    "--store": click.option(
        "--store",
        metavar="URL",
        callback=not_empty,
        help="Another store: the path of its file, or postgresql://HOST/NAME.",
    ),
    "--timeline": click.option(
        "-t",
        "--timeline",
        metavar="T",
        type=TIMELINE,
        callback=not_empty,
        help="The timeline, by its name or a unique beginning. Else the one that last saved here.",
    ),
    "--server": click.option(
        "--server",
        metavar="URL",
        callback=not_empty,
        help="Ask a 'hardsave serve', with the token in HARDSAVE_TOKEN.",
    ),
    "-C": click.option(
        "-C",
        "directory",
        metavar="DIR",
        type=click.Path(file_okay=False),
        is_eager=True,
        expose_value=False,
        callback=_change_directory,
        help="As if started in DIR.",
    ),
}
_TOO_MANY = "Got unexpected extra argument"  # as click says it
_SHORT = {"-t": "--timeline"}
HERE = ("--json", "--store", "-C")
ON_A_TIMELINE = ("--json", "--store", "--timeline", "-C")
ALSO_REMOTE = ("--json", "--store", "--server", "-C")
EVERY_COMMON = tuple(_COMMON)
YES = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


def common_options(takes: Sequence[str]) -> Callable[[F], F]:
    """Give a command those of the common options that mean something to it."""

    def decorate(function: F) -> F:
        for flag in reversed(takes):
            function = _COMMON[flag](function)
        return function

    return decorate


class _OurCommand(click.Command):
    """Its help ends with examples, and a common option that means nothing to it is refused."""

    def __init__(
        self, *args: Any, takes: Sequence[str] = HERE, examples: str = "", **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.takes = takes
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Examples"):
            for line in self.examples.strip().splitlines():
                formatter.write(f"  {line.strip()}\n")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            flag = _SHORT.get(error.option_name, error.option_name)
            if flag in _COMMON:
                ctx.fail(_meaningless(flag, ctx.command_path))
            raise


def _meaningless(flag: str, path: str) -> str:
    return f"{flag} means nothing to '{path}'; leave it out"


class Command(_OurCommand):
    """A command of its own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            self._check_what_stands_before(ctx)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if "--timeline" in self.takes and error.message.startswith(_TOO_MANY):
                takes_paths = any("--path" in each.opts for each in self.params)
                hint = ", a file or directory with --path" if takes_paths else ""
                ctx.fail(f"{error.message}; a timeline is named with --timeline{hint}")
            raise

    def _check_what_stands_before(self, ctx: click.Context) -> None:
        """Options may stand before the name of a command, where they are parsed for any."""
        own = {option for parameter in self.params for option in parameter.opts}
        for flag in before(ctx):
            if flag not in own:
                ctx.fail(_meaningless(flag, ctx.command_path))
            if flag not in self.takes:  # one like it, which may be given several times
                ctx.fail(f"{flag} stands behind '{ctx.command_path}', not before it")


def command(
    name: str, *, examples: str, takes: Sequence[str] = HERE, timeline_help: str = ""
) -> Callable[[Body], click.Command]:
    """Make a command of a function that gets a session. `timeline_help` says what --timeline means
    to it, and what is the default, where that differs from most commands."""

    def decorate(body: Body) -> click.Command:
        def run(**given: Any) -> Exit | None:
            return _run(body, given)

        run.__doc__ = body.__doc__
        run.__click_params__ = getattr(body, "__click_params__", [])  # type: ignore[attr-defined]  # where click keeps them
        make = click.command(name, cls=Command, examples=examples, takes=takes)
        made = make(common_options(takes)(run))
        made.params = [*made.params[len(takes) :], *made.params[: len(takes)]]
        for each in made.params:
            if timeline_help and isinstance(each, click.Option) and each.name == "timeline":
                each.help = timeline_help
        return made

    return decorate


class LazyGroup(click.Group):
    """Commands under one name, each imported when it is asked for."""

    def __init__(self, *args: Any, entries: Mapping[str, Entry | Branch], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        if isinstance(entry, Branch):
            return group(cmd_name, entry)
        found: click.Command = import_module(f"hardsave.cli.commands.{entry.module}").COMMANDS[
            cmd_name
        ]
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.entries and not ctx.resilient_parsing:
            from hardsave.cli import habits  # typed in error only

            raise click.UsageError(habits.answer(args[0], ctx.command_path, self.entries))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.entries.items()])


class Group(_OurCommand, LazyGroup):
    """Commands under one name. Alone, the name stands for the default, if there is one; also with
    options of that: `jobs --all` is `jobs list --all`."""

    def __init__(self, *args: Any, default: str | None, **kwargs: Any) -> None:
        super().__init__(*args, invoke_without_command=default is not None, **kwargs)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = [*args]
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption:
            if self.default is None:
                raise
            return super().parse_args(ctx, [self.default, *given])


def group(name: str, branch: Branch) -> click.Group:
    """A group of commands, out of the command tree."""

    @click.pass_context
    def run(ctx: click.Context, /, **_given: Any) -> Any:
        if ctx.invoked_subcommand is None and branch.default is not None:
            chosen = made.get_command(ctx, branch.default)
            assert chosen is not None
            with chosen.make_context(branch.default, [], parent=ctx) as below:
                return chosen.invoke(below)
        return None

    run.__doc__ = branch.help
    make = click.group(
        name,
        cls=Group,
        entries=branch.commands,
        default=branch.default,
        examples=branch.examples,
    )
    made = make(common_options(ALSO_REMOTE if branch.is_remote else HERE)(run))
    return made


def _run(body: Body, given: dict[str, Any]) -> Exit | None:
    from hardsave.cli.session import Session  # with the library; --help needs none of it

    _check_working_directory()
    own = {key: value for key, value in given.items() if key not in COMMON}
    with Session(settings(click.get_current_context())) as session:
        return body(session, **own)


def _check_working_directory() -> None:
    """An agent may have removed the directory that its user is in."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise NotFound(
            "the directory that you are in was removed; make it again, go there by its full path, "
            "and 'hardsave rewind' brings its files back"
        ) from error
