"""`hardsave serve`: the HTTP server over this project's store, or over all projects."""

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from hardsave import config
from hardsave.cli.command import command, not_empty
from hardsave.cli.session import Session
from hardsave.config import STORE_VARIABLE
from hardsave.defaults import SERVER_HOST, SERVER_PORT
from hardsave.errors import Misuse
from hardsave.server.projects import Catalogue
from hardsave.server.public import Public, public_of
from hardsave.server.route import Allowed
from hardsave.server.settings import Settings, settled
from hardsave.server.tokens import LiveTokens, token_file
from hardsave.stores.registry import shown

if TYPE_CHECKING:
    from hardsave.server.running import Ready

F = TypeVar("F", bound=Callable[..., Any])


class _Name(click.types.StringParamType):
    """Names, in a variable with commas between them."""

    envvar_list_splitter = ","

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(super().convert(value, param, ctx)).strip()


def _option(*names: str, **about: Any) -> Callable[[F], F]:
    """An option, which a variable may say, too; what neither says may stand in the user's file."""
    variable = names[0].partition("/")[0].removeprefix("--").replace("-", "_").upper()
    return click.option(
        *names, envvar=f"HARDSAVE_SERVE_{variable}", show_envvar=True, default=None, **about
    )


HOST = _option("--host", show_default=SERVER_HOST, help="The address to listen on.")
PORT = _option(
    "--port", type=click.IntRange(0, 65_535), show_default=str(SERVER_PORT), help="0: a free one."
)
PUBLIC_URL = _option(
    "--public-url",
    metavar="URL",
    help="How browsers reach it, through a proxy: its scheme, name and prefix.",
)


@command(
    "serve",
    examples="""
        hardsave serve
        hardsave serve --all-projects
        hardsave serve --port 0 --json
        hardsave serve --open-loopback --allow-agent coder --allow-workspace .
        hardsave serve --public-url https://tools.example.com/hardsave
    """,
)
@HOST
@PORT
@PUBLIC_URL
@_option("--all-projects/--no-all-projects", help="Serve all of yours, not this one alone.")
@_option(
    "--open-loopback/--no-open-loopback",
    help="/checkpoints and /webhook need no token on this machine.",
)
@_option(
    "--allow-agent",
    "agents",
    type=_Name(),
    multiple=True,
    callback=not_empty,
    metavar="NAME",
    help="POST /webhook may name it.",
)
@_option(
    "--allow-workspace",
    "workspaces",
    multiple=True,
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="POST /webhook may name it.",
)
def serve(session: Session, **given: Any) -> None:
    """Serve this project, or all of yours, to programs and to a browser.

    On this machine alone, unless --host names another address: that needs tokens, which
    'hardsave token add' makes. Ctrl-C stops it.
    """
    settings = settings_of(session, given)
    what = "all projects of this user" if settings.all_projects else shown(session.url)
    start(session, settings, lambda ready: _tell(session, what, ready))


def start(session: Session, settings: Settings, tell: "Callable[[Ready], None]") -> None:
    """Serve until it is stopped; `tell` is called once it has answered a request."""
    try:
        from hardsave.server import running
    except ImportError as error:
        raise Misuse(
            f"the server needs Starlette and uvicorn ({error}); install them with: "
            "pip install 'hardsave[server]'"
        ) from error

    from hardsave.cli.mcp_server import over_http
    from hardsave.server.table import ROUTES

    catalogue = _catalogue(session, settings)
    public = Public() if settings.public_url is None else public_of(settings.public_url)
    allowed = Allowed(settings.agents, tuple(map(_directory, settings.workspaces)))
    serving = running.Serving(settings.host, settings.port, settings.open_loopback, allowed, public)
    tokens = LiveTokens(token_file())
    running.check(serving, tokens, catalogue)  # before a store is made
    if not settings.all_projects:
        session.may_create_store = not (session.settings.store or os.environ.get(STORE_VARIABLE))
        _ = session.vault  # which is there from now on
    _log_to_stderr()
    running.serve(serving, tokens, catalogue, tell, (*ROUTES, *over_http.ROUTES))


def settings_of(session: Session, given: Mapping[str, Any]) -> Settings:
    """A store that was typed is the one to serve, even if all projects usually are."""
    found = settled(given, config.serving(os.environ))
    if session.settings.store is None:
        return found
    source = click.get_current_context().get_parameter_source("all_projects")
    if found.all_projects and source is ParameterSource.COMMANDLINE:
        raise Misuse("--all-projects is for every store, and --store names one; leave one out")
    return found._replace(all_projects=False)


def _catalogue(session: Session, settings: Settings) -> Catalogue:
    if settings.all_projects:
        return Catalogue.all(os.environ, Path.cwd())
    return Catalogue.one(session.url, Path.cwd())


def _directory(named: str) -> Path:
    if not os.path.isdir(named):
        raise Misuse(f"{named!r}, which jobs may name as their workspace, is no directory")
    return Path(named).resolve()


def _tell(session: Session, what: str, ready: "Ready") -> None:
    if session.out.as_json:
        print(json.dumps(ready._asdict()), flush=True)
        return
    outside = f", for browsers {ready.public_url}" if ready.public_url else ""
    session.out.say(f"serving {what}", f"at {ready.url}{outside}; Ctrl-C stops it")
    session.out.say("this link lets one browser in, once, within ten minutes:")
    print(ready.link, flush=True)


def _log_to_stderr() -> None:
    """Each request is a line; a stranger's path is ASCII, and cannot drive a terminal."""
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    access = logging.getLogger("hardsave.access")
    access.addHandler(lines)
    access.setLevel(logging.INFO)
    access.propagate = False


COMMANDS = {"serve": serve}
