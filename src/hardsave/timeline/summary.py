"""What a timeline holds, in numbers. Made from rows: no state is read."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from hardsave.objects.records import CheckpointRecord
from hardsave.record import Record
from hardsave.timeline.refs import to_text

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class TimelineSummary(Record):
    """Of an empty timeline everything is 0, None or empty."""

    checkpoints: int
    names: Mapping[str, int]
    """How often each name was used, most often first; those without a name are not here."""
    kinds: Mapping[str, int]
    first: str | None
    last: str | None
    first_at: datetime | None
    last_at: datetime | None

    @property
    def unique_names(self) -> int:
        return len(self.names)

    @property
    def duration(self) -> timedelta:
        """From the first to the last."""
        if self.first_at is None or self.last_at is None:
            return timedelta(0)
        return self.last_at - self.first_at

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "checkpoints": self.checkpoints,
            "unique_names": self.unique_names,
            "names": dict(self.names),
            "kinds": dict(self.kinds),
            "first": self.first,
            "last": self.last,
            "first_at": None if self.first_at is None else self.first_at.isoformat(),
            "last_at": None if self.last_at is None else self.last_at.isoformat(),
            "duration_seconds": self.duration.total_seconds(),
        }


def summarise(records: Iterable[CheckpointRecord]) -> TimelineSummary:
    """Of checkpoints of one timeline, in any order."""
    rows = sorted(records, key=lambda record: record.seq)
    first, last = (rows[0], rows[-1]) if rows else (None, None)
    return TimelineSummary(
        checkpoints=len(rows),
        names=_counted(row.name for row in rows if row.name is not None),
        kinds=_counted(row.kind for row in rows),
        first=None if first is None else to_text(first.id),
        last=None if last is None else to_text(last.id),
        first_at=None if first is None else _moment(first),
        last_at=None if last is None else _moment(last),
    )


def _counted(texts: Iterable[str]) -> Mapping[str, int]:
    return MappingProxyType(dict(Counter(texts).most_common()))


def _moment(record: CheckpointRecord) -> datetime:
    return _BEGINNING + timedelta(microseconds=record.created_at)
