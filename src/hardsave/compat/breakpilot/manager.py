"""The checkpoints of a session, on a timeline of a vault."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import hardsave
from hardsave.compat import foreign
from hardsave.compat.breakpilot import records
from hardsave.compat.breakpilot.records import Checkpoint
from hardsave.compat.names import fitting
from hardsave.timeline import names

_log = logging.getLogger(__name__)

KEEP_LAST = 20
_SESSION = "breakpilot/"
_NUMBERING = "breakpilot-numbering/"
_PAGE = 1_000
_NO_METADATA: Mapping[str, Any] = {}


class CheckpointManager:
    """The checkpoints of one session, oldest first. Threads may share it."""

    def __init__(
        self,
        session_id: str,
        max_checkpoints: int = 100,
        compress_after: int = 50,
        *,
        vault: hardsave.Vault | str | None = None,
    ) -> None:
        """`vault` is an open one, the URL of a store, or None for one in memory.

        Past `compress_after` a session keeps its first checkpoint, the last 20, and the latest of
        each name, of all and of those in the middle; past `max_checkpoints` the oldest go.
        """
        foreign.check(max_checkpoints, int, "max_checkpoints")
        foreign.check(compress_after, int, "compress_after")
        if max_checkpoints < 1:
            raise hardsave.Misuse(f"max_checkpoints is at least 1, not {max_checkpoints}")
        self.session_id = session_id
        self.max_checkpoints = max_checkpoints
        self.compress_after = compress_after
        session = fitting(session_id, lambda text: names.check_timeline(_NUMBERING + text))
        self._policy = hardsave.Policy(
            timelines=[_SESSION + session],
            permanent=(),
            thin=hardsave.Thin(above=compress_after, keep_last=KEEP_LAST),
            max_per_timeline=max_checkpoints,
        )
        self._is_own = not isinstance(vault, hardsave.Vault)
        self._vault = vault if isinstance(vault, hardsave.Vault) else _opened(vault)
        self._line = self._vault.timeline(_SESSION + session)
        self._numbering = self._vault.timeline(_NUMBERING + session)
        self._lock = threading.Lock()
        self._on_checkpoint: Callable[[Checkpoint], Any] | None = None

    # Writing

    def create(
        self, name: str, data: dict[str, Any], metadata: dict[str, Any] | None = None
    ) -> Checkpoint:
        """Save a checkpoint under a name that says where the session stands."""
        records.check_name(name)
        with self._lock:
            saved = None
            while saved is None:
                saved = self._save(self._newest(), name, data, metadata or {})
            checkpoint = self._entry(saved).whole()
            self._tidy()
        self._tell(checkpoint)
        _log.debug("session %s: created checkpoint %r (%s)", self.session_id, name, checkpoint.id)
        return checkpoint

    def clear(self) -> int:
        """Take all checkpoints away; the numbers go on. How many there were."""
        with self._lock:
            offset = self._offset(self._newest())
            if offset != self._offset(None):  # before it is lost from sight
                self._numbering.save({"offset": offset}, expect=hardsave.ANY_HEAD)
            count = self._line.clear() if len(self._line) else 0
        _log.info("session %s: cleared %d checkpoints", self.session_id, count)
        return count

    def import_checkpoints(self, json_data: str) -> int:
        """Add exported checkpoints that are not here yet. How many were added.

        All of them or none: what is no export is refused before anything is stored, and what
        cannot be stored takes back what was added before it. If even that fails, the error says how
        many were added; as after an interruption, calling it again adds the rest.
        """
        given = records.imported(json_data)
        for one in given:
            records.number(one.id, self.session_id)  # refuses one that is too high
        added: list[hardsave.Checkpoint] = []
        with self._lock:
            try:
                self._add(given, added)
            except hardsave.HardsaveError as error:
                self._take_back(added, error)
                raise
            self._tidy()
        return len(added)

    def _add(self, given: list[Checkpoint], added: list[hardsave.Checkpoint]) -> None:
        known: set[str] | None = None
        for one in given:
            saved = None
            while saved is None:
                newest = self._newest()
                known = {entry.id for entry in self._entries()} if known is None else known
                if one.id in known:
                    break
                saved = self._save_imported(newest, one)
                if saved is None:
                    known = None  # another writer came first: look again
            else:
                added.append(saved)
                assert known is not None
                known.add(one.id)

    def _take_back(self, added: list[hardsave.Checkpoint], error: hardsave.HardsaveError) -> None:
        try:
            for one in reversed(added):
                self._vault.delete(one)
        except hardsave.HardsaveError:
            raise hardsave.Unavailable(
                f"{len(added)} checkpoints of this export were added, and then: {error}; "
                "see to that, and import it again: it adds the rest"
            ) from error

    def on_checkpoint(self, callback: Callable[[Checkpoint], Any] | None) -> None:
        """Call `callback` with each new checkpoint, instead of the one before."""
        self._on_checkpoint = callback

    def close(self) -> None:
        """Release the vault, if this manager has opened it."""
        if self._is_own:
            self._vault.close()

    # Reading

    def get(self, checkpoint_id: str) -> Checkpoint | None:
        return next((e.whole() for e in self._entries() if e.id == checkpoint_id), None)

    def get_by_name(self, name: str) -> list[Checkpoint]:
        """Newest first."""
        return [entry.whole() for entry in reversed(self._entries()) if entry.name == name]

    def get_latest(self, name: str | None = None) -> Checkpoint | None:
        """The latest of a name, or of all; an empty one is none."""
        entries = reversed(self._entries())
        return next((e.whole() for e in entries if not name or e.name == name), None)

    def get_all(self) -> list[Checkpoint]:
        return [entry.whole() for entry in self._entries()]

    def get_since(self, timestamp: datetime) -> list[Checkpoint]:
        """Those after a moment; one without a zone is taken as local."""
        start = foreign.bound(timestamp, "timestamp")
        return [entry.whole() for entry in self._entries() if entry.timestamp > start]

    def get_between(self, start: datetime, end: datetime) -> list[Checkpoint]:
        """Those from one moment to another, both included."""
        low, high = foreign.bound(start, "start"), foreign.bound(end, "end")
        return [entry.whole() for entry in self._entries() if low <= entry.timestamp <= high]

    def rollback_to(self, checkpoint_id: str) -> dict[str, Any] | None:
        """The data of a checkpoint, for the caller to go back to. Moves nothing."""
        found = self.get(checkpoint_id)
        if found is None:
            return None
        _log.info("session %s: rollback to %r (%s)", self.session_id, found.name, checkpoint_id)
        return found.data

    def get_summary(self) -> dict[str, Any]:
        entries = self._entries()
        counts: dict[str, int] = {}
        for entry in entries:
            counts[entry.name] = counts.get(entry.name, 0) + 1
        span = entries[-1].timestamp - entries[0].timestamp if entries else timedelta(0)
        return {
            "total_count": len(entries),
            "unique_names": len(counts),
            "names": counts,
            "first_checkpoint": entries[0].whole().to_dict() if entries else None,
            "last_checkpoint": entries[-1].whole().to_dict() if entries else None,
            "duration_seconds": span.total_seconds(),
        }

    def export(self) -> str:
        """All checkpoints as JSON."""
        return records.exported(self)

    def __len__(self) -> int:
        return len(self._line)

    def __iter__(self) -> Iterator[Checkpoint]:
        return iter(self.get_all())

    # Parts

    def _newest(self) -> hardsave.Checkpoint | None:
        """The one with the highest number, which numbering goes on from. Mostly that is the head,
        but the timeline may have been rewound, and what followed is still to be seen."""
        head = self._line.head  # what is saved next relies on it
        page = self._line.checkpoints(limit=1)
        return page[0] if page else head

    def _save(
        self,
        newest: hardsave.Checkpoint | None,
        name: str,
        data: Any,
        metadata: Any,
        about: Mapping[str, Any] = _NO_METADATA,
    ) -> hardsave.Checkpoint | None:
        """Save what follows `newest`; None if another writer did so first."""
        short = fitting(name, names.check_checkpoint)
        kept = {
            "offset": self._offset(newest),
            **about,
            **({} if short == name else {"name": name}),
        }
        try:
            return self._line.save(
                {"data": data, "metadata": metadata}, name=short, kind="automatic", metadata=kept
            )
        except hardsave.Conflict:
            return None

    def _save_imported(
        self, newest: hardsave.Checkpoint | None, given: Checkpoint
    ) -> hardsave.Checkpoint | None:
        offset, highest = self._numbers(newest)
        about = {
            "id": given.id,
            "timestamp": given.timestamp,
            "offset": offset,
            "highest": max(highest, records.number(given.id, self.session_id)),
        }
        return self._save(newest, given.name, given.data, given.metadata, about)

    def _offset(self, newest: hardsave.Checkpoint | None) -> int:
        """How far the next number runs ahead of the timeline's own, which never come twice.

        It does after an import: the imported numbers are taken.
        """
        offset, highest = self._numbers(newest)
        return offset if newest is None else max(offset, highest - newest.seq)

    def _numbers(self, newest: hardsave.Checkpoint | None) -> tuple[int, int]:
        """Offset and highest number, as the newest checkpoint or the latest `clear` noted."""
        if newest is not None:
            return newest.metadata.get("offset", 0), newest.metadata.get("highest", 0)
        noted = self._numbering.head
        return (0, 0) if noted is None else (noted.read("offset"), 0)

    def _entry(self, saved: hardsave.Checkpoint) -> "_Entry":
        return _Entry(saved, self.session_id)

    def _entries(self) -> list["_Entry"]:
        """All checkpoints, oldest first. Their data is not read yet."""
        found: list[_Entry] = []
        page = self._line.checkpoints(limit=_PAGE)
        found += map(self._entry, page)
        while page.next is not None:
            page = self._line.checkpoints(limit=_PAGE, after=page.next)
            found += map(self._entry, page)
        return found[::-1]

    def _tidy(self) -> None:
        before = len(self._line)
        if before <= min(self.max_checkpoints, self.compress_after):
            return
        try:
            self._vault.retention.apply(self._vault.retention.plan(self._policy))
        except hardsave.Conflict:  # what was created is saved; the next one tidies up
            _log.warning("session %s: too busy to let old checkpoints go", self.session_id)
        if (after := len(self._line)) < before:
            _log.debug(
                "session %s: compressed checkpoints from %d to %d", self.session_id, before, after
            )

    def _tell(self, checkpoint: Checkpoint) -> None:
        if self._on_checkpoint is None:
            return
        try:
            self._on_checkpoint(checkpoint)
        except Exception:  # noqa: BLE001 # anything at all: what has been saved is saved
            _log.exception("session %s: the callback failed", self.session_id)


class _Entry:
    """A saved checkpoint as this interface tells of it."""

    def __init__(self, saved: hardsave.Checkpoint, session_id: str) -> None:
        self._saved = saved
        self._session_id = session_id

    @cached_property
    def _kept(self) -> Mapping[str, Any]:
        return self._saved.metadata

    @property
    def id(self) -> str:
        own = f"{self._session_id}:{self._saved.seq + self._kept.get('offset', 0)}"
        return str(self._kept.get("id", own))

    @property
    def name(self) -> str:
        return str(self._kept.get("name", self._saved.name))

    @property
    def timestamp(self) -> datetime:
        moment: datetime = self._kept.get("timestamp", self._saved.created_at)
        return moment

    def whole(self) -> Checkpoint:
        state = self._saved.read()
        return Checkpoint(self.id, self.name, self.timestamp, state["data"], state["metadata"])


def _opened(url: str | None) -> hardsave.Vault:
    return hardsave.open("memory://" if url is None else url)
