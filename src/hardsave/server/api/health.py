"""`GET /api/v1/health`: how a store is, what works with it, and what to do about that."""

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from hardsave import wording
from hardsave.agents import hook_check, registry
from hardsave.daemon import spool
from hardsave.errors import HardsaveError, Unavailable
from hardsave.server.api import data
from hardsave.server.api.shapes import FLAG, TEXT, WHOLE, listed, or_null, shape
from hardsave.server.route import Answer, Call, Route, Spec
from hardsave.stores import registry as stores
from hardsave.stores import store_files
from hardsave.vault import findings
from hardsave.vault.findings import Finding
from hardsave.vault.vault import last_commit
from hardsave.wording import in_our_words


def health(call: Call) -> Answer:
    vault = call.vault
    trouble = _trouble(call)
    return Answer(
        body={
            "usable": trouble is None,
            "trouble": trouble,
            "store": data.plain(vault.store.stats().as_dict()),
            "jobs": data.plain(vault.jobs.health().as_dict()),
            "tasks": data.plain(vault.tasks.stats().as_dict()),
            "saves_missed": spool.missed_anywhere(os.environ),
            "findings": [each._asdict() for each in _findings(call)],
        }
    )


def _trouble(call: Call) -> str | None:
    try:
        call.vault.store.check_usable()
    except HardsaveError as error:
        return in_our_words(str(error))
    return None


def _findings(call: Call) -> Iterator[Finding]:
    """What is cheap to look at of what `hardsave doctor` does. Hooks are those of the account that
    runs the server: other users of the store have none of them."""
    if call.project is None:
        return
    if stores.is_file(call.project.store_url):
        path = stores.file_path(call.project.store_url)
        yield _looked("backup", lambda: _backup(call, path))
        yield _looked("disk", lambda: findings.disk("disk", shutil.disk_usage(path).free))
    if call.caller.user is None:
        root = Path(call.project.directory)
        yield _looked("missed saves", lambda: _missed(root))
        for agent in registry.every():
            look = partial(hook_check.look, agent, os.environ, root, start_pythons=False)
            yield _looked(agent.title, look)


def _looked(what: str, look: Callable[[], Finding]) -> Finding:
    """If one part cannot be looked at, the others are all the same."""
    try:
        return look()
    except (HardsaveError, OSError) as error:
        return Finding(what, "warning", in_our_words(str(error)), "hardsave doctor")


def _backup(call: Call, path: str) -> Finding:
    copied = store_files.backup(path)
    last = last_commit(call.vault)
    return findings.backup("backup", copied.number, last, is_there=copied.is_there)


def _missed(root: Path) -> Finding:
    try:
        notes = spool.missed(spool.folder(os.environ, root))
    except (OSError, Unavailable):
        notes = []  # without a home, or the right to read it, there are no notes
    if not notes:
        return Finding("missed saves", "ok", "none was missed")
    count = wording.count(spool.count(notes), "save")
    return Finding("missed saves", "warning", f"{count} missed: {notes[-1].why}", "hardsave doctor")


_NUMBERS: Any = {"type": "object"}
_LEVEL = {"type": "string", "enum": ["ok", "warning", "failure"]}
_HEALTH = shape(
    usable=FLAG,
    trouble=or_null(TEXT),
    store=_NUMBERS,
    jobs=_NUMBERS,
    tasks=_NUMBERS,
    saves_missed=WHOLE,
    findings=listed(shape(what=TEXT, level=_LEVEL, message=TEXT, remedy=TEXT)),
)

ROUTES = (
    Route(
        "GET",
        "/api/v1/health",
        health,
        "read",
        lane="slow",
        spec=Spec("How the store, its jobs and its tasks are, and what works with it", _HEALTH),
    ),
)
