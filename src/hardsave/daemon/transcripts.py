"""The conversation of an agent whose hooks do not call: read in the transcript that it writes.

A transcript that cannot be read, or has an unknown form, is no conversation: then files are saved
alone, and the log says why.

Which transcript is the agent's own is decided first, purely over what was seen. All agents of a
kind write into one folder, and no transcript says which process writes it. But one that grows while
no other agent of the kind works in the same directory can only be the agent's own. What grows
beside another agent proves nothing: then only what was proven before counts, or else nothing.
"""

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hardsave
from hardsave.agents import registry, sessions, state
from hardsave.agents.spec import AgentSpec, Unknown
from hardsave.agents.state import Source, Unreadable
from hardsave.agents.transcripts import beginning_lines, tail
from hardsave.daemon import running_agents
from hardsave.daemon.calls import CallLog, CallSource
from hardsave.daemon.recorder import NO_CONVERSATION, NOT_SAID, Conversation, Said
from hardsave.daemon.running_agents import Others
from hardsave.logs import log
from hardsave.stores.host import processes
from hardsave.tuples import NamedTuple
from hardsave.values.messages import first_prompt
from hardsave.vault.save.parts import Parts

_QUIET_SECONDS = 0.5  # without a word: what was said has settled
_LIMIT_SECONDS = 5.0  # a conversation that does not pause is saved all the same
_PAUSE_SECONDS = 2.0  # between two saves of words alone
_EFFORT = 40  # times as long as a look takes, until the next one
_SLOW_SECONDS = 2.0  # after its end, the words of another agent may still appear
_HEAD_BYTES = 1 << 20  # in which a transcript has to say where its session works
_LAST_BYTES = 256 * 1024
_RECENT_SECONDS = 3600.0  # in which an agent at work has written something
NOTHING_SAID = Said(None, {})


# Which transcript is the agent's own


class Grown(NamedTuple):
    """A session of this directory whose transcript has grown since the last look."""

    session: str
    written: int  # when, as the file system tells it


class Choice(NamedTuple):
    """What is known so far."""

    session: str | None = None  # the agent's own, with which it is at the moment
    foreign: frozenset[str] = frozenset()
    """Those that have grown beside another agent, and may be the other's."""
    before: frozenset[str] = frozenset()
    """Those that the agent's own was before, where other agents cannot be seen."""
    is_mixed: bool = False
    """Whether several grow in turns there: then it can never be told."""

    @property
    def why_none(self) -> str:
        """Why nothing is taken although something grows; empty if there is no reason."""
        if self.session is None and (self.foreign or self.is_mixed):
            return "several agents work here, and their conversations cannot be told apart"
        return ""


def own_after(choice: Choice, grown: Sequence[Grown], others: Others) -> Choice:
    """What is known now that these have grown."""
    names = frozenset(each.session for each in grown)
    if not names:
        return choice
    match others:
        case Others.SOME:
            return choice._replace(foreign=choice.foreign | (names - {choice.session}))
        case Others.NONE:
            return _alone(choice, grown)
        case Others.UNKNOWN:
            return _by_turns(choice, names)


def _alone(choice: Choice, grown: Sequence[Grown]) -> Choice:
    """The newest: it may have gone over to another session. The last words of another agent may be
    found only when it is gone, so what has grown beside it has to grow once more."""
    foreign = choice.foreign - {each.session for each in grown}
    own = [each for each in grown if each.session not in choice.foreign]
    if not own:
        return choice._replace(foreign=foreign)
    return Choice(max(own, key=lambda each: each.written).session, foreign)


def _by_turns(choice: Choice, names: frozenset[str]) -> Choice:
    """An agent goes over to another session, and two agents write in turns."""
    if choice.is_mixed or len(names) > 1 or names & choice.before:
        return Choice(is_mixed=True)
    (now,) = names
    left = frozenset() if choice.session in (None, now) else frozenset({choice.session})
    return Choice(now, before=choice.before | left)


# Reading it


class TranscriptTail:
    """The transcript of one agent, from before it was started."""

    def __init__(
        self,
        agent: AgentSpec,
        folder: Path,
        directory: str,
        *,
        around: Callable[[], Others],
        is_copy: Callable[[str], bool] = lambda session: False,
        is_left: Callable[[str], bool] = lambda session: False,
        calls: CallLog | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._calls = calls or CallLog(directory)
        self._agent, self._folder, self._directory = agent, folder, directory
        self._around, self._is_copy, self._clock = around, is_copy, clock
        self._is_left = is_left
        self._left: str | None = None
        self._began = datetime.now(UTC)
        self._choice = Choice()
        self._told = ""  # why there is nothing, as it was said last
        self._verdicts: dict[str, bool] = {}
        self._titles: dict[str, str] = {}  # of sessions
        self._paths: dict[str, Path] = {}
        self._next_look = 0.0
        self._looked_at, self._met_at = clock(), -math.inf
        self._is_over = False
        self._offset = 0  # of the words that were saved last
        self._judged = self._size = 0
        self._first_at = self._last_at = self._saved_at = clock()
        self._sizes = {session: stat.st_size for session, _, stat in self._found()}
        self._before = dict(self._sizes)  # what was said before the agent was started
        self._error = ""
        self._is_saved = False

    def is_due(self) -> bool:
        """Whether something was said that is not saved yet, and nothing more for a moment."""
        now = self._clock()
        if self._is_over or self._calls.has_hooks:
            return False
        self._meet()
        if now < self._next_look:
            return False
        self._look()
        session = self._choice.session
        if session is None or not self._has_settled(self._sizes[session], now):
            return False
        self._judged = self._size
        return self._has_message(self._paths[session])

    def look(self) -> None:
        """Which transcript is the agent's own: there its calls stand."""
        if not self._is_over and not self._calls.has_hooks:
            self._look()

    def _has_settled(self, size: int, now: float) -> bool:
        if size == self._judged:
            return False
        if size != self._size:
            self._first_at = now if self._size == self._judged else self._first_at
            self._size, self._last_at = size, now
        is_quiet = now - self._last_at >= _QUIET_SECONDS or now - self._first_at >= _LIMIT_SECONDS
        return is_quiet and now - self._saved_at >= _PAUSE_SECONDS

    def _has_message(self, path: Path) -> bool:
        """Agents also write down what is no message."""
        with suppress(OSError):
            return bool(self._agent.lines.messages(tail(path, self._offset, _LAST_BYTES)))
        return False

    def now(self, head: hardsave.Checkpoint | None) -> Said:
        """What there is of it, to be added to what the head has."""
        self._is_over = self._is_over or self._calls.has_hooks or self._is_called(head)
        if self._is_over:
            return NOTHING_SAID
        self._look()
        session = self._choice.session
        if session is None or not self._paths[session].exists():
            return Said(None, self._reason())
        source = Source(self._agent, session, str(self._paths[session]), {"pending": None})
        try:
            found = state.parts(source, state.mark_in(head, session))
        except Unreadable as error:
            self._error = str(error)
            raise
        self._is_saved = True
        self._judged = self._size = self._sizes[session]
        self._saved_at = self._clock()
        about = {"agent": self._agent.name, "session": session}
        return Said(self._noted(found), about, self._title(session))

    def _title(self, session: str) -> str:
        """The first prompt of a session, once it is there."""
        if not self._titles.get(session):
            lines = beginning_lines(self._paths[session], _HEAD_BYTES)
            self._titles[session] = first_prompt(self._agent.lines.messages(lines))
        return self._titles[session]

    def why_unsaved(self, *, has_worked: bool) -> str:
        """Told at the end, where no hook has called and the transcript was of no use either."""
        if self._is_saved or self._is_over:
            return ""
        nothing = "no hook has called, and no transcript has grown" if has_worked else ""
        why = self._choice.why_none or self._error or nothing
        return f"the conversation of {self._agent.title} is not saved: {why}" if why else ""

    def _is_called(self, head: hardsave.Checkpoint | None) -> bool:
        """Whether hooks save here, after all: then the conversation is theirs."""
        return head is not None and "hook" in head.metadata and head.created_at > self._began

    def _noted(self, parts: Parts) -> Parts:
        def again() -> Iterator[Mapping[str, Any]]:
            for part in parts.again():
                self._offset = part["transcript"]["offset"]
                yield part

        return parts._replace(again=again)

    def _reason(self) -> dict[str, Any]:
        """Why there is none, once."""
        why, told = self._choice.why_none, self._told
        self._told = why
        if not why or why == told:
            return {}
        log(__name__).warning("the conversation is not saved: %s", why)
        return {NOT_SAID: f"not saved: {why}"}

    # Looking

    def _look(self) -> None:
        """See what has grown, and whether it is the agent's own."""
        start = self._clock()
        self._forget_left()
        grown = [each for each in self._grown() if each.session != self._left]
        if grown:
            chosen = own_after(self._choice, grown, self._others())
            if chosen.session is not None and chosen.session != self._choice.session:
                log(__name__).info("the conversation is read in %s", self._paths[chosen.session])
                self._offset = self._judged = self._size = self._before.get(chosen.session, 0)
                path = str(self._paths[chosen.session])
                self._calls.source(self._agent, chosen.session, path, self._calls.timeline)
            self._choice = chosen
            self._calls.read()  # soon, for what a call leaves running is looked for at its end
        self._looked_at = start
        took = self._clock() - start
        self._next_look = start + min(_EFFORT * took, _LIMIT_SECONDS)

    def _forget_left(self) -> None:
        """A rewind has left the agent's own session, and its agent is ended: what it still says is
        not to be saved."""
        own = self._choice.session or self._left
        self._left = own if own is not None and self._is_left(own) else None
        if self._left is not None:
            self._choice = Choice()

    def _others(self) -> Others:
        """Of what has grown since the last look. Another agent may have come and gone since, or be
        slow to write down its last words."""
        now = self._meet()
        is_recent = self._met_at >= self._looked_at - _SLOW_SECONDS
        return Others.SOME if now is Others.NONE and is_recent else now

    def _meet(self) -> Others:
        found = self._around()
        if found is Others.SOME:
            self._met_at = self._clock()
        return found

    def _grown(self) -> Iterator[Grown]:
        for session, path, stat in self._found():
            before = self._sizes.get(session)
            is_more = stat.st_size > (before or 0)
            if before is None and self._is_copy(session):
                is_more = False  # by a rewind; it counts when an agent goes on with it
            if is_more and not self._is_here(session, path):
                continue
            self._sizes[session], self._paths[session] = stat.st_size, path
            if is_more:
                yield Grown(session, stat.st_mtime_ns)

    def _found(self) -> Iterator[tuple[str, Path, os.stat_result]]:
        for session, path in self._places().items():
            with suppress(OSError):
                yield session, path, path.stat()

    def _places(self) -> dict[str, Path]:
        """The transcripts that may be of this directory; and the agent's own, wherever it is by
        now."""
        agent, own = self._agent, self._choice.session
        found = dict(agent.transcripts(self._folder, self._directory))
        if own is None:
            return found
        return {own: agent.moved_to(self._paths[own], self._folder), **found}

    def _is_here(self, session: str, path: Path) -> bool:
        """Whether a transcript says that it is of this directory; not yet, if it says nothing."""
        if session not in self._verdicts:
            try:
                place = _place(self._agent, session, path)
            except (OSError, Unknown, UnicodeDecodeError) as error:
                log(__name__).warning("%s is left out: %s", path, error)
                self._error = f"{path.name} is not understood: {error}"
                place = ""
            if place is None:
                return False
            self._verdicts[session] = bool(place) and os.path.realpath(place) == self._directory
        return self._verdicts[session]


def _place(agent: AgentSpec, session: str, path: Path) -> str | None:
    """Where a session works, as its transcript says; None if it does not say so yet."""
    lines = beginning_lines(path, _HEAD_BYTES)
    form = agent.lines
    found = (form.directory(form.parsed(line.decode(), session)) for line in lines)
    return next((place for place in found if place is not None), None)


def of_a_run(
    environment: Mapping[str, str], command: Sequence[str], pid: int, calls: CallLog
) -> Conversation:
    """Of the agent that is about to be started here, if it is known. Whether its hooks call is not
    known before they do: an option of the agent may switch them off."""
    directory = os.path.realpath(os.getcwd())
    calls.beside = lambda: of_others(environment, pid, directory)
    agent = registry.typed(command[0]) if command else None
    if agent is None:
        return NO_CONVERSATION
    return TranscriptTail(
        agent,
        agent.home(environment),
        directory,
        around=lambda: running_agents.others(pid, agent.program, directory),
        is_copy=lambda session: sessions.timeline(environment, session) is not None,
        is_left=LeftSessions(environment),
        calls=calls,
    )


class LeftSessions:
    """Which sessions a rewind inside of their agent has left: until that agent has ended, and once
    more, because its last words may be found only then. What is said later was said by another
    agent, which goes on with the session."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._ended = set[tuple[int, int]]()

    def __call__(self, session: str) -> bool:
        found = sessions.left(self._environment, session)
        if found is None or found.process is None or found.process in self._ended:
            return False
        pid, began = found.process
        if processes.started(pid) != began:
            self._ended.add(found.process)
        return True


def of_others(environment: Mapping[str, str], pid: int, directory: str) -> Iterator[CallSource]:
    """Those that may be of other agents which work in a directory beside the one of this process.
    None where no other agent is seen: what one has left unfinished is no call that runs."""
    since = time.time() - _RECENT_SECONDS
    for agent in registry.every():
        if running_agents.others(pid, agent.program, directory) is not Others.SOME:
            continue
        for session, path in agent.transcripts(agent.home(environment), directory):
            with suppress(OSError, Unknown, ValueError):
                place = _place(agent, session, path) if path.stat().st_mtime >= since else None
                if place and os.path.realpath(place) == directory:
                    yield agent, session, str(path)
