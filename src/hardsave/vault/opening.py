"""`hardsave.open()`: from a URL, or a project, to a vault."""

import os

from hardsave.defaults import MAX_VALUE_BYTES
from hardsave.stores import registry
from hardsave.stores.base import Durability, Report, Store
from hardsave.timeline import names
from hardsave.vault.arguments import Redact, check_cap, redaction_of
from hardsave.vault.vault import Vault


def open_vault(
    url: str | None = None,
    *,
    user: str | None = None,
    durability: Durability = "power",
    max_value_bytes: int = MAX_VALUE_BYTES,
    redact: Redact = False,
) -> Vault:
    """Open the store at `url`, or this project's own; create it if it does not exist.

    `NotFound` if this project has none, and is a directory that had one elsewhere: it was moved,
    and the message says what to type.

    `user` scopes every read and write; None is a user of its own, not all of them.
    `durability="process"` saves faster and gives up what a power loss takes: the last
    commits before it may be gone, and the next open says so.
    `max_value_bytes` bounds a single text or bytes value.
    `redact=True` takes known kinds of secrets out of every state and task that is saved, before
    it is hashed: what a resume sees then has `[redacted:…]` in their place. A tuple names patterns
    of your own to take out besides; a `Redaction` has exactly those to use. Files are saved as
    they are, or left out: one that came back otherwise than it was would be damaged. An import
    brings what was exported.
    """
    names.check_user(user)
    check_cap(max_value_bytes)
    redaction = redaction_of(redact)
    return Vault(
        _store(url, os.curdir, durability),
        user=user,
        max_value_bytes=max_value_bytes,
        redact=redaction or False,
        directory=_directory(),
        included=_included,
    )


def open_project(directory: str, url: str | None = None) -> Vault:
    """Open the store at `url`, or the own one of the project that a directory is in, with that
    project's settings: for programs that name their project, and may be started anywhere."""
    return Vault(_store(url, directory, "power"), directory=directory, included=_included)


def repair_store(url: str | None = None) -> Report:
    """Save what can be read of the store at `url`, or of this project's own.

    For a store that cannot be opened any more; nobody may have it open. The old files are set
    aside, never deleted. What is lost or incomplete is named.
    """
    return registry.repair_store(_own_url() if url is None else url)


def _store(url: str | None, directory: str, durability: Durability) -> Store:
    if url is not None:
        return registry.open_store(url, durability=durability)
    from pathlib import Path  # only a caller that names no store needs to know where it is

    from hardsave.vault import projects

    url, own = projects.own_store(os.environ, Path(directory).absolute())
    store = registry.open_store(url, durability=durability)
    if own is not None:
        projects.remember(own)
    return store


def _own_url() -> str:
    from pathlib import Path

    from hardsave.vault import projects

    return projects.store_url(os.environ, Path.cwd())


def _included(directory: bytes) -> tuple[str, ...]:
    from pathlib import Path  # only who saves files asks

    from hardsave import config

    return config.included(os.environ, Path(os.fsdecode(directory)))


def _directory() -> str | None:
    try:
        return os.getcwd()
    except FileNotFoundError:  # somebody has removed it
        return None
