"""Periodic jobs: each occurrence is a job of its own, named by its time.

All workers add all occurrences, and the ledger has each once: its id and its key are made of the
name and the time. A bookmark in the ledger tells how far a periodic job has come, so a worker that
was stopped for long adds nothing whose job is over and forgotten.
"""

import functools
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hardsave.errors import Misuse
from hardsave.stores.dispatch import Periodic
from hardsave.vault.vault import Vault

_HOW = "write {'cron': '0 3 * * *', 'prompt': '…'}, with further arguments of jobs.add"


def periodic(vault: Vault, given: Mapping[str, Mapping[str, Any]]) -> list[Periodic]:
    return [_checked(vault, name, about) for name, about in given.items()]


def _checked(vault: Vault, name: str, about: Mapping[str, Any]) -> Periodic:
    if not {"cron", "prompt"} <= about.keys():
        raise Misuse(f"periodic job {name!r} has no time and prompt; {_HOW}")
    said = {key: value for key, value in about.items() if key != "cron"}
    return Periodic(name, str(about["cron"]), functools.partial(_add, vault, name, said))


def _add(vault: Vault, name: str, said: Mapping[str, Any], at: datetime) -> None:
    reader, number = f"periodic {name}", int(at.timestamp())
    if vault.tasks.bookmark(reader) >= number:
        return
    vault.jobs.add(occurrence(name, at), **said)
    vault.tasks.bookmark(reader, number)


def occurrence(name: str, at: datetime) -> str:
    """The id of the job of one time, in UTC."""
    return f"{name}-{at:%Y%m%dT%H%M%SZ}"
