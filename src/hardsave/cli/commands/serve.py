"""`hardsave serve`: the HTTP server over this project's store."""

import json
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hardsave.cli.command import command
from hardsave.cli.session import Session
from hardsave.config import STORE_VARIABLE
from hardsave.defaults import SERVER_HOST, SERVER_PORT
from hardsave.errors import Misuse
from hardsave.server.projects import Catalogue
from hardsave.server.route import Allowed
from hardsave.server.tokens import LiveTokens, token_file

if TYPE_CHECKING:
    from hardsave.server.running import Ready


@command(
    "serve",
    examples="""
        hardsave serve
        hardsave serve --port 0 --json
        hardsave serve --open-loopback --allow-agent coder --allow-workspace .
    """,
)
@click.option("--host", default=SERVER_HOST, show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=SERVER_PORT,
    show_default=True,
    help="0: a free one.",
)
@click.option("--all-projects", is_flag=True, help="All of yours, not this one alone.")
@click.option(
    "--open-loopback", is_flag=True, help="/checkpoints and /webhook need no token on this machine."
)
@click.option(
    "--allow-agent", "agents", multiple=True, metavar="NAME", help="POST /webhook may name it."
)
@click.option(
    "--allow-workspace",
    "workspaces",
    multiple=True,
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="POST /webhook may name it.",
)
def serve(
    session: Session,
    host: str,
    port: int,
    all_projects: bool,
    open_loopback: bool,
    agents: tuple[str, ...],
    workspaces: tuple[Path, ...],
) -> None:
    """Serve this project's jobs over HTTP, for programs and for a browser.

    On this machine alone, unless --host names another address: that needs tokens, which
    'hardsave token add' makes. Ctrl-C stops it.
    """
    try:
        from hardsave.server import running
    except ImportError as error:
        raise Misuse(
            f"the server needs Starlette and uvicorn ({error}); install them with: "
            "pip install 'hardsave[server]'"
        ) from error

    catalogue = _catalogue(session, all_projects)
    allowed = Allowed(agents, tuple(each.resolve() for each in workspaces))
    serving = running.Serving(host, port, open_loopback, allowed)
    tokens = LiveTokens(token_file())
    running.check(serving, tokens, catalogue)  # before a store is made
    if not all_projects:
        session.may_create_store = not (session.settings.store or os.environ.get(STORE_VARIABLE))
        _ = session.vault  # which is there from now on
    what = "all projects of this user" if all_projects else session.url
    _log_to_stderr()
    running.serve(serving, tokens, catalogue, lambda ready: _tell(session, what, ready))


def _catalogue(session: Session, all_projects: bool) -> Catalogue:
    if not all_projects:
        return Catalogue.one(session.url, Path.cwd())
    if session.settings.store:
        raise Misuse("--all-projects is for every store, and --store names one; leave one out")
    return Catalogue.all(os.environ, Path.cwd())


def _tell(session: Session, what: str, ready: "Ready") -> None:
    if session.out.as_json:
        print(json.dumps(ready._asdict()), flush=True)
        return
    session.out.say(f"serving {what}", f"at {ready.url}; Ctrl-C stops it")
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
