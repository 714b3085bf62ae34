"""Bugs planted in a process on purpose, to see that the checks would notice them.

Each is a mistake that a store like ours could contain. They are applied to the process of a
scenario only; the process that checks afterwards runs the code as it is.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import apsw

from hardsave.stores.sqlite import connection, schema
from hardsave.stores.sqlite.gc import merge
from hardsave.stores.sqlite.open import prepare
from hardsave.stores.sqlite.open.commit_mark import CommitMark
from hardsave.stores.sqlite.read.object_index import add_rows
from hardsave.stores.sqlite.write.transaction import Item, Transaction
from hardsave.stores.sqlite.write.writer import Writer
from hardsave.vault.purge import purge


def answer_before_commit() -> None:
    """A save returns, and its transaction is committed with the next one."""

    def transact(self: Writer, items: Sequence[Item]) -> Transaction:
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")
        self._connection.execute("BEGIN IMMEDIATE")
        work = Transaction(items, self._cursor, self._index, self._known)
        work.run()
        return work

    mock.patch.object(Writer, "_transact", transact).start()


def failure_not_heeded() -> None:
    """A commit that the disk has refused is taken for one that stands."""

    def transact(self: Writer, items: Sequence[Item]) -> Transaction:
        self._connection.execute("BEGIN IMMEDIATE")
        work = Transaction(items, self._cursor, self._index, self._known)
        work.run()
        with contextlib.suppress(apsw.Error):
            self._connection.execute("COMMIT")
        return work

    mock.patch.object(Writer, "_transact", transact).start()


def index_before_pack() -> None:
    """Index rows are committed first, the packs that they lead to in a second transaction."""
    swap = merge._swap

    def swap_in_two(to: Any, user: int, groups: list[list[merge.PackRow]], made: Any) -> None:
        members = [member for merged in made for member in merged.members]
        add_rows(to, user, members, groups[-1][-1].id)
        to.execute("COMMIT; BEGIN IMMEDIATE")
        with mock.patch.object(merge, "indexed_upto", return_value=-1):
            swap(to, user, groups, made)

    mock.patch.object(merge, "_swap", swap_in_two).start()


def mark_before_commit() -> None:
    """The mark counts a commit that may never be."""
    transact = Writer._transact

    def transact_marked(self: Writer, items: Sequence[Item]) -> Transaction:
        self._mark.write(schema.last_number(self._connection) + 1, relaxed=False)
        return transact(self, items)

    mock.patch.object(Writer, "_transact", transact_marked).start()


def mark_never_written() -> None:
    mock.patch.object(CommitMark, "write").start()


def synchronous_normal() -> None:
    """Commits are not synced, although the store was opened to survive a power loss."""
    pragma = connection._pragma

    def weaker(to: Any, name: str, wanted: int | str) -> None:
        pragma(to, name, 1 if name == "synchronous" else wanted)

    mock.patch.object(connection, "_pragma", weaker).start()


def folders_never_synced() -> None:
    """A new folder is left to the kernel."""
    mock.patch.object(prepare, "_sync_folder").start()


def hash_not_checked() -> None:
    """Whatever the store hands out is taken for what was asked for."""
    mock.patch("hardsave.vault.objects.check").start()


def purge_keeps_the_bytes() -> None:
    """A purge drops and rewrites checkpoints, and leaves what they held where it is."""
    nothing = purge.Purged(0, 0, 0)
    mock.patch.object(purge, "collected", return_value=nothing).start()


def earlier_boot() -> None:
    """Not a bug: the process runs before the machine went down, its checker after that."""
    mock.patch("hardsave.stores.sqlite.open.commit_mark.boot_id", return_value=b"earlier.").start()


PLANTS: dict[str, Callable[[], None]] = {
    plant.__name__: plant
    for plant in (
        answer_before_commit,
        failure_not_heeded,
        index_before_pack,
        mark_before_commit,
        mark_never_written,
        synchronous_normal,
        folders_never_synced,
        hash_not_checked,
        purge_keeps_the_bytes,
        earlier_boot,
    )
}
