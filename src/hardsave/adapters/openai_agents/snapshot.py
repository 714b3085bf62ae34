"""Snapshots of a sandbox's workspace, kept in a vault: what two of them share is stored once.

The SDK hands over the whole workspace as an archive each time. It is read once, to a file without a
name, and stored in pieces on a timeline of its own; the last checkpoint says that it is whole.
"""

import io
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from agents.sandbox.errors import SnapshotPersistError, SnapshotRestoreError
from agents.sandbox.session.dependencies import Dependencies
from agents.sandbox.snapshot import SnapshotBase, SnapshotSpec

import hardsave
from hardsave.adapters.openai_agents.archive import pieces
from hardsave.adapters.threads import in_thread

WHOLE = "whole"
_BATCH_BYTES = 32 << 20  # of pieces in one commit: what is kept in memory at once


class HardsaveSnapshot(SnapshotBase):
    """An archive on the timeline `sandbox/ID` of the store at `url`; None: of this directory."""

    type: Literal["hardsave"] = "hardsave"
    url: str | None = None

    async def persist(self, data: io.IOBase, *, dependencies: Dependencies | None = None) -> None:
        try:
            await in_thread(lambda: self._persist(data))
        except (hardsave.HardsaveError, OSError, EOFError) as error:
            raise SnapshotPersistError(
                snapshot_id=self.id, path=self._shown(), cause=error
            ) from error

    async def restore(self, *, dependencies: Dependencies | None = None) -> io.IOBase:
        try:
            return await in_thread(self._restore)
        except (hardsave.HardsaveError, OSError) as error:
            raise SnapshotRestoreError(
                snapshot_id=self.id, path=self._shown(), cause=error
            ) from error

    async def restorable(self, *, dependencies: Dependencies | None = None) -> bool:
        return await in_thread(self._is_restorable)

    # In a thread

    def _persist(self, data: io.IOBase) -> None:
        with tempfile.TemporaryFile() as copy, hardsave.open(self.url) as vault:
            shutil.copyfileobj(data, copy)
            size = copy.tell()
            line = vault.timeline(self._timeline())
            line.save({"pieces": [], "bytes": size})
            for batch in _batches(pieces(copy, size)):
                line.append({"pieces": batch})
            line.append({}, status=WHOLE)

    def _restore(self) -> io.IOBase:
        with hardsave.open(self.url) as vault:
            head = vault.timeline(self._timeline()).head
            if head is None or head.status != WHOLE:
                raise hardsave.NotFound(
                    f"no whole snapshot {self.id!r} is stored; persist it again, or see "
                    f"'hardsave log --timeline {self._timeline()}' for an earlier one"
                )
            return _together(head.state["pieces"])

    def _is_restorable(self) -> bool:
        with hardsave.open(self.url) as vault:
            head = vault.timeline(self._timeline()).head
            return head is not None and head.status == WHOLE

    def _timeline(self) -> str:
        return f"sandbox/{self.id}"

    def _shown(self) -> Path:
        return Path(self._timeline())


class HardsaveSnapshotSpec(SnapshotSpec):
    """How to make one, for `SandboxRunConfig(snapshot=…)`."""

    type: Literal["hardsave"] = "hardsave"
    url: str | None = None

    def build(self, snapshot_id: str) -> SnapshotBase:
        return HardsaveSnapshot(id=snapshot_id, url=self.url)


def _batches(all_pieces: Iterator[bytes]) -> Iterator[list[bytes]]:
    for first in all_pieces:
        batch, size = [first], len(first)
        while size < _BATCH_BYTES and (piece := next(all_pieces, None)) is not None:
            batch.append(piece)
            size += len(piece)
        yield batch


def _together(stored: Iterable[bytes]) -> io.IOBase:
    whole = tempfile.TemporaryFile()  # noqa: SIM115 # the caller closes it
    try:
        for piece in stored:
            whole.write(piece)
        whole.seek(0)
    except BaseException:
        whole.close()
        raise
    return whole
