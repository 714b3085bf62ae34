"""What a call of a hook comes to: files and conversation saved, or a note that says why not.

A hook without a daemon lets a child do this (`daemon.standalone`), and a child that is late or dies
leaves its note in the spool; the next checkpoint says so. The daemon does the same work in a
thread, on the vault that it has open.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hardsave
from hardsave import config
from hardsave.agents import events, registry, sessions, state
from hardsave.agents.events import Event
from hardsave.agents.spec import AgentSpec
from hardsave.agents.state import Source, Unreadable
from hardsave.agents.transcripts import EMPTY, Mark, pieces, tail
from hardsave.daemon import running_agents, spool
from hardsave.daemon.access import Access
from hardsave.daemon.protocol import new_id, working_directory
from hardsave.defaults import HOOK_BUDGET_SECONDS
from hardsave.errors import Conflict, HardsaveError, Unavailable, Unstorable
from hardsave.logs import log
from hardsave.stores.registry import file_path, is_on_server
from hardsave.tuples import NamedTuple
from hardsave.vault.workspaces import projects

if TYPE_CHECKING:  # which a hook without a daemon does without
    from hardsave.daemon.attribution import About

_ATTEMPTS = 20
_LOOK_SECONDS = 0.01
_LAST_BYTES = 256 * 1024  # of a transcript, in which its last answer is looked for
_WARNED_AT = ("UserPromptSubmit", "Stop")
_LONGEST_REASON = 500  # characters


Opened = Callable[[Path, Mapping[str, str]], AbstractContextManager[hardsave.Vault]]
"""From a project to the vault that its hooks save in."""


class Outcome(NamedTuple):
    """What has become of a call."""

    event: Event
    project: Path
    is_saved: bool
    warning: bytes  # what its hook says to the user; mostly nothing


Afterwards = Callable[[Outcome], None]
"""What follows a call."""

Attribute = Callable[[hardsave.Timeline, Event, Path], "About"]
"""What a checkpoint on a timeline says of the calls that have made its changes in a project."""


class Called(NamedTuple):
    """Where and when a hook was called."""

    directory: Path
    at: int  # in nanoseconds since 1970
    id: str  # of the checkpoint to be made
    caller: int = 0  # the hook's process or the one above it; 0: unknown

    @classmethod
    def now(cls) -> "Called":
        return cls(Path(working_directory()), time.time_ns(), new_id())


@contextmanager
def own_vault(project: Path, told: Mapping[str, str]) -> Iterator[hardsave.Vault]:
    """The one that a project's hooks save in, opened for this. Only for a process that does nothing
    else."""
    with own_access(project, told).opened() as vault:
        yield vault


def own_access(project: Path, told: Mapping[str, str]) -> Access:
    """The same, to be opened. None is made for what would not be saved in it: a command that is
    typed in a directory below would be sent there."""
    from hardsave.workspace.scan.scanner import refuse_home_directory  # which comes with a save

    refuse_home_directory(os.fsencode(project))
    os.chdir(project)
    if config.STORE_VARIABLE not in told:
        os.environ.pop(config.STORE_VARIABLE, None)
    url = projects.store_url(os.environ, project)
    return Access(told, project, url, hardsave.open)


def work(
    data: bytes,
    environment: Mapping[str, str],
    agent: AgentSpec | None = None,
    called: Called | None = None,
    opened: Opened = own_vault,
    *,
    at_once: Callable[[], None] | None = None,
    afterwards: Afterwards | None = None,
    attribute: Attribute | None = None,
) -> bool:
    """Save what a hook was called for, or leave a note that says why not; whether it is saved.

    `at_once` is called when a checkpoint is there and its note gone, before the vault is closed:
    that feeds the backup, for which the hook need not wait.
    """
    called, agent = called or Called.now(), agent or registry.of_hook(())
    event = _event(agent, data, environment, called)
    if event is None:
        return False
    project = project_of(agent, event, environment, called.directory)
    if not agent.is_step(event):
        if afterwards is not None:
            afterwards(Outcome(event, project, True, b""))
        return True
    left = sessions.left(environment, event.session)
    if left is not None and event.name == "UserPromptSubmit":  # also of one that was not ended
        sessions.come_back(environment, event.session)
    elif left is not None and _is_ending(left, called.caller):
        if afterwards is not None:
            afterwards(Outcome(event, project, True, b""))
        return True
    is_left = left is not None and _is_left(left, event)
    place = spool.place_of(environment, project)
    note = _begun(place, called, event.metadata(agent.name))

    is_made, late = False, None

    def save_it() -> None:
        nonlocal is_made, late
        told = running_agents.own_environment(environment, called.caller, project)
        is_empty = _is_unanswered(agent, event) and not spool.missed(place)
        if is_empty and not has_store(told, project):
            _ended(note, None)  # a store with nothing in it would look as if something was saved
            return
        with opened(project, told) as vault:
            is_made = save(
                vault, agent, event, project, place, told, called.id, attribute, is_left=is_left
            )
            late = _lateness(called) if is_made else None
            _ended(note, late)
            if at_once is not None:
                at_once()

    failure = tried(save_it)
    if failure is not None and opened is own_vault and _is_away(environment, project):
        failure = tried(save_it)  # its server was lost just now: into the outbox
    if failure is not None:
        _ended(note, failure)
    why = failure or late
    if afterwards is not None:
        is_lost = why is not None and not is_made
        said = agent.warning(warning(event, why or "", _unsaved(place))) if is_lost else b""
        afterwards(Outcome(event, project, why is None, said))
    return why is None


def _is_away(environment: Mapping[str, str], project: Path) -> bool:
    """Whether a project's store is on a server that does not answer."""
    try:
        return bool(
            Access(environment, project, projects.store_url(environment, project)).why_lost()
        )
    except HardsaveError:
        return False


def _event(
    agent: AgentSpec, data: bytes, environment: Mapping[str, str], called: Called
) -> Event | None:
    """What a hook was told; None, and a note, if that is nothing that its agent says."""
    try:
        return agent.event(data)
    except ValueError as error:
        place = spool.place_of(environment, config.project_root(called.directory))
        _ended(_begun(place, called, {}), f"not the input of a hook: {error}")
        return None


def _is_ending(left: sessions.Left, caller: int) -> bool:
    """Whether an agent calls that a rewind inside of it is about to end."""
    return left.process is not None and running_agents.is_below(caller, left.process)


def _is_left(left: sessions.Left, event: Event) -> bool:
    """Whether this is the rest of a session that a rewind has left: saved, it would move the head
    back to that conversation. So is all until its user says more in it; only its end, if the agent
    that was in it was ended: another one goes on with it."""
    if event.name == "UserPromptSubmit":
        return False
    return left.process is None or event.status == "ended"


def _unsaved(place: Path) -> int:
    """How many saves were missed, as far as the notes tell; at least this one."""
    try:
        return spool.count(spool.missed(place))
    except OSError:  # what prevents a save may prevent reading the notes, too
        return 1


def _lateness(called: Called) -> str | None:
    """What to tell of a checkpoint that was made after its hook had to return."""
    late = time.time() - called.at / 1e9
    if late <= HOOK_BUDGET_SECONDS:
        return None
    return f"saved {late:.0f} s late: its files may be of a later moment"


def project_of(
    agent: AgentSpec, event: Event, environment: Mapping[str, str], directory: Path
) -> Path:
    """Where a hook saves, which was called in a directory. That one counts if the one that it was
    told is not there: JSON cannot express a name that is not UTF-8."""
    told = environment.get(agent.project_variable) if agent.project_variable else None
    found = config.project_root(Path(told or event.directory or directory))
    return found if found.is_dir() else config.project_root(directory)


def _begun(place: Path, called: Called, about: Mapping[str, Any]) -> spool.Note:
    """Under a name that the daemon and the hook itself both give to this call."""
    name = f"{called.at}-{called.id}"
    return spool.begin(place, name, {**about, "at": called.at / 1e9, "checkpoint": called.id})


def _ended(note: spool.Note, why: str | None) -> None:
    """It is saved, or why not."""
    try:
        spool.end(note) if why is None else spool.fail(note, why)
    except OSError as error:
        log(__name__).warning("the end of a call of a hook cannot be noted: %s", error)


def tried(job: Callable[[], None]) -> str | None:
    """Why it could not be done; None if it was."""
    try:
        job()
    except HardsaveError as error:
        return str(error)
    except (OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 # ours, and told by the note
        return f"a fault of hardsave itself: {error!r}"
    return None


def save(
    vault: hardsave.Vault,
    agent: AgentSpec,
    event: Event,
    project: Path,
    place: Path,
    environment: Mapping[str, str],
    id: str,
    attribute: Attribute | None = None,
    *,
    is_left: bool = False,
) -> bool:
    """One checkpoint: the files, the transcript so far, and what was missed before. Of a session
    that was left, only files that have changed, beside the conversation that the head has.

    False if another process has made it already, which took up the same call; or if there is
    nothing to save.
    """
    if is_there(vault, id):
        return False
    name = _timeline(agent, event, environment)
    notes = [] if is_left else _notes(place, name)
    unsaved = [note for note in notes if not _is_in(vault, note)]
    if not unsaved and _is_unanswered(agent, event) and vault.timeline(name).head is None:
        return False
    about = {} if is_left else event.metadata(agent.name) | spool.listed(unsaved)
    seen = event.seen_from(project)
    how: dict[str, Any] = {
        "status": event.status,
        "description": seen.description,
        "metadata": about,
        "workspace": project,
        "step": step(seen),
        "title": event.own_prompt,
        "id": id,
    }
    if attribute is not None:
        made_by = attribute(vault.timeline(name), event, project)
        how["description"] = "; ".join(filter(None, (made_by.description, how["description"])))
        how["metadata"] = {**about, **made_by.metadata}
    if is_left:
        return _save_changes(vault.timeline(name), vault.workspace(project), how)
    made = _persistently(lambda: _put(vault.timeline(name), agent, event, how))
    if made.metadata.get("missed") != about.get("missed"):
        return False  # another process was quicker, and knew of other notes
    for note in notes:
        spool.end(note)
    return True


def _save_changes(
    line: hardsave.Timeline, workspace: "hardsave.Workspace", how: dict[str, Any]
) -> bool:
    """Files, if they are not as the head has them; whether there are any."""
    head = line.head
    if head is not None and head.files is not None and not workspace.status(head.id).files:
        return False
    line.save_files(**how)
    return True


def step(event: Event) -> hardsave.StepSummary:
    """What lists tell of a call of a hook."""
    return hardsave.StepSummary(
        prompt=event.own_prompt,
        call=event.call,
        call_id=event.tool_use_id or "",
        phase=event.phase,
        outside=_reached(event),
    )


def _reached(event: Event) -> tuple[str, ...]:
    """What a call that was made has done outside, as far as that can be told."""
    if event.phase != "after" or len(event.tools) != 1 or event.is_file:
        return ()
    from hardsave.agents.outside import reached  # most hooks tell of no such call

    return reached(event.tools[0], event.tool_input)


def _is_unanswered(agent: AgentSpec, event: Event) -> bool:
    """Whether a session ends in which the model has said nothing: one that was looked at and left,
    or that could not be resumed. A timeline of its own for that would be the newest here, and
    `log`, `rewind` and `undo` would be about it instead of the session before."""
    if event.status != "ended":
        return False
    if event.transcript is None:
        return True
    read = (agent.lines.messages(piece.lines) for piece in pieces(Path(event.transcript)))
    try:
        return not any(said["role"] == "assistant" for messages in read for said in messages)
    except (OSError, ValueError):
        return False  # the save that follows says why


def has_store(environment: Mapping[str, str], project: Path) -> bool:
    """Whether anything was ever saved where the hooks of a project save. That is not asked of a
    server, which may not answer."""
    url = projects.store_url(environment, project)
    return is_on_server(url) or projects.is_there(Path(file_path(url)))


def _notes(place: Path, timeline: str) -> list[spool.Note]:
    """What was missed. A save goes on without the notes that cannot be read."""
    try:
        return spool.to_tell(place, timeline)
    except OSError as error:
        log(__name__).warning("what was missed before cannot be read: %s", error)
        return []


def _persistently(put: Callable[[], hardsave.Checkpoint]) -> hardsave.Checkpoint:
    """However often another writer moves the head first, within reason."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(Conflict):
            return put()
    return put()


def _is_in(vault: hardsave.Vault, note: spool.Note) -> bool:
    """Whether it was saved all the same, by a process that died before it could remove the note."""
    id = note.about.get("checkpoint")
    if note.about.get("why") is not None or not isinstance(id, str):
        return False
    return is_there(vault, id)


def is_there(vault: hardsave.Vault, id: str) -> bool:
    """Whether there is a checkpoint of this id."""
    try:
        return vault.get(id).id == id
    except HardsaveError:
        return False


def _timeline(agent: AgentSpec, event: Event, environment: Mapping[str, str]) -> str:
    """The one that was named; of the session that this one goes on from; or its own."""
    told = environment.get("HARDSAVE_TIMELINE") or sessions.timeline(environment, event.session)
    return told or events.timeline(agent.program, event.session)


def _put(
    line: hardsave.Timeline, agent: AgentSpec, event: Event, how: dict[str, Any]
) -> hardsave.Checkpoint:
    """Add what is new of the transcript to what the head has; all of it if the head has another
    session's."""
    known = state.mark_in(line.head, event.session)
    is_aside = event.subagent is not None and agent.has_transcripts_of_subagents
    if event.transcript is None or is_aside:
        return line.save_files(**how)  # the conversation stays as the last hook has left it
    try:
        return _told(line, agent, event, known, how)
    except (Unreadable, Unstorable) as error:  # not there for us, or longer than may be stored
        line.save_files(**how)
        why = f"the transcript cannot be read or stored, so only files were saved: {error}"
        raise Unavailable(why) from error


def _told(
    line: hardsave.Timeline,
    agent: AgentSpec,
    event: Event,
    known: Mark | None,
    how: dict[str, Any],
) -> hardsave.Checkpoint:
    assert event.transcript is not None
    with state.reading():
        _await(agent, event, known or EMPTY)
    source = Source(agent, event.session, event.transcript, _moment(event))
    return line.save(state.parts(source, known), **how)


def _moment(event: Event) -> dict[str, Any]:
    return {
        "pending": event.pending,
        **({} if event.upcoming is None else {"upcoming": event.upcoming}),
        **({"batch": list(event.batch)} if event.batch else {}),
    }


def _await(
    agent: AgentSpec,
    event: Event,
    known: Mark,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Until the transcript has an answer that the agent is about to write there; not for long."""
    end = clock() + agent.late_seconds
    while event.answer and clock() < end and not _has(agent, event, known):
        sleep(_LOOK_SECONDS)


def _has(agent: AgentSpec, event: Event, known: Mark) -> bool:
    """Whether an answer stands at the end, behind what is known: it may have been given before."""
    assert event.transcript is not None
    length = _LAST_BYTES + 8 * len(event.answer)  # an escape takes six bytes
    last = tail(Path(event.transcript), known.offset, length)
    return state.has_said(agent.lines.messages(last), event.answer)


# What a person reads on the agent's own screen while hooks cannot save. An agent that is not saved
# looks exactly like one that is, until its user wants to go back.


def warning(event: Event, why: str, unsaved: int) -> str:
    """What a hook says that could not save, in one line; nothing but where a turn begins and where
    it ends.

    `unsaved` counts the calls since the last one that was saved, this one among them.
    """
    if event.name not in _WARNED_AT or event.subagent is not None:
        return ""
    count = "the last step is" if unsaved <= 1 else f"the last {unsaved} steps are"
    reason = " ".join(why.split())
    short = reason if len(reason) <= _LONGEST_REASON else reason[:_LONGEST_REASON] + " […]"
    return f"hardsave: {count} NOT saved. {short}. 'hardsave doctor' says more"
