"""`hardsave.open()`: from a URL, or a project, to a vault."""

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from hardsave.defaults import MAX_VALUE_BYTES
from hardsave.errors import Misuse
from hardsave.stores import on_disk, registry
from hardsave.stores.base import Durability, Store
from hardsave.stores.results import Report
from hardsave.timeline import names
from hardsave.vault.arguments import Redact, check_cap, redaction_of
from hardsave.vault.vault import Vault

if TYPE_CHECKING:
    from hardsave.config import Saving
    from hardsave.vault.workspaces.projects import Moves


def open_vault(
    url: str | None = None,
    *,
    user: str | None = None,
    durability: Durability = "power",
    max_value_bytes: int = MAX_VALUE_BYTES,
    redact: Redact = False,
    compress: bool | None = None,
    strict: bool | None = None,
    read_only: bool = False,
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
    `compress=False` writes what is stored from now on as it is, which takes more room; what is
    there is read either way. `strict=True` lets saves raise that an agent loop makes by itself and
    that fail: by default they are logged, counted and told as the event `save_failed`, and the
    agent goes on. A save that a program asks for raises in any case. None: as the settings say.
    `read_only=True` makes and writes no file: a store that is not there is `NotFound`, every write
    is `Unavailable`. What other processes commit meanwhile is seen.
    """
    names.check_user(user)
    check_cap(max_value_bytes)
    redaction = redaction_of(redact)
    directory = _directory()
    settings = _Settings(directory, compress, strict)
    store, moves, url = _store(url, os.curdir, durability, settings.compress, read_only=read_only)
    vault = Vault(
        store,
        user=user,
        max_value_bytes=max_value_bytes,
        redact=redaction or False,
        directory=directory,
        included=_included,
        is_strict=settings.strict,
        moves=moves,
    )
    vault._url = url
    return vault


def open_project(directory: str, url: str | None = None, *, moves: "Moves" = ()) -> Vault:
    """Open the store at `url`, or the own one of the project that a directory is in, with that
    project's settings: for programs that name their project, and may be started anywhere. `moves`
    are those that the caller has just made."""
    settings = _Settings(directory, None, None)
    store, known, url = _store(url, directory, "power", settings.compress)
    moves = (*known, *moves)
    vault = Vault(
        store, directory=directory, included=_included, is_strict=settings.strict, moves=moves
    )
    vault._url = url
    return vault


class _Settings:
    """What the caller says of saves, else the files: they are read when that is first asked for,
    because most programs have none and save little."""

    def __init__(self, directory: str | None, compress: bool | None, strict: bool | None) -> None:
        for name, given in (("compress", compress), ("strict", strict)):
            if given not in (None, True, False):
                raise Misuse(f"{name} is True or False, or None for the settings, not {given!r}")
        self._directory = directory
        self._given = (compress, strict)
        self._said: Saving | None = None

    def compress(self) -> bool:
        given = self._given[0]
        return self._read().compress if given is None else bool(given)

    def strict(self) -> bool:
        given = self._given[1]
        return self._read().strict if given is None else bool(given)

    def _read(self) -> "Saving":
        if self._said is None:
            from pathlib import Path

            from hardsave import config

            directory = None if self._directory is None else Path(self._directory)
            self._said = config.saving(os.environ, directory)
        return self._said


def repair_store(url: str | None = None) -> Report:
    """Save what can be read of the store at `url`, or of this project's own.

    For a store that cannot be opened any more; no process may have it open. The old files are set
    aside, never deleted; so is the journal of an interrupted restore that is damaged, and keeps its
    workspace from being saved. What is lost or incomplete is named.
    """
    from hardsave.vault.restore.recovery import set_aside_damaged

    url = _own_url() if url is None else url
    found = registry.repair_store(url)
    more = set_aside_damaged(os.path.realpath(registry.file_path(url)))
    return found.replace(faults=(*found.faults, *more)) if more else found


def url_of(vault: Vault) -> str:
    """The store of a vault, in the one spelling that tokens and secrets name it by."""
    from hardsave import config

    path = on_disk.path_of(vault._context.store)
    if path is not None:
        return config.canonical(f"sqlite:///{path}")
    return config.canonical((vault._lender or vault)._url)


def _store(
    url: str | None,
    directory: str,
    durability: Durability,
    compress: Callable[[], bool],
    *,
    read_only: bool = False,
) -> "tuple[Store, Moves, str]":
    """A store, how the project was moved whose own it is, and its URL."""
    open_store = partial(
        registry.open_store, durability=durability, compress=compress, read_only=read_only
    )
    if url is not None:
        store = open_store(url)
        if not read_only:
            _keep_out_of_git(url)
        return store, (), url
    from pathlib import Path  # only a caller that names no store needs to know where it is

    from hardsave.vault.workspaces import projects

    url, own = projects.own_store(os.environ, Path(directory).absolute())
    store = open_store(url)
    if read_only:
        return store, (), url
    if own is None:
        _keep_out_of_git(url)
        return store, (), url
    projects.remember(own)
    return store, own.moves, url


def _keep_out_of_git(url: str) -> None:
    """Have git ignore a store that was named, if it lies in a work tree. A project's own lies
    outside of it, and is not looked for: a home directory may be a repository, too."""
    if not registry.is_file(url):
        return
    path = os.path.realpath(registry.file_path(url))
    if _is_in_work_tree(os.path.dirname(path)):
        from pathlib import Path

        from hardsave.workspace.git.exclude_file import exclude  # few stores lie in one

        exclude(Path(path), ("", "-*"))


def _is_in_work_tree(folder: str) -> bool:
    """Whether a folder upwards has a `.git`, and this is not inside of it."""
    while os.path.basename(folder) != ".git":
        if os.path.lexists(os.path.join(folder, ".git")):
            return True
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    return False


def _own_url() -> str:
    from pathlib import Path

    from hardsave.vault.workspaces import projects

    return projects.store_url(os.environ, Path.cwd())


def _included(directory: bytes) -> tuple[str, ...]:
    from pathlib import Path  # only who saves files asks

    from hardsave import config

    return config.included(os.environ, Path(os.fsdecode(directory)))


def _directory() -> str | None:
    try:
        return os.getcwd()
    except FileNotFoundError:  # it was removed
        return None
