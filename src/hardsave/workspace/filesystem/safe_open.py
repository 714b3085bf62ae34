"""Opens files beneath a root without ever following a symlink; renames that never overwrite.

On Linux the kernel does it in one call (`openat2`); elsewhere, and on old kernels, the path is
walked name by name. The same is done for a process's first few directories, because to load ctypes
takes longer; what is mounted beneath the root is not entered then either. In any case a directory
that is swapped for a symlink at the worst moment is refused with ELOOP or ENOTDIR, and nothing
outside is touched. If the process has no descriptors left, that is `Unavailable`: the path is not
at fault.
"""

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import ClassVar

from hardsave.errors import Unavailable
from hardsave.workspace.filesystem.exhaustion import refuse_if_exhausted

_OPENAT2 = 437  # the same on every architecture that we run on
_NO_XDEV, _NO_SYMLINKS, _BENEATH = 0x01, 0x04, 0x08
_SYSTEM: str = sys.platform  # a plain string: what is for other systems is checked, too
_RENAMES = {"linux": "renameat2", "darwin": "renameatx_np"}
_NEVER_OVER = {"linux": 1, "darwin": 4}.get(_SYSTEM, 0)
_EXCHANGE = 2  # on both
# To look whether it can be opened: this takes no lock away, see `lock_safe_open`.
_NOTHING: int = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)
_ATTEMPTS = 64  # the kernel asks to try again while directories are being renamed
_STEP = _NOTHING | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC  # on the way to something
_FEW = 8 if _SYSTEM == "linux" else 0  # directories
_UNKNOWN_CALL = (errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.ENOTSUP)


class RootDirectory:
    """A directory that is open; everything beneath it is opened through it, by relative paths."""

    few: ClassVar[int] = _FEW  # how many directories this process still opens name by name

    def __init__(self, root: bytes) -> None:
        self.root = root
        try:
            self.fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            refuse_if_exhausted(error)
            raise
        status = os.fstat(self.fd)
        self.device = status.st_dev
        self.identity = (status.st_dev, status.st_ino)

    def close(self) -> None:
        os.close(self.fd)

    def __enter__(self) -> "RootDirectory":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self, path: bytes, flags: int = os.O_RDONLY, mode: int = 0) -> int:
        """A descriptor. The empty path is the root itself."""
        flags |= os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            if RootDirectory.few > 0 and flags & os.O_DIRECTORY and (mount := _mount(self.fd)):
                RootDirectory.few -= 1
                return _walked_in(mount, self.fd, path, flags)
            kernel = _openat2()
            if kernel is not None:
                return kernel(self.fd, path or b".", flags, mode)
            return _walk(self.fd, path, flags, mode)
        except OSError as error:
            refuse_if_exhausted(error)
            raise

    def is_still_there(self) -> bool:
        """Whether the root's own path still leads to the directory that was opened."""
        try:
            status = os.stat(self.root)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self.identity

    def is_mounted(self, path: bytes) -> bool:
        """Whether what is on another device was mounted here. An overlay shows the devices of its
        layers; where the kernel cannot be asked, another device means another mount."""
        if _openat2() is None:
            return True
        try:
            os.close(self.open(path, _NOTHING))
        except OSError as error:
            if error.errno == errno.EXDEV:
                return True
            raise
        return False

    @contextmanager
    def directory(self, path: bytes) -> Iterator[int]:
        descriptor = self.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield descriptor
        except OSError as error:  # to list it takes one more descriptor
            refuse_if_exhausted(error)
            raise
        finally:
            os.close(descriptor)


def refuse_what_went(root_dir: RootDirectory, identity: tuple[int, int] | None) -> None:
    """Raise `Unavailable` if the root was moved, removed or replaced while it was read: files that
    seem to be gone are not, and their loss must not become a checkpoint."""
    if not root_dir.is_still_there() or identity not in (None, root_dir.identity):
        raise gone(root_dir.root)


def gone(root: bytes) -> Unavailable:
    return Unavailable(
        f"the workspace {os.fsdecode(root)!r} was moved, replaced or removed while it was being "
        "captured, and nothing was saved of it; bring it back, then repeat"
    )


def _walk(root: int, path: bytes, flags: int, mode: int) -> int:
    """The same without the kernel's help: one name at a time."""
    names = path.split(b"/") if path else [b"."]
    if b".." in names or b"" in names:
        raise _leads_out(path)
    device = os.fstat(root).st_dev
    here = root
    for at, name in enumerate(names):
        last = at == len(names) - 1
        try:
            following = os.open(name, flags if last else _STEP, mode, dir_fd=here)
        finally:
            if here != root:
                os.close(here)
        here = following
        if os.fstat(here).st_dev != device and not last:
            os.close(here)
            raise _leads_out(path)
    return here


def _leads_out(path: bytes) -> OSError:
    return OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)


def _walked_in(mount: bytes, root: int, path: bytes, flags: int) -> int:
    """A directory, if nothing was mounted on the way to it: no name leads back out of a mount."""
    found = _walk(root, path, flags, 0)
    try:
        if _mount(found) != mount:
            raise _leads_out(path)
    except BaseException:
        os.close(found)
        raise
    return found


def _mount(descriptor: int) -> bytes | None:
    """The number of the mount that an open file lies on; None if this system does not say."""
    try:
        with open(f"/proc/self/fdinfo/{descriptor}", "rb") as file:
            return next((line for line in file if line.startswith(b"mnt_id:")), None)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None


@cache
def _openat2() -> Callable[[int, bytes, int, int], int] | None:
    """The kernel's call; None where there is none.

    Loading ctypes takes milliseconds, and a scan that finds no change opens nothing.
    """
    if _SYSTEM != "linux":
        return None
    import ctypes

    class How(ctypes.Structure):
        _fields_ = (
            ("flags", ctypes.c_uint64),
            ("mode", ctypes.c_uint64),
            ("resolve", ctypes.c_uint64),
        )

    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    number, size = ctypes.c_long(_OPENAT2), ctypes.c_size_t(ctypes.sizeof(How))

    def call(root: int, path: bytes, flags: int, mode: int) -> int:
        how = How(flags, mode if flags & os.O_CREAT else 0, _NO_XDEV | _NO_SYMLINKS | _BENEATH)
        for _ in range(_ATTEMPTS):
            made: int = syscall(
                number, ctypes.c_int(root), ctypes.c_char_p(path), ctypes.byref(how), size
            )
            if made >= 0:
                return made
            if ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR):
                break
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)

    return call if _works(call) else None


def _works(call: Callable[[int, bytes, int, int], int]) -> bool:
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(call(root, b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, 0))
    except OSError as error:
        if error.errno in _UNKNOWN_CALL:
            return False
        raise
    finally:
        os.close(root)
    return True


def rename_to_nothing(source: bytes, source_fd: int, target: bytes, target_fd: int) -> None:
    """Rename, but never over anything: FileExistsError."""
    kernel = _rename()
    if kernel is not None and kernel(source_fd, source, target_fd, target, _NEVER_OVER):
        return
    try:
        os.stat(target, dir_fd=target_fd, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)


def exchange(one: bytes, one_fd: int, other: bytes, other_fd: int) -> bool:
    """Let two names change places, in one call; False if this file system cannot."""
    kernel = _rename()
    return kernel is not None and kernel(one_fd, one, other_fd, other, _EXCHANGE)


@cache
def _rename() -> Callable[[int, bytes, int, bytes, int], bool] | None:
    """The kernel's call: False if this file system does not know it."""
    if _SYSTEM not in _RENAMES:
        return None
    import ctypes

    function = getattr(ctypes.CDLL(None, use_errno=True), _RENAMES[_SYSTEM], None)
    if function is None:
        return None
    function.argtypes = [
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_uint,
    ]

    def call(source_fd: int, source: bytes, target_fd: int, target: bytes, flag: int) -> bool:
        if not function(source_fd, source, target_fd, target, flag):
            return True
        number = ctypes.get_errno()
        if number in _UNKNOWN_CALL:
            return False
        raise OSError(number, os.strerror(number), target)

    return call
