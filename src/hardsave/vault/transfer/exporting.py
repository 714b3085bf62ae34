"""Writing an export: objects as they are met, children first, then what leads to them.

A pin holds all objects for as long as it takes, so that retention and gc beside it cost it
nothing. Where none can be had, because the disk is full, they may: then it says so.
"""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice

from hardsave.errors import Conflict, Corrupt, Unavailable
from hardsave.logs import log
from hardsave.objects import envelope
from hardsave.objects.frames import Counts, FrameWriter, Section, Totals
from hardsave.objects.hashing import Hash
from hardsave.objects.records import Id
from hardsave.progress import Total, meter
from hardsave.timeline.refs import to_text
from hardsave.vault import addresses
from hardsave.vault.addresses import Addresses
from hardsave.vault.context import Context
from hardsave.vault.save.pin import Pin
from hardsave.vault.scratch import Scratch
from hardsave.vault.transfer import archive, selection
from hardsave.vault.transfer.selection import Piece, Selection

_MOST_AHEAD = 16  # objects read at once: each may bring a pack of 256 KiB along
_AHEAD_BYTES = 4 * 1024 * 1024
_TOGETHER = 100  # checkpoints whose notes are read at once


def write(
    context: Context, timelines: Iterable[str] | None, to: Callable[[bytes], None]
) -> tuple[Counts, Totals]:
    """Write an export of some timelines, or of all; what is in it."""
    with Scratch(selection.TABLES + addresses.TABLES) as scratch, _held(context) as keep:
        chosen = Selection(context, scratch)
        counts = chosen.choose(timelines)
        frames = FrameWriter(to, counts)
        walk = Walk(context, scratch)
        # How much some of the timelines lead to is not known before they were all walked.
        done = meter("exporting", "objects", context.volume if timelines is None else Total)
        for data in walk.objects(chosen.past()):
            keep()
            frames.add(Section.OBJECTS, data)
            done.add(1, len(data))
        for line in chosen.timelines():
            frames.add(Section.TIMELINES, _readable(archive.from_timeline(line), line.name))
        for id, data in _history(context, chosen.past()):
            frames.add(Section.HISTORY, _readable(data, id))
        return counts, frames.finish()


def _readable(data: bytes, of: str | Id) -> bytes:
    """A record, read as an import will read it: one that is refused there would make a file of no
    use, and would be noticed where the store may be gone."""
    try:
        if isinstance(of, str):
            archive.to_timeline(data)
        else:
            archive.to_past(data)
    except Corrupt as error:
        what = f"timeline {of!r}" if isinstance(of, str) else f"checkpoint {to_text(of)}"
        raise Corrupt(
            f"an import would refuse the record of {what} ({error}), so nothing was exported; "
            "run verify, or export the other timelines"
        ) from error
    return data


def _history(context: Context, pieces: Iterable[Piece]) -> Iterator[tuple[Id, bytes]]:
    """The records of checkpoints and tombstones, with labels and notes of those that have any."""
    for some in _several(pieces):
        # A tombstone leads to nothing. What it stands for may be only deleted, and still have both.
        ids = [piece.id for piece in some if piece.roots]
        labels = context.store.labels(context.user, ids)
        notes = context.store.notes(context.user, ids)
        for id, data, *_ in some:
            has_some = id in labels or id in notes
            beside = (labels.get(id, ()), notes.get(id, ()))
            yield id, archive.with_attached(data, *beside) if has_some else data


def _several(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    every = iter(pieces)
    while some := list(islice(every, _TOGETHER)):
        yield some


@contextlib.contextmanager
def _held(context: Context) -> Iterator[Callable[[], None]]:
    """Inside, nothing of this user is collected, as long as the function is called now and then."""
    pin = Pin(context, "export")
    try:
        pin.put({})
    except Unavailable:
        log(__name__).warning(
            "an export is made without a pin, because the store cannot be written now; if a gc "
            "beside it ends it, export again"
        )
        yield lambda: None
        return
    try:
        yield pin.keep
    finally:
        pin.give_back()


class Walk:
    """Objects of one state after the other, children first, each only once.

    In memory are the objects on the way from a root to where the walk is, and a few that
    come next.
    """

    def __init__(self, context: Context, scratch: Scratch) -> None:
        self._context = context
        self._written = Addresses(scratch)
        self._ahead: dict[Hash, bytes] = {}
        self._ahead_bytes = 0
        self._many = 2  # to read ahead: more while they are small

    def objects(self, pieces: Iterator[Piece]) -> Iterator[bytes]:
        """What is new in the states and files of checkpoints, one after the other."""
        while group := list(islice(pieces, self._many)):
            roots = dict.fromkeys(root for piece in group for root in piece.roots)
            with contextlib.suppress(Corrupt):  # it is met again where its checkpoint is known
                self._read_ahead(self._new(roots))
            for piece in group:
                yield from self._of(piece)

    def _of(self, piece: Piece) -> Iterator[bytes]:
        try:
            for root in piece.roots:
                yield from self._below(root)
        except Corrupt as error:
            if self._context.store.checkpoint(self._context.user, piece.id) is not None:
                raise
            raise Conflict(
                f"checkpoint {to_text(piece.id)} was dropped during the export; export again"
            ) from error

    def _below(self, root: Hash) -> Iterator[bytes]:
        """Depth first, with a stack of its own: (address, object, what it still waits for)."""
        stack: list[tuple[Hash, bytes, list[Hash]]] = []
        todo = [root]
        while todo or stack:
            if not todo:
                address, data, _ = stack.pop()
                yield data
                self._written.add(address)
                todo = stack[-1][2] if stack else []
                continue
            address = todo.pop()
            if address not in self._written:
                data, todo = self._opened(address)
                stack.append((address, data, todo))

    def _opened(self, address: Hash) -> tuple[bytes, list[Hash]]:
        """An object, and what it refers to that is new: the first of them last."""
        data = self._ahead.pop(address, None)
        if data is None:
            data = self._context.objects.fetch([address])[address]
        else:
            self._ahead_bytes -= len(data)
        new = self._new(dict.fromkeys(envelope.unseal(data).refs))
        self._read_ahead(new[: self._many])
        return data, new[::-1]

    def _read_ahead(self, addresses: Collection[Hash]) -> None:
        if self._ahead_bytes > _AHEAD_BYTES:
            self._ahead.clear()  # what is needed of it is read again
            self._ahead_bytes = 0
        wanted = [address for address in addresses if address not in self._ahead]
        if len(wanted) < 2:
            return
        found = self._context.objects.fetch(wanted)
        self._ahead |= {address: found[address] for address in wanted}
        size = sum(len(found[address]) for address in wanted)
        self._ahead_bytes += size
        self._many = min(2 * self._many, _MOST_AHEAD) if size < _AHEAD_BYTES // 4 else 2

    def _new(self, addresses: Iterable[Hash]) -> list[Hash]:
        return [address for address in addresses if address not in self._written]
