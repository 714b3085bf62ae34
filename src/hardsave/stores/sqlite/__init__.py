"""The default store: one SQLite file, through apsw.

- `connection`: opening the file; checksums, pragmas, errors in our own words
- `schema`: the tables, and how older files become newer ones
- `lock`: who may write, across processes
- `mark`: a second witness of how far the store had come
- `group`: many threads, one fsync
- `packs`: objects stored together
- `index`: where an object lies
- `writer`: the one path of every write
- `merge`: small packs become larger ones, off the path of commits
- `cache`: objects that were read
- `marking`, `collect`: removing what nothing needs
- `compact`: few large packs instead of many small ones
- `room`: what is free goes back to the file system
- `housekeeping`: the last four together
- `backup`: the second file
- `feeding`: one pass that feeds it, and building it anew
- `drafts`: files in the making
- `checking`: whether index and packs agree, and store and backup
- `copier`: who feeds it, and when
- `presence`: who has the store open
- `wal`: what a WAL holds by itself
- `salvage`: a new file from the rows that can still be read
- `sifting`, `mending`: its objects are checked, and its rows get what they refer to
- `takeover`: a damaged store is replaced when it is opened
- `repair`: saving what can be read, when asked to
- `opening`: creating or checking the file before anybody uses it
- `store`: the contract, on top of these
"""

from hardsave.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
