"""The ledger of an open vault."""

import random

from hardsave.tasks.desk import Desk
from hardsave.tasks.ledger import Tasks
from hardsave.tasks.settings import TaskSettings
from hardsave.vault.context import Context


def desk(context: Context) -> Desk:
    return Desk(
        store=context.store,
        user=context.user,
        codec=context.objects.codec,
        redacted=context.objects.redacted,
        clock=context.clock,
        new_id=context.new_id,
        random=random.random,
    )


def open_tasks(context: Context, settings: TaskSettings) -> Tasks:
    return Tasks(desk(context), settings)
