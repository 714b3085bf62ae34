"""Bringing an examined export into a store, as one operation.

Objects go ahead in small batches, protected by a pin. Then one commit adds checkpoints,
tombstones and the moves of timelines, if what was seen of the store still holds; if not, it
is looked at again. A process that dies leaves nothing that a reader sees.
"""

from collections.abc import Callable, Mapping

from hardsave.errors import Conflict, LeaseLost
from hardsave.objects.frames import FrameReader, Section
from hardsave.objects.hashing import Hash, digest
from hardsave.stores.base import ObjectsGone
from hardsave.vault import fencing
from hardsave.vault.context import Context
from hardsave.vault.save.pin import Pin
from hardsave.vault.scratch import Scratch
from hardsave.vault.transfer import archive
from hardsave.vault.transfer.arrival import Brought, Plan

_BATCH_BYTES = 4 * 1024 * 1024
_BATCH_OBJECTS = 4_000
_ATTEMPTS = 100  # each time, another process has changed something that matters


def bring(
    context: Context,
    scratch: Scratch,
    again: Callable[[], FrameReader],
    expected: Hash,
    max_value_bytes: int,
) -> Brought:
    """Import what a scratch holds after its examination; `again` reads the file once more."""
    pin = Pin(context, "import")
    entry = context.new_id()
    is_stored = False
    try:
        for _ in range(_ATTEMPTS):
            plan = Plan(context, scratch).decided()
            if not plan.moves:
                return plan.brought()
            if not is_stored:
                _store(context, pin, again(), expected, max_value_bytes)
                is_stored = True
            pin.put({})  # still held, or it says so
            try:
                fencing.commit(context, plan.batch(entry))
            except ObjectsGone:
                is_stored = False
            except LeaseLost:
                raise
            except Conflict:
                continue  # what was decided on has changed: look again
            else:
                return plan.brought()
    finally:
        pin.give_back()
    raise Conflict(f"others changed the store {_ATTEMPTS} times during the import; import again")


def _store(
    context: Context, pin: Pin, reader: FrameReader, expected: Hash, max_value_bytes: int
) -> None:
    """Put all objects of the file that are not here, children first as they come."""
    pin.put({})  # from here on, nothing that is here goes
    batch: dict[Hash, bytes] = {}
    size = 0
    for section, data in reader.records(archive.longest(max_value_bytes)):
        if section is Section.OBJECTS:
            batch[digest(data)] = data
            size += len(data)
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_OBJECTS:
            _put(context, pin, batch)
            batch, size = {}, 0
    _put(context, pin, batch)
    if reader.link != expected:
        raise reader.damaged("it was changed while it was read")


def _put(context: Context, pin: Pin, batch: Mapping[Hash, bytes]) -> None:
    missing = context.store.missing(context.user, batch.keys())
    pin.put({address: data for address, data in batch.items() if address in missing})
