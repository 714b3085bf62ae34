"""Agents' checkpoints on a timeline of a vault, and which user an id belongs to. Blocks."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import datetime

from blake3 import blake3

import hardsave
from hardsave.compat import foreign
from hardsave.compat.flowagent.records import LIGHT, Checkpoint, LightCheckpoint
from hardsave.compat.names import fitting
from hardsave.timeline import names
from hardsave.tuples import NamedTuple

TIMELINE = "flowagent"
_PAGE = 1_000
_SPARE = 8  # one more for each so many that there may be, before they are let go together
_LOOKED_AT = 4  # old notes of owners, each time that one is added
_WRITES_BETWEEN = 64  # after so many, old versions of the owners' lists are let go

_log = logging.getLogger(__name__)


def short(checkpoint_id: str) -> str:
    """The name that a checkpoint is saved under."""
    return fitting(checkpoint_id, names.check_checkpoint)


class Of(NamedTuple):
    """Whose checkpoints are meant: a user's, an agent's, or those of an agent that are a user's."""

    user_id: str | None = None
    agent_id: str | None = None

    def is_meant(self, one: hardsave.Checkpoint) -> bool:
        about = one.metadata
        return all(each in (None, about[name]) for name, each in self._asdict().items())


class Shelf:
    """The newest `limit` checkpoints that were put into one vault.

    All lie on one timeline, those of all agents: heads are never let go, and a timeline
    for each agent would be a head for each. Some more than `limit` may lie there, which are
    let go together; no listing shows them, and who still has an id can load it until then.
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

    def put(self, checkpoint: Checkpoint) -> None:
        """Save it, in the place of one with its id, and let the oldest go."""
        checkpoint.check()
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
        if len(line) > self._limit + self._limit // _SPARE:
            self.tidy()

    def find(self, checkpoint_id: str) -> Checkpoint | None:
        found = self._named(short(checkpoint_id))
        return None if found is None else _whole(found)

    def has(self, name: str) -> bool:
        return self._named(name) is not None

    def find_all(self, of: Of) -> list[hardsave.Checkpoint]:
        """Those of a user or an agent, in no order; `read` makes a page of them."""
        return [one for one in self._shown() if of.is_meant(one)]

    def clear(self, of: Of) -> int:
        """Delete those of a user or an agent."""
        return self._delete(of.is_meant)

    def clear_before(self, moment: datetime) -> int:
        """Delete what is older."""
        end = foreign.bound(moment, "a moment")
        return self._delete(lambda one: bool(one.metadata["timestamp"] < end))

    def remove(self, name: str) -> None:
        """Delete one by its name."""
        self._delete(lambda one: one.name == name)

    def tidy(self) -> None:
        """Let go what is too much, and old versions of what was saved again."""
        try:
            self._vault.retention.apply(self._vault.retention.plan(self._policy))
        except hardsave.Conflict:  # what was put is saved; the next one tidies up
            _log.warning("user %r: too busy to let old checkpoints go", self._vault.user)

    def _named(self, name: str) -> hardsave.Checkpoint | None:
        page = self._vault.timeline(TIMELINE).checkpoints(name=name, limit=1)
        return page[0] if page else None

    def _shown(self) -> Iterator[hardsave.Checkpoint]:
        """The newest of each id, as many as there may be."""
        seen: set[str | None] = set()
        for one in self._saved():
            if one.name not in seen:
                seen.add(one.name)
                yield one
            if len(seen) == self._limit:
                return

    def _saved(self) -> Iterator[hardsave.Checkpoint]:
        line = self._vault.timeline(TIMELINE)
        page = line.checkpoints(limit=_PAGE)
        yield from page
        while page.next is not None:
            page = line.checkpoints(limit=_PAGE, after=page.next)
            yield from page

    def _delete(self, is_meant: Callable[[hardsave.Checkpoint], bool]) -> int:
        """Delete these, with their old versions; how many were to be seen."""
        count = sum(map(is_meant, self._shown()))
        found = [one for one in self._saved() if is_meant(one)]
        if found and len(found) == len(self._vault.timeline(TIMELINE)):
            self._vault.timeline(TIMELINE).clear()
        else:
            for one in found:
                self._vault.delete(one.id)
        return count


def read(
    found: list[hardsave.Checkpoint], limit: int, offset: int, *, full: bool
) -> list[Checkpoint]:
    """A page of what was found, newest first."""
    found.sort(key=lambda one: (one.metadata["timestamp"], one.seq), reverse=True)
    return [(_whole if full else _light)(one) for one in found[offset : offset + limit]]


def _whole(saved: hardsave.Checkpoint) -> Checkpoint:
    return Checkpoint.of(saved.read())


def _light(saved: hardsave.Checkpoint) -> Checkpoint:
    return LightCheckpoint.of(saved.metadata)


def check_page(limit: int, offset: int) -> None:
    for what, number in (("limit", limit), ("offset", offset)):
        foreign.check(number, int, what)
        if number < 0:
            raise hardsave.Misuse(f"{what} is not negative ({number})")


def taken(checkpoint_id: str) -> hardsave.Conflict:
    return hardsave.Conflict(f"checkpoint {checkpoint_id!r} is another user's; choose another id")


class Owners:
    """Which user a name belongs to: many small dicts, each the state of a timeline.

    It is noted before the checkpoint is saved, and looked at again afterwards. Notes of what
    is no longer there go along when another one is written to the same list: that costs no
    commit. The writer that removes a note looks again whether it was needed after all, so of
    two that meet over a name, one or the other puts it right.
    """

    def __init__(self, vault: hardsave.Vault, is_held: Callable[[str, str], bool]) -> None:
        self._vault = vault
        self._is_held = is_held  # whether a user has something of that name
        self._writes = 0

    def claim(self, name: str, user_id: str) -> bool:
        """Note whose it is; False if it is another user's."""
        while True:
            line = self._line(name)
            head = line.head
            owner = None if head is None else head.state.get(name)
            if owner == user_id:
                return True
            if owner is not None and self._is_held(owner, name):
                return False
            noted = {} if head is None else head.read()
            dropped = self._left_over(noted, name)
            try:
                line.save({**noted, name: user_id})
            except hardsave.Conflict:
                continue  # another writer noted something: look again
            self._wrote()
            self._check(dropped)
            return True

    def of(self, name: str) -> str | None:
        head = self._line(name).head
        return None if head is None else head.state.get(name)

    def users(self) -> list[str]:
        return sorted({user for line in self._vault.timelines() for user in line.load().values()})

    def _left_over(self, noted: dict[str, str], name: str) -> dict[str, str]:
        """Take out some old notes that are not needed, and put the others last, for next time."""
        noted.pop(name, None)
        dropped: dict[str, str] = {}
        for old in list(noted)[:_LOOKED_AT]:
            user = noted.pop(old)
            (noted if self._is_held(user, old) else dropped)[old] = user
        return dropped

    def _check(self, dropped: dict[str, str]) -> None:
        """Note again what was saved while its note was taken out."""
        for name, user in dropped.items():
            if self._is_held(user, name):
                self.claim(name, user)

    def _line(self, name: str) -> hardsave.Timeline:
        return self._vault.timeline(f"owners-{blake3(name.encode()).hexdigest(length=1)}")

    def _wrote(self) -> None:
        self._writes += 1
        if self._writes % _WRITES_BETWEEN:
            return
        newest = hardsave.Policy(max_per_timeline=1)
        try:
            self._vault.retention.apply(self._vault.retention.plan(newest))
        except hardsave.Conflict:
            _log.warning("too busy to let old lists of owners go")
