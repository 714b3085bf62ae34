"""A disk that fails under a workspace: no call was wrong, and no error of the system comes out."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.errors import Unavailable


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> hardsave.Vault:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    vault = hardsave.open(f"sqlite:///{tmp_path / 'store.db'}")
    (folder / "a.txt").write_text("one")
    vault.timeline("main").save({}, workspace=".")
    (folder / "a.txt").unlink()
    vault.timeline("main").save({}, workspace=".")
    return vault


@pytest.mark.parametrize("call", ["rewind", "plan", "save", "status", "undo"])
def test_a_failing_disk_is_unavailable_whenever_it_fails(
    vault: hardsave.Vault, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = vault.timeline("main")
    calls: dict[str, Callable[[], object]] = {
        "rewind": lambda: line.rewind("main:1"),
        "plan": lambda: line.rewind("main:1", dry_run=True),
        "save": lambda: line.save({}, workspace="."),
        "status": lambda: vault.workspace(".").status(),
        "undo": vault.undo,
    }
    real = os.open
    failed = 0
    for number in range(1, 100):
        left = number
        line.rewind("main:2")
        if call == "undo":
            line.rewind("main:1")

        def fails(path: Any, *rest: Any, **more: Any) -> int:
            nonlocal left
            left -= 1
            if left == 0:
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)
            return real(path, *rest, **more)

        with monkeypatch.context() as patch:
            patch.setattr(os, "open", fails)
            try:
                calls[call]()
            except Unavailable:
                failed += 1
        if left > 0:
            break
    assert failed
    vault.close()
