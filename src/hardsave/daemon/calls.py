"""The calls that the agents of a workspace make, as hooks and transcripts tell them to the daemon.

The daemon is the one owner of the question which change belongs to which call: hooks tell when a
call ends, some when it begins; the transcript has every call with its moment. What follows from
that is decided in `daemon.attribution`.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import hardsave
from hardsave.agents import events
from hardsave.agents.events import Event
from hardsave.agents.spec import AgentSpec
from hardsave.agents.tools import Kind, Work
from hardsave.agents.transcripts import tail
from hardsave.daemon import attribution, processes
from hardsave.daemon.attribution import About, Call, Calls, Change, Verdict
from hardsave.stores.host.processes import started
from hardsave.timeline.diff import FileDiff
from hardsave.tuples import NamedTuple
from hardsave.vault.restore import authorship
from hardsave.vault.restore.authorship import CallSpan, Changed, Evidence

HOOK_TURN_SECONDS = 1.0  # that a save of a burst waits for the hook of the call that is running
_LOOK_SECONDS = 0.02
_LAST_BYTES = 256 * 1024  # of a transcript that is read for the first time
_MANY_PATHS = 500  # changes of which the moment is looked up
_GRAIN_SECONDS = 0.02  # by which the kernel's file times lag behind the clock
_SKEW_SECONDS = 1.0  # a file time that is further off says nothing
_LONGEST_EDIT = 1 << 18  # characters of an input that is kept, bytes of a file that is compared
_MANY_EDITS = 20
_BESIDE_SECONDS = 1.0  # between two looks for other agents
_PROMPT = "prompt"
_TURNS = ("UserPromptSubmit", "Stop", "SessionEnd")

CallSource = tuple[AgentSpec, str, str]  # an agent, its session, and the transcript of that


class Look(NamedTuple):
    """What a look at the workspace has found."""

    files: FileDiff  # what differs from the head
    files_id: str = ""
    before: Callable[[str], str | None] = lambda path: None
    """What the capture before has of a file; `ValueError` if that is no text."""


NO_LOOK = Look(FileDiff())


class _Edit(NamedTuple):
    """The input of a call that edits files, and how it names them."""

    agent: AgentSpec
    given: Any
    names: Mapping[str, str]


class CallLog:
    """What is known of the calls in one workspace. For any thread."""

    def __init__(self, workspace: str, timeline: str = "") -> None:
        self._workspace = workspace
        self.timeline = timeline  # of its run
        self._began = time.time()
        self._timelines: dict[str, str] = {}  # by session
        self._lock = threading.Lock()
        self._calls = Calls()
        self._offsets: dict[str, int] = {}
        self._sources: dict[str, tuple[AgentSpec, str]] = {}  # by session: its transcript
        self._last: dict[str, str] = {}  # by session: the call that stands last in its transcript
        self._leaving: dict[str, tuple[AgentSpec, str]] = {}  # calls that may leave a process
        self._left: dict[str, set[tuple[int, int]]] = {}  # and those that have, by their processes
        self._edits: dict[str, _Edit] = {}  # by call: the last ones
        self._hooks_done = 0
        self._looked_beside = 0.0
        self.beside: Callable[[], Iterable[CallSource]] = tuple
        """The transcripts of other agents that work here: each run has a daemon of its own, so
        their hooks may tell another."""
        self.has_hooks = False  # whether one has called on the timeline of the run

    def source(
        self, agent: AgentSpec, session: str, transcript: str | None, timeline: str = ""
    ) -> None:
        """Where the calls of a session stand, and on which timeline it is saved, if that is known:
        a session that another daemon saves is called as it would be by default."""
        with self._lock:
            if transcript is not None:
                self._sources[session] = (agent, transcript)
            name = timeline or self._timelines.get(session)
            self._timelines[session] = name or events.timeline(agent.program, session)

    def hook(self, agent: AgentSpec, event: Event, at: float, timeline: str = "") -> None:
        """A hook was called, at a moment in seconds since 1970, and saves on a timeline."""
        self.source(agent, event.session, event.transcript, timeline)
        self.read()
        with self._lock:
            if event.name in _TURNS and event.subagent is None:
                self._calls.end_all(event.session, at)
            if event.tool_use_id is not None:
                self._tool(agent, event, at)
            for id in event.batch:
                self._calls.end(id, at)

    def _tool(self, agent: AgentSpec, event: Event, at: float) -> None:
        assert event.tool_use_id is not None
        tool = ", ".join(event.tools)
        work = agent.work(event.tool_input)
        one = attribution.call(event.tool_use_id, tool, work, self._workspace)
        self._keep_edit(agent, one, work, event.tool_input)
        if work.may_leave:
            self._leaving.setdefault(one.id, (agent, event.session))
        self._calls.begin(one, event.session, at if event.name == "PreToolUse" else None)
        if event.name != "PreToolUse":
            self._end(event.tool_use_id, at)

    def _keep_edit(self, agent: AgentSpec, one: Call, work: Work, given: Any) -> None:
        if one.kind == Kind.EDITS and len(str(given)) <= _LONGEST_EDIT:
            names = dict(zip(one.paths, work.paths, strict=True))
            self._edits[one.id] = _Edit(agent, given, names)
            for id in list(self._edits)[:-_MANY_EDITS]:
                del self._edits[id]

    def _end(self, id: str, at: float) -> None:
        """No agent tells of what a shell leaves behind, so it is looked for when its call ends."""
        self._calls.end(id, at)
        agent, session = self._leaving.pop(id, (None, ""))
        if agent is not None:
            known = set[tuple[int, int]]().union(*self._left.values())
            if found := processes.orphans(agent.session_variable, session) - known:
                self._left[id] = found
                self._calls.leave_running(id)

    def agent_ended(self, session: str) -> None:
        """No hook tells the end of a call whose agent was killed. Its command may go on."""
        with self._lock:
            agent, _ = self._sources.get(session, (None, ""))
            left = processes.orphans(agent.session_variable, session) if agent else set()
            for each in self._calls.running(session):
                self._calls.end(each.id, time.time())
                if left:
                    self._left[each.id] = left
                    self._calls.leave_running(each.id)

    def _look_at_left(self) -> None:
        for id, left in list(self._left.items()):
            if not any(started(pid) == began for pid, began in left):
                del self._left[id]
                self._calls.end_in_background(id, time.time())

    def hook_done(self) -> None:
        """A hook has saved: a burst that has waited for it may look what is left."""
        with self._lock:
            self._hooks_done += 1

    def give_way(
        self,
        is_ending: Callable[[], bool],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Wait a moment for the hook of a call that is running: its checkpoint then has all that
        the call has changed, instead of a part of it. No lock or event is waited for: the handler
        of a signal that interrupts this could not release it."""
        done, end = self._hooks_done, clock() + HOOK_TURN_SECONDS
        if not self.has_hooks:
            return
        self.read()
        with self._lock:
            is_running = self._calls.is_running()
        if is_running:
            while self._hooks_done == done and clock() < end and not is_ending():
                sleep(_LOOK_SECONDS)

    def read(self) -> None:
        """What transcripts have by now. One that cannot be read tells nothing."""
        with self._lock:
            for session, (agent, path) in self._sources.items():
                with suppress(OSError, ValueError):
                    self._read(agent, session, path)
            self._look_at_left()

    def _read(self, agent: AgentSpec, session: str, path: str) -> None:
        size = os.path.getsize(path)
        start = min(self._offsets.get(path, max(size - _LAST_BYTES, 0)), size)
        lines = tail(Path(path), start, size - start)
        self._offsets[path] = start + sum(len(line) + 1 for line in lines)
        for line in lines:
            for kind, block in _blocks(agent, line):
                self._note(agent, session, kind, block, _moment(agent, line))
            for id, goes_on in agent.left_running(line):
                if goes_on:
                    self._calls.leave_running(id)
                else:
                    self._calls.end_in_background(id, _moment(agent, line))

    def _note(
        self, agent: AgentSpec, session: str, kind: str, block: Mapping[str, Any], at: float
    ) -> None:
        if kind == _PROMPT:
            self._calls.end_all(session, at)  # among them one whose agent was killed, long ago
            return
        if kind == "tool_result":
            self._end(str(block.get("tool_use_id")), at)
            return
        id, tool = str(block.get("id")), str(block.get("name"))
        work = agent.work(block.get("input"))
        one = attribution.call(id, tool, work, self._workspace)
        self._keep_edit(agent, one, work, block.get("input"))
        if work.may_leave:
            self._leaving[id] = (agent, session)
        behind = self._last.get(session, "") if agent.runs_in_order else ""
        self._last[session] = id
        self._calls.begin(one._replace(behind=behind), session, at)

    # What they have changed

    def is_shared(self, id: str | None, after: float, now: float) -> bool:
        """Whether other calls than this one have run between two moments."""
        with self._lock:
            return any(each.id != id for each in self._calls.during(after, now))

    def verdicts(self, files: FileDiff, after: float, now: float) -> list[Verdict]:
        """The calls that have changed these paths, between two moments."""
        self.read()
        changes = list(_changes(self._workspace, files, after, now))
        with self._lock:
            found = self._calls.during(after - _SKEW_SECONDS, now)
        return attribution.attributed(changes, found)

    def _look_beside(self) -> None:
        """Not for each burst: it takes a look at all processes."""
        if time.monotonic() - self._looked_beside >= _BESIDE_SECONDS:
            for agent, session, transcript in self.beside():
                self.source(agent, session, transcript)
            self._looked_beside = time.monotonic()

    @property
    def is_known(self) -> bool:
        """Whether there is an agent whose calls are told."""
        return bool(self._sources) or self.has_hooks

    def about_burst(self, look: Look, after: float) -> About:
        """What a checkpoint of a burst says of files that differ from the head's. Where no calls
        are known, all that is changed may be the work of its run."""
        self._look_beside()
        now = time.time()
        if not self.is_known:
            return About("", self._evidence(look, after, now))
        verdicts = self.verdicts(look.files, after, now)
        text = attribution.described(verdicts, is_known=bool(self._offsets))
        told = self._evidence(look, after, now)
        return About(text, {**attribution.metadata(verdicts), **told})

    def about_hook(self, event: Event, look: Look, after: float) -> About:
        """What the checkpoint of a hook says beside its own call, where others have run, too."""
        now = time.time()
        verdicts = self.verdicts(look.files, after, now)
        own = {event.tool_use_id, *event.batch}
        is_own = all(each.id in own for verdict in verdicts for each in verdict.calls)
        text = "" if is_own else attribution.described(verdicts, is_known=True)
        told = self._evidence(look, after, now)
        return About(text, {**attribution.metadata(verdicts), **told})

    def about_calls(self, after: float) -> About:
        """What a checkpoint says of which nothing more is known than the calls that have run."""
        return About("", self._evidence(NO_LOOK, after, time.time()))

    def _evidence(self, look: Look, after: float, now: float) -> dict[str, Any]:
        """For `vault.authorship`: when calls ran, when these files were changed, and by which edit
        if that is certain."""
        self.read()
        changes = list(_changes(self._workspace, look.files, after, now))
        changed = {each.path: Changed(each.after, each.before) for each in changes}
        with self._lock:
            ran = self._calls.during(after - _SKEW_SECONDS, now)
            found = list(attribution.spans(ran, self._calls.session, self._timeline_of))
            edits = [(each, self._edits[each.id]) for each in ran if each.id in self._edits]
        made = {
            path: (self._calls.session(each.id), each.id)
            for each, edit in edits
            for path in each.paths
            if path in changed and self._is_made_by(edit, path, look)
        }
        if not self.is_known and self.timeline:
            found.append(CallSpan(self.timeline, self.timeline, "run", began=self._began))
        told = Evidence(now, look.files_id, tuple(found), changed, made)
        return authorship.metadata(told)

    def _is_made_by(self, edit: _Edit, path: str, look: Look) -> bool:
        """Whether an edit alone makes a file what it is. One that is long, or no text, is not
        looked at."""
        place = Path(self._workspace, path)
        with suppress(OSError, ValueError):
            is_there = place.is_file() and not place.is_symlink()
            if is_there and place.stat().st_size > _LONGEST_EDIT:
                return False
            after = place.read_bytes().decode() if is_there else None
            return edit.agent.makes(edit.given, edit.names[path], look.before(path), after)
        return False

    def _timeline_of(self, session: str) -> str:
        return self._timelines.get(session, session)


def _blocks(agent: AgentSpec, line: bytes) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The calls and results of one line of a transcript; or that it is a prompt."""
    for message in agent.lines.messages([line]):
        content = message["content"]
        found = content if isinstance(content, list) else ()
        blocks = [block for block in found if isinstance(block, Mapping)]
        kinds = [str(block.get("type")) for block in blocks]
        if message["role"] == "user" and "tool_result" not in kinds:
            yield _PROMPT, {}
        for kind, block in zip(kinds, blocks, strict=True):
            if kind in ("tool_use", "tool_result"):
                yield kind, block


def _moment(agent: AgentSpec, line: bytes) -> float:
    """When a line of a transcript was written, as it says itself; now, if it says nothing."""
    with suppress(ValueError):
        if found := agent.lines.moment(line):
            return datetime.fromisoformat(found).timestamp()
    return time.time()


def _changes(root: str, files: FileDiff, after: float, now: float) -> Iterator[Change]:
    """When each path was changed, as far as the file system tells."""
    paths: list[tuple[str, bool]] = [(path, True) for path in (*files.added, *files.changed)]
    paths += [(path, False) for path in files.removed]
    added = frozenset(files.added)
    for number, (path, is_there) in enumerate(paths):
        if number >= _MANY_PATHS:
            yield Change(path, after, now)
        elif is_there:
            yield _changed(path, root, added, after, now)
        else:
            before = _removed_before(os.path.join(root, path), root, now)
            yield Change(path, after, before if before >= after else now)


def _changed(path: str, root: str, added: Set[str], after: float, now: float) -> Change:
    """A file's status time is that of its last change; a directory's that of any change in it. A
    file that is older than the head has come along with a directory that was moved here, or was
    changed while the head was saved."""
    with suppress(OSError):
        place = os.path.join(root, path)
        at = os.lstat(place).st_ctime
        is_told = not os.path.isdir(place) and after - _SKEW_SECONDS <= at <= now + _SKEW_SECONDS
        if is_told and at >= after - _GRAIN_SECONDS:
            return Change(path, at - _GRAIN_SECONDS, at + _GRAIN_SECONDS)
        moved = _moved_along(path, root, added)
        if is_told and moved >= after:
            return Change(path, after, min(moved + _GRAIN_SECONDS, now))
        if is_told:
            return Change(path, at - _GRAIN_SECONDS, now)
    return Change(path, after, now)


def _moved_along(path: str, root: str, added: Set[str]) -> float:
    """The last change of the directories that a path is new together with: it has come before."""
    above = (path[:at] for at, letter in enumerate(path) if letter == "/")
    new = (each for each in above if each in added)
    return max((os.lstat(os.path.join(root, each)).st_ctime for each in new), default=0.0)


def _removed_before(place: str, root: str, now: float) -> float:
    """The latest moment at which a path can have been removed: the last change of the directory
    that it was in, or of the next one above that is still there."""
    folder = os.path.dirname(place)
    while folder.startswith(root):
        with suppress(OSError):
            return min(os.lstat(folder).st_mtime + _GRAIN_SECONDS, now)
        folder = os.path.dirname(folder)
    return now


def head_moment(head: hardsave.Checkpoint | None) -> float:
    """What was changed before this moment is in the head."""
    return 0.0 if head is None else head.created_at.timestamp()


def look_at(workspace: hardsave.Workspace, head: hardsave.Checkpoint) -> Look:
    """What differs from a head by now."""
    last = workspace.last  # before the look: what is captured meanwhile makes less known
    found = workspace.status(head.id)

    def before(path: str) -> str | None:
        files = None if last is None else last.files
        return files.read(path).decode() if files is not None and path in files else None

    return Look(found.files, found.files_id, before)
