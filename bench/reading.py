"""What reads cost: the whole state, its end, a list of checkpoints, one page of many."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hardsave
from bench import report, turns
from bench.machine import check
from bench.payload import Conversation
from bench.peers import THREAD, open_saver
from bench.report import Row, at_least, at_most, growth, ratio
from bench.setting import Setting
from bench.stopwatch import in_turns, median, timed
from bench.store_file import room, url
from hardsave.defaults import MAX_VALUE_BYTES
from hardsave.objects.builder import Builder
from hardsave.objects.codec import Codec
from hardsave.objects.levels import Out
from hardsave.objects.records import CheckpointRecord, TimelineRecord
from hardsave.stores.base import Batch, Move
from hardsave.stores.registry import open_store

TAIL = 20
WARM = "the same vault and connection for all readings; the first does not count"
COLD = "a new vault and a new connection for each reading; opening them is not counted"
PAGE = 50


# Loading


def load(setting: Setting) -> list[Row]:
    """The head's state, whole and only its end."""
    session = setting.session
    savers = [open_saver(session.path(name)) for name in (turns.OBJECTS, turns.DICTS)]
    with hardsave.open(url(session.path(turns.SAVE))) as vault:
        line = vault.timeline("main")
        warm = in_turns(
            setting.choose(40, 10),
            lambda: timed(line.load)[0],
            lambda: timed(lambda: _tail(line))[0],
            lambda: timed(lambda: savers[0].get_tuple(THREAD))[0],
            lambda: timed(lambda: savers[1].get_tuple(THREAD))[0],
        )
    for saver in savers:
        saver.conn.close()
    cold = in_turns(
        setting.choose(40, 10),
        lambda: _cold_load(session),
        lambda: _cold_tail(session),
        lambda: _cold_get(session, turns.OBJECTS),
        lambda: _cold_get(session, turns.DICTS),
    )
    count = 2 * session.conversation.turns
    return _against_get(count, [median(found[1:]) for found in warm], "", WARM) + _against_get(
        count, list(map(median, cold)), ", just opened", COLD
    )


def compacted(setting: Setting) -> list[Row]:
    """The same store once it was compacted: no section after this one may want it as it was."""
    session = setting.session
    path = session.path(turns.SAVE)
    saver = open_saver(session.path(turns.OBJECTS))
    with hardsave.open(url(path)) as vault:
        vault.store.compact()
        line = vault.timeline("main")
        ours, theirs = in_turns(
            setting.choose(40, 10),
            lambda: timed(line.load)[0],
            lambda: timed(lambda: saver.get_tuple(THREAD))[0],
        )
        whole = room(path).whole
    saver.conn.close()
    sizes = [
        _size("disk / payload, compacted", whole, session.conversation.size, at_most(1.05)),
        _four_times_as_long(setting),
    ]
    count = 2 * session.conversation.turns
    figure = f"load {count:,} messages, compacted, against get_tuple, {turns.OBJECTS}"
    seconds = median(ours[1:]), median(theirs[1:])
    return [*sizes, ratio(figure, *seconds, at_least(4), note=WARM)]


def _four_times_as_long(setting: Setting) -> Row:
    conversation = Conversation(4 * setting.turns)
    path = setting.place / "compacted-long.db"
    with hardsave.open(url(path), durability="process") as vault:
        line = vault.timeline("main")
        for turn in range(1, conversation.turns + 1):
            line.append(conversation.delta(turn))
        vault.store.compact()
        whole = room(path).whole
    figure = f"disk / payload, {conversation.turns:,} turns, compacted"
    return _size(figure, whole, conversation.size, None)


def _size(figure: str, whole: int, payload: int, target: report.Target | None) -> Row:
    return Row(
        figure,
        ours=report.size(whole),
        other=f"{report.size(payload)} payload",
        value=whole / payload,
        target=target,
    )


def _against_get(count: int, seconds: list[float], how: str, note: str) -> list[Row]:
    """Rows for ours, its end, and get_tuple of two kinds of messages; a target for those that
    were open before."""
    whole, tail, *theirs = seconds
    return [
        ratio(
            f"{what}{how}, against get_tuple, {name}",
            ours,
            their,
            at_least(target) if name == turns.OBJECTS and not how else None,
            note=note,
        )
        for what, ours, target in (
            (f"load {count:,} messages", whole, 3),
            (f"the last {TAIL} messages, lazily", tail, 30),
        )
        for name, their in zip((turns.OBJECTS, turns.DICTS), theirs, strict=True)
    ]


def _cold_load(session: turns.Session) -> float:
    with hardsave.open(url(session.path(turns.SAVE))) as vault:
        line = vault.timeline("main")
        seconds, state = timed(line.load)
    check(state == session.conversation.state(session.conversation.turns), "load went wrong")
    return seconds


def _cold_tail(session: turns.Session) -> float:
    with hardsave.open(url(session.path(turns.SAVE))) as vault:
        line = vault.timeline("main")
        seconds, messages = timed(lambda: _tail(line))
    check(messages == session.conversation.messages[-TAIL:], "the lazy end is wrong")
    return seconds


def _tail(line: hardsave.Timeline) -> Any:
    head = line.head
    return None if head is None else head.state["messages"][-TAIL:]


def _cold_get(session: turns.Session, name: str) -> float:
    saver = open_saver(session.path(name))
    seconds, found = timed(lambda: saver.get_tuple(THREAD))
    check(_is_whole(session, found), f"{name} does not read what it stored")
    saver.conn.close()
    return seconds


def _is_whole(session: turns.Session, found: Any) -> bool:
    return len(found.checkpoint["channel_values"]["messages"]) == 2 * session.conversation.turns


# Listing


def listing(setting: Setting) -> list[Row]:
    """All headers of the conversation, against `list(saver.list(config))`, run once."""
    session = setting.session
    count = session.conversation.turns
    ours = median([_listed(session.path(turns.SAVE), count) for _ in range(setting.choose(40, 10))])
    return [
        ratio(
            f"list {count} headers against {name}",
            ours,
            _listed_by(session, name),
            at_least(5000) if name == turns.OBJECTS else None,
            note="theirs is list(saver.list(config)), run once",
        )
        for name in (turns.OBJECTS, turns.DICTS)
    ]


def _listed_by(session: turns.Session, name: str) -> float:
    saver = open_saver(session.path(name))
    seconds, found = timed(lambda: len(list(saver.list(THREAD))))
    check(found == session.conversation.turns, f"{name} lists {found} checkpoints")
    saver.conn.close()
    return seconds


def _listed(path: Path, count: int) -> float:
    with hardsave.open(url(path)) as vault:
        line = vault.timeline("main")
        seconds, page = timed(lambda: line.checkpoints(limit=count))
        check([found.seq for found in page] == list(range(count, 0, -1)), "the list is wrong")
    return seconds


# Paging


def pages(setting: Setting) -> list[Row]:
    """One page of a long history costs what it costs in a short one."""
    few, many = 1000, setting.choose(100_000, 10_000)
    small = _filled(setting.place / "few.db", few)
    large = _filled(setting.place / "many.db", many)
    rounds = setting.choose(400, 100)
    with hardsave.open(url(small)) as few_vault, hardsave.open(url(large)) as many_vault:
        few_line, many_line = few_vault.timeline("main"), many_vault.timeline("main")
        times = in_turns(
            rounds,
            _pager(many_line, many, 0),
            _pager(few_line, few, 0),
            _pager(many_line, many, many // 2),
            _pager(few_line, few, few // 2),
        )
    newest, newest_few, middle, middle_few = map(median, times)
    return [
        growth(
            f"{place} page of {PAGE} headers, {many:,} / {few:,} checkpoints",
            of_many,
            of_few,
            at_most(1.3),
            names=(f"{many:,}", f"{few:,}"),
            note="one timeline; the same vaults for all readings, in turns",
        )
        for place, of_many, of_few in (
            ("newest", newest, newest_few),
            ("middle", middle, middle_few),
        )
    ]


def _pager(line: hardsave.Timeline, count: int, passed: int) -> Callable[[], float]:
    """Reads the page behind so many of the newest checkpoints."""
    after = line.checkpoints(limit=passed).next if passed else None
    newest = count - passed

    def read() -> float:
        seconds, found = timed(lambda: line.checkpoints(limit=PAGE, after=after))
        check([row.seq for row in found] == list(range(newest, newest - PAGE, -1)), "page")
        return seconds

    return read


def _filled(path: Path, count: int) -> Path:
    """A store with so many checkpoints on one timeline, by commits straight to the store."""
    out = Out()
    root = Builder(Codec(), MAX_VALUE_BYTES).root({"turn": 0}, out)
    store = open_store(url(path), durability="process")
    standing: TimelineRecord | None = None
    for seq in range(1, count + 1):
        parent = None if standing is None else standing.head
        record = CheckpointRecord(
            number=0,
            id=os.urandom(12),
            timeline="main",
            seq=seq,
            parent=parent,
            created_at=1_000_000 + seq,
            name=None,
            kind="automatic",
            status="running",
            description="",
            metadata=b"\x80",
            root=root,
        )
        become = TimelineRecord("main", record.id, seq, 1_000_000, None)
        objects = out if seq == 1 else {}
        store.commit(Batch(None, record, Move(standing, become), objects, {root} - objects.keys()))
        standing = become
    store.close()
    with hardsave.open(url(path)) as vault:
        check(vault.timeline("main").load(f"main:{count // 2}") == {"turn": 0}, "filling failed")
    return path
