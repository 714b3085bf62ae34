"""Saving what can be read, when a store cannot be opened or verified any more.

Rows are taken one by one from the store, from its backup where the store's own cannot be
read, and in the end from pages without a valid checksum, which are counted. Objects are kept
only if they match their hashes. The old files are set aside; nothing is deleted.
"""

import os

from hardsave.defaults import BUSY_SECONDS
from hardsave.errors import Corrupt, NotFound, Unavailable
from hardsave.stores.base import Report
from hardsave.stores.local.database import in_our_words
from hardsave.stores.local.file_lock import FileLock
from hardsave.stores.sqlite.backup import backup_file, durable_files
from hardsave.stores.sqlite.connection import real_path
from hardsave.stores.sqlite.open.commit_mark import CommitMark
from hardsave.stores.sqlite.open.presence import Presence
from hardsave.stores.sqlite.salvage import takeover
from hardsave.stores.sqlite.salvage.beside_check import unknown_workspaces, wrong_rows
from hardsave.stores.sqlite.salvage.object_check import ObjectCheck
from hardsave.stores.sqlite.salvage.rebuild import Range, Rebuild
from hardsave.stores.sqlite.salvage.row_repair import RowRepair
from hardsave.tuples import NamedTuple

_NOTHING = (
    "nothing can be read in {0} or its backup; they are left as they are. Put back a copy, or move "
    "them and {0}-mark away to begin anew"
)


def repair(path: str | os.PathLike[str]) -> Report:
    """Repair the store at `path`, which nobody may have open. A sound one is left as it is."""
    path = real_path(path)
    if not any(os.path.exists(name) for name in (path, path + "-wal", backup_file.path_of(path))):
        raise NotFound(f"there is no store at {path}, and no backup of one")
    lock, presence = FileLock(path + "-lock"), Presence(path + "-open")
    mark = CommitMark(path + "-mark")
    lock.acquire(BUSY_SECONDS)
    try:
        presence.seize()
        if takeover.is_pending(path):
            takeover.put_in_place(path)
        with in_our_words(path):
            return _repair(path, mark)
    except TimeoutError:  # of a signal handler: those of alarms raise it, and disks do not
        raise
    except OSError as error:
        raise Unavailable(f"{path} cannot be repaired: {error}; see to it, then repeat") from error
    finally:
        presence.close()
        mark.close()
        lock.release()
        lock.close()


def _repair(path: str, mark: CommitMark) -> Report:
    remembered = mark.read()
    salvage = Rebuild(path + durable_files.TAKEOVER)
    try:
        made = _make(salvage, path, remembered.number if remembered else 0)
    except BaseException:
        salvage.abandon()
        raise
    if made.number is None:
        salvage.abandon()
        return made.report
    aside = takeover.put_in_place(path)
    mark.write(made.number, relaxed=False)
    return made.report.replace(set_aside=aside)


class _Made(NamedTuple):
    report: Report
    number: int | None  # of the log entry; None: there was nothing to repair


class _Sources(NamedTuple):
    """Where rows come from, best first, and the last commit of each."""

    names: list[str]
    numbers: dict[str, int]


def _make(salvage: Rebuild, path: str, marked: int) -> _Made:
    sources = _attach(salvage, path, marked)
    top = max(marked, *sources.numbers.values())
    unread, from_others = _copy(salvage, path, sources, top)
    _copy_beside(salvage, sources.names[1:], top)
    dropped, broken = ObjectCheck(salvage).check(sources.names)
    mender = RowRepair(salvage)
    damaged = mender.damaged(broken)
    faults = mender.mend(damaged) + [f"{each} has lost something" for each in damaged]
    checkpoints, entries = salvage.counts()
    if not checkpoints and not entries and top:
        raise Corrupt(_NOTHING.format(path))
    lost = _lost(salvage, sources, unread, top)
    if lost:
        faults.append(f"commits between {lost[0]} and {lost[-1]} cannot be read: {len(lost)}")
    if salvage.is_gathered(sources.names[0]) and (unknown := salvage.missing(0, top)):
        faults.append(f"{len(unknown)} commits up to {top} are not there: removed before, or lost")
    if dropped:
        faults.append(f"{dropped} objects do not match their hashes, and were left out")
    report = Report(checkpoints, from_others.get("raw", 0), tuple(faults), None)
    is_best = sources.names[0] == "store" and not from_others and not faults
    if is_best and _has_header(path) and _is_sound(salvage):
        return _Made(report, None)
    source = " and ".join([sources.names[0], *from_others])
    event = takeover.event(top + 1, "repair", "repair was asked for", source, lost, faults)
    changes = [salvage.highest_change(name) for name in sources.names]
    salvage.finish(event, max(changes), path + "-takeover")
    return _Made(report, top + 1)


def _attach(salvage: Rebuild, path: str, marked: int) -> _Sources:
    """What can be opened at all: of store and backup, the one that has come further is first.
    But one of which there are only single pages adds to the other: it may lack the most."""
    numbers: dict[str, int] = {}
    for name, file in (("store", path), ("backup", backup_file.path_of(path))):
        if salvage.attach_file(name, file):
            numbers[name] = salvage.last_number(name, max(marked, *numbers.values(), 0))
    names = sorted(numbers, key=lambda name: (salvage.is_gathered(name), -numbers[name]))
    if salvage.attach("raw", path, is_checked=False):
        names.append("raw")
        numbers["raw"] = salvage.last_number("raw", max(marked, *numbers.values(), 0))
    if not names:
        raise Corrupt(_NOTHING.format(path))
    return _Sources(names, numbers)


def _copy(
    salvage: Rebuild, path: str, sources: _Sources, top: int
) -> tuple[dict[str, list[Range]], dict[str, int]]:
    """What the first could not give, and how many events came from which other source."""
    first = sources.names[0]
    unread = salvage.copy_all(first, top)
    reached = sources.numbers[first]
    if any(unread.values()):
        for name, file in (("backup", backup_file.path_of(path)), ("store", path)):
            if rows := salvage.attach_rows(name, file):
                sources.names.insert(1, rows)
                sources.numbers[rows] = salvage.last_number(rows, top)
    gained: dict[str, int] = {}
    for name in sources.names[1:]:
        before = sum(salvage.counts())
        if salvage.is_gathered(first) and name != "raw":
            salvage.add_all(name, top)
        if unread["packs"] and name.startswith("backup"):  # it may have them under other ids
            salvage.copy_table(name, "packs", top)
        salvage.copy_ranges(name, unread)
        if sources.numbers[name] > reached:
            salvage.copy_newer(name, reached, top)
            reached = sources.numbers[name]
        if gain := sum(salvage.counts()) - before:
            gained[name] = gain
    return unread, gained


def _copy_beside(salvage: Rebuild, others: list[str], top: int) -> None:
    """Notes and workspaces that are unreadable or missing, if another source has them. One that
    was removed stays so: only what is still named is looked for."""
    for name in [name for name in others if name != "raw"]:
        for row in [row for row in wrong_rows(salvage.connection) if row.is_lost]:
            salvage.copy(name, row.table, (row.id, row.id), "REPLACE")
        for user, id in list(unknown_workspaces(salvage.connection)):
            named = f"user = {user} AND id = x'{id.hex()}'"
            salvage.copy_table(name, "workspaces", top, named)


def _lost(
    salvage: Rebuild, sources: _Sources, unread: dict[str, list[Range]], top: int
) -> list[int]:
    """Commits that were there once: past the end of every source that has all before its end, or
    on a page that is gone."""
    whole = {name for name in sources.numbers if not salvage.is_gathered(name)}
    reached = max(sources.numbers[name] for name in whole or sources.numbers)
    return sorted({*salvage.missing(reached, top), *salvage.gone(unread, top)})


def _has_header(path: str) -> bool:
    """What the WAL covers reads well, and still nobody opens a file that does not look like one."""
    if not os.path.exists(path):
        return False  # it was read from its WAL
    with open(path, "rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def _is_sound(salvage: Rebuild) -> bool:
    return salvage.is_sound("store") and not salvage.structure_faults("store")
