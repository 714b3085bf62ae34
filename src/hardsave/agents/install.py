"""Where agents keep their settings, and how ours get into them: read, shown, written whole; and
whether the hooks that stand there call us.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from hardsave.agents import interpreter, settings
from hardsave.agents.spec import MARK, AgentSpec
from hardsave.errors import Conflict, HardsaveError
from hardsave.tuples import NamedTuple

_LOADS = "import hardsave.daemon.hook"
_ANSWER_SECONDS = 10
_SKILL = "hardsave"
_SKILL_FILES = Path(__file__).parent / "skill"
_SKILL_PROGRAM = "`python -m hardsave`"  # in its text: what is typed where ours is not on PATH

Part: TypeAlias = Literal["hooks", "command", "skill"]


class Change(NamedTuple):
    """What would become of a file of settings, or of one of ours."""

    agent: AgentSpec
    path: Path
    before: bytes | None  # None: there is none yet
    after: bytes | None  # None: there is none any more
    part: Part = "hooks"  # of what is installed

    def __bool__(self) -> bool:
        return (self.before or b"") != (self.after or b"")

    def diff(self) -> str:
        """As people read it."""
        import difflib  # which only `init` needs

        old, new = ((data or b"").decode().splitlines(True) for data in (self.before, self.after))
        name = str(self.path)
        return "".join(
            line if line.endswith("\n") else f"{line}\n"
            for line in difflib.unified_diff(old, new, name, name)
        )


def settings_file(
    agent: AgentSpec, environment: Mapping[str, str], project: Path | None
) -> Path | None:
    """The settings that hold for a user, or those of a project that hold for its user alone.

    None if the agent has never been here, or has none of that kind. One that can be started, and
    was not yet, finds the settings when it is.
    """
    folder = agent.home(environment)
    if (
        not folder.is_dir()
        and shutil.which(agent.program, path=environment.get("PATH", "")) is None
    ):
        return None
    if project is None:
        return folder / agent.settings_file
    return project / agent.project_settings_file if agent.project_settings_file else None


def command(agent: AgentSpec) -> str:
    """What the hooks call: this very Python, without shims, and nothing of the workspace."""
    python = shlex.join([sys.executable, *interpreter.options(os.environ)])
    return f"{python} -c {shlex.quote(settings.PROGRAM)} {agent.name}"


# Changing settings


def plan(agent: AgentSpec, path: Path, *, undo: bool) -> Change:
    """What installing, or removing, would do to a file."""
    before = _bytes(path)
    with settings.errors_name(path):
        text = (before or b"").decode()
        form = agent.settings_format()
        if undo and not path.is_symlink() and form.is_ours_alone(text):
            return Change(agent, path, before, None)
        if undo:
            after = form.without_hooks(text)
        else:
            after = form.with_hooks(text, command(agent), agent.hooks)
        return Change(agent, path, before, after.encode())


def plan_command(agent: AgentSpec, environment: Mapping[str, str], *, undo: bool) -> Change | None:
    """What would become of the file of our command inside of an agent; None if it has none. One
    that is not ours stays as it is."""
    path = command_file(agent, environment)
    if path is None:
        return None
    return _plan_file(agent, path, agent.command_text(_program_typed("rewind")), "command", undo)


def command_file(agent: AgentSpec, environment: Mapping[str, str]) -> Path | None:
    """Where it is, or would be; None if the agent has none, or has never been here."""
    if not agent.command_file or settings_file(agent, environment, None) is None:
        return None
    return agent.home(environment) / agent.command_file


def plan_skill(
    agent: AgentSpec, environment: Mapping[str, str], *, wanted: bool, undo: bool = False
) -> list[Change]:
    """What would become of the files of our skill, `SKILL.md` last. One that is there is renewed,
    also if it is not `wanted` now; a skill of that name that is not ours stays as it is."""
    folder = skill_folder(agent, environment)
    if folder is None:
        return []
    files = {folder / name: text for name, text in skill_files().items()}
    changes = [_plan_file(agent, path, text, "skill", undo) for path, text in files.items()]
    if is_foreign(changes[-1]):
        return changes[-1:] if wanted else []
    is_there = any(each.before is not None and not is_foreign(each) for each in changes)
    return changes if wanted or is_there else []


def skill_folder(agent: AgentSpec, environment: Mapping[str, str]) -> Path | None:
    """Where it is, or would be; None if the agent reads none, or has never been here."""
    if not agent.skills_folder or settings_file(agent, environment, None) is None:
        return None
    return agent.home(environment) / agent.skills_folder / _SKILL


def skill_files() -> dict[str, str]:
    """The files of our skill, as they are installed, by their paths; `SKILL.md` last."""
    paths = sorted(_SKILL_FILES.rglob("*.md"), key=lambda path: -len(path.parts))
    typed = f"`{_program_typed()}`"
    return {
        str(path.relative_to(_SKILL_FILES)): path.read_text("utf-8").replace(_SKILL_PROGRAM, typed)
        for path in paths
    }


def _program_typed(*words: str) -> str:
    return shlex.join([sys.executable, *interpreter.options(os.environ), "-m", "hardsave", *words])


def _plan_file(agent: AgentSpec, path: Path, text: str, part: Part, undo: bool) -> Change:
    """What would become of a file that is all ours; one that is not stays as it is."""
    before = _bytes(path)
    if before is not None and not _is_ours(before):
        return Change(agent, path, before, before, part)
    return Change(agent, path, before, None if undo else text.encode(), part)


def _is_ours(data: bytes) -> bool:
    return any(line.strip(b"#<!-> \r") == MARK.encode() for line in data.splitlines())


def is_foreign(change: Change) -> bool:
    """Whether a file that would be ours is another's."""
    is_file = change.part != "hooks" and change.before is not None
    return is_file and not _is_ours(change.before or b"")


def apply(change: Change) -> None:
    """Write it, whole or not at all; `Conflict` if the file was written meanwhile."""
    if change.after is None:
        _check(change)
        change.path.unlink()
        if change.part != "hooks":
            _remove_empty_folders(change)
        return
    import tempfile  # which only `init` needs

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


def _remove_empty_folders(change: Change) -> None:
    """From the file's own up to that of its agent, as far as nothing else is in them."""
    home = change.agent.home(os.environ)
    with suppress(OSError):  # others have theirs there, too
        for folder in change.path.parents:
            if folder == home:
                break
            folder.rmdir()


def _check(change: Change) -> None:
    if _bytes(change.path) != change.before:
        raise Conflict(f"{change.path} was changed meanwhile; run 'hardsave init' again")


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


# Whether hooks call us


def installed(agent: AgentSpec, path: Path) -> list[str]:
    """The events that call us."""
    return list(dict.fromkeys(event for event, _ in _hooks(agent, path)))


def longer(agent: AgentSpec, path: Path) -> list[str]:
    """The commands that call us and do something else, too: nothing of them is changed."""
    commands = dict.fromkeys(command for _, command in _hooks(agent, path))
    return [command for command in commands if not settings.is_whole(command)]


def _hooks(agent: AgentSpec, path: Path) -> Sequence[tuple[str, str]]:
    text = settings.read(path)
    with settings.errors_name(path):
        return agent.settings_format().commands(text)


def switched_off(agent: AgentSpec, environment: Mapping[str, str], project: Path) -> str:
    """The file that keeps an agent from running any hook in a project, and how; empty if none
    does."""
    return agent.why_hooks_off(agent.home(environment), project, Path.cwd())


def is_silent(agent: AgentSpec, environment: Mapping[str, str], project: Path) -> bool:
    """Whether no hook of an agent calls us in a project. One that cannot be told does not."""
    try:
        return bool(why_silent(agent, environment, project))
    except HardsaveError:
        return True


def why_silent(agent: AgentSpec, environment: Mapping[str, str], project: Path) -> str:
    """What keeps all hooks of an agent from calling us, and what to do; empty if one does."""
    files = [settings_file(agent, environment, place) for place in (None, project)]
    found = [path for path in files if path is not None]
    events = {path: set(installed(agent, path)) for path in found}
    if not any(events.values()):
        return "'hardsave init' saves it at every step"
    is_off = switched_off(agent, environment, project)
    if is_off or all(events[path] <= set(agent.untrusted_hooks(path)) for path in found):
        return f"{agent.title} leaves our hooks out: see 'hardsave doctor'"
    return ""


# What hooks call


def gone(agent: AgentSpec, path: Path) -> list[str]:
    """The programs that hooks of ours call, and that are not there any more."""
    programs = {_program(command) for _, command in _hooks(agent, path)}
    return sorted(each for each in programs if each and shutil.which(each) is None)


def without_us(agent: AgentSpec, path: Path) -> list[str]:
    """The Pythons that hooks of ours in a user's settings call, and that do not find hardsave: it
    may have been removed from there.

    Only the Python itself can tell, so it is started. That is for the settings of a user, whose
    agent starts it at every step anyway; never for those of a project, which may have come from a
    stranger.
    """
    calls = {tuple(_python(command)) for _, command in _hooks(agent, path)}
    others = sorted(call for call in calls if call and call[0] != sys.executable)
    return [call[0] for call in others if not _finds_us(call)]


def _program(command: str) -> str:
    """What a command calls. One that was edited by hand may have a quote too many; what a longer
    one comes to call is its author's to know."""
    try:
        program = shlex.split(command)[0]
        return program if settings.is_whole(command) else ""
    except ValueError:
        return command.split()[0]


def _python(command: str) -> Sequence[str]:
    """A Python and its options, as a command has them; nothing if it calls something else, or more
    than us."""
    if not settings.is_whole(command):
        return ()
    program, *words = shlex.split(command)
    flags = [word for word in words if word.startswith("-") and word not in ("-c", "-m")]
    return (program, *flags) if "-c" in words or "-m" in words else ()


def _finds_us(call: Sequence[str]) -> bool:
    """One that does not answer in time is not said to be wrong."""
    import subprocess  # which only `doctor` needs

    try:
        done = subprocess.run(
            [*call, "-c", _LOADS],
            cwd="/",  # nothing of a workspace shall be found there
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    except OSError:
        return False
    return done.returncode == 0
