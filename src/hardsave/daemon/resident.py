"""The process that stays beside an agent: it watches the workspace and saves every settled burst.

It is nobody's child and has no terminal, so it cannot take the agent down, and the agent cannot
take it along: not by Ctrl-C, not by its death. It ends soon after the agent has ended, with
a last save. If the agent leaves processes behind, they may still write: it goes on saving until
they have ended too, for ten minutes at most, and its last save names those that are left.
Whatever goes wrong here is written to a log beside the store. A store that was damaged, removed or
replaced under it is closed and opened anew, which mends it: so the rest of a long run is saved.

    hardsave run → forks away `python -m` PROGRAM → waits until it is ready → becomes the agent

PROGRAM calls `main`, and brings along who answers the agent's hooks (see `handover`), and who keeps
in mind what could not be saved, and who knows what the agent says, if anybody does.
"""

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import hardsave
from hardsave import config
from hardsave.daemon import handover, meetings, survivors
from hardsave.daemon.life import Life
from hardsave.daemon.reception import Desk, Reception
from hardsave.daemon.standby import Ground
from hardsave.daemon.survivors import Survivor
from hardsave.errors import Conflict, Corrupt, HardsaveError, Misuse
from hardsave.stores.registry import sqlite_path
from hardsave.stores.sqlite.footing import Gone
from hardsave.tuples import NamedTuple

READY = b"ready\n"
_QUIET = 0.15  # seconds without a change: a burst has settled
_LISTEN_SECONDS = 0.5  # between two looks at what was said
_ATTEMPTS = 20
_LIMIT = 2.0  # a burst that does not end is saved all the same
_AFTERWARDS_SECONDS = 600.0  # then what an agent has left behind is a service, and not its work
_NAMED = 20  # of the processes that are left
_ANEW_SECONDS = 1.0  # before a lost store is opened anew, and twice as long after each failure
_LONGEST_ANEW_SECONDS = 60.0
_LOOK_SECONDS = 0.1
_LONGEST_COMMAND = 8000  # characters that a checkpoint tells, which has room for 64 KiB in all
_LONGEST_REASON = 2000  # bytes, which a pipe takes at once
_log = logging.getLogger(__name__)


class Task(NamedTuple):
    """What a resident is told when it is started."""

    program: str  # the module that is run
    store: str
    timeline: str
    workspace: str
    agent: int  # its process
    command: list[str]
    ready: int  # a descriptor that is told when the first save is there
    log: str
    socket: str  # where hooks find it

    def dump(self) -> tuple[str, bytes]:
        """As an argument, and what comes by stdin: a command may be a prompt of many pages, which
        one argument cannot hold."""
        about = self._asdict()
        command = about.pop("command")
        return json.dumps(about), json.dumps(command).encode()

    @classmethod
    def load(cls, argument: str, command: bytes) -> "Task":
        return cls(**json.loads(argument), command=json.loads(command))


class Misses(Protocol):
    """Keeps in mind what could not be saved, where people and the next checkpoint find it."""

    def about(self) -> Mapping[str, Any]:
        """What the next checkpoint tells of it."""

    def saved(self, checkpoint: str) -> None:
        """A checkpoint has told it."""

    def failed(self, why: str) -> None:
        """A save came to nothing."""

    def ended(self) -> None:
        """Nothing more is to come."""


class Said(NamedTuple):
    """A conversation as it is by now, for one checkpoint."""

    state: Any  # what a timeline saves; None if there is no conversation
    about: Mapping[str, Any]  # for the checkpoint to tell


class Talk(Protocol):
    """What an agent says, as far as it is written down somewhere. Knows nothing of checkpoints but
    the head that it is added to."""

    def is_due(self) -> bool:
        """Whether something was said that is not saved yet, and nothing more for a moment. Asked
        often."""

    def now(self, head: hardsave.Checkpoint | None) -> Said:
        """What was said up to now."""


class _Silence:
    """Of an agent of which we hear nothing, or by its hooks."""

    def is_due(self) -> bool:
        return False

    def now(self, head: hardsave.Checkpoint | None) -> Said:
        return Said(None, {})


SILENCE: Talk = _Silence()


class Resident:
    """Saves a workspace on a timeline until it is told to end."""

    def __init__(
        self,
        line: hardsave.Timeline,
        workspace: hardsave.Workspace,
        command: Sequence[str],
        misses: Misses,
        talk: Talk = SILENCE,
        *,
        files: Sequence[str] = (),
    ) -> None:
        """`files` are those that the store consists of as long as it is the same."""
        self._files = files
        self.move(line, workspace)
        self._talk = talk
        self._misses = misses
        self._about: Mapping[str, Any] = {"command": noted(command)}  # for the first one to say
        self._left: Sequence[Survivor] = ()
        self._is_ending = False  # no event: two signals could wait for each other in it
        self._wake: Callable[[], None] | None = None
        self.saves = 0
        self.failed_saves = 0

    def move(self, line: hardsave.Timeline, workspace: hardsave.Workspace) -> None:
        """Go on with the same ones of a store that was opened anew."""
        self._line, self._workspace = line, workspace
        self._ground = Ground(self._files)
        self._has_lost_store = False

    def stay(self, is_ready: Callable[[], None] = lambda: None) -> bool:
        """Save now, after each burst of changes, and at the end. If not even the first save can
        be made, there is nothing to stay for: its error is raised.

        Whether it stayed to the end: if not, the store was lost and has to be opened anew.
        """
        self._snapshot("running")
        with self._workspace.watch() as eyes:
            self._wake = eyes.wake
            self._save_changes("running")  # from here on nothing is missed
            is_ready()
            while not self._is_ending and not self._has_lost_store:
                if eyes.wait(quiet=_QUIET, limit=_LIMIT, timeout=self._patience):
                    self._save_changes("running")
                if self._is_more_said():
                    self._save("running")
        if self._is_ending:
            self._save("ended")
        if self._has_lost_store:
            return False
        self._misses.ended()
        return True

    def is_told_to_end(self, *, within_seconds: float) -> bool:
        """Waits for it in vain, if need be."""
        end = time.monotonic() + within_seconds
        while not self._is_ending and time.monotonic() < end:
            time.sleep(_LOOK_SECONDS)
        return self._is_ending

    @property
    def _patience(self) -> float | None:
        """How long to wait for files, before somebody listens."""
        return None if self._talk is SILENCE else _LISTEN_SECONDS

    def end(self, left: Sequence[Survivor] = ()) -> None:
        """To be called from any thread, or a signal's handler. `left` goes on without us."""
        self._left = left
        self._is_ending = True
        if self._wake is not None:
            with suppress(Misuse):  # it waits no more, and may be at its last save
                self._wake()

    def _save_changes(self, status: str) -> None:
        """Only what differs from what this timeline has is worth a checkpoint: others save the
        same workspace on theirs, and a rewind moves its head with the files."""
        try:
            if self._is_news():
                self._save(status)
        except HardsaveError as error:
            self._failed(error)

    def _is_news(self) -> bool:
        head = self._line.head
        if head is None or head.files is None:
            return True
        return bool(self._workspace.status(head.id).files)

    def _is_more_said(self) -> bool:
        """Not at the end: the last save has it all."""
        try:
            return not self._is_ending and self._talk.is_due()
        except Exception:  # noqa: BLE001 # ours; files are saved all the same
            _log.exception("nothing more of the conversation is saved")
            self._talk = SILENCE
            return False

    def _save(self, status: str) -> None:
        try:
            self._snapshot(status)
        except HardsaveError as error:
            self._failed(error)

    def _snapshot(self, status: str) -> None:
        """What is kept in mind to be said again would come back after a purge: so it is not."""
        saved = self._put(
            status=status,
            description=told(self._left) if status == "ended" else "",
            metadata={**self._about, **_listed(self._left), **self._misses.about()},
        )
        self._about = {}
        self.saves += 1
        self._misses.saved(saved.id)

    def _put(self, **how: Any) -> hardsave.Checkpoint:
        """Files and conversation together; files alone if there is none that could be saved."""
        try:
            for _ in range(_ATTEMPTS):
                head = self._line.head
                said = self._talk.now(head)
                about = {**how, "metadata": {**how["metadata"], **said.about}}
                if said.state is None:
                    how = about
                    break
                with suppress(Conflict):  # somebody has moved the head: it may have more, or less
                    return self._line.save(
                        said.state, workspace=self._workspace, expect=head, **about
                    )
        except Exception:  # noqa: BLE001 # if it is about the files, they say so by themselves
            _log.warning("the conversation could not be saved", exc_info=True)
        return self._line.save_files(self._workspace, **how)

    def _failed(self, error: HardsaveError) -> None:
        """The next burst is another chance. The agent knows nothing of it."""
        self.failed_saves += 1
        is_other = isinstance(error, (Corrupt, Gone)) or not self._ground.is_as_it_was()
        self._has_lost_store = is_other
        _log.exception("the workspace could not be saved")
        self._misses.failed(str(error))


OpenDesk = Callable[[hardsave.Vault, Task], Desk]
OpenMisses = Callable[[Task], Misses]
OpenTalk = Callable[[Task], Talk]


def main(
    argv: Sequence[str], open_desk: OpenDesk, open_misses: OpenMisses, open_talk: OpenTalk
) -> int:
    with open(0, "rb", closefd=False) as told:
        task = Task.load(argv[0], told.read())
    os.close(os.open(task.log, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))  # ours alone
    logging.basicConfig(
        filename=task.log, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    try:
        _reside(task, open_desk, open_misses(task), open_talk)
    except BaseException as error:  # noqa: BLE001 # nobody else will hear of it
        _log.exception("the resident of %s gives up", task.workspace)
        _tell(task.ready, f"{type(error).__name__}: {error}".encode()[:_LONGEST_REASON])
        return 1
    finally:
        os.close(task.ready)
    return 0


def _reside(task: Task, open_desk: OpenDesk, misses: Misses, open_talk: OpenTalk) -> None:
    with _opened(task.store) as vault:
        line, workspace = vault.timeline(task.timeline), vault.workspace(task.workspace)
        talk, files = _heard(task, open_talk), (sqlite_path(task.store),)
        resident = Resident(line, workspace, task.command, misses, talk, files=files)
        look = partial(survivors.find, handover.VARIABLE, task.socket)
        signal.signal(signal.SIGTERM, lambda *_: resident.end(look()))
        ours = (Life(task.agent), look, resident)
        threading.Thread(target=_end_with, args=ours, daemon=True).start()
        is_over = _stay(task, vault, resident, open_desk, lambda: _tell(task.ready, READY))
    seconds = _ANEW_SECONDS
    while not is_over:
        is_last = resident.is_told_to_end(within_seconds=seconds)
        is_over = _go_on(task, resident, open_desk) or is_last
        seconds = min(2 * seconds, _LONGEST_ANEW_SECONDS)


def _stay(
    task: Task,
    vault: hardsave.Vault,
    resident: Resident,
    open_desk: OpenDesk,
    is_ready: Callable[[], None],
) -> bool:
    """Whether to the end; if not, the store was lost."""
    seat = meetings.seat_of(sqlite_path(task.store), task.workspace)
    with _hearing(Path(task.socket), open_desk(vault, task)), meetings.seated(seat, task.socket):
        is_over = resident.stay(is_ready)
    if is_over:
        _log.info("%d saves, %d failed", resident.saves, resident.failed_saves)
        _keep_up(vault)
    return is_over


def _go_on(task: Task, resident: Resident, open_desk: OpenDesk) -> bool:
    """The same with a store that is opened anew. Others may have it open who have to go first."""
    try:
        config.make_folder(Path(sqlite_path(task.store)).parent)
        with _opened(task.store) as vault:
            resident.move(vault.timeline(task.timeline), vault.workspace(task.workspace))
            _log.info("%s was opened anew", task.store)
            return _stay(task, vault, resident, open_desk, lambda: None)
    except (HardsaveError, OSError):
        _log.warning("%s cannot be opened anew", task.store, exc_info=True)
        return False


@contextmanager
def _opened(store: str) -> Iterator[hardsave.Vault]:
    """A store that is lost, or out of reach, may not even be closed in order: no reason to go."""
    vault = hardsave.open(store)
    try:
        yield vault
    finally:
        try:
            vault.close()
        except (HardsaveError, OSError):
            _log.warning("%s could not be closed in order", store, exc_info=True)


def _heard(task: Task, open_talk: OpenTalk) -> Talk:
    """Before the agent is started: what is said is known by what is new from here on."""
    try:
        return open_talk(task)
    except Exception:  # noqa: BLE001 # ours; files are saved all the same
        _log.exception("only files are saved")
        return SILENCE


def _keep_up(vault: hardsave.Vault) -> None:
    """Once a day, now that nobody waits for us."""
    try:
        if done := vault.store.upkeep():
            _log.info("%s", done.retained)
    except (HardsaveError, OSError):  # as of a workspace that may not be looked into any more
        _log.warning("the store could not be kept up", exc_info=True)


@contextmanager
def _hearing(path: Path, desk: Desk) -> Iterator[None]:
    """Hear the agent's hooks. Where that cannot be, each of them saves by itself."""
    try:
        here = Reception(path, desk)
    except OSError as error:
        _log.warning("no socket could be made, so hooks save by themselves: %s", error)
        yield
        return
    try:
        yield
    finally:
        here.close()


def _end_with(life: Life, look: Callable[[], Sequence[Survivor]], resident: Resident) -> None:
    """With the agent, and with whoever it has left behind."""
    life.wait()
    if left := look():
        _log.info("the agent has ended; %s", told(left))
        left = survivors.wait(look, _AFTERWARDS_SECONDS)
        _log.info("%s", told(left) or "what it had left behind has ended, too")
    resident.end(left)


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


def told(left: Sequence[Survivor]) -> str:
    """What people read in a log; nothing if nobody is left."""
    if not left:
        return ""
    more = f" and {len(left) - 3} more" if len(left) > 3 else ""
    return f"still running: {', '.join(map(str, left[:3]))}{more}"


def _listed(left: Sequence[Survivor]) -> dict[str, Any]:
    return {"left_running": [each._asdict() for each in left[:_NAMED]]} if left else {}


def _tell(descriptor: int, what: bytes) -> None:
    """Whoever has started us: that we are ready, or why we never will be."""
    try:
        os.write(descriptor, what)
    except OSError:
        _log.warning("nobody waits for the first save any more")
