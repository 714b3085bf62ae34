"""The ledger of an open vault."""

import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

from hardsave import config
from hardsave.objects.records import TaskRecord
from hardsave.tasks import settings
from hardsave.tasks.context import LedgerContext
from hardsave.tasks.ledger import Tasks
from hardsave.tasks.settings import TaskSettings
from hardsave.tasks.task import view
from hardsave.vault.context import Context
from hardsave.vault.events import EventName


def ledger_context(context: Context) -> LedgerContext:
    return LedgerContext(
        store=context.store,
        user=context.user,
        codec=context.objects.codec,
        redacted=context.objects.redacted,
        clock=context.clock,
        new_id=context.new_id,
        random=random.random,
        tell=partial(tell, context),
    )


def tell(context: Context, kind: str, task: TaskRecord) -> None:
    """Tell handlers what has happened to a task. Without a handler, nothing is made of it."""
    event = f"task_{kind}"
    if context.events.has_handlers(event):
        context.events.tell(cast(EventName, event), view(task, context.objects.codec))


def open_tasks(context: Context, directory: str | None, upkeep: Callable[[], object]) -> Tasks:
    """With the settings of the project that a directory is in; None: of none."""
    return Tasks(ledger_context(context), _settings(directory), upkeep)


def _settings(directory: str | None) -> TaskSettings:
    if directory is None:
        return settings.DEFAULT
    return settings.of_project(config.project_root(Path(directory)), os.environ)
