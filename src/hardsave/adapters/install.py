"""Where agents keep their settings, and how ours get into them: read, shown, written whole."""

import difflib
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from hardsave.adapters import settings
from hardsave.errors import Conflict, HardsaveError, Misuse

T = TypeVar("T")


class Change(NamedTuple):
    """What would become of a file of settings."""

    agent: str
    path: Path
    before: bytes | None  # None: there is none yet
    after: bytes

    def __bool__(self) -> bool:
        return (self.before or b"") != self.after

    def diff(self) -> str:
        """As people read it."""
        old, new = ((data or b"").decode().splitlines(True) for data in (self.before, self.after))
        name = str(self.path)
        return "".join(
            line if line.endswith("\n") else f"{line}\n"
            for line in difflib.unified_diff(old, new, name, name)
        )


def claude_folder(environment: Mapping[str, str]) -> Path:
    """Where Claude Code keeps what belongs to a user."""
    given = environment.get("CLAUDE_CONFIG_DIR")
    return Path(given) if given else Path.home() / ".claude"


def claude_settings(environment: Mapping[str, str], project: Path | None) -> Path | None:
    """The settings that hold for a user, or those of a project that are nobody else's.

    None if Claude Code has never been here.
    """
    folder = claude_folder(environment)
    if not folder.is_dir():
        return None
    return folder / "settings.json" if project is None else project / ".claude/settings.local.json"


def command() -> str:
    """What the hooks call: this very Python, without shims, and nothing of the workspace."""
    return f"{shlex.quote(sys.executable)} -P -m {settings.MODULE}"


def plan(path: Path, *, undo: bool) -> Change:
    """What installing, or removing, would do to a file."""
    before = _read(path)
    text = _refused(path, (before or b"").decode)
    after = _refused(
        path,
        lambda: settings.without_hooks(text) if undo else settings.with_hooks(text, command()),
    )
    return Change("Claude Code", path, before, after.encode())


def installed(path: Path) -> list[str]:
    """The events of Claude Code that call us."""
    return _refused(path, lambda: settings.installed((_read(path) or b"").decode()))


def apply(change: Change) -> None:
    """Write it, whole or not at all; `Conflict` if somebody has written there since."""
    real = Path(os.path.realpath(change.path))  # a link stays a link
    real.parent.mkdir(parents=True, exist_ok=True)
    mode = real.stat().st_mode & 0o777 if change.before is not None else 0o600
    descriptor, name = tempfile.mkstemp(dir=real.parent, prefix=".hardsave-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(change.after)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        if _read(change.path) != change.before:
            raise Conflict(f"{change.path} was changed meanwhile; run 'hardsave init' again")
        os.replace(name, real)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _refused(path: Path, read: Callable[[], T]) -> T:
    try:
        return read()
    except UnicodeDecodeError as error:
        raise Misuse(f"{path} was left as it is: it is not UTF-8") from error
    except HardsaveError as error:
        raise Misuse(f"{path} was left as it is: {error}") from error
