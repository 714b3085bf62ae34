"""Reading a whole export before anything of it is believed.

Everything is checked here, with the store untouched: every object against the rules of its
kind and against what it refers to, every record against the rules for names and numbers,
every parent, head, origin and root against the rest of the file. What is worth remembering
goes to a scratch, so that memory does not grow with the file.
"""

from collections.abc import Collection

from hardsave.errors import Corrupt
from hardsave.objects.envelope import CAPTURE
from hardsave.objects.frames import FrameReader, Section
from hardsave.objects.hashing import Hash, digest
from hardsave.objects.records import CheckpointRecord
from hardsave.objects.sound import VALUES, Sound, Standing, standing
from hardsave.vault.addresses import Filter
from hardsave.vault.scratch import Scratch
from hardsave.vault.transfer import archive
from hardsave.workspace.snapshot import validation
from hardsave.workspace.snapshot.validation import Facts

TABLES = """
    CREATE TABLE objects (
        address BLOB PRIMARY KEY, kind INTEGER, nesting INTEGER, weight INTEGER,
        length INTEGER, level INTEGER, first BLOB, last BLOB  -- what a file's object tells
    ) WITHOUT ROWID;
    CREATE TABLE lines (
        name TEXT PRIMARY KEY, head BLOB, last_seq INTEGER, created_at INTEGER, origin BLOB,
        deleted INTEGER, title TEXT
    ) WITHOUT ROWID;
    CREATE TABLE past (
        place   INTEGER PRIMARY KEY,
        id      BLOB NOT NULL UNIQUE,
        line    TEXT NOT NULL,
        seq     INTEGER NOT NULL,
        parent  BLOB,
        depth   INTEGER NOT NULL,   -- how many ancestors it has
        alive   INTEGER NOT NULL,   -- a checkpoint, no tombstone
        hidden  INTEGER NOT NULL,
        beside  INTEGER NOT NULL,   -- it has labels or notes
        data    BLOB NOT NULL,      -- the record
        root    BLOB,
        snapshot BLOB,
        state   TEXT,               -- new, back or here; gone if hidden here; left out
        home    TEXT,               -- where it lies or goes, in this store
        UNIQUE (line, seq)
    );
    CREATE TABLE places (id BLOB PRIMARY KEY, path BLOB NOT NULL) WITHOUT ROWID;  -- workspaces
    CREATE VIEW news AS SELECT * FROM past WHERE state IN ('new', 'back');
"""
_MOST_MISSING = 1 << 32  # numbers of a timeline
IN_MIND = 50_000  # objects, twice: most refer to what came a while ago


class Examination:
    """One pass over a file."""

    def __init__(self, reader: FrameReader, scratch: Scratch) -> None:
        self._reader = reader
        self._scratch = scratch
        self._sound = Sound()
        self._young: dict[Hash, tuple[Standing, Facts]] = {}
        self._old: dict[Hash, tuple[Standing, Facts]] = {}
        self._stored = Filter()  # of what is in the scratch: a new object is not looked for there
        self._objects = self._object_bytes = 0
        self._last_name = b""
        self._checks = {
            Section.OBJECTS: self._object,
            Section.TIMELINES: self._timeline,
            Section.HISTORY: self._past,
        }

    def run(self, max_value_bytes: int) -> None:
        """Check everything; `Corrupt` says what is wrong."""
        for section, data in self._reader.records(archive.longest(max_value_bytes)):
            try:
                self._checks[section](data)
            except Corrupt as error:
                raise self._reader.damaged(str(error)) from error
        try:
            self._check_whole()
        except Corrupt as error:
            raise self._reader.damaged(str(error)) from error

    def _object(self, data: bytes) -> None:
        parts = self._sound.parts(data)
        files = validation.checked(data)
        if files is not None:
            parts = files.parts
        known = self._known({part.address for part in parts})
        below = {address: standing for address, (standing, _) in known.items()}
        found = standing(data[0], parts, len(data), below)
        facts = Facts()
        if files is not None:
            facts = files.facts({address: facts for address, (_, facts) in known.items()})
        address = digest(data)
        if self._known([address]):
            raise Corrupt(f"object {address.hex()} comes twice")
        self._young[address] = found, facts
        self._objects += 1
        self._object_bytes += len(data)
        if len(self._young) >= IN_MIND:
            self._store(self._old)
            self._old, self._young = self._young, {}

    def _timeline(self, data: bytes) -> None:
        line = archive.to_timeline(data)
        if line.name.encode() <= self._last_name:
            raise Corrupt(f"timeline {line.name!r} comes twice, or out of order")
        self._last_name = line.name.encode()
        self._scratch.do("INSERT INTO lines VALUES (?, ?, ?, ?, ?, ?, ?)", *line)

    def _past(self, data: bytes) -> None:
        record, is_hidden, path, labels, notes = archive.to_past(data)
        last_seq = self._scratch.one("SELECT last_seq FROM lines WHERE name = ?", record.timeline)
        if last_seq is None or record.seq > last_seq:
            raise Corrupt(f"number {record.seq} of timeline {record.timeline!r} is not one of its")
        depth = 0
        if record.parent is not None:
            depth = self._scratch.one("SELECT depth + 1 FROM past WHERE id = ?", record.parent)
            if depth is None:
                raise Corrupt("a checkpoint comes before its parent, or without it")
        is_alive = isinstance(record, CheckpointRecord)
        roots = self._roots(record) if isinstance(record, CheckpointRecord) else (None, None)
        added = self._scratch.do(
            "INSERT OR IGNORE INTO past "
            "(id, line, seq, parent, depth, alive, hidden, beside, data, root, snapshot) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(record.id, record.timeline, record.seq, record.parent, depth),
            *(is_alive, is_hidden, bool(labels or notes), data, *roots),
        )
        if path is not None and isinstance(record, CheckpointRecord):
            self._scratch.do("INSERT OR IGNORE INTO places VALUES (?, ?)", record.workspace, path)
        if not added:
            where = f"number {record.seq} of {record.timeline!r}"
            raise Corrupt(f"two checkpoints have one id, or are {where}")

    def _roots(self, record: CheckpointRecord) -> tuple[Hash, Hash | None]:
        """The state and the files of a checkpoint, which must be that."""
        found = {address: known for address, (known, _) in self._known(record.roots).items()}
        if record.root not in found or found[record.root].kind not in VALUES:
            raise Corrupt(f"a checkpoint's root {record.root.hex()} is no state in the file")
        files = record.snapshot
        if files is not None and (files not in found or found[files].kind != CAPTURE):
            raise Corrupt(f"a checkpoint's snapshot {files.hex()} is none in the file")
        return record.root, files

    def _check_whole(self) -> None:
        """What can only be said at the end."""
        count = self._scratch.one
        found = (
            count("SELECT count(*) FROM lines"),
            count("SELECT count(*) FROM past WHERE alive"),
            count("SELECT count(*) FROM past WHERE NOT alive"),
        )
        if found != self._reader.counts:
            raise Corrupt(f"it holds {found}, and its header says {tuple(self._reader.counts)}")
        if (self._objects, self._object_bytes) != self._reader.totals:
            raise Corrupt("it does not hold as many objects as its trailer says")
        lost = self._scratch.one(
            "SELECT name FROM lines AS l LEFT JOIN past AS p ON p.id = l.head WHERE "
            "head IS NOT NULL AND (p.id IS NULL OR NOT p.alive OR (p.hidden AND p.line = l.name))"
        )
        lost = lost or self._scratch.one(
            "SELECT name FROM lines "
            "WHERE origin IS NOT NULL AND origin NOT IN (SELECT id FROM past)"
        )
        if lost is not None:
            raise Corrupt(f"the head or the origin of timeline {lost!r} is not in it")
        self._check_numbers()

    def _check_numbers(self) -> None:
        """All numbers of a timeline are in the file. Where the store was damaged, some may be
        missing; but no file uses them up: what is saved after it has to fit in a file, too."""
        sql = (
            "SELECT name FROM lines "
            "WHERE last_seq > ? + (SELECT count(*) FROM past WHERE line = name)"
        )
        spent = self._scratch.one(sql, _MOST_MISSING)
        if spent is not None:
            raise Corrupt(f"most numbers of timeline {spent!r} are not in it")

    # Objects that have been seen

    def _known(self, addresses: Collection[Hash]) -> dict[Hash, tuple[Standing, Facts]]:
        found = {}
        for address in addresses:
            known = self._young.get(address) or self._old.get(address)
            if known is None and self._stored.may_hold(address):
                sql = (
                    "SELECT kind, nesting, weight, length, level, first, last "
                    "FROM objects WHERE address = ?"
                )
                row = self._scratch.row(sql, address)
                known = None if row is None else (Standing(*row[:3]), Facts(*row[3:]))
            if known is not None:
                found[address] = known
        return found

    def _store(self, seen: dict[Hash, tuple[Standing, Facts]]) -> None:
        self._stored.add(seen)
        rows = ((address, *found, *facts) for address, (found, facts) in sorted(seen.items()))
        self._scratch.many("INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
