"""A damaged store is replaced by what its backup and itself still hold, when it is opened.

The caller holds the writer's lock and has seized the store: no other process has it open. Then:

1. A new file is made in `<store>-takeover-new`, from the best source: the store itself if all
   of it can be read and it is not behind its backup; otherwise the backup, and what can be
   read of the store that is newer.
2. It is checked, synced, and renamed to `<store>-takeover`. From here on it is what counts.
3. The damaged files are renamed to `<store>.damaged-<time>`: never overwritten or deleted.
4. `<store>-takeover` is renamed to `<store>`.

A crash before 2 leaves everything as it was; after a later one, the next process that opens the
store goes on with 3. What is lost is named: in an error of the log, and as an entry of the store's
own.
"""

import contextlib
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from hardsave.errors import Corrupt
from hardsave.logs import log
from hardsave.objects.codec import Codec
from hardsave.objects.records import ID_BYTES
from hardsave.stores.local.database import in_our_words
from hardsave.stores.sqlite.backup import backup_file, durable_files
from hardsave.stores.sqlite.open.commit_mark import CommitMark
from hardsave.stores.sqlite.salvage.object_check import ObjectCheck
from hardsave.stores.sqlite.salvage.rebuild import Entry, Range, Rebuild
from hardsave.stores.sqlite.salvage.row_repair import RowRepair
from hardsave.tuples import NamedTuple

PARTS = ("", "-wal", "-shm")
ADVICE = "close it everywhere and call hardsave.repair(), which saves what can be read"


class Witnesses(NamedTuple):
    """What is known of a store's last commit: by its mark, its backup and itself."""

    mark: int
    backup: int | None  # None: there is none that can be used
    store: int | None  # None: nothing can be read in it
    is_sound: bool  # all of it can be read
    is_mark_current: bool = True  # False: it is missing, or may be older than the last commit


class Plan(NamedTuple):
    """What the new file is made of."""

    base: str  # "store" or "backup"
    upto: int  # the last commit of the base
    adds_newer: bool  # take what is newer from the store, as far as it can be read
    top: int  # the highest commit that any file names


def decide(known: Witnesses) -> Plan | None:
    """How to take over; None if there is nothing to do it from."""
    top = max(known.mark, known.backup or 0, known.store or 0)
    if known.backup is None:
        return None  # a store that is short of commits, with no second copy: for the user to decide
    if known.is_sound and known.store is not None and known.store >= known.backup:
        return Plan("store", known.store, False, top)
    return Plan("backup", known.backup, known.store is not None and not known.is_sound, top)


def is_pending(path: str) -> bool:
    """Whether a process died while it put a new file in place."""
    return os.path.exists(path + "-takeover")


def take_over(path: str, mark: CommitMark, wrong: str) -> None:
    """Replace the store at `path`, or raise `Corrupt` and leave everything where it is."""
    remembered = mark.read()
    with in_our_words(path):
        salvage = Rebuild(path + durable_files.TAKEOVER)
        try:
            known = _ask(salvage, path, remembered.number if remembered else 0)
            is_current = remembered is not None and not mark.may_be_old(remembered)
            number = _make(salvage, path, known._replace(is_mark_current=is_current), wrong)
        except BaseException:
            salvage.abandon()
            raise
    put_in_place(path)
    mark.write(number, relaxed=False)


def put_in_place(path: str) -> str:
    """Set the damaged files aside, and let the new one take their place. May be repeated."""
    new = path + "-takeover"
    # The same name however often it is tried: it goes by when the new file was finished.
    moment = datetime.fromtimestamp(os.stat(new).st_mtime, UTC)
    aside = f"{path}.damaged-{moment:%Y%m%dT%H%M%S.%f}"
    for part in PARTS:
        if os.path.exists(path + part):
            os.rename(path + part, _free(aside + part))
    durable_files.sync(os.path.dirname(path))
    os.rename(new, path)
    durable_files.sync(os.path.dirname(path))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path + "-suspect")
    return aside


def _free(name: str) -> str:
    found, count = name, 0
    while os.path.exists(found):
        count += 1
        found = f"{name}.{count}"
    return found


def _make(salvage: Rebuild, path: str, known: Witnesses, wrong: str) -> int:
    plan = decide(known)
    if plan is None:
        raise Corrupt(f"{wrong}. It has no backup to take over from: {ADVICE}")
    if plan.base == "backup":
        _refuse_another_history(salvage, path, known)
    unread = salvage.copy_all(plan.base, plan.top)
    others = ["backup"] + (["store"] if known.store is not None else [])
    if plan.base == "backup" and known.store is not None:
        salvage.copy_ranges("store", unread)
    newer = salvage.copy_newer("store", plan.upto, plan.top) if plan.adds_newer else {}
    if any(unread.values()) or any(newer.values()) or salvage.missing(plan.upto, plan.top):
        others += _copy_hidden(salvage, path, plan, unread, newer)
    dropped, broken = ObjectCheck(salvage).check(others)
    rows = RowRepair(salvage)
    damaged = rows.damaged(broken)
    rows.drop(each for each in damaged if each.number > plan.upto)
    is_whole = not dropped and not any(unread.values())
    notes = rows.repair(() if is_whole else damaged)
    if not is_whole:
        notes += [f"{each} has lost something" for each in damaged if each.number <= plan.upto]
    lost = salvage.gone(unread, plan.upto) + salvage.missing(plan.upto, plan.top)
    if lost:
        _refuse_to_lose_what_is_there(salvage, path, wrong, lost)
    if not known.is_mark_current:
        notes.append(f"nothing says how far it had come: commits after {plan.top} may be lost")
    changes = [salvage.highest_change(name) for name in ("store", "backup")]
    number = plan.top + 1
    entry = event(number, "takeover", wrong, plan.base, lost, notes)
    salvage.finish(entry, max(changes), path + "-takeover")
    _report(path, f"{wrong}; it was taken over from its {plan.base}", known, lost, notes)
    return number


def _copy_hidden(
    salvage: Rebuild,
    path: str,
    plan: Plan,
    unread: Mapping[str, list[Range]],
    newer: Mapping[str, list[Range]],
) -> list[str]:
    """What lies behind damaged pages, or on them; which sources have it."""
    asked = []
    if rows := salvage.attach_rows("store", path):
        asked.append(rows)
        salvage.copy_ranges(rows, unread)
        salvage.copy_newer(rows, plan.upto, plan.top)
    if any(unread.values()) and (rows := salvage.attach_rows("backup", backup_file.path_of(path))):
        asked.append(rows)
        salvage.copy_hidden(rows, unread, plan.top)
    if newer.get("packs") and salvage.attach("raw", path, is_checked=False):
        # Pages without a valid checksum: the hashes of objects vouch for what is in them.
        salvage.copy_ranges("raw", {"packs": newer["packs"]})
    return asked


def _ask(salvage: Rebuild, path: str, marked: int) -> Witnesses:
    # Without it the store is beyond help: a disk that fails for a moment must not decide that.
    copied = backup_file.peek(path, must_answer=True)
    if copied is not None and not salvage.attach(
        "backup", backup_file.path_of(path), must_answer=True
    ):
        copied = None
    second = None if copied is None else copied.number
    if not salvage.attach_file("store", path):
        return Witnesses(marked, second, None, False)
    last = salvage.last_number("store", max(marked, second or 0))
    return Witnesses(marked, second, last, salvage.is_sound("store"))


def _refuse_another_history(salvage: Rebuild, path: str, known: Witnesses) -> None:
    """A sound file that is not an earlier state of the backup was put there by a user or a tool."""
    if not known.is_sound or not known.store:
        return
    ours, theirs = (salvage.event(name, known.store) for name in ("store", "backup"))
    if ours and theirs and ours != theirs:
        raise Corrupt(
            f"{path} is another store than the one that {backup_file.path_of(path)} was copied "
            f"from; move one of them away (and {path}-mark, if the backup is to go)"
        )


def _refuse_to_lose_what_is_there(salvage: Rebuild, path: str, wrong: str, lost: list[int]) -> None:
    """A tool that wrote without checksums leaves pages that can be read, and that nothing vouches
    for. To take them or not is for the user to decide, so they are not given up either."""
    if not salvage.attach("raw", path, is_checked=False):
        return
    there = next((number for number in reversed(lost) if salvage.event("raw", number)), None)
    if there is not None:
        raise Corrupt(
            f"{wrong}. Commit {there} is in it, on pages without a valid checksum, and not in "
            f"the backup: {ADVICE}, these too"
        )


def _data(wrong: str, source: str, lost: list[int], notes: list[str]) -> bytes:
    named: dict[str, object] = {"wrong": wrong, "source": source, "notes": notes}
    if lost:
        named |= {"first_lost": lost[0], "last_lost": lost[-1], "lost": len(lost)}
    return Codec().encode(named)


def event(
    number: int, kind: str, wrong: str, source: str, lost: list[int], notes: list[str]
) -> Entry:
    """The log entry of a takeover or a repair."""
    moment = time.time_ns() // 1_000
    return Entry(number, os.urandom(ID_BYTES), kind, moment, _data(wrong, source, lost, notes))


def _report(path: str, what: str, known: Witnesses, lost: list[int], notes: list[str]) -> None:
    log(__name__).error("%s: %s", what, loss(lost, is_certain=known.is_mark_current))
    for note in notes:
        log(__name__).error("%s: %s", path, note)


def loss(lost: list[int], *, is_certain: bool) -> str:
    """What is gone, and no more than is known about it."""
    if lost:
        is_a_row = len(lost) == lost[-1] - lost[0] + 1
        which = (
            f"commits {lost[0]} to" if is_a_row else f"{len(lost)} commits between {lost[0]} and"
        )
        return f"{which} {lost[-1]} are lost" + ("" if is_certain else " at least")
    return "no commit is lost" if is_certain else "no commit is known to be lost"
