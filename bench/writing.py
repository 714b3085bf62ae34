"""What saves cost: room on the disk, time, and how both grow."""

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import hardsave
from bench import report, turns
from bench.beside_floor import WAL_TURNS
from bench.floor import BareInsert
from bench.machine import ROOT, check, fdatasync
from bench.payload import Conversation
from bench.report import Row, at_least, at_most, growth, ratio
from bench.setting import Setting
from bench.stopwatch import median, timed
from bench.store_file import Packs, room, url
from hardsave.defaults import MAX_VALUE_BYTES
from hardsave.objects.builder import Builder
from hardsave.objects.codec import Codec
from hardsave.objects.shadow import Shadow
from hardsave.stores.sqlite.gc.merge import FEW_PACKS


def floors(setting: Setting) -> list[Row]:
    """What the disk and SQLite ask for themselves."""
    floor = BareInsert(setting.place / "floor.db")
    data = bytes(Conversation(1).size)
    floor.warm_up(data)
    times = [floor.insert(data) for _ in range(setting.choose(300, 100))]
    row = Row(
        "floor: bare INSERT + commit of a turn's bytes",
        other=report.duration(median(times)),
        note=f"apsw, checksum VFS, {floor.pragmas}",
    )
    floor.close()
    return [Row("floor: fdatasync of 4 KB", other=report.duration(fdatasync(setting.place))), row]


# Disk


def disk(setting: Setting) -> list[Row]:
    """Bytes of the main file after a WAL checkpoint, against the encoded payload."""
    session = setting.session
    payload = session.conversation.size
    rows = [
        Row(
            f"disk / payload, {name}",
            ours=report.size(session.sizes[name]),
            other=f"{report.size(payload)} payload",
            value=session.sizes[name] / payload,
            target=at_most(1.3),
        )
        for name in (turns.SAVE, turns.APPEND)
    ]
    rows += [
        Row(
            f"disk / payload, {name}",
            other=report.size(session.sizes[name]),
            value=session.sizes[name] / payload,
            note=note,
        )
        for name, note in turns.SAVERS.items()
    ]
    return [*rows, *_steady_growth(setting)]


def _steady_growth(setting: Setting) -> list[Row]:
    """Bytes in use at equal distances: none of the steps may stand out.

    Packs that wait to be gathered take more room than others, and how many wait differs from
    step to step unless a step is a whole number of gatherings: the second row shows that.
    """
    conversation = Conversation(setting.turns)
    path = setting.place / "growth.db"
    stops = range(50, setting.turns + 1, setting.choose(90, 30))
    in_phase = range(8 * FEW_PACKS, setting.turns + 1, setting.choose(12, 4) * FEW_PACKS)
    used: dict[int, int] = {}
    with hardsave.open(url(path)) as vault:
        line = vault.timeline("main")
        for turn in range(1, setting.turns + 1):
            line.save(conversation.state(turn))
            if turn in stops or turn in in_phase:
                used[turn] = room(path).used
        check(line.load() == conversation.state(setting.turns), "the grown state is wrong")
    return [
        _steadiness([used[turn] for turn in stops], stops, at_most(10)),
        _steadiness([used[turn] for turn in in_phase], in_phase, None),
    ]


def _steadiness(used: list[int], stops: range, target: report.Target | None) -> Row:
    steps = [(after - before) / stops.step for before, after in pairwise(used)]
    mean = sum(steps) / len(steps)
    return Row(
        f"bytes per turn, every {stops.step} turns from {stops[0]} to {stops[-1]}, off the mean",
        ours=f"{report.size(min(steps))} to {report.size(max(steps))}",
        other=f"{report.size(mean)} mean",
        value=max(abs(step - mean) for step in steps) / mean * 100,
        unit="%",
        target=target,
        note=f"bytes in use after a WAL checkpoint; {FEW_PACKS} packs are gathered into one",
    )


# Saving a whole state


def save(setting: Setting) -> list[Row]:
    """Whole states, one a turn."""
    session = setting.session
    ours = session.last(turns.SAVE)
    rows = [
        ratio(
            f"save, last {turns.EDGE} of {setting.turns} turns, against {name}",
            ours,
            session.last(name),
            at_least(15) if name == turns.OBJECTS else None,
            note=note,
        )
        for name, note in turns.SAVERS.items()
    ]
    rows += _ageing(setting, turns.SAVE, at_most(1.5))
    for name in turns.SAVERS:
        first, last = session.first(name), session.last(name)
        rows.append(
            Row(
                f"{name}, last {turns.EDGE} / first {turns.EDGE}",
                other=f"{report.duration(last)} / {report.duration(first)}",
                value=last / first,
                note=f"synced as ours: {session.pragmas}" if name == turns.OBJECTS else "",
            )
        )
    return [*rows, _change_detection(setting), *_edits(setting)]


def _ageing(setting: Setting, name: str, target: report.Target) -> list[Row]:
    session = setting.session
    first, settled, last = session.first(name), session.settled(name), session.last(name)
    low, high = WAL_TURNS + 1, WAL_TURNS + turns.EDGE
    return [
        growth(
            f"{name}, last {turns.EDGE} / first {turns.EDGE}",
            last,
            first,
            target,
            names=("last", "first"),
        ),
        growth(
            f"{name}, last {turns.EDGE} / turns {low} to {high}",
            last,
            settled,
            names=("last", "before"),
            note="the first turns also lengthen the WAL file; these write over its beginning",
        ),
    ]


def _change_detection(setting: Setting) -> Row:
    """A state in which nothing changed, compared with what was saved."""
    state = Conversation(500).state(500)
    codec = Codec()
    kilobytes = len(codec.encode(state)) / 1024
    shadow = Shadow(Builder(codec, MAX_VALUE_BYTES))
    first, _ = shadow.save(state)
    times = []
    for _ in range(setting.choose(300, 100)):
        seconds, (root, out) = timed(lambda: shadow.save(state))
        check(root == first and not out, "an unchanged state was taken for a changed one")
        times.append(seconds)
    return Row(
        "finding no change in 1,000 messages",
        ours=report.duration(median(times)),
        other=f"{report.number(kilobytes)} KB state",
        value=median(times) * 1e6 / kilobytes,
        unit="µs/KB",
        target=at_most(0.5),
    )


Edit = Callable[[list[dict[str, str]], int], None]


def _edits(setting: Setting) -> list[Row]:
    """Changes that are no append: noticed, and cheap on the disk."""
    spare = Conversation(100, number=1).messages

    def change(messages: list[dict[str, str]], at: int) -> None:
        text = messages[at]["content"]
        messages[at]["content"] = text[:500] + "changed" + text[507:]

    def insert(messages: list[dict[str, str]], at: int) -> None:
        messages.insert(at, spare.pop())

    def remove_first(messages: list[dict[str, str]], at: int) -> None:
        del messages[0]

    return [
        _edited(setting.place / f"edit-{number}.db", figure, edit)
        for number, (figure, edit) in enumerate(
            (
                ("a change inside an old message", change),
                ("an insertion in the middle", insert),
                ("a removal at the front", remove_first),
            )
        )
    ]


def _edited(path: Path, figure: str, edit: Edit) -> Row:
    """The worst of a few places in a state of 1,000 messages."""
    messages = Conversation(500).messages
    sizes: list[int] = []
    with hardsave.open(url(path)) as vault:
        line = vault.timeline("main")
        line.save({"messages": messages, "turn": 0})
        packs = Packs(path)
        for turn, at in enumerate(range(60, 1000, 120), 1):
            edit(messages, at)
            state: dict[str, Any] = {"messages": messages, "turn": turn}
            line.save(state)
            sizes.append(sum(map(len, packs.fresh())))
            check(line.load() == state, f"{figure} was not noticed")
        packs.close()
    return Row(
        f"new pack bytes after {figure}",
        ours=f"{report.size(min(sizes))} to {report.size(max(sizes))}",
        value=max(sizes) / 1024,
        unit="KB",
        target=at_most(3),
        note=f"in 1,000 messages, at {len(sizes)} places; the largest is judged",
    )


# Appending


def append(setting: Setting) -> list[Row]:
    """Costs what is new, however long the conversation is."""
    return [
        *_ageing(setting, turns.APPEND, at_most(1.2)),
        _long_against_short(setting),
        _against_the_floor(setting, 0, at_most(1.5)),
        _against_the_floor(setting, 1, at_most(1.5)),
        ratio(
            f"append, last {turns.EDGE} turns, against SqliteSaver",
            setting.session.last(turns.APPEND),
            setting.session.last(turns.OBJECTS),
        ),
    ]


def _long_against_short(setting: Setting) -> Row:
    """Appends to a long and to a short conversation in turns, each in a store of its own."""
    long, short = setting.choose(5000, 1000), 50
    rounds, fork_every = setting.choose(300, 60), 10
    conversation = Conversation(long + rounds + 1)
    times: dict[str, list[float]] = {"long": [], "short": []}
    with (
        hardsave.open(url(_grown(setting.place / "long.db", conversation, long))) as long_vault,
        hardsave.open(url(_grown(setting.place / "short.db", conversation, short))) as short_vault,
    ):
        lines = {"long": long_vault.timeline("main"), "short": short_vault.timeline("main")}
        base = lines["short"]
        lines["long"].append(conversation.delta(long + 1))
        for number in range(rounds):
            if number % fork_every == 0:  # or the short one would not stay short
                lines["short"] = base.fork(f"main:{short}", name=f"fork-{number}")
                lines["short"].append(conversation.delta(short + 1))
            turn = {"long": long + 2 + number, "short": short + 2 + number % fork_every}
            for name in ("long", "short") if number % 2 else ("short", "long"):
                times[name].append(_appended(lines[name], conversation.delta(turn[name])))
        check(lines["long"].load() == conversation.state(long + 1 + rounds), "long is wrong")
        check(lines["short"].load() == conversation.state(short + 1 + fork_every), "short is wrong")
    return growth(
        f"append at {2 * long:,} / at {2 * short} messages",
        median(times["long"]),
        median(times["short"]),
        at_most(1.15),
        names=("long", "short"),
        note=f"medians of {rounds} in turns, each conversation in a store of its own",
    )


def _against_the_floor(setting: Setting, delay_ms: int, target: report.Target | None) -> Row:
    """Each append, and next to it one bare INSERT of the very bytes that it stored."""
    place = setting.place / f"beside-floor-{delay_ms}"
    place.mkdir()
    given = [str(place), str(setting.turns), "--delay-ms", str(delay_ms)]
    command = [sys.executable, "-m", "bench.beside_floor", *given]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    slower = f", a sync takes {delay_ms} ms more" if delay_ms else ""
    return growth(
        f"append / bare INSERT + commit of the same bytes{slower}",
        found["append"],
        found["floor"],
        target,
        names=("append", "floor"),
        note=f"in turns in one loop, {report.size(found['bytes'])} of pack, WAL files warm; "
        f"floor: {found['pragmas']}" + ("; injected by a VFS beneath both" if delay_ms else ""),
    )


def _appended(line: hardsave.Timeline, delta: dict[str, Any]) -> float:
    return timed(lambda: line.append(delta))[0]


def _grown(path: Path, conversation: Conversation, length: int) -> Path:
    """A store with a conversation of so many turns, made quickly."""
    with hardsave.open(url(path), durability="process") as vault:
        line = vault.timeline("main")
        for turn in range(1, length + 1):
            line.append(conversation.delta(turn))
    room(path)
    return path
