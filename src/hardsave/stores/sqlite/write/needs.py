"""What a batch needs of a transaction, told from the batch alone."""

from hardsave.objects.records import CheckpointRecord, LogRecord
from hardsave.stores.base import NO_CHANGES, Batch
from hardsave.stores.ledger import NO_WORK


def only_saves(batch: Batch) -> bool:
    """Whether a batch adds nothing but checkpoints: no labels, nothing to log or ledger."""
    if batch.labels or batch.notes:
        return False
    if batch.work is not NO_WORK or batch.changes is not NO_CHANGES:
        return False
    return isinstance(batch.event, CheckpointRecord)


def relies_on_packs(batch: Batch) -> bool:
    """Whether what is stored already has to be known."""
    return bool(batch.objects or batch.requires)


def moves_on(batch: Batch) -> bool:
    """Whether committing the batch makes its own expectation false for good.

    A checkpoint raises the last number, which never falls again; what is only logged may
    move a head away and be followed by a move back.
    """
    move = batch.move
    if move is None or isinstance(batch.event, LogRecord):
        return False
    return move.expect is None or move.expect[1:3] != move.become[1:3]
