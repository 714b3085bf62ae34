"""A user's history as retention looks at it: some sixty bytes a checkpoint, by timeline.

A policy decides timeline by timeline, and checkpoints come in the order of their commits. As
objects of Python, a million of them would take more memory than a server wants to give.
"""

import struct
from collections.abc import Collection, Iterator, Mapping

from hardsave.objects.records import ID_BYTES, CheckpointRecord, Id
from hardsave.timeline.retention import RetentionRow

# id, number on its timeline, created, stored, hidden by which commit; name, kind, status; head
_ROW = struct.Struct(f"<{ID_BYTES}s4q3I?")


class RetentionHistory:
    """Every checkpoint that a policy looks at."""

    def __init__(self) -> None:
        self._lines: dict[str, bytearray] = {}
        self._texts: dict[str | None, int] = {}  # each once, in the order in which they came

    def add(self, record: CheckpointRecord, *, is_head: bool, stored_at: int) -> None:
        texts = [
            self._texts.setdefault(text, len(self._texts))
            for text in (record.name, record.kind, record.status)
        ]
        times = (record.created_at, stored_at, record.hidden)
        row = _ROW.pack(record.id, record.seq, *times, *texts, is_head)
        self._lines.setdefault(record.timeline, bytearray()).extend(row)

    def lines(
        self, hidden_at: Mapping[int, int], protected: Collection[Id | None]
    ) -> Iterator[list[RetentionRow]]:
        """Timeline by timeline, each in the order of numbers. `hidden_at` tells when what a commit
        has hidden was hidden, `protected` is what can still be undone."""
        texts = list(self._texts)
        for timeline, packed in self._lines.items():
            rows: list[RetentionRow] = []
            for id, seq, created_at, stored_at, hidden, *said, is_head in _ROW.iter_unpack(packed):
                name, kind, status = (texts[at] for at in said)
                assert kind is not None
                assert status is not None
                rows.append(
                    RetentionRow(
                        *(id, timeline, seq, created_at, name, kind, status, is_head),
                        is_hidden=hidden > 0,
                        # No entry has hidden it: that was forgotten long ago.
                        hidden_at=hidden_at.get(hidden, 0),
                        protected=id in protected,
                        # Mostly the same number: one object for both.
                        stored_at=created_at if stored_at == created_at else stored_at,
                    )
                )
            rows.sort(key=lambda row: (row.seq, row.id))
            yield rows
