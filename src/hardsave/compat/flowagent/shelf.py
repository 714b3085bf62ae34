"""Agents' checkpoints on a timeline of a vault, and which user an id belongs to. Blocks."""

import logging
from collections.abc import Collection, Iterator
from dataclasses import fields
from datetime import datetime

from blake3 import blake3

import hardsave
from hardsave.compat.flowagent.records import LIGHT, Checkpoint
from hardsave.compat.names import fitting
from hardsave.timeline import names

TIMELINE = "flowagent"
_PAGE = 1_000
_WRITES_BETWEEN = 64  # after so many, old versions of the owners' lists are let go

_log = logging.getLogger(__name__)


def short(checkpoint_id: str) -> str:
    """The name that a checkpoint is saved under."""
    return fitting(checkpoint_id, names.check_checkpoint)


class Shelf:
    """The newest `limit` checkpoints that were put into one vault.

    All lie on one timeline, whatever their agents: heads are never let go, and a timeline
    for each agent would be a head for each.
    """

    def __init__(self, vault: hardsave.Vault, limit: int) -> None:
        self._vault = vault
        self._limit = limit
        self._policy = hardsave.Policy(
            timelines=[TIMELINE],
            permanent=(),
            thin=hardsave.Thin(above=0, keep_first=False, keep_last=1),  # one of each id
            max_per_timeline=limit,
        )

    def put(self, checkpoint: Checkpoint) -> list[str]:
        """Save it, in the place of one with its id; the names of those that had to go."""
        line = self._vault.timeline(TIMELINE)
        name = short(checkpoint.id)
        known = self._named(name)
        if known is not None and known.metadata["user_id"] != checkpoint.user_id:
            raise taken(checkpoint.id)
        line.save(
            {one.name: getattr(checkpoint, one.name) for one in fields(checkpoint)},
            name=name,
            kind="automatic",
            status=fitting(str(checkpoint.status), names.check_status),
            metadata={field: getattr(checkpoint, field) for field in LIGHT},
            expect=hardsave.ANY_HEAD,
        )
        return self.tidy() if known is not None or len(line) > self._limit else []

    def find(self, checkpoint_id: str) -> Checkpoint | None:
        found = self._named(short(checkpoint_id))
        return None if found is None else _whole(found)

    def page(self, user_id: str, limit: int, offset: int, *, full: bool) -> list[Checkpoint]:
        """A user's, newest first."""
        found = [one for one in self._saved() if one.metadata["user_id"] == user_id]
        found.sort(key=lambda one: (one.metadata["timestamp"], one.seq), reverse=True)
        return [(_whole if full else _light)(one) for one in found[offset : offset + limit]]

    def clear(self, user_id: str) -> int:
        """Delete what is a user's."""
        return self._delete([one for one in self._saved() if one.metadata["user_id"] == user_id])

    def clear_before(self, moment: datetime) -> int:
        """Delete what is older."""
        return self._delete([one for one in self._saved() if one.metadata["timestamp"] < moment])

    def tidy(self) -> list[str]:
        """Let go what is too much; the names of those that went."""
        try:
            plan = self._vault.plan_retention(self._policy)
            self._vault.apply(plan)
        except hardsave.Conflict:  # what was put is saved; the next one tidies up
            _log.warning("user %r: too busy to let old checkpoints go", self._vault.user)
            return []
        gone = {choice.row.name for choice in plan.drops if choice.row.name is not None}
        return [name for name in sorted(gone) if self._named(name) is None]

    def _named(self, name: str) -> hardsave.Checkpoint | None:
        page = self._vault.timeline(TIMELINE).checkpoints(name=name, limit=1)
        return page[0] if page else None

    def _saved(self) -> Iterator[hardsave.Checkpoint]:
        line = self._vault.timeline(TIMELINE)
        page = line.checkpoints(limit=_PAGE)
        yield from page
        while page.next is not None:
            page = line.checkpoints(limit=_PAGE, after=page.next)
            yield from page

    def _delete(self, found: list[hardsave.Checkpoint]) -> int:
        if found and len(found) == len(self._vault.timeline(TIMELINE)):
            return self._vault.timeline(TIMELINE).clear()
        for one in found:
            self._vault.delete(one.id)
        return len(found)


def _whole(saved: hardsave.Checkpoint) -> Checkpoint:
    return Checkpoint.from_dict(saved.read())


def _light(saved: hardsave.Checkpoint) -> Checkpoint:
    return Checkpoint.from_dict(dict(saved.metadata))


def taken(checkpoint_id: str) -> hardsave.Conflict:
    return hardsave.Conflict(f"checkpoint {checkpoint_id!r} is another user's; choose another id")


class Owners:
    """Which user a name belongs to: many small dicts, each the state of a timeline.

    It is noted before the checkpoint is saved. What is noted and was never saved is found to
    be missing when somebody asks for it, and costs a line.
    """

    def __init__(self, vault: hardsave.Vault) -> None:
        self._vault = vault
        self._writes = 0

    def claim(self, name: str, user_id: str) -> bool:
        """Note whose it is; False if it is another user's."""
        while True:
            line = self._line(name)
            head = line.head
            owner = None if head is None else head.state.get(name)
            if owner is not None:
                return bool(owner == user_id)
            try:
                line.append({name: user_id})
            except hardsave.Conflict:
                continue  # somebody else noted something: look again
            self._wrote()
            return True

    def of(self, name: str) -> str | None:
        head = self._line(name).head
        return None if head is None else head.state.get(name)

    def users(self) -> list[str]:
        return sorted({user for line in self._vault.timelines() for user in line.load().values()})

    def release(self, gone: Collection[str]) -> None:
        for name in gone:
            self._release(name)
            self._wrote()

    def _release(self, name: str) -> None:
        while self.of(name) is not None:
            line = self._line(name)
            left = {key: user for key, user in line.load().items() if key != name}
            try:
                line.save(left)
            except hardsave.Conflict:
                continue

    def _line(self, name: str) -> hardsave.Timeline:
        return self._vault.timeline(f"owners-{blake3(name.encode()).hexdigest(length=1)}")

    def _wrote(self) -> None:
        self._writes += 1
        if self._writes % _WRITES_BETWEEN:
            return
        newest = hardsave.Policy(max_per_timeline=1)
        try:
            self._vault.apply(self._vault.plan_retention(newest))
        except hardsave.Conflict:
            _log.warning("too busy to let old lists of owners go")
