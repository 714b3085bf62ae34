"""Whether a copy has all that its source has, read from both stores once more."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from hardsave.objects.hashing import digest
from hardsave.objects.records import CheckpointRecord
from hardsave.progress import meter
from hardsave.stores.ledger import TaskQuery, every
from hardsave.vault.copying.events import (
    PAGE,
    Row,
    Side,
    all_timelines,
    all_tombstones,
    all_workspaces,
    events,
    read_steps,
)
from hardsave.vault.copying.numbers import hidden_in_copy, renumbered
from hardsave.vault.copying.user_copy import UserCopy
from hardsave.vault.scratch import Scratch


def differences(made: UserCopy, steps: Scratch, steps_of_copy: Scratch) -> Iterator[str]:
    """One line each; none if the copy is right. `steps` are those that the copy was made from."""
    for what, of_source, of_copy in (
        ("timeline", all_timelines(made.source), all_timelines(made.copy)),
        ("workspace", all_workspaces(made.source), all_workspaces(made.copy)),
        ("task", _tasks(made.source), _tasks(made.copy)),
        ("tombstone", _tombstones(made.source), _tombstones(made.copy)),
        ("labels", _attached(made.source), _attached(made.copy)),
    ):
        yield from _pairs(what, of_source, of_copy)
    read_steps(made.copy, steps_of_copy)
    yield from _pairs("commit", _expected(made, steps), _commits(made.copy, steps_of_copy))
    yield from _objects(made)


def _pairs(what: str, of_source: Iterator[Any], of_copy: Iterator[Any]) -> Iterator[str]:
    for one, other in zip_longest(of_source, of_copy):
        if one != other:
            yield f"a {what} of the copy differs: {other!r:.200} is not {one!r:.200}"
            return


def _tasks(side: Side) -> Iterator[Any]:
    rows = every(side.store, side.user, TaskQuery(PAGE))
    return (row._replace(place=0) for row in rows)


def _tombstones(side: Side) -> Iterator[Any]:
    for line in all_timelines(side):
        yield from all_tombstones(side, line.name)


def _attached(side: Side) -> Iterator[Any]:
    """Labels and notes, by checkpoint."""
    after = 0
    while rows := side.store.saved(side.user, after, PAGE):
        ids = [row.id for row in rows]
        labels, notes = side.store.labels(side.user, ids), side.store.notes(side.user, ids)
        yield from ((id, labels.get(id), notes.get(id)) for id in ids)
        after = rows[-1].number


def _commits(side: Side, steps: Scratch) -> Iterator[Row]:
    rows = events(side, steps, side.store.latest_number(side.user))
    return (row._replace(number=0) for row in rows)


def _expected(made: UserCopy, steps: Scratch) -> Iterator[Row]:
    """The commits of the source as the copy must have them."""
    upto = made.source.store.latest_number(made.source.user)
    last = made.last
    for row in events(made.source, steps, upto):
        stones = len(made.stones) if row.number == last else 0
        expected = renumbered(row, made.numbers, stones=stones)
        if isinstance(expected, CheckpointRecord):
            hidden = hidden_in_copy(expected, made.hidden, made.numbers)
            expected = expected._replace(hidden=hidden)
        yield expected._replace(number=0)


def _objects(made: UserCopy) -> Iterator[str]:
    """Each object of the source is there, and each of the copy is what its hash says."""
    counting = meter("checking", "objects")
    store, user = made.copy
    for part in made.source.store.scan(made.source.user):
        for address in store.missing(user, list(part)):
            yield f"object {address.hex()} is not in the copy"
    for part in store.scan(user):
        counting.add(len(part), sum(map(len, part.values())))
        for address, data in part.items():
            if digest(data) != address:
                yield f"object {address.hex()} is damaged in the copy"
