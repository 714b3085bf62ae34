"""Where agents keep their settings, and how ours get into them: read, shown, written whole."""

import difflib
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from hardsave.agents import claude_layers, codex_layers, codex_trust, interpreter, settings
from hardsave.agents.spec import CLAUDE_CODE, CODEX, Agent
from hardsave.errors import Conflict, HardsaveError, Misuse
from hardsave.tuples import NamedTuple

T = TypeVar("T")


class Change(NamedTuple):
    """What would become of a file of settings."""

    agent: Agent
    path: Path
    before: bytes | None  # None: there is none yet
    after: bytes | None  # None: there is none any more

    def __bool__(self) -> bool:
        return (self.before or b"") != (self.after or b"")

    def diff(self) -> str:
        """As people read it."""
        old, new = ((data or b"").decode().splitlines(True) for data in (self.before, self.after))
        name = str(self.path)
        return "".join(
            line if line.endswith("\n") else f"{line}\n"
            for line in difflib.unified_diff(old, new, name, name)
        )


def settings_file(
    agent: Agent, environment: Mapping[str, str], project: Path | None
) -> Path | None:
    """The settings that hold for a user, or those of a project that are nobody else's.

    None if the agent has never been here, or has none of that kind.
    """
    folder = agent.home(environment)
    if not folder.is_dir():
        return None
    if project is None:
        return folder / agent.settings
    return project / agent.project_settings if agent.project_settings else None


def command(agent: Agent) -> str:
    """What the hooks call: this very Python, without shims, and nothing of the workspace."""
    named = "" if agent is CLAUDE_CODE else f" {agent.name}"
    python = shlex.join([sys.executable, *interpreter.options(os.environ)])
    return f"{python} -c {shlex.quote(settings.PROGRAM)}{named}"


def plan(agent: Agent, path: Path, *, undo: bool) -> Change:
    """What installing, or removing, would do to a file."""
    before = _read(path)
    text = _refused(path, (before or b"").decode)
    if undo and not path.is_symlink() and _refused(path, lambda: settings.is_ours_alone(text)):
        return Change(agent, path, before, None)
    if undo:
        after = _refused(path, lambda: settings.without_hooks(text))
    else:
        own = command(agent)
        after = _refused(path, lambda: settings.with_hooks(text, own, agent.hooks))
    return Change(agent, path, before, _refused(path, after.encode))


def installed(path: Path) -> list[str]:
    """The events that call us."""
    return _refused(path, lambda: settings.installed((_read(path) or b"").decode()))


def gone(path: Path) -> list[str]:
    """The programs that hooks of ours call, and that are not there any more."""
    told = _refused(path, lambda: settings.places((_read(path) or b"").decode()))
    programs = {_program(str(place.told["command"])) for place in told}
    return sorted(each for each in programs if each and shutil.which(each) is None)


def _program(command: str) -> str:
    """What a command calls. One that somebody has edited may have a quote too many; what a longer
    one comes to call is its author's to know."""
    try:
        program = shlex.split(command)[0]
        return program if settings.is_whole(command) else ""
    except ValueError:
        return command.split()[0]


def longer(path: Path) -> list[str]:
    """The commands that call us and are not ours alone: nothing of them is changed."""
    return _refused(path, lambda: settings.longer((_read(path) or b"").decode()))


def idle(agent: Agent, path: Path) -> list[str]:
    """The events that shall call us, and that the agent leaves out until its user trusts them."""
    if agent is not CODEX:
        return []
    config = path.with_name("config.toml")
    hooks = _refused(path, (_read(path) or b"").decode)
    told = _refused(config, (_read(config) or b"").decode)
    # Codex names a hook by the path of its folder as it was given, or without links.
    paths = (str(path), os.path.realpath(path))
    return _refused(config, lambda: codex_trust.idle(hooks, paths, told))


def switched_off(agent: Agent, environment: Mapping[str, str], project: Path) -> str:
    """The file that keeps an agent from running any hook in a project, and how; empty if none
    does."""
    home = agent.home(environment)
    if agent is CODEX:
        return codex_layers.why_off(home, home / agent.settings, project, Path.cwd())
    return claude_layers.why_off(home, project)


def is_silent(agent: Agent, environment: Mapping[str, str], project: Path) -> bool:
    """Whether no hook of an agent calls us in a project. One that cannot be told does not."""
    try:
        return bool(why_silent(agent, environment, project))
    except HardsaveError:
        return True


def why_silent(agent: Agent, environment: Mapping[str, str], project: Path) -> str:
    """What keeps all hooks of an agent from calling us, and what to do; empty if one does."""
    files = [settings_file(agent, environment, place) for place in (None, project)]
    found = [path for path in files if path is not None]
    if not any(installed(path) for path in found):
        return "'hardsave init' saves it at every step"
    is_off = switched_off(agent, environment, project)
    if is_off or all(set(installed(path)) <= set(idle(agent, path)) for path in found):
        return f"{agent.title} leaves our hooks out: see 'hardsave doctor'"
    return ""


def apply(change: Change) -> None:
    """Write it, whole or not at all; `Conflict` if somebody has written there since."""
    if change.after is None:
        _check(change)
        change.path.unlink()
        return
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
        _check(change)
        os.replace(name, real)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def _check(change: Change) -> None:
    if _read(change.path) != change.before:
        raise Conflict(f"{change.path} was changed meanwhile; run 'hardsave init' again")


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _refused(path: Path, read: Callable[[], T]) -> T:
    try:
        return read()
    except UnicodeError as error:  # bytes that are none, or an escape for half a character
        raise Misuse(f"{path} was left as it is: it is not UTF-8; mend it first") from error
    except HardsaveError as error:
        raise Misuse(f"{path} was left as it is: {error}; mend it first") from error
