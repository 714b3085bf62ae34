"""The default store: one SQLite file, through apsw.

`store` puts it together; docs/ARCHITECTURE.md says what each of the other modules is for.
"""

from hardsave.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
