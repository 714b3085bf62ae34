"""Histories for the tests of retention: rows as short as a test can write them."""

from collections.abc import Iterable
from typing import Any

from hardsave.timeline.retention import RetentionPlan, RetentionRow

SECOND = 1_000_000
HOUR = 3_600 * SECOND
DAY = 24 * HOUR
NOW = 20_000 * DAY


def row(seq: int, timeline: str = "main", **about: Any) -> RetentionRow:
    """Number `seq` of a timeline: the higher, the newer; all of them from the last hours."""
    about.setdefault("created_at", NOW - HOUR + seq * SECOND)
    return RetentionRow(id=f"{timeline}:{seq}".encode(), timeline=timeline, seq=seq, **about)


def line(count: int, timeline: str = "main", **about: Any) -> list[RetentionRow]:
    """Numbers 1 to `count`; the last one is the head."""
    rows = [row(seq, timeline, **about) for seq in range(1, count + 1)]
    return [*rows[:-1], rows[-1].replace(is_head=True)]


def dropped(plan: RetentionPlan) -> list[str]:
    return [choice.row.id.decode() for choice in plan.drops]


def kept(plan: RetentionPlan) -> list[str]:
    return [choice.row.id.decode() for choice in plan.kept]


def left(history: Iterable[RetentionRow], plan: RetentionPlan) -> list[RetentionRow]:
    """What a history is after a plan was carried out."""
    gone = {choice.row.id for choice in plan.drops}
    return [row for row in history if row.id not in gone]


def seqs(rows: Iterable[RetentionRow]) -> list[int]:
    return [row.seq for row in rows]
