"""What the processes do that are struck, and what they say about it.

A process tells each save before it begins and after it has returned, to a file that has
nothing to do with the store:

    begin TIMELINE NUMBER
    done TIMELINE NUMBER ID
    dropped TIMELINE NUMBER
    exported COUNT
    purging WHAT, purged WHAT: see `purging`
    failed STEP ERROR: MESSAGE

What a save holds follows from its timeline and number, so whoever reads these lines knows
what has to be found afterwards. Number 0 is the fork that a timeline began with.
"""

import os
import random
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from unittest import mock

import apsw

import hardsave
import hardsave.vault.transfer.transfer  # now: a call that fails while Python loads it says nothing
from hardsave.errors import HardsaveError
from hardsave.objects import envelope
from hardsave.objects.hashing import digest
from hardsave.objects.records import LogRecord
from hardsave.stores.base import Batch, Changes, Durability
from hardsave.stores.local.database import in_our_words
from hardsave.stores.sqlite import SqliteStore
from hardsave.stores.sqlite.backup.copier import Copier
from hardsave.stores.sqlite.gc import merge
from tests.crash import purging

STORE = "new/folders/store.db"  # inside the folder under test
EXPORT = "out.hardsave"
IMPORT = "in.hardsave"
IMPORTED, IMPORTED_SAVES = "imported", 3


def url(folder: Path | str) -> str:
    return f"sqlite:///{folder}/{STORE}"


def message(timeline: str, number: int) -> dict[str, Any]:
    return {"role": "user", "content": f"{timeline} {number} " + f"{number:03d}" * 60}


def state(timeline: str, number: int) -> dict[str, Any]:
    """What save `number` on a timeline holds, whether it was saved whole or by appending."""
    return {
        "messages": [message(timeline, n) for n in range(1, number + 1)],
        "turn": number,
    }


class Session:
    """One process at work. A forgiving one goes on after an error of Hardsave's own tree."""

    def __init__(
        self,
        folder: Path,
        tell: Callable[[str], None],
        *,
        forgiving: bool = False,
        durability: Durability = "power",
    ) -> None:
        self.folder = folder
        self.tell = tell
        self.forgiving = forgiving
        self.durability = durability
        self._vault: hardsave.Vault | None = None
        self._lines: dict[str, hardsave.Timeline] = {}
        self._numbers: dict[str, int] = {}

    def open(self) -> None:
        self._vault = hardsave.open(url(self.folder), durability=self.durability)

    def close(self) -> None:
        vault, self._vault = self._vault, None
        self._lines, self._numbers = {}, {}
        if vault is not None:
            vault.close()

    @property
    def vault(self) -> hardsave.Vault:
        if self._vault is None:
            self.open()
        assert self._vault is not None
        return self._vault

    @property
    def store(self) -> SqliteStore:
        return cast(SqliteStore, self.vault._context.store)

    def take(self, steps: "Iterable[Step]") -> None:
        """Take steps, one after the other."""
        for at, step in enumerate(steps):
            try:
                step(self)
            except HardsaveError as error:
                self.tell(f"failed {at} {type(error).__name__}: {error}")
                if not self.forgiving:
                    raise

    def side_by_side(self, *ways: "Sequence[Step]") -> None:
        """Take steps in threads, so that commits are made in groups."""
        with ThreadPoolExecutor(len(ways)) as threads:
            for done in [threads.submit(self.take, steps) for steps in ways]:
                done.result()

    def save(self, timeline: str) -> None:
        """The next save, of a whole state."""
        self._next(timeline, lambda line, number: line.save(state(timeline, number)))

    def append(self, timeline: str) -> None:
        """The next save, by what is new in it."""

        def grow(line: hardsave.Timeline, number: int) -> hardsave.Checkpoint:
            return line.append({"messages": [message(timeline, number)], "turn": number})

        self._next(timeline, grow)

    def fork(self, source: str, timeline: str) -> None:
        self.tell(f"begin {timeline} 0")
        forked = self.line(source).fork(name=timeline)
        head = forked.head
        self.tell(f"done {timeline} 0 {head.id if head else None}")

    def operate(self, timeline: str, *steps: tuple[str, dict[str, Any]]) -> None:
        """Operations that can all be undone: whoever does so finds every save again."""
        for method, arguments in steps:
            getattr(self.line(timeline), method)(**arguments)

    def litter(self, label: str) -> None:
        """Store something that nothing leads to."""
        data = random.Random(label).randbytes(5_000)
        event = LogRecord(0, digest(label.encode())[:12], None, "litter", 0, b"\x80")
        self.store.commit(Batch(None, event, objects={digest(data): data}))

    def drop(self, timeline: str, *numbers: int) -> None:
        """Drop checkpoints for good. Not to be struck: whoever looks expects them to be gone."""
        ids = [self.line(timeline).get(f"{timeline}:{number}")._record.id for number in numbers]
        event = LogRecord(0, digest(timeline.encode())[:12], None, "litter", 0, b"\x80")
        self.store.commit(Batch(None, event, changes=Changes(drop=ids)))
        for number in numbers:
            self.tell(f"dropped {timeline} {number}")

    def collect(self, *, exact: bool) -> None:
        self.store.collect(envelope.refs, exact=exact)

    def compact(self) -> None:
        self.vault.store.compact()

    def export(self) -> None:
        done = self.vault.export_file(self.folder / EXPORT)
        self.tell(f"exported {done.checkpoints}")

    def make_import(self) -> None:
        """A file of another store, to be imported."""
        with hardsave.open("memory://") as other:
            for number in range(1, IMPORTED_SAVES + 1):
                other.timeline(IMPORTED).save(state(IMPORTED, number))
            other.export_file(self.folder / IMPORT)

    def import_all(self) -> None:
        """All of it, or nothing."""
        self.tell(f"begin {IMPORTED} {IMPORTED_SAVES}")
        self.vault.import_file(self.folder / IMPORT)
        head = self.line(IMPORTED).head
        self.tell(f"done {IMPORTED} {IMPORTED_SAVES} {head.id if head else None}")

    def merge(self) -> None:
        """Merge small packs here and now, not whenever the thread gets to it."""
        store = self.store
        connection = store._connect()
        try:
            with in_our_words(store.path):
                while store._merger.merge(connection, 0):
                    pass
        finally:
            connection.close()

    def back_up(self) -> None:
        """Feed the backup here and now, not whenever the thread gets to it."""
        copier = self.store._copier
        assert copier is not None
        copier.turn()

    def checkpoint(self, mode: str) -> None:
        """Move the WAL into the main file."""
        with in_our_words(self.store.path), closing(self.store._connect()) as connection:
            connection.pragma("wal_checkpoint", mode)

    def checkpoint_often(self) -> None:
        """With nearly every save, as happens now and then in a long life."""
        self.store._writer.long_wal = 8

    def line(self, timeline: str) -> hardsave.Timeline:
        if timeline not in self._lines:
            self._lines[timeline] = self.vault.timeline(timeline)
        return self._lines[timeline]

    def _next(
        self, timeline: str, write: Callable[[hardsave.Timeline, int], hardsave.Checkpoint]
    ) -> None:
        line = self.line(timeline)
        number = self._numbers.pop(timeline, None)
        if number is None:  # the first, or the last one failed: look where it stands
            take_back(self.vault)
            head = line.head
            number = head.seq + 1 if head and head.timeline == timeline else 1
        self.tell(f"begin {timeline} {number}")
        saved = write(line, number)
        self.tell(f"done {timeline} {number} {saved.id}")
        self._numbers[timeline] = number + 1


def take_back(vault: hardsave.Vault) -> None:
    """Whatever operation was struck, undo leads back to where the saves had come."""
    kinds = ("rewind", "clear", "delete")
    while any(done.kind in kinds and not done.is_undone for done in vault.operations()):
        vault.undo()


Step = Callable[[Session], None]


@dataclass(frozen=True)
class Scenario:
    """`before` leaves a store behind, unharmed; `steps` are struck; `beside` runs with them.

    Where threads or processes meet, a scenario `varies`: one run may take fewer calls than
    another. Packs merge in a thread of their own, as in real life, only if it `merges`.
    """

    steps: Sequence[Step]
    before: Sequence[Step] = ()
    beside: Sequence[Step] = ()
    varies: bool = False
    merges: bool = False


def _repeat(times: int, *steps: Step) -> list[Step]:
    return [step for _ in range(times) for step in steps]


def _save(timeline: str) -> Step:
    return lambda session: session.save(timeline)


def _append(timeline: str) -> Step:
    return lambda session: session.append(timeline)


def _fork(session: Session) -> None:
    session.fork("main", "side")


def _merge(session: Session) -> None:
    session.merge()


def _truncate(session: Session) -> None:
    session.checkpoint("TRUNCATE")


def _restart(session: Session) -> None:
    session.checkpoint("RESTART")


def _crowd(session: Session) -> None:
    names = ("main", "second", "third", "fourth")
    session.side_by_side(*[_repeat(3, _append(name)) for name in names])


def _back_up(session: Session) -> None:
    session.back_up()


def _spoil_backup(session: Session) -> None:
    """Let the backup have missed something: it has to be built anew."""

    def spoil(connection: apsw.Connection) -> None:
        connection.execute("UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'changes'")
        connection.execute("DELETE FROM changes")

    session.store._writer.apply(spoil)


def _spoil_store(session: Session) -> None:
    """Write over the header of a closed store."""
    with open(session.folder / STORE, "r+b") as file:
        file.write(b"\xff" * 100)


def _often(session: Session) -> None:
    session.checkpoint_often()


def _litter(label: str) -> Step:
    return lambda session: session.litter(label)


def _drop(session: Session) -> None:
    session.drop("main", *range(1, 8))


def _collect(session: Session) -> None:
    session.collect(exact=False)


def _collect_exactly(session: Session) -> None:
    session.collect(exact=True)


def _purge(what: str) -> Step:
    return lambda session: purging.purge(session, what)


def _operate(session: Session) -> None:
    nothing: dict[str, Any] = {}
    undo, redo = ("undo", nothing), ("redo", nothing)
    session.operate("main", ("rewind", {"ref": "main:2"}), undo, redo, undo)
    session.operate("main", ("clear", nothing), undo, ("delete", nothing), undo)


_open, _close = Session.open, Session.close
_export, _make_import, _import = Session.export, Session.make_import, Session.import_all

# Half of them close the store in the end, which moves the WAL into the main file; half do not,
# which is how most processes end. What `before` leaves open is a WAL that has to be recovered.
SCENARIOS: dict[str, Scenario] = {
    "first save": Scenario([_open, _save("main"), _close]),
    "append": Scenario(
        before=[_save("main"), _append("main"), _close],
        steps=[_open, *_repeat(3, _append("main")), _save("main"), _append("main")],
    ),
    "fork": Scenario(
        before=[_save("main"), _append("main"), _close],
        steps=[_open, _fork, *_repeat(2, _save("side")), _append("main")],
    ),
    "operations": Scenario(
        before=[*_repeat(3, _append("main")), _close],
        steps=[_open, _operate],
    ),
    "export": Scenario(
        before=[*_repeat(3, _append("main")), _export, _append("main"), _close],
        steps=[_open, _export, _append("main"), _export],
    ),
    "import": Scenario(
        before=[*_repeat(2, _append("main")), _make_import],
        steps=[_open, _append("main"), _import, _append("main"), _import, _close],
    ),
    "merge": Scenario(
        before=[*_repeat(5, _append("main"))],
        steps=[
            *(_open, _append("main"), _merge),
            *(*_repeat(4, _append("main")), _merge, _append("main"), _close),
        ],
    ),
    "gather": Scenario(
        before=[*_repeat(2, _append("main"))],
        steps=[
            *(_open, _append("main"), _merge),
            *(*_repeat(2, _append("main")), _merge),
            *(*_repeat(3, _append("main")), _merge, _append("main"), _close),
        ],
    ),
    "merging thread": Scenario(
        before=[*_repeat(5, _append("main"))],
        steps=[_open, *_repeat(8, _append("main")), _close],
        varies=True,
        merges=True,
    ),
    "checkpoint": Scenario(
        before=[*_repeat(3, _append("main"))],
        steps=[
            *(_open, _append("main"), _truncate, _append("main"), _restart, _append("main")),
            *(_often, *_repeat(3, _append("main")), _close),
        ],
    ),
    "backup": Scenario(
        before=[*_repeat(3, _append("main")), _back_up, _append("main")],
        steps=[
            *(_open, _append("main"), _back_up, *_repeat(4, _append("main")), _merge),
            *(_back_up, _append("main"), _spoil_backup, _back_up, _close),
        ],
    ),
    "takeover": Scenario(
        before=[*_repeat(5, _append("main")), _back_up, _merge, _close, _spoil_store],
        steps=[_open, _append("main"), _back_up, _append("main"), _close],
    ),
    "gc": Scenario(
        before=[
            *_repeat(5, _append("main")),
            *(_litter("first"), _litter("second"), _merge, _litter("third"), _merge),
            *(*_repeat(4, _append("main")), _litter("fourth"), _merge, _append("main"), _drop),
        ],
        steps=[
            *(_open, _append("main"), _collect, _append("main"), _litter("fifth")),
            *(_collect_exactly, _append("main"), _close),
        ],
    ),
    "purge": Scenario(
        before=[*_repeat(3, _append("main")), purging.plant, _merge, _back_up, _close],
        steps=[
            *(_open, _append("main"), _purge("secrets:2"), _append("main")),
            *(_purge("text"), _append("main"), _close),
        ],
    ),
    "compact": Scenario(
        before=_repeat(4, *_repeat(5, _append("main")), _merge, _litter("some")),
        steps=[
            *(_open, _append("main"), Session.compact, *_repeat(2, _append("main"), _merge)),
            *(Session.compact, _append("main"), _close),
        ],
    ),
    "threads": Scenario(before=[_save("main"), _close], steps=[_open, _crowd], varies=True),
    "two processes": Scenario(
        steps=[_open, *_repeat(5, _append("main"))],
        beside=[_open, *_repeat(10, _append("beside")), _close],
        varies=True,
    ),
}


def prepare(*, merges: bool = False) -> None:
    """Let few packs be enough to merge. Unless it `merges`, that happens only when told to, so
    that a scenario depends on its steps alone. The same goes for the backup."""
    merge.FEW_PACKS = 3
    merge.ENOUGH_PACKS = 4
    mock.patch.object(Copier, "saw").start()
    if not merges:
        mock.patch.object(merge.Merger, "_count").start()


def teller(path: Path) -> Callable[[str], None]:
    """Keeps lines in a file, at once, so that they outlive their process."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    return lambda text: (os.write(file, text.encode() + b"\n"), None)[1]
