"""The tables and indexes, which of these come later, and how older files become newer ones.

`user_version` counts the migrations that a file has been through. They run inside one
transaction, under the writer's lock. A file from a newer version is refused untouched.
"""

from collections.abc import Iterator
from typing import Any

import apsw

from hardsave.errors import Misuse
from hardsave.stores.host.identity import host_id
from hardsave.stores.sqlite import counts
from hardsave.stores.sqlite.connection import APPLICATION_ID

MIGRATIONS = (
    """
    CREATE TABLE users (
        id         INTEGER PRIMARY KEY,          -- 0 is the user None
        name       TEXT UNIQUE,
        indexed    INTEGER NOT NULL DEFAULT 0    -- packs up to this id have rows in objects
    );
    CREATE TABLE timelines (
        id         INTEGER PRIMARY KEY,
        user       INTEGER NOT NULL REFERENCES users (id),
        name       TEXT NOT NULL,
        head       BLOB,                         -- a checkpoint's id
        last_seq   INTEGER NOT NULL,             -- the highest number ever given out
        created_at INTEGER NOT NULL,             -- microseconds since 1970, UTC
        origin     BLOB,                         -- the checkpoint it was forked from
        UNIQUE (user, name)
    );
    CREATE TABLE checkpoints (
        number      INTEGER PRIMARY KEY,         -- of the commit; shared with log
        user        INTEGER NOT NULL,            -- as its timeline's
        id          BLOB NOT NULL,
        timeline    INTEGER NOT NULL REFERENCES timelines (id),
        seq         INTEGER NOT NULL,
        parent      BLOB,
        created_at  INTEGER NOT NULL,
        name        TEXT,
        kind        TEXT NOT NULL,
        status      TEXT NOT NULL,
        description TEXT NOT NULL,
        metadata    BLOB NOT NULL,
        root        BLOB NOT NULL                -- the hash of the state
    );
    CREATE UNIQUE INDEX checkpoints_by_id ON checkpoints (user, id);
    CREATE UNIQUE INDEX checkpoints_by_seq ON checkpoints (timeline, seq);
    CREATE INDEX checkpoints_by_name ON checkpoints (timeline, name, seq) WHERE name IS NOT NULL;
    CREATE TABLE log (
        number     INTEGER PRIMARY KEY,
        user       INTEGER NOT NULL REFERENCES users (id),
        id         BLOB NOT NULL,
        timeline   TEXT,
        kind       TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        data       BLOB NOT NULL
    );
    CREATE TABLE packs (
        id         INTEGER PRIMARY KEY,          -- user * 2^40 + a rising number
        size       INTEGER NOT NULL,             -- of its objects, uncompressed
        directory  BLOB NOT NULL,                -- their hashes, then their lengths
        body       BLOB NOT NULL                 -- their bytes; shorter than size: a zstd frame
    );
    CREATE TABLE objects (
        user       INTEGER NOT NULL,
        prefix     INTEGER NOT NULL,             -- the first 63 bits of the hash
        pack       INTEGER NOT NULL,             -- it lies in the first pack with id >= this
        PRIMARY KEY (user, prefix, pack)
    ) WITHOUT ROWID;
    INSERT INTO users (id, name) VALUES (0, NULL);
    """,
    """
    ALTER TABLE timelines ADD COLUMN deleted INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE checkpoints ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0;
        -- by which commit; negative: hidden by it once, and shown again
    CREATE INDEX checkpoints_hidden ON checkpoints (hidden) WHERE hidden != 0;
    ALTER TABLE users ADD COLUMN swept INTEGER NOT NULL DEFAULT 0;
        -- rises when objects are removed: what a process has in mind of them is void
    CREATE TABLE tombstones (                    -- of checkpoints that were dropped
        number     INTEGER PRIMARY KEY,          -- as the checkpoint's was
        user       INTEGER NOT NULL,
        id         BLOB NOT NULL,
        timeline   INTEGER NOT NULL REFERENCES timelines (id),
        seq        INTEGER NOT NULL,
        parent     BLOB
    );
    CREATE TABLE pins (
        pin        BLOB PRIMARY KEY,
        user       INTEGER NOT NULL REFERENCES users (id),
        boot       BLOB NOT NULL,                -- which boot of the machine it counts in
        until      INTEGER NOT NULL              -- microseconds since that boot
    ) WITHOUT ROWID;
    CREATE TABLE changes (                       -- rows that were not just added: for the backup
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        what       TEXT NOT NULL,                -- packs, checkpoints, timelines or log
        low        INTEGER NOT NULL,             -- ids or numbers from here
        high       INTEGER NOT NULL              -- to here may have changed or gone
    );
    """,
    """
    ALTER TABLE checkpoints ADD COLUMN snapshot BLOB;
        -- the hash of the captured files; NULL: it has none
    ALTER TABLE checkpoints ADD COLUMN workspace BLOB;
        -- the directory that they are from
    CREATE INDEX checkpoints_by_workspace ON checkpoints (user, workspace, number)
        WHERE workspace IS NOT NULL;
    """,
    # Short, and explained in docs/format.md: SQLite keeps every byte of this in the schema, and
    # the loss of one of its pages is the loss of all. One entry a task and step; `task` 0 stands
    # for the ledger as a whole, `due` 0 for now, NULL for a task that waits for something.
    """
    CREATE TABLE tasks (id INTEGER PRIMARY KEY, user INTEGER NOT NULL REFERENCES users (id),
        name TEXT NOT NULL, text TEXT NOT NULL, key BLOB NOT NULL, state TEXT NOT NULL,
        priority INTEGER NOT NULL, created_at INTEGER NOT NULL, epoch INTEGER NOT NULL,
        generation INTEGER NOT NULL, attempts INTEGER NOT NULL, max_attempts INTEGER NOT NULL,
        not_before INTEGER NOT NULL, due INTEGER, after TEXT NOT NULL, waits_for TEXT,
        owner BLOB, started_at INTEGER, ended_at INTEGER, done INTEGER NOT NULL,
        total INTEGER NOT NULL, error TEXT, result BLOB, question BLOB, metadata BLOB NOT NULL);
    CREATE INDEX tasks_due ON tasks (user, due, priority DESC, id)
        WHERE state = 'pending' AND due IS NOT NULL;
    CREATE TABLE ledger (number INTEGER PRIMARY KEY, user INTEGER NOT NULL REFERENCES users (id),
        id BLOB NOT NULL, task INTEGER NOT NULL, kind TEXT NOT NULL, generation INTEGER NOT NULL,
        epoch INTEGER NOT NULL, created_at INTEGER NOT NULL, step TEXT, data BLOB NOT NULL);
    CREATE TABLE owners (id BLOB NOT NULL, user INTEGER NOT NULL REFERENCES users (id),
        session TEXT NOT NULL, host TEXT NOT NULL, boot BLOB NOT NULL, space INTEGER NOT NULL,
        pid INTEGER NOT NULL, pid_started INTEGER NOT NULL, since INTEGER NOT NULL,
        until INTEGER NOT NULL, PRIMARY KEY (user, id)) WITHOUT ROWID;
    """,
    # Which attempt at which task has saved it.
    """
    ALTER TABLE checkpoints ADD COLUMN task TEXT;
    ALTER TABLE checkpoints ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE checkpoints ADD COLUMN attempt INTEGER NOT NULL DEFAULT 0;
    """,
    # Indexes may be missing from here on; see below. Earlier files have them all.
    "",
    # What lists tell, kept when it is saved. NULL: saved before there was such a thing.
    """
    ALTER TABLE checkpoints ADD COLUMN summary BLOB;
    ALTER TABLE timelines ADD COLUMN title TEXT NOT NULL DEFAULT '';
    """,
    # Counts that are kept (see `counts`), branches, and rows beside checkpoints; docs/format.md
    # explains the columns. `branch` is NULL where the parent is the checkpoint right before it on
    # its timeline: a plain save has no row in that index. A label's id is its checkpoint's number
    # * 256 and a position, so that labels are found, copied and removed by the number. `pins` and
    # `owners` say which clock their `until` counts in; so far that was the boot.
    """
    ALTER TABLE timelines ADD COLUMN saved INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE timelines ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE timelines ADD COLUMN moved INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE checkpoints ADD COLUMN branch INTEGER;
    CREATE INDEX checkpoints_branching ON checkpoints (user, parent) WHERE branch IS NOT NULL;
    ALTER TABLE users ADD COLUMN purged INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE users ADD COLUMN objects INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE users ADD COLUMN object_bytes INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE users ADD COLUMN pack_bytes INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE users ADD COLUMN compacted INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE labels (id INTEGER PRIMARY KEY, user INTEGER NOT NULL REFERENCES users (id),
        key TEXT NOT NULL, value TEXT NOT NULL);
    CREATE TABLE notes (id INTEGER PRIMARY KEY, user INTEGER NOT NULL REFERENCES users (id),
        checkpoint INTEGER NOT NULL, key TEXT NOT NULL, data BLOB NOT NULL);
    CREATE TABLE workspaces (number INTEGER PRIMARY KEY,
        user INTEGER NOT NULL REFERENCES users (id), id BLOB NOT NULL, host TEXT NOT NULL,
        path BLOB NOT NULL, epoch INTEGER NOT NULL);
    ALTER TABLE owners ADD COLUMN clock BLOB NOT NULL DEFAULT x'';
    UPDATE owners SET clock = boot;
    ALTER TABLE pins RENAME COLUMN boot TO clock;
    """  # noqa: S608 # put together from constants only
    + counts.KEEP_PACK_COUNTS,
)

VERSION = len(MIGRATIONS)
LABEL_BITS = 8  # of a label's id: its position; the others are its checkpoint's number

# Of tables that a store which only saves has no rows for: an empty index takes a page, as an empty
# table does. They are made in the transaction that may add the first row to any of these.
_LATER = """
    CREATE UNIQUE INDEX IF NOT EXISTS log_by_id ON log (user, id);
    CREATE INDEX IF NOT EXISTS log_by_user ON log (user, number);
    CREATE UNIQUE INDEX IF NOT EXISTS tombstones_by_id ON tombstones (user, id);
    CREATE INDEX IF NOT EXISTS tombstones_by_seq ON tombstones (timeline, seq);
    CREATE UNIQUE INDEX IF NOT EXISTS tasks_by_name ON tasks (user, name);
    CREATE UNIQUE INDEX IF NOT EXISTS tasks_by_key ON tasks (user, key);
    CREATE INDEX IF NOT EXISTS tasks_by_state ON tasks (user, state, id);
    CREATE INDEX IF NOT EXISTS tasks_waiting ON tasks (user, waits_for)
        WHERE waits_for IS NOT NULL;
    CREATE UNIQUE INDEX IF NOT EXISTS ledger_by_task ON ledger (task, user, id);
    CREATE INDEX IF NOT EXISTS ledger_itself ON ledger (user, kind, number) WHERE task = 0;
    CREATE INDEX IF NOT EXISTS labels_by_value ON labels (user, key, value, id);
    CREATE UNIQUE INDEX IF NOT EXISTS notes_by_key ON notes (checkpoint, key);
"""

OF_WORKSPACES = """
    CREATE UNIQUE INDEX IF NOT EXISTS workspaces_by_id ON workspaces (user, id);
    CREATE INDEX IF NOT EXISTS workspaces_by_place ON workspaces (user, host, path, id);
"""
"""Made with the first row: a store that captures no files needs no page for them."""

LAST_NUMBER = """
    SELECT max((SELECT coalesce(max(number), 0) FROM {0}.checkpoints),
               (SELECT coalesce(max(number), 0) FROM {0}.log),
               (SELECT coalesce(max(number), 0) FROM {0}.ledger))
"""


# From one to the next by the index: there may be a hundred thousand captures of each.
NEXT_WORKSPACE = """
    SELECT user, workspace FROM {0}.checkpoints
    WHERE workspace IS NOT NULL AND (user, workspace) > (?, ?) ORDER BY user, workspace LIMIT 1
"""
_ADOPT = """
    INSERT INTO workspaces (user, id, host, path, epoch) VALUES (?1, ?2, ?3, ?2, 0)
    ON CONFLICT DO NOTHING
"""


def last_number(connection: apsw.Connection, name: str = "main") -> int:
    """The last commit of a database, perhaps of an attached one."""
    return int(connection.execute(LAST_NUMBER.format(name)).get)


def check_is_ours(path: str, application: int, version: int, tables: int) -> None:
    """Refuse a database that is not a store, or one from a newer Hardsave."""
    if application == 0 and version == 0 and tables == 0:
        return  # just created, perhaps by a process that died right after
    if application != APPLICATION_ID:
        raise Misuse(f"{path} is a database of another program; choose another path")
    check_is_known(path, version)


def check_is_known(path: str, version: int) -> None:
    """Refuse what a newer Hardsave has written: what was added since would be left out."""
    if version > VERSION:
        raise Misuse(
            f"{path} was written by a newer Hardsave (schema {version}, this one knows "
            f"{VERSION}); upgrade Hardsave to open it"
        )


def is_older(connection: apsw.Connection) -> bool:
    return int(connection.pragma("user_version")) < VERSION


def add_indexes(connection: apsw.Connection) -> None:
    """Make what is missing for more than saves. To be called inside a transaction that writes."""
    connection.execute(_LATER)


def adopt_workspaces(connection: apsw.Connection) -> None:
    """Give the workspaces of checkpoints that are older than ids to this host, which opens their
    store: such a checkpoint names a path, which becomes the id."""
    connection.execute(OF_WORKSPACES)
    for user, path in named_workspaces(connection):
        if path.startswith(b"/"):
            connection.execute(_ADOPT, (user, path, host_id()))


def named_workspaces(
    connection: apsw.Connection, name: str = "main"
) -> Iterator[tuple[int, bytes]]:
    """The workspaces that checkpoints of a database, attached as `name`, name: user and id."""
    at: Any = (-1, b"")
    while at := connection.execute(NEXT_WORKSPACE.format(name), at).fetchone():
        if isinstance(at[1], bytes):
            yield at


def migrate(connection: apsw.Connection) -> None:
    """Bring the file up to this version. The caller holds the writer's lock, and nobody else has
    it open: an older Hardsave would go on writing as if nothing had been added."""
    if not is_older(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        before = int(connection.pragma("user_version"))
        for number in range(before, VERSION):
            connection.execute(MIGRATIONS[number])
        if before > 0:  # it may have rows of all kinds
            add_indexes(connection)
            adopt_workspaces(connection)
            counts.count_packs(connection)
            counts.count_checkpoints(connection)
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", VERSION)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a page that cannot be read ends it
            connection.execute("ROLLBACK")
        raise
