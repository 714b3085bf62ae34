"""Reading everything once, to know that it can be read. Runs and constructs nothing.

Objects are looked at in the order in which they lie (`verify_objects`), checkpoints in the order
of their commits (`verify_history`): both take time in proportion to the store, and memory that
does not grow with it. Neither can say what damage means. So only if something seems wrong is each
checkpoint walked by itself (`verify_walk`), which names those that are affected.

Others may save, drop and purge meanwhile: the walk is not one moment of the store. So what is
expected was there before the walk began, and what is missing counts only while something that
still exists needs it.
"""

from hardsave.errors import Corrupt
from hardsave.objects.records import CheckpointRecord
from hardsave.progress import Total, meter
from hardsave.record import Record
from hardsave.vault.context import Context
from hardsave.vault.verify.checkpoint_walk import Walk, every
from hardsave.vault.verify.history import faults_of_log, look_at_history
from hardsave.vault.verify.objects import Expected, look_at_objects


class Verification(Record):
    """What was looked at, and what is wrong with it."""

    checkpoints: int
    objects: int
    faults: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.faults


def verify(context: Context, one: CheckpointRecord | None) -> Verification:
    """Check one checkpoint, or the whole store as far as this user can see it."""
    context.store.forget()
    if one is None:
        return _verify_all(context)
    walk = Walk(context, meter("verifying", "objects", Total))
    try:
        faults = walk.faults(one)
    except Corrupt as error:
        faults = [str(error)]
    return Verification(1, walk.objects, tuple(dict.fromkeys(faults)))


def _verify_all(context: Context) -> Verification:
    meter("checking the database")
    faults = [*context.store.verify()]
    expected = Expected(context)
    objects = look_at_objects(context, expected, meter("verifying", "objects", context.volume))
    is_sound = objects is not None and not faults
    count = 0
    try:
        history = look_at_history(context, expected)
        count = history.checkpoints
        faults += history.faults
        if not (is_sound and history.is_sound and expected.are_stored()):
            walk = Walk(context, meter("naming what is affected", "objects", context.volume))
            for record in every(context):
                faults += walk.faults(record)
            objects = walk.objects
        faults += faults_of_log(context)
    except Corrupt as error:
        faults.append(str(error))  # rows that cannot be read end the walk
    return Verification(count, objects or 0, tuple(dict.fromkeys(faults)))
