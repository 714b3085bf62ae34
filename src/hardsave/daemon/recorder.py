"""Saves a workspace on a timeline by itself: after each burst of changes, and at the end.

The daemon of a `hardsave run` does this beside answering hooks. A store that was damaged, removed
or replaced is noticed here, and opened anew by `daemon.main`: so the rest of a long run is saved.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import hardsave
from hardsave.daemon import spool
from hardsave.daemon.attribution import NOTHING, About
from hardsave.daemon.calls import CallLog, head_moment, look_at
from hardsave.daemon.lifecycle import SameFiles
from hardsave.daemon.processes import Running
from hardsave.errors import Conflict, Corrupt, HardsaveError, Unavailable
from hardsave.stores.host.processes import started
from hardsave.stores.on_disk import Gone
from hardsave.tuples import NamedTuple

QUIET_SECONDS = 0.15  # without a change: a burst has settled
BURST_SECONDS = 2.0  # a burst that does not end is saved all the same
_LISTEN_SECONDS = 0.5  # between two looks at what was said
_ATTEMPTS = 20
_NAMED = 20  # of the processes that are left
NOT_SAID = "conversation"  # the key under which a checkpoint says why it has none
_LONGEST_REASON = 500  # characters
_LONGEST_COMMAND = 8000  # characters that a checkpoint tells, which has room for 64 KiB in all
_log = logging.getLogger(__name__)


class Said(NamedTuple):
    """A conversation as it is by now, for one checkpoint."""

    state: Any  # what a timeline saves; None if there is no conversation
    about: Mapping[str, Any]  # for the checkpoint to tell
    title: str = ""  # of its timeline, which may have one already


class Conversation(Protocol):
    """What an agent says, as far as it is written down. Knows nothing of checkpoints but the head
    that it is added to."""

    def is_due(self) -> bool:
        """Whether something was said that is not saved yet, and nothing more for a moment. Asked
        often."""

    def look(self) -> None:
        """See where the agent writes, so that its calls are known before a change is told of."""

    def now(self, head: hardsave.Checkpoint | None) -> Said:
        """What was said up to now."""

    def why_unsaved(self, *, has_worked: bool) -> str:
        """Why nothing that was said is saved; empty if it is, or if nothing was said. An agent
        that has changed files has said something."""


class _NoConversation:
    """Of an agent that writes none, or whose hooks save it."""

    def is_due(self) -> bool:
        return False

    def look(self) -> None:
        pass

    def now(self, head: hardsave.Checkpoint | None) -> Said:
        return Said(None, {})

    def why_unsaved(self, *, has_worked: bool) -> str:
        return ""


NO_CONVERSATION: Conversation = _NoConversation()


class MissedSaves:
    """What one `hardsave run` could not save: noted where the notes of hooks are.

    The note is there from the first save on and removed at the end, so that a daemon that was
    killed leaves it behind. It names the agent: while that goes on without its daemon, no other
    save ends the note. What cannot even be noted is logged.
    """

    def __init__(self, place: Path, timeline: str = "", agent: int | None = None) -> None:
        self._place = place
        self._timeline = timeline
        self._agent = [] if agent is None else [agent, started(agent)]
        self._name = f"{time.time_ns()}-run"
        self._tries = 0
        self._told: list[spool.Note] = []

    def about(self) -> Mapping[str, Any]:
        """What the next checkpoint tells: what was missed here, by hooks too."""
        with _logged():
            self._told = spool.to_tell(self._place, self._timeline)
        return spool.listed(self._told)

    def saved(self, checkpoint: str) -> None:
        """A checkpoint has told it. From here on the next one is under way."""
        told, self._told = self._told, []
        self._tries = 0
        for note in told:
            with _logged():
                spool.end(note)
        self._begun()

    def failed(self, why: str) -> None:
        self._tries += 1
        with _logged():
            spool.fail(self._begun(), why)

    def ended(self, why: str = "") -> None:
        """Nothing more is to come. What failed last stays noted; or why there is no
        conversation."""
        if self._tries == 0:
            with _logged():
                spool.fail(self._begun(), why) if why else spool.end(self._begun())

    def _begun(self) -> spool.Note:
        about = {
            "hook": spool.RUN,
            "at": time.time(),
            "timeline": self._timeline,
            "agent_process": self._agent,
        }
        tries = {"count": self._tries} if self._tries else {}
        return spool.begin(self._place, self._name, {**about, **tries})


@contextmanager
def _logged() -> Iterator[None]:
    """Notes that cannot be written or read are no reason to stop saving."""
    try:
        yield
    except OSError as error:
        _log.warning("what was saved cannot be noted: %s", error)


class NoMissedSaves(MissedSaves):
    """Of a user who has no home to keep notes in."""

    def __init__(self) -> None:
        pass

    def about(self) -> Mapping[str, Any]:
        return {}

    def saved(self, checkpoint: str) -> None:
        pass

    def failed(self, why: str) -> None:
        pass

    def ended(self, why: str = "") -> None:
        pass


def missed_saves(
    environment: Mapping[str, str], project: Path, timeline: str, agent: int
) -> MissedSaves:
    """For the daemon of a run, whose agent works in a project."""
    try:
        return MissedSaves(spool.folder(environment, project), timeline, agent)
    except Unavailable:
        return NoMissedSaves()


class Recorder:
    """Saves a workspace on a timeline until it is told to end."""

    def __init__(
        self,
        line: hardsave.Timeline,
        workspace: hardsave.Workspace,
        command: Sequence[str],
        missed: MissedSaves,
        conversation: Conversation = NO_CONVERSATION,
        *,
        files: Sequence[str] = (),
        calls: CallLog | None = None,
        why_lost: Callable[[], str] = str,
    ) -> None:
        """`files` are those that the store consists of as long as it is the same; `why_lost` says
        why it is out of reach, if it is."""
        self._why_lost = why_lost
        self._files = files
        self._calls = calls or CallLog(str(workspace.path))
        self.move(line, workspace)
        self._conversation = conversation
        self._missed = missed
        self._about: Mapping[str, Any] = {"command": noted(command)}  # for the first one to say
        self.left: Sequence[Running] = ()  # that go on when the daemon ends
        self._moment = time.time()  # of the last save
        self._has_worked = False  # whether files have changed since the agent was started
        self.saves = 0
        self.failed_saves = 0

    def move(self, line: hardsave.Timeline, workspace: hardsave.Workspace) -> None:
        """Go on with the same ones of a store that was opened anew."""
        self._line, self._workspace = line, workspace
        self._same = SameFiles(self._files)
        self.has_lost_store = False

    def begin(self) -> None:
        """Save now, unless that was done before. If not even the first save can be made, there is
        nothing to stay for: its error is raised."""
        if not self.saves:
            self._save_files("running")

    def wait_and_save(self, eyes: hardsave.Watching, is_ending: Callable[[], bool]) -> None:
        """Wait for a burst of changes, or for something that was said, and save it."""
        if eyes.wait(quiet=QUIET_SECONDS, limit=BURST_SECONDS, timeout=self._patience):
            self._calls.give_way(is_ending)
            if not self._has_lost_server():
                self.save_changes(is_burst=True)
        if not is_ending() and self._is_more_said() and not self._has_lost_server():
            self._save("running")

    def _has_lost_server(self) -> bool:
        """Known before a save is tried, which would wait for the server. The store that is opened
        next gets what has changed."""
        if not self._why_lost():
            return False
        self.has_lost_store = True
        return True

    def end(self) -> None:
        """Save for the last time."""
        if self._has_lost_server():
            return
        self._look()
        self._save("ended", self._made_by() if self._calls.is_known else NOTHING)
        if not self.has_lost_store:
            self._missed.ended(self._conversation.why_unsaved(has_worked=self._has_worked))

    @property
    def _patience(self) -> float | None:
        """How long to wait for files, until the transcript is looked at."""
        return None if self._conversation is NO_CONVERSATION else _LISTEN_SECONDS

    def save_changes(self, *, is_burst: bool = False) -> None:
        """Only what differs from what this timeline has is worth a checkpoint: others save the
        same workspace on theirs, and a rewind moves its head with the files."""
        try:
            head = self._line.head
            if head is None or head.files is None:
                self._save("running")
                return
            found = look_at(self._workspace, head)
            if found.files:
                self._look()
                self._has_worked = self._has_worked or is_burst
                self._save("running", self._calls.about_burst(found, head_moment(head)))
        except HardsaveError as error:
            self._failed(error)

    def _made_by(self) -> About:
        """Of what has changed since the head."""
        try:
            head = self._line.head
            if head is not None and head.files is not None:
                found = look_at(self._workspace, head)
                if found.files:
                    return self._calls.about_burst(found, head_moment(head))
        except HardsaveError:
            _log.warning("which calls have made a change cannot be told", exc_info=True)
        return NOTHING

    def _is_more_said(self) -> bool:
        return bool(self._heard(self._conversation.is_due))

    def _look(self) -> None:
        self._heard(self._conversation.look)

    def _heard(self, listen: Callable[[], bool | None]) -> bool | None:
        try:
            return listen()
        except Exception:  # noqa: BLE001 # ours; files are saved all the same
            _log.exception("nothing more of the conversation is saved")
            self._conversation = NO_CONVERSATION
            return None

    def _save(self, status: str, made_by: About = NOTHING) -> None:
        try:
            self._save_files(status, made_by)
        except HardsaveError as error:
            self._failed(error)

    def _save_files(self, status: str, made_by: About = NOTHING) -> None:
        """What is kept in mind to be said again would come back after a purge: so it is not."""
        made_by = made_by if made_by.metadata else self._calls.about_calls(self._moment)
        saved = self._put(
            status=status,
            description=told(self.left) or made_by.description,
            metadata={
                **self._about,
                **_listed(self.left),
                **made_by.metadata,
                **self._missed.about(),
            },
        )
        self._about = {}
        self._moment = saved.created_at.timestamp()
        self.saves += 1
        self._missed.saved(saved.id)

    def _put(self, **how: Any) -> hardsave.Checkpoint:
        """Files and conversation together; files alone if there is none that could be saved."""
        try:
            for _ in range(_ATTEMPTS):
                head = self._line.head
                said = self._conversation.now(head)
                about = {**how, "metadata": {**how["metadata"], **said.about}}
                if said.state is None:
                    how = about
                    break
                with suppress(Conflict):  # another writer has moved the head meanwhile
                    return self._line.save(
                        said.state,
                        workspace=self._workspace,
                        expect=head,
                        title=said.title,
                        **about,
                    )
        except Exception as error:  # noqa: BLE001 # if it is about the files, they say so as well
            is_told = isinstance(error, Unavailable)  # as on a full disk: it says all there is
            _log.warning("the conversation could not be saved: %s", error, exc_info=not is_told)
            how["metadata"] |= {NOT_SAID: f"not saved: {error}"[:_LONGEST_REASON]}
        how["description"] = how["description"] or how["metadata"].get(NOT_SAID, "")
        return self._line.save_files(self._workspace, **how)

    def _failed(self, error: HardsaveError) -> None:
        """The next burst is another chance. The agent knows nothing of it."""
        self.failed_saves += 1
        is_other = isinstance(error, (Corrupt, Gone)) or not self._same.are_the_same()
        is_told = isinstance(error, Unavailable)
        self.has_lost_store = is_other or (is_told and bool(self._why_lost()))
        _log.error("the workspace could not be saved: %s", error, exc_info=not is_told)
        self._missed.failed(str(error))


def noted(command: Sequence[str]) -> list[str]:
    """A command as a checkpoint tells it: one with a prompt of many pages is cut."""
    words: list[str] = []
    left = _LONGEST_COMMAND
    for word in command:
        if len(word) >= left:
            rest = sum(map(len, command)) - sum(map(len, words)) - left
            return [*words, f"{word[:left]}… and {rest} characters more"]
        words.append(word)
        left -= len(word) + 1  # an empty one takes room, too
    return words


def told(left: Sequence[Running]) -> str:
    """What people read in a log; nothing if no process is left."""
    if not left:
        return ""
    more = f" and {len(left) - 3} more" if len(left) > 3 else ""
    return f"still running: {', '.join(map(str, left[:3]))}{more}"


def _listed(left: Sequence[Running]) -> dict[str, Any]:
    return {"left_running": [each._asdict() for each in left[:_NAMED]]} if left else {}
