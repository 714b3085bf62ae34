"""Short names: what is printed and typed for a timeline. Pure.

A name that a user chose is kept. Agent sessions and runs have names that a program made, such as
`claude-7d63e7b0-f288-46b6-abcd-2f90475a4877`: they are called after the first words of their title.
All timelines of a store are named together, in the order in which they were made, deleted ones too:
so a name that was printed once keeps its meaning. A timeline that is made later under a name that
an older session is called by is numbered, too, as `fix-parser-2`.
"""

import unicodedata
from collections.abc import Iterable, Sequence

from hardsave.errors import Misuse
from hardsave.tuples import NamedTuple

LONGEST = 24  # columns of a short name, and characters of a name that needs none
_WORDS = 3  # of a title
_BEGINNING = 15  # characters of a name that has no title: `claude-7d63e7b0`
_LISTED = 4  # candidates in a message

# Words that most titles have, and that tell no two apart.
_FILLERS = (
    " a an and are at be by can could do does for from how i if in into is it its let me my not of "
    "on or our please so that the there these this to us we what when with would you your "
)


class Titled(NamedTuple):
    """A timeline, as far as its short name depends on it."""

    name: str
    title: str = ""


def short_names(timelines: Iterable[Titled]) -> dict[str, str]:
    """From names to short names. `timelines` come in the order in which they were made."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for each in timelines:
        if each.name not in found:
            found[each.name] = _free(_wanted(each), taken)
            taken.add(found[each.name])
    return found


def _wanted(one: Titled) -> str:
    return one.name if len(one.name) <= LONGEST else slug(one.title) or _beginning(one.name)


def slug(title: str) -> str:
    """The first words of a title that say something, as `fix-parser`; empty if it has no words."""
    words = "".join(c if c.isalnum() else " " for c in title.replace("'", "").casefold()).split()
    telling = [word for word in words if f" {word} " not in _FILLERS] or words
    chosen = telling[:_WORDS]
    while len(chosen) > 1 and _columns("-".join(chosen)) > LONGEST:
        chosen.pop()
    short = "-".join(chosen)[:LONGEST]
    while _columns(short) > LONGEST:
        short = short[:-1]
    return short


def _columns(text: str) -> int:
    """How many a terminal needs: most letters of East Asia take two."""
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def named(typed: str, short: dict[str, str]) -> str | None:
    """The timeline of which this is the short name or the name, or a beginning of one of them that
    no other timeline has; None if there is none. `Misuse` if several begin so."""
    if (exact := called(typed, short)) is not None:
        return exact
    found = [n for n, each in short.items() if n.startswith(typed) or each.startswith(typed)]
    if len(found) > 1:
        what = f"{len(found)} timelines begin with {typed!r}"
        raise Misuse(f"{what}: {_some([short[name] for name in found])}; type more of it")
    return found[0] if found else None


def called(typed: str, short: dict[str, str]) -> str | None:
    """The timeline of which this is the whole short name, or else the whole name. What is printed
    is the short name: it means the same when it is typed."""
    exact = next((name for name, each in short.items() if each == typed), None)
    return exact or (typed if typed in short else None)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(map(repr, names[:_LISTED])) + more


def _beginning(name: str) -> str:
    return name[:_BEGINNING].rstrip("-_. ") or name[:_BEGINNING]


def _free(wanted: str, taken: set[str]) -> str:
    """`fix-parser`, or `fix-parser-2` if that is taken."""
    number, found = 1, wanted
    while found in taken:
        number += 1
        found = f"{wanted}-{number}"
    return found
