"""Rows on their way into the search index: gathered, and written many at a time in the order in
which the tables lie, because each row by itself would touch pages all over the file."""

from typing import TYPE_CHECKING, Any

from hardsave.objects.hashing import digest
from hardsave.vault.search.index import packed
from hardsave.vault.search.tail import Tail
from hardsave.vault.search.words import readable

if TYPE_CHECKING:
    import apsw

    from hardsave.objects.records import CheckpointRecord
    from hardsave.vault.search.file_names import Change

MOST_WAITING = 4_000_000  # characters of texts

Digest = bytes


class Rows:
    """What one transaction adds; `write` completes it."""

    def __init__(self, index: "apsw.Connection") -> None:
        self._index = index
        self._timelines: dict[str, int] = {}
        self._tails: dict[int, Tail] = {}
        self._texts: dict[str, Digest] = {}
        self._waiting = 0
        self._checkpoints: list[tuple[int, bytes, int, bytes]] = []
        self._places: list[tuple[Digest, int, str, str, int]] = []
        self._changes: list[tuple[Digest, int, int, str]] = []

    def timeline(self, name: str) -> int:
        """The number of a timeline in the index."""
        known = self._timelines.get(name)
        if known is None:
            known = self._timelines[name] = self._looked_up(name)
        return known

    def _looked_up(self, name: str) -> int:
        sql = (
            "SELECT t.id, k.known FROM timelines AS t LEFT JOIN tails AS k ON k.timeline = t.id "
            "WHERE t.name = ?"
        )
        row = self._index.execute(sql, (name,)).fetchone()
        if row is None:
            self._index.execute("INSERT INTO timelines (name) VALUES (?)", (name,))
            row = (self._index.last_insert_rowid(), None)
        self._tails[row[0]] = Tail(row[1] or b"")
        return int(row[0])

    def tail(self, timeline: int) -> Tail:
        """What a timeline had lately, of one that was asked for by name."""
        return self._tails[timeline]

    def add_checkpoint(self, record: "CheckpointRecord", timeline: int) -> None:
        self._checkpoints.append((record.number, record.id, timeline, record.root))

    def add_place(self, timeline: int, field: str, path: str, text: str, number: int) -> None:
        """Where a text stands; it is indexed if it was never seen before."""
        place = (self._digest(text), timeline, field, readable(path), number)
        self._places.append(place)
        if self._waiting > MOST_WAITING:
            self._write_texts()

    def add_change(self, timeline: int, path: str, number: int, change: "Change") -> None:
        """What became of a file."""
        self._changes.append((self._digest(path), timeline, number, change))
        self.add_place(timeline, "file", "", path, number)

    def _digest(self, text: str) -> Digest:
        known = self._texts.get(text)
        if known is None:
            known = self._texts[text] = digest(text.encode("utf-8", "surrogatepass"))
            self._waiting += len(text)
        return known

    def write(self) -> None:
        run = self._index.executemany
        run("INSERT INTO checkpoints VALUES (?, ?, ?, ?)", self._checkpoints)
        self._checkpoints.clear()
        self._write_texts()
        tails = [(timeline, tail.packed()) for timeline, tail in sorted(self._tails.items())]
        run("REPLACE INTO tails VALUES (?, ?)", tails)

    def _write_texts(self) -> None:
        ids = self._ids()
        places = sorted((ids[text], *place) for text, *place in self._places)
        changes = sorted((ids[text], *change) for text, *change in self._changes)
        run = self._index.executemany
        run("INSERT OR IGNORE INTO places VALUES (?, ?, ?, ?, ?)", places)
        run("INSERT OR IGNORE INTO changes VALUES (?, ?, ?, ?)", changes)
        for gathered in (self._texts, self._places, self._changes):
            gathered.clear()
        self._waiting = 0

    def _ids(self) -> dict[Digest, int]:
        """Of the texts that wait. Those that were never seen are indexed."""
        run = self._index.executemany
        wanted = [(each,) for each in sorted(self._texts.values())]
        rows = run("SELECT digest, id FROM texts WHERE digest = ?", wanted)
        found: list[Any] = rows.fetchall()
        ids: dict[Digest, int] = dict(found)
        last: int = self._index.execute("SELECT coalesce(max(id), 0) FROM texts").get
        new = [(text, key) for text, key in self._texts.items() if key not in ids]
        numbered = [(last + at, key, text) for at, (text, key) in enumerate(new, 1)]
        run("INSERT INTO texts VALUES (?, ?, ?, ?)", [(n, k, *packed(t)) for n, k, t in numbered])
        run(
            "INSERT INTO words (rowid, text) VALUES (?, ?)",
            [(n, readable(t)) for n, _, t in numbered],
        )
        ids.update((key, number) for number, key, _ in numbered)
        return ids
