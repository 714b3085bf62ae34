"""What all commands have in common: their options, their help, and the session they get."""

import contextlib
import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from hardsave.cli.arguments import EVERYWHERE, TIMELINE, settings
from hardsave.cli.errors import Exit
from hardsave.cli.hints import Place
from hardsave.errors import NotFound

F = TypeVar("F", bound=Callable[..., Any])

Body = Callable[..., Exit | None]
"""Gets the session, and what was typed. None is `Exit.DONE`."""


def _go_there(ctx: click.Context, param: click.Parameter, directory: str | None) -> None:
    """At once, before other arguments are looked at: paths among them are meant from there."""
    if directory is not None:
        if ctx.resilient_parsing:  # for a shell that completes; the context is closed before
            with contextlib.suppress(OSError):
                os.chdir(directory)
            return
        place = ctx.obj if isinstance(ctx.obj, Place) else Place()
        place.go(directory)
        if not os.path.isdir(directory):
            raise click.BadParameter(
                f"there is no directory {directory!r}. If it was removed, make it again, empty: "
                f"'{place.command('rewind')}' brings its files back"
            )
        try:
            ctx.with_resource(contextlib.chdir(directory))
        except FileNotFoundError:  # the one that this was started in was removed: no way back
            os.chdir(directory)


def _not_empty(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """What a variable says that nobody has set is not "the usual one": that may be purged then."""
    if text == "" and not ctx.resilient_parsing:
        raise click.BadParameter("it is empty; name one, or leave it out")
    return text


_GLOBAL = (
    click.option("--json", "as_json", is_flag=True, help="Answer with JSON, for programs."),
    click.option(
        "--store",
        metavar="URL",
        callback=_not_empty,
        help="Another store: sqlite:///PATH, or the path of its file.",
    ),
    click.option(
        "--timeline",
        metavar="T",
        type=TIMELINE,
        callback=_not_empty,
        help="The timeline. Else the one that last saved here.",
    ),
    click.option(
        "-C",
        "directory",
        metavar="DIR",
        type=click.Path(file_okay=False),
        is_eager=True,
        expose_value=False,
        callback=_go_there,
        help="As if started in DIR.",
    ),
)
YES = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


class _WithExamples(click.Command):
    """Its help ends with examples."""

    def __init__(self, *args: Any, examples: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Examples"):
            for line in self.examples.strip().splitlines():
                formatter.write(f"  {line.strip()}\n")


class Command(_WithExamples):
    """A command of its own."""


def global_options(function: F) -> F:
    """Let a command be told what every command can be told."""
    for option in reversed(_GLOBAL):
        function = option(function)
    return function


def command(name: str, *, examples: str) -> Callable[[Body], click.Command]:
    """Make a command of a function that gets a session."""

    def decorate(body: Body) -> click.Command:
        def run(**given: Any) -> Exit | None:
            return _run(body, given)

        run.__doc__ = body.__doc__
        run.__click_params__ = getattr(body, "__click_params__", [])  # type: ignore[attr-defined]  # where click keeps them
        made = click.command(name, cls=Command, examples=examples)(global_options(run))
        made.params = [*made.params[len(_GLOBAL) :], *made.params[: len(_GLOBAL)]]
        return made

    return decorate


class Group(_WithExamples, click.Group):
    """Commands under one name. Alone, the name stands for one of them."""


def group(name: str, help: str, commands: dict[str, click.Command], *, default: str) -> click.Group:
    """A group of commands, each of which can be told what every command can be told."""

    @click.pass_context
    def run(ctx: click.Context, /, **_given: Any) -> Any:
        if ctx.invoked_subcommand is None:
            chosen = made.commands[default]
            with chosen.make_context(default, [], parent=ctx) as below:
                return chosen.invoke(below)
        return None

    run.__doc__ = help
    examples = f"hardsave {name}\n" + "\n".join(
        each.examples.strip().splitlines()[0].strip()
        for each in commands.values()
        if isinstance(each, Command)
    )
    make = click.group(name, cls=Group, examples=examples, invoke_without_command=True)
    made = make(global_options(run))
    made.commands.update(commands)
    return made


def _run(body: Body, given: dict[str, Any]) -> Exit | None:
    from hardsave.cli.session import Session  # with the library; --help needs none of it

    _check_where_we_are()
    own = {key: value for key, value in given.items() if key not in EVERYWHERE}
    with Session(settings(click.get_current_context())) as session:
        return body(session, **own)


def _check_where_we_are() -> None:
    """An agent may have removed the directory under its user's feet."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise NotFound(
            "the directory that you are in was removed; make it again, go there by its full path, "
            "and 'hardsave rewind' brings its files back"
        ) from error
