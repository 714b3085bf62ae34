"""What is made of macOS's answers. The library is one that answers as macOS does, about the
processes of this system; only its layout and its calls are macOS's."""

import ctypes
import errno
import os
import signal
import struct
import subprocess
import sys
import time
from typing import Any

import pytest
from blake3 import blake3

from hardsave.stores.host import boot, location, macos, processes
from hardsave.stores.host.macos import Process, System

BSD_INFO_BYTES = 136  # PROC_PIDTBSDINFO_SIZE
NOW = int(time.time())
BOOT = "0C8DBA9D-97D7-4A38-A2E4-4F2B1B6F8C11"
linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc")


class Library:
    """Answers in macOS's words: a number of bytes, or 0 and an errno."""

    def __init__(self) -> None:
        self.told: dict[int, bytes] = {}
        self.refused: dict[int, int] = {}
        self.boot: bytes | None = BOOT.encode()
        self.host: bytes | None = bytes(range(16))
        self.given: dict[int, bytes] = {}

    def proc_pidinfo(self, pid: int, flavor: int, arg: Any, data: Any, size: Any) -> int:
        assert (flavor, arg.value, size.value, len(data)) == (3, 0, BSD_INFO_BYTES, BSD_INFO_BYTES)
        if pid not in self.told:
            ctypes.set_errno(self.refused.get(pid, errno.ESRCH))
            return 0
        data.raw = self.told[pid].ljust(BSD_INFO_BYTES, b"\0")
        return len(self.told[pid])

    def proc_listallpids(self, numbers: Any, size: Any) -> int:
        found = [*self.told, 0]
        if numbers is None:
            return len(found)
        assert size.value == ctypes.sizeof(numbers) >= 4 * len(found)
        numbers[: len(found)] = found
        return len(found)

    def sysctl(self, name: Any, count: Any, data: Any, size: Any, new: None, length: Any) -> int:
        assert (list(name[:2]), count.value, new, length.value) == ([1, 49], 3, None, 0)
        if name[2] not in self.given:
            return -1
        data.raw = self.given[name[2]].ljust(len(data), b"\xff")
        size._obj.value = len(self.given[name[2]])
        return 0

    def sysctlbyname(self, name: bytes, data: Any, size: Any, new: None, new_size: Any) -> int:
        assert (name, new, new_size.value) == (b"kern.bootsessionuuid", None, 0)
        if self.boot is None:
            return -1
        data.value = self.boot
        return 0

    def gethostuuid(self, data: Any, wait: Any) -> int:
        assert len(data) == 16
        assert wait._obj[0] > 0
        if self.host is None:
            return -1
        data.raw = self.host
        return 0


def told(pid: int, parent: int = 1, *, at: float = NOW, status: int = 2) -> bytes:
    """As <sys/proc_info.h> lays it out, written down field by field."""
    numbers = struct.pack("=12I", 0, status, 0, pid, parent, os.geteuid(), *[20] * 5, 0)
    names = b"python".ljust(16, b"\0") + b"python3.13".ljust(32, b"\0")
    rest = struct.pack("=5Ii2Q", 9, pid, 1, 2, 3, -5, int(at), 250_000)
    return numbers + names + rest


@pytest.fixture
def library() -> Library:
    made = Library()
    made.told[os.getpid()] = told(os.getpid(), os.getppid())
    return made


@pytest.fixture
def here(library: Library, monkeypatch: pytest.MonkeyPatch) -> Library:
    """As if this were macOS."""
    monkeypatch.setattr(processes, "_SYSTEM", "darwin")
    monkeypatch.setattr(processes, "_PROC", "/nowhere")
    monkeypatch.setattr(processes, "_MACHINE", "/nowhere")
    monkeypatch.setattr(boot, "_SYSTEM", "darwin")
    system = System(library)
    monkeypatch.setattr(macos, "system", lambda: system if system.is_truthful() else None)
    return library


def test_what_is_told_about_a_process(library: Library) -> None:
    assert len(told(1)) == BSD_INFO_BYTES
    library.told[4711] = told(4711, 42, at=NOW - 60)
    began = (NOW - 60) * 1_000_000 + 250_000
    assert System(library).process(4711) == Process(4711, 42, os.geteuid(), began)


def test_a_process_that_is_gone_or_a_zombie_is_none(library: Library) -> None:
    library.told[4711] = told(4711, status=5)
    assert System(library).process(4711) is None
    assert System(library).process(4712) is None
    assert System(library).process(0) is None
    assert System(library).process((1 << 32) + os.getpid()) is None


def test_who_may_not_be_looked_at_is_not_gone(here: Library) -> None:
    here.refused[os.getppid()] = errno.EPERM
    with pytest.raises(PermissionError):
        System(here).process(os.getppid())
    assert processes.started(os.getppid()) == processes.UNKNOWN


@pytest.mark.parametrize(
    "answer",
    [
        told(os.getpid() + 1, os.getppid()),
        told(os.getpid(), os.getppid() + 1),
        told(os.getpid(), os.getppid(), at=NOW + 10 * 86_400),
        told(os.getpid(), os.getppid(), at=0)[:-8] + bytes(8),
        told(os.getpid(), os.getppid(), status=5),
        told(os.getpid(), os.getppid())[:-8],
        b"",
    ],
    ids=["number", "parent", "future", "no time", "dead", "short", "nothing"],
)
def test_who_lies_about_ourselves_is_not_believed(here: Library, answer: bytes) -> None:
    assert System(here).is_truthful()
    here.told[os.getpid()] = answer
    assert not System(here).is_truthful()
    assert not processes.can_ask()
    assert location.here().pid_started == processes.UNKNOWN
    assert processes.started(os.getppid()) == processes.UNKNOWN


def test_all_processes_are_listed(library: Library) -> None:
    library.told[4711] = told(4711)
    assert System(library).pids() == sorted({os.getpid(), 4711})


def test_what_a_process_was_given(library: Library) -> None:
    library.given[7] = struct.pack("=i", 2) + b"/bin/sh\0\0\0\0-c\0\0A=1\0B=\0\0stack_guard=x\0"
    assert System(library).arguments(7) == ([b"-c", b""], [b"A=1", b"B="])
    assert System(library).arguments(8) is None
    assert System(library).arguments((1 << 32) + 7) is None


@pytest.mark.parametrize("data", [b"", b"\0\0", struct.pack("=i", 5) + b"/bin/sh\0a\0b\0"])
def test_what_is_laid_out_otherwise_is_nothing(data: bytes) -> None:
    assert macos.arguments(data) is None


@linux_only
def test_a_system_that_has_no_such_calls_is_not_asked() -> None:
    macos.system.cache_clear()
    assert macos.system() is None


def test_a_process_that_was_killed_is_known_to_be_gone(here: Library) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        here.told[child.pid] = told(child.pid, os.getpid())
        assert processes.can_ask()
        assert processes.started(child.pid) == NOW * 1_000_000 + 250_000
        child.send_signal(signal.SIGKILL)
        here.told[child.pid] = told(child.pid, os.getpid(), status=5)
        assert processes.started(child.pid) is None
    finally:
        child.communicate()
    assert location.here().pid_started == NOW * 1_000_000 + 250_000


def test_what_can_be_seen_of_a_process(here: Library) -> None:
    parent = os.getppid()
    here.told[parent] = told(parent, 42)
    here.given[parent] = struct.pack("=i", 2) + b"/bin/sh\0\0sh\0-c\0A=1\0\0"
    began = NOW * 1_000_000 + 250_000
    seen = (parent, began, 42, os.geteuid(), ("sh", "-c"), os.getsid(parent))
    assert processes.look(parent) == seen
    assert processes.environment(parent) == [b"A=1"]
    assert processes.pids() == sorted({os.getpid(), parent})
    del here.given[parent]
    assert processes.look(parent) is None
    assert processes.environment(parent) == []
    del here.told[os.getpid()]  # which cannot be: nothing that it says is believed
    assert processes.pids() == []


def test_which_boot_it_is(here: Library) -> None:
    assert boot.boot_id.__wrapped__() == blake3(BOOT.encode()).digest(8)
    here.boot = None
    assert boot.boot_id.__wrapped__() == boot.UNKNOWN_BOOT


def test_a_machine_is_known_in_every_network(here: Library) -> None:
    assert processes.host.__wrapped__() == bytes(range(16)).hex()
    here.host = None
    assert processes.host.__wrapped__() == os.uname().nodename
    here.host = bytes(16)
    assert processes.host.__wrapped__() == os.uname().nodename
