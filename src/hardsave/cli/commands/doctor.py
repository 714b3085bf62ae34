"""`hardsave doctor`: checks each part by itself, and says what to do about it."""

import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hardsave import config, wording
from hardsave.cli import missed_saves, waiting
from hardsave.cli.command import command
from hardsave.cli.doctor import probe
from hardsave.cli.errors import Exit
from hardsave.cli.hints import quoted
from hardsave.cli.session import Session
from hardsave.daemon import spool
from hardsave.errors import Corrupt, HardsaveError
from hardsave.stores import registry as stores
from hardsave.vault import findings
from hardsave.vault.checkpoint import record_of
from hardsave.vault.findings import Finding
from hardsave.wording import in_our_words
from hardsave.workspace.filesystem import mounts
from hardsave.workspace.scan.capture_policy import IncludePatterns

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hardsave.agents.spec import AgentSpec


@command(
    "doctor",
    examples="""
        hardsave doctor
        hardsave doctor --json
    """,
)
def doctor(session: Session) -> Exit | None:
    """Prove that saving and restoring works here.

    Saves, destroys and restores some files of its own, in a store of its own, beside this
    project's; then looks at the store, its backup, the disk, the workspace and the hooks of
    agents. Changes nothing of yours. Ends with 1 if something does not work.
    """
    with session.out.busy("looking"):
        checked = [_checked(what, check, session) for what, check in _checks().items()]
    found = [_with_full_commands(session, each) for each in findings.told_once(checked)]
    session.out.result(lambda: [each._asdict() for each in found], lambda: _lines(found))
    return Exit.FAILED if any(each.level == "failure" for each in found) else None


def _with_full_commands(session: Session, found: Finding) -> Finding:
    """The same with commands that work where this one was typed."""
    in_context = session.out.in_context
    return found._replace(message=in_context(found.message), remedy=in_context(found.remedy))


def _checked(what: str, check: "Check", session: Session) -> Finding:
    """If one part fails, the others are checked all the same."""
    try:
        return check(what, session)
    except HardsaveError as error:
        said, remedy = in_our_words(str(error)), "do as it says, then look again"
        if isinstance(error, Corrupt) and "hardsave store repair" not in said:
            remedy = "hardsave store verify, then hardsave store repair if that says the same"
        return Finding(what, "failure", said, remedy)
    except OSError as error:
        remedy = "see whether the disk and its rights are well"
        if error.errno == errno.ENOSPC:
            remedy = "make room on the disk, then look again"
        return Finding(what, "failure", str(error), remedy)


# Looking


def _probe(what: str, session: Session) -> Finding:
    path = session.store_path
    fault = probe.run(None if path is None else next(filter(Path.is_dir, path.parents)))
    if fault is None:
        return Finding(what, "ok", "files and state were saved, destroyed, restored and compared")
    return Finding(what, "failure", fault, "report it, with 'hardsave --version'")


def _store(what: str, session: Session) -> Finding:
    session.vault.store.stats()
    path = session.store_path
    if path is None and stores.is_on_server(session.url):
        return findings.server(
            what,
            stores.shown(session.url),
            session.vault.store.durability(),
            session.vault.store.failover(),
        )
    if path is None:
        return Finding(
            what,
            "warning",
            f"{session.url} ends with the program that has opened it: hooks and commands save "
            "nothing that stays",
            "leave out --store and HARDSAVE_STORE, or name a file",
        )
    if not path.exists():
        return Finding(what, "ok", "nothing was saved here yet", "hardsave save")
    if path.resolve().is_relative_to(session.directory):
        return Finding(
            what,
            "warning",
            f"{path} lies in the workspace: an agent that empties it reaches the store",
            "leave out --store and HARDSAVE_STORE, or name a place outside",
        )
    from hardsave.stores import store_files

    if (found := store_files.why_read_only(str(path))) is not None:
        message = f"{found.why}: it can be looked at, and nothing is saved"
        return Finding(what, "failure", message, found.cure)
    return Finding(what, "ok", str(path))


def _waiting(what: str, session: Session) -> Finding:
    """Saves that the server of the store has not got yet."""
    found = waiting.outbox(session.url)
    if found is None or found.is_empty:
        return Finding(what, "ok", "nothing waits on this host")
    return Finding(
        what,
        "warning",
        waiting.sentence(found, session.now),
        f"see why the server of the store does not answer: {found.why_away() or 'it does by now'}",
    )


def _newest(what: str, session: Session) -> Finding:
    newest = [found for line in session.vault.timelines() for found in line.checkpoints(limit=1)]
    if not newest:
        return Finding(what, "ok", "none yet")
    last = max(newest, key=lambda each: record_of(each).number)
    checked = session.vault.store.verify(last.id)
    if checked.ok:
        message = f"{session.ref(last)} is sound, {wording.count(checked.objects, 'object')}"
        return Finding(what, "ok", message, "")
    return Finding(
        what, "failure", checked.faults[0], "hardsave store verify, then hardsave store repair"
    )


def _backup(what: str, session: Session) -> Finding:
    path = session.store_path
    if path is None and stores.is_on_server(session.url):
        return Finding(what, "ok", "none of ours: a store on a server is backed up there")
    if path is None or not path.exists():
        return Finding(what, "ok", "nothing to copy yet")
    from hardsave.stores import store_files

    copied = store_files.backup(str(path))
    newest = [found for line in session.vault.timelines() for found in line.checkpoints(limit=1)]
    last = max((record_of(each).number for each in newest), default=0)
    return findings.backup(
        what,
        copied.number,
        last,
        is_there=copied.is_there,
        save=_save(session),
    )


def _save(session: Session) -> str:
    """What to type to save here, also where several timelines are unfinished."""
    try:
        return " ".join(["hardsave save", *map(quoted, session.timeline_option)])
    except HardsaveError:  # which timelines there are cannot be told
        return "hardsave save"


def _disk(what: str, session: Session) -> Finding:
    path = session.store_path or Path.cwd()
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    spare = [] if session.store_path is None else _spare(session.store_path)
    return findings.disk(what, shutil.disk_usage(existing).free, spare)


def _moved(what: str, session: Session) -> Finding:
    from hardsave.vault.workspaces import moving

    return findings.moved(what, moving.gone_projects(os.environ))


def _spare(store: Path) -> list[tuple[str, int]]:
    """Files of ours that may go: what a repair has set aside, and what is made anew."""
    indexes = f"{store.name}-search"
    from hardsave.stores import store_files

    found = store_files.set_aside(str(store))
    found += [path for path in store_files.beside(str(store)) if path.name.startswith(indexes)]
    sized = [(str(path), path.stat().st_size) for path in sorted(found) if path.is_file()]
    return [(path, size) for path, size in sized if size]


def _file_system(what: str, session: Session) -> Finding:
    """Where the workspace lies; a store refuses to be opened where it cannot be safe."""
    try:
        listed = Path("/proc/self/mountinfo").read_bytes()
    except FileNotFoundError:
        return Finding(what, "ok", "this system does not list them")
    return findings.file_system(what, mounts.kind_under(bytes(session.workspace_root), listed))


def _watches(what: str, session: Session) -> Finding:
    """Whether a watcher could keep an eye on every directory that is captured."""
    try:
        limit = int(Path("/proc/sys/fs/inotify/max_user_watches").read_text())
    except FileNotFoundError:
        return Finding(what, "ok", "this system has no such limit")
    last = session.workspace.last
    files = None if last is None else last.files
    inner = [] if files is None else [f.path for f in files.list() if f.kind == "directory"]
    folders = [session.directory, *(session.directory / each for each in inner)]
    return findings.watches(what, len(folders), limit, probe.unwatched(folders))


def _workspace(what: str, session: Session) -> Finding:
    unread = [
        each for each in session.workspace.status().not_captured if "cannot be read" in each.reason
    ]
    where = str(session.directory)
    if not unread:
        return Finding(what, "ok", where)
    first = f"{wording.shown(unread[0].path)} {unread[0].reason}"
    more = f" and {len(unread) - 1} more" if len(unread) > 1 else ""
    return Finding(what, "warning", f"{where}: {first}{more}", "give yourself the right to read it")


def _left_out(what: str, session: Session) -> Finding:
    found = session.workspace.status()
    patterns = config.included(os.environ, session.directory)
    settings = str(config.user_file(os.environ, sys.platform))
    return findings.left_out(what, found.ignored, _unmatched(session, patterns), settings)


def _unmatched(session: Session, patterns: tuple[str, ...]) -> list[str]:
    """Patterns that no captured file is captured by."""
    last = session.workspace.last if patterns else None
    files = None if last is None else last.files
    if files is None:
        return []
    paths = [os.fsencode(each.path) for each in files.list()]
    chosen = {pattern: IncludePatterns([os.fsencode(pattern)]) for pattern in patterns}
    return [each for each, one in chosen.items() if not any(map(one.holds, paths))]


def _missed(what: str, session: Session) -> Finding:
    spool.missed(
        spool.folder(os.environ, session.workspace_root)
    )  # raises where the folder may not be read
    found = missed_saves.find(session)
    if found is None:
        return Finding(what, "ok", "none was missed")
    if missed_saves.unsaved_agent(found.notes) is not None:
        remedy = (
            f"{_save(session)}; start the agent anew with 'hardsave run' to have it saved again"
        )
    else:
        remedy = f"{_save(session)}; it lists what was missed, or the next hook or run does"
    count = wording.count(spool.count(found.notes), "save")
    return Finding(what, "warning", f"{count} missed: {missed_saves.sentence(found)}", remedy)


def _daemon(what: str, session: Session) -> Finding:
    """The process that answers the hooks of this workspace, if there is one."""
    from hardsave.daemon import election
    from hardsave.stores import registry
    from hardsave.stores.local import daemon_lock

    if session.store_path is None and not registry.is_on_server(session.url):
        return Finding(what, "ok", "none: each hook saves by itself")
    path = session.store_path or election.host_path(os.environ, session.url)
    found = daemon_lock.holder(election.lock_path(str(path), str(session.workspace_root)))
    if found is None and election.are_too_many_zombies():
        count = election.MOST_ZOMBIES
        message = f"none: the last {count} are zombies; hooks save by themselves"
        remedy = "start the container with a process 1 that waits for others, as docker run --init"
        return Finding(what, "warning", message, remedy)
    if found is None:
        return Finding(what, "ok", "none now: the next hook saves by itself")
    kind = "left behind by a hook" if found.is_evictable else "of 'hardsave run'"
    return Finding(what, "ok", f"process {found.pid}, {kind}, answers the hooks here")


def _hooks(agent: "AgentSpec") -> "Check":
    def check(what: str, session: Session) -> Finding:
        from hardsave.agents import hook_check, install

        found = hook_check.look(agent, os.environ, session.workspace_root, start_pythons=True)
        if found.level != "ok":
            return found
        command = install.plan_command(agent, os.environ, undo=False)
        skill = install.plan_skill(agent, os.environ, wanted=False)
        is_old = command is not None and command.before is not None and bool(command)
        old = [*([agent.command_typed] if is_old else []), *(["our skill"] if any(skill) else [])]
        if not old:
            return found
        message = f"{' and '.join(old)} inside of it is of another hardsave, or was changed"
        return Finding(what, "warning", message, "hardsave init")

    return check


Check = Callable[[str, Session], Finding]


def _checks() -> dict[str, Check]:
    from hardsave.agents import registry

    return {
        "save and restore": _probe,
        "store": _store,
        "waiting saves": _waiting,
        "newest checkpoint": _newest,
        "backup": _backup,
        "disk": _disk,
        "moved projects": _moved,
        "workspace": _workspace,
        "left out": _left_out,
        "file system": _file_system,
        "watching": _watches,
        **{agent.title: _hooks(agent) for agent in registry.every()},
        "missed saves": _missed,
        "daemon": _daemon,
    }


# For people


def _lines(found: list[Finding]) -> "Iterator[RenderableType]":
    from rich.text import Text

    from hardsave.cli.render import draw

    marks = {"ok": ("✓", "added"), "warning": ("!", "warning"), "failure": ("✗", "error")}
    width = max(len(each.what) for each in found)
    for each in found:
        what = (f"  {each.what:<{width}}  ", "name")
        yield draw.Hanging(draw.line(marks[each.level], what), Text(wording.shown(each.message)))
        if each.level != "ok" and each.remedy:
            yield draw.Hanging(
                Text("   → ", style="quiet"), Text(wording.shown(each.remedy), style="quiet")
            )


COMMANDS = {"doctor": doctor}
