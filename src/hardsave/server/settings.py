"""What `hardsave serve` goes by: what was typed or stands in a variable, else the user's own
configuration file, else the defaults. Pure."""

from collections.abc import Mapping
from typing import Any

from hardsave.defaults import SERVER_HOST, SERVER_PORT
from hardsave.tuples import NamedTuple


class Settings(NamedTuple):
    """The settings of a server."""

    host: str = SERVER_HOST
    port: int = SERVER_PORT
    public_url: str | None = None
    all_projects: bool = False
    open_loopback: bool = False
    agents: tuple[str, ...] = ()
    workspaces: tuple[str, ...] = ()


def settled(given: Mapping[str, Any], file: Mapping[str, Any]) -> Settings:
    """`given` has None, or nothing, where neither an option nor a variable said something. What is
    given replaces a list of the file."""
    said = {name: value for name, value in given.items() if value not in (None, ())}
    return Settings(**{**file, **said})
