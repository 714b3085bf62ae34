"""What is left of a purged text outside of the store's objects and rows: small files, and names.

Contract. After a purge nothing of ours has the text, or the place is named, with what helps.
Logs and notes are masked where they stand, at the same length, because others are writing to them;
what leads to no process any more is emptied. What says where a living process or the project
itself is cannot be changed behind their backs: that is named.

Looked for as it is written, and as JSON writes it. The files of a database are none of this: a
purge goes through their rows and objects, and what other users have there is not told.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from hardsave import config
from hardsave.errors import Unavailable
from hardsave.stores import on_disk, store_files
from hardsave.stores.local import daemon_lock
from hardsave.vault.context import Context
from hardsave.vault.workspaces import projects

_LARGEST = 64 << 20  # of a file that is looked through: logs are cut long before
_MASK = b"*"
_LOG = ".log"
_NOTES = "hooks"
_SESSIONS = "sessions"
_RENDEZVOUS = "daemons"
_PAGE = 500


def clear(context: Context, text: str) -> tuple[str, ...]:
    """Take a text out of what lies beside the store; where it still is, one line each."""
    forms = _forms(text)
    left = list(_names(context, text))
    path = on_disk.path_of(context.store)
    if path is not None:
        store = Path(path)
        left += _beside(store, forms)
        left += _project(store.parent, text, forms)
        left += _data(store.parent, forms)
    return tuple(left)


def aside(context: Context) -> tuple[str, ...]:
    """Files that a takeover or a repair has set aside: they may hold anything."""
    path = on_disk.path_of(context.store)
    if path is None:
        return ()
    found = store_files.set_aside(path)
    return tuple(f"{each}, which was set aside, may have it: delete it" for each in found)


def _forms(text: str) -> tuple[bytes, ...]:
    plain = text.encode("utf-8", "surrogatepass")
    escaped = json.dumps(text)[1:-1].encode()
    return tuple(dict.fromkeys((plain, escaped)))


# Names, which stay


def _names(context: Context, text: str) -> Iterator[str]:
    after: str | None = None
    while lines := context.store.timelines(context.user, after, _PAGE):
        for line in lines:
            if text in line.name:
                yield f"the name of timeline {line.name!r}: names of timelines stay"
        after = lines[-1].name
    if any(text.encode("utf-8", "surrogatepass") in data for data in _ledger(context)):
        yield (
            "the ledger of tasks, in the name of a session, a bookmark or a disabled receiver: "
            "these stay"
        )


def _ledger(context: Context) -> Iterator[bytes]:
    after = 0
    while rows := context.store.entries(context.user, None, after, _PAGE):
        yield from (row.data for row in rows)
        after = rows[-1].number
    yield from (owner.session.encode() for owner in context.store.owners(context.user))


# Beside the store


def _beside(store: Path, forms: Sequence[bytes]) -> Iterator[str]:
    if any(form in os.fsencode(store) for form in forms):
        yield f"the path of the store, {store}: it is called after the project's directory"
    for path in store_files.beside(str(store)):
        if path.name.endswith(_LOG) and _size(path) > _LARGEST:
            yield f"{path} may have it, and is too large to be looked through: delete it"
        data = _read(path)
        if data is None or not any(form in data for form in forms):
            continue
        if path.is_symlink():  # the user's own, which we have written to at most
            yield f"{path}, which leads to {os.path.realpath(path)}: take it out there"
            continue
        if path.name.endswith(_LOG):
            _mask(path, data, forms)
        elif path.name.endswith(daemon_lock.SUFFIX) and daemon_lock.holder(str(path)) is None:
            _empty(path)
        elif path.name.endswith(daemon_lock.SUFFIX):
            yield f"{path}, which says where a running agent is: purge again when it has ended"
        else:
            yield f"{path}: purge again when no agent works with this store"


def _read(path: Path) -> bytes | None:
    """What a small file of ours holds; None if it is a database's, or is none."""
    with suppress(OSError):
        if path.is_file() and path.stat().st_size <= _LARGEST:
            return None if store_files.is_of_database(path) else path.read_bytes()
    return None


def _size(path: Path) -> int:
    """Nothing if it is gone by now, or leads nowhere."""
    with suppress(OSError):
        return path.stat().st_size
    return 0


def _mask(path: Path, data: bytes, forms: Sequence[bytes]) -> None:
    """In place and at the same length: a process that has it open goes on writing behind it."""
    with _told(path), path.open("r+b", buffering=0) as file:
        for form in forms:
            at = data.find(form)
            while at >= 0:
                os.pwrite(file.fileno(), _MASK * len(form), at)
                at = data.find(form, at + len(form))
        os.fsync(file.fileno())


def _empty(path: Path) -> None:
    with _told(path), path.open("r+b", buffering=0) as file:
        file.truncate(0)


# Of the project, and of the user


def _project(folder: Path, text: str, forms: Sequence[bytes]) -> Iterator[str]:
    """Where a project was before is forgotten; where it is now, it is."""
    known = projects.read(folder)
    if known is None:
        return
    kept = tuple(each for each in known.formerly if text not in each)
    if kept != known.formerly:
        known = known._replace(formerly=kept)
        projects.remember(projects.OwnFolder(folder, known))
    data = _read(folder / projects.RECORD) or b""
    if any(form in data for form in forms):
        yield f"{folder / projects.RECORD}: the project's own directory is called so"


def _data(own: Path, forms: Sequence[bytes]) -> Iterator[str]:
    home = config.data_directory(os.environ, sys.platform)
    for path in sorted([*(home / _NOTES).glob("*/*"), *(home / _NOTES).glob("*.reserve")]):
        data = None if path.is_symlink() else _read(path)
        if data is not None and any(form in data for form in forms):
            _mask(path, data, forms)
    named = {f"{_SESSIONS}/*": "a timeline that a session goes on with is called so"}
    named |= dict.fromkeys((f"projects/*/{projects.RECORD}", "trusted/*"), "a project lies there")
    for pattern, why in named.items():
        for path in sorted(home.glob(pattern)):
            data = _read(path)
            if path.parent != own and data is not None and any(form in data for form in forms):
                yield f"{path}: {why}; delete it if that is over"
    for path in sorted(home.glob("*.json")):
        data = _read(path)
        if data is not None and any(form in data for form in forms):
            yield (
                f"{path}: a token or a secret of callbacks has it; remove that with 'hardsave "
                "token revoke' or 'hardsave webhook remove'"
            )
    for link in sorted((home / _RENDEZVOUS).glob("*")):
        with suppress(OSError):
            leads_to = os.fsencode(os.readlink(link))
            if any(form in leads_to for form in forms):
                if os.path.exists(leads_to):
                    yield f"{link}, which leads to a running agent: purge again when it has ended"
                else:
                    link.unlink()


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """What cannot be written still has the text: that is no purge."""
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"{path} still has it, and cannot be written: {error.strerror}; see to that, then "
            "purge again"
        ) from error
