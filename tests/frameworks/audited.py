"""Reads of what no framework has written: nothing may be imported, constructed or run by them."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import hardsave.stores.compression  # noqa: F401 # a read loads it if a pack happens to be compressed by then

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
WATCHED = (
    *("import", "exec", "compile", "marshal", "pickle.find_class", "code.__new__", "ctypes"),
    *("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.connect"),
)


def watched(read: Callable[[T], object], warm: Iterable[T], hostile: Iterable[T]) -> None:
    """Read all, the warm ones before: what reading loads by itself is loaded then. A read may end
    in an error. Only in a process of its own, because an audit hook stays for good."""
    for each in warm:
        _tried(read, each)
    loaded, seen = set(sys.modules), list[str]()

    def hook(event: str, given: object) -> None:
        if event.startswith(WATCHED):
            seen.append(f"{event} {given!r:.80} in {threading.current_thread().name}")

    sys.addaudithook(hook)
    for each in hostile:
        _tried(read, each)
        assert seen == [], (each, seen)
    assert set(sys.modules) == loaded


def _tried(read: Callable[[T], object], given: T) -> None:
    try:
        read(given)
    except AssertionError:
        raise
    except Exception as error:  # noqa: BLE001 # a framework refuses in its own way
        str(error)


def in_a_process(module: str, call: str, folder: Path) -> None:
    """Calls a function of a module that calls `watched`. None of what the data ask for, which all
    make a file `owned`, may have happened."""
    program = f"from {module} import {call.partition('(')[0]}\n{call}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program], cwd=folder, env=environment, check=True)
    assert not (folder / "owned").exists()
