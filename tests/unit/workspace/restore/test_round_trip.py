"""After any change of a workspace, snapshots bring it back exactly, and forth again."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hardsave.workspace.snapshot import compare
from tests.unit.workspace.room import Room, picture

NAMES = [b"a", b"b", b"c.txt", b"dir", b"\xff\n", b"-x", b"sub"]
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(b"/".join)
contents = st.sampled_from([b"", b"one", b"two", b"one\r\n", b"\0" * 10, b"z" * 140_000])
modes = st.sampled_from([0o644, 0o600, 0o755, 0o444])


class Edit(NamedTuple):
    verb: str
    path: bytes
    other: bytes
    content: bytes
    mode: int


VERBS = ["write", "write", "write", "remove", "symlink", "link", "mkdir", "chmod", "rename"]
edits = st.lists(
    st.builds(Edit, st.sampled_from(VERBS), paths, paths, contents, modes), min_size=1, max_size=12
)


def apply(root: Path, edit: Edit) -> None:
    """Do it the way people do; what is not possible is not done."""
    top = os.fsencode(root) + b"/"
    path, other = top + edit.path, top + edit.other
    if edit.verb not in ("remove", "chmod"):
        clear_the_way(top, edit.path)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path) and edit.verb not in ("write", "rename"):
            os.unlink(path)
    if edit.verb == "write":
        if os.path.islink(path):
            os.unlink(path)
        Path(os.fsdecode(path)).write_bytes(edit.content)
    elif edit.verb == "symlink":
        os.symlink(edit.other, path)
    elif edit.verb == "mkdir":
        os.mkdir(path, 0o755)
    elif edit.verb == "link" and os.path.isfile(other) and not os.path.islink(other):
        os.link(other, path)
    elif edit.verb == "rename" and os.path.isfile(other) and not edit.other.startswith(edit.path):
        os.rename(other, path)
    elif edit.verb == "chmod" and os.path.lexists(path) and not os.path.islink(path):
        os.chmod(path, edit.mode | (0o700 if os.path.isdir(path) else 0))
    elif edit.verb == "remove" and os.path.lexists(path):
        is_directory = os.path.isdir(path) and not os.path.islink(path)
        shutil.rmtree(path) if is_directory else os.unlink(path)


def clear_the_way(top: bytes, path: bytes) -> None:
    """Make the directories above a path, also over files that are there."""
    names = path.split(b"/")
    for count in range(1, len(names)):
        above = top + b"/".join(names[:count])
        if os.path.islink(above) or os.path.isfile(above):
            os.unlink(above)
        os.makedirs(above, exist_ok=True)


@contextmanager
def new_room() -> Iterator[Room]:
    base = tempfile.mkdtemp()
    try:
        root = Path(base, "work")
        root.mkdir()
        yield Room(root)
    finally:
        shutil.rmtree(base)


def check_histories(histories: list[list[Edit]]) -> None:
    with new_room() as room:
        roots, pictures = [room.snapshot().root], [picture(room.root)]
        for history in histories:
            for edit in history:
                apply(room.root, edit)
            roots.append(room.snapshot().root)
            pictures.append(picture(room.root))
            assert roots[-1] == room.anew().root, "the cache and a fresh look disagree"
        order = [*range(len(roots) - 1, -1, -1), *range(1, len(roots)), len(roots) // 2]
        for number in order:
            assert room.restore(roots[number]).conflicts == ()
            assert picture(room.root) == pictures[number]
        changes = compare.diff(roots[0], roots[-1], room.fetch)
        assert set(changes.added) == pictures[-1].keys() - pictures[0].keys()
        assert set(changes.removed) == pictures[0].keys() - pictures[-1].keys()


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(edits, min_size=1, max_size=3))
def test_every_state_of_a_workspace_comes_back(histories: list[list[Edit]]) -> None:
    check_histories(histories)


@pytest.mark.torture
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(edits, min_size=1, max_size=5))
def test_every_state_of_many_workspaces_comes_back(histories: list[list[Edit]]) -> None:
    check_histories(histories)
