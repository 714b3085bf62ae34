"""Templates, stylesheet and icon of the page. Pure, but for reading them out of the package once.

What agents and callers wrote is text: Jinja escapes all of it, and the filters here spell out what
would reorder or hide a text that a person decides over.
"""

from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from hardsave.tuples import NamedTuple
from hardsave.wording import ago, count, in_our_words, line, passage, shown

CUT = 2_000  # characters of a text that a page shows at first


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("hardsave.server.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "shown": shown,
        "line": line,
        "passage": passage,
        "opening": opening,
        "is_long": is_long,
        "count": count,
        "in_our_words": in_our_words,
        "when": when,
        "iso": iso,
    }
    return made


class Links(NamedTuple):
    """The addresses of pages, as templates refer to them."""

    prefix: str = ""  # of all paths behind a proxy
    project: str | None = None  # that they are about, where a server has several

    @property
    def top(self) -> str:
        return f"{self.prefix}/"

    def __call__(self, path: str, **query: "str | int | None") -> str:
        """An address. Ids are never a part of the path: one may be `..`, which browsers resolve."""
        every = {"project": self.project, **query}
        given = {name: value for name, value in every.items() if value is not None}
        return f"{self.prefix}{path}?{urlencode(given)}" if given else f"{self.prefix}{path}"


def page(template: str, links: Links, **about: Any) -> str:
    return environment().get_template(template).render(link=links, **about)


@cache
def asset(name: str) -> bytes:
    """A file that pages refer to."""
    return (files("hardsave.server.page") / "templates" / name).read_bytes()


def is_long(text: str) -> bool:
    return len(text) > CUT


def opening(text: str) -> str:
    """As much of a text as a page shows at first."""
    return passage(text) if not is_long(text) else passage(text[:CUT]).rstrip() + " …"


def when(then: datetime, now: datetime) -> str:
    return ago(then, now)


def iso(then: datetime) -> str:
    return then.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
