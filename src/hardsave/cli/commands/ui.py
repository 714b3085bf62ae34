"""`hardsave ui`: the dashboard in a browser, served by this command or by one that runs already."""

import json
import os
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hardsave.cli.command import command
from hardsave.cli.commands import serve as serving
from hardsave.cli.session import Session
from hardsave.server.projects import Catalogue
from hardsave.server.running_servers import RunningServer, another_link, server_file
from hardsave.server.tokens import canonical

if TYPE_CHECKING:
    from hardsave.server.running import Ready

_WINDOWS = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")


@command(
    "ui",
    examples="""
        hardsave ui
        hardsave ui --no-open
        hardsave ui --port 9000
    """,
)
@serving.HOST
@serving.PORT
@serving.PUBLIC_URL
@click.option("--no-open", is_flag=True, help="Print the link, and open no browser.")
def ui(session: Session, no_open: bool, **given: Any) -> None:
    """Open the dashboard in a browser: all your projects, this one first.

    It shows what agents did, and takes it back. Serves until Ctrl-C, like 'hardsave serve
    --all-projects'; if a server of yours runs already, that one is opened.
    """
    running = _running(session, given["port"])
    if running is not None:
        server, link = running
        _show(session, f"a server of yours runs at {server.url}", _first(server, link), no_open)
        return
    settings = serving.settings_of(session, given)
    is_all = session.settings.store is None
    what = "all projects of this user" if is_all else session.url

    def tell(ready: "Ready") -> None:
        place = f"serving {what} at {ready.url}; Ctrl-C stops it"
        _show(session, place, f"{ready.link}{_project_first(is_all)}", no_open)

    serving.start(session, settings._replace(all_projects=is_all), tell)


def _running(session: Session, port: int | None) -> tuple[RunningServer, str] | None:
    """A server of this user that answers and has this project, and a link to it."""
    own = canonical(session.url)
    for server in server_file().every():
        is_ours = server.store in ((None, own) if session.settings.store is None else (own,))
        if is_ours and port in (None, server.port) and (link := another_link(server)):
            return server, link
    return None


def _first(server: RunningServer, link: str) -> str:
    return f"{link}{_project_first(server.store is None)}"


def _project_first(is_all: bool) -> str:
    """What follows a link, so that the page begins with this directory's project."""
    if not is_all:
        return "#/"
    here = Catalogue.all(os.environ, Path.cwd()).default
    return "#/projects" if here is None else f"#/?project={here.id}"


def _show(session: Session, place: str, link: str, no_open: bool) -> None:
    if session.out.as_json:
        print(json.dumps({"link": link}), flush=True)
        return
    is_open = not no_open and _has_browser() and webbrowser.open(link)
    session.out.say(place)
    what = "opened in your browser; else this link" if is_open else "this link"
    session.out.say(f"{what} lets one browser in, once, within ten minutes:")
    print(link, flush=True)


def _has_browser() -> bool:
    """Whether one has a window of its own: a browser in this terminal would take it over."""
    return sys.platform != "linux" or any(os.environ.get(name) for name in _WINDOWS)


COMMANDS = {"ui": ui}
