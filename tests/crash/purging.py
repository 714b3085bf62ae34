"""A purge that is struck: its steps, and what holds afterwards.

A process that purges tells so, before and after:

    purging WHAT
    purged WHAT

WHAT is `text` or a ref. What was purged is in no file. What was only begun to be
purged can be read, with the text or without it, until the same purge is called again: then it
is in no file either, and the rest is as it was.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import hardsave
import hardsave.vault.purge.purge  # now: a call that fails while Python loads it says nothing
import hardsave.vault.search.search
from hardsave.errors import HardsaveError
from hardsave.stores.sqlite.backup import copier
from hardsave.stores.sqlite.backup.copier import Copier
from tests.unit.vault.secrets_scanner import found

if TYPE_CHECKING:
    from tests.crash.scenarios import Session

LINE = "secrets"
SAVES = 3
TEXT = "sesame-opens-all-of-them"
_ONE = f"{LINE}:2"

# What each purge is called with, and which texts are nowhere after it.
WAYS: dict[str, tuple[dict[str, str], list[str]]] = {
    "text": ({"text": TEXT}, [TEXT]),
    _ONE: ({"ref": _ONE}, [f"words-of-{_ONE}-alone"]),
}


def state(number: int) -> dict[str, Any]:
    """What one save holds: a text that all have, and one of its own."""
    own = f"words-of-{LINE}:{number}-alone"
    long = [f"{own} {TEXT} {n}" for n in range(9)]
    return {"shared": f"say {TEXT} " * 3, "own": own, "long": long}


def plant(session: "Session") -> None:
    """Something to purge, also in the index of searches."""
    line = session.vault.timeline(LINE)
    for number in range(1, SAVES + 1):
        line.save(state(number))
    session.vault.search("sesame")


def purge(session: "Session", what: str) -> None:
    """One purge. It waits for the backup, which is fed here and now."""
    session.tell(f"purging {what}")
    with (
        mock.patch.object(Copier, "saw", Copier.turn),
        mock.patch.object(copier, "RENEWAL_SECONDS", 0.2),
    ):
        session.vault.store.purge(**WAYS[what][0])
    session.tell(f"purged {what}")


def faults(url: str, folder: Path, told: Iterable[str]) -> list[str]:
    """What does not hold; afterwards every purge that was begun is done."""
    words = [line.split() for line in told if line.startswith("purg")]
    begun = list(dict.fromkeys(what for word, what in words if word == "purging"))
    done = [what for word, what in words if word == "purged"]
    wrong = [f"{text} is still there" for text in _left(folder, done)]
    with hardsave.open(url) as vault:
        wrong += _unreadable(vault, begun)
    for what in begun:
        wrong += _repeated(url, what)
    wrong += [f"{text} is there after a second purge" for text in _left(folder, begun)]
    with hardsave.open(url) as vault:
        return wrong + list(vault.store.verify().faults)


def _left(folder: Path, purged: list[str]) -> set[str]:
    texts = [text for what in purged for text in WAYS[what][1]]
    return found(folder, texts) if texts else set()


def _repeated(url: str, what: str) -> list[str]:
    try:
        with hardsave.open(url) as vault:
            vault.store.purge(**WAYS[what][0])
    except HardsaveError as error:
        return [f"{what} cannot be purged again: {error}"]
    return []


def _unreadable(vault: hardsave.Vault, begun: list[str]) -> Iterator[str]:
    there = {each.seq: each for each in vault.timeline(LINE).checkpoints()}
    for number in range(1, SAVES + 1):
        if number not in there:
            if f"{LINE}:{number}" not in begun:
                yield f"{LINE}:{number} is lost"
        elif there[number].read() not in _versions(number, "text" in begun):
            yield f"{LINE}:{number} does not hold what was saved"


def _versions(number: int, is_purged: bool) -> list[dict[str, Any]]:
    whole = state(number)
    without = {
        "shared": whole["shared"].replace(TEXT, "[purged]"),
        "own": whole["own"],
        "long": [each.replace(TEXT, "[purged]") for each in whole["long"]],
    }
    return [whole, without] if is_purged else [whole]
