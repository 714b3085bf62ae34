"""`hardsave-hook`: what an agent's hooks call. Saves files and conversation, and says nothing.

The agent must not notice us: this exits 0 whatever happens (2 would forbid the agent its tool), it
prints nothing (what a hook prints may go to the model), and it returns within its budget.
The work is done by a child that nobody waits for longer than that; a child that is late or dies
leaves its note in the spool, and the next checkpoint says so.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import hardsave
from hardsave import config
from hardsave.adapters import agents, events, spool
from hardsave.adapters.agents import CLAUDE_CODE, Agent
from hardsave.adapters.events import Event
from hardsave.adapters.transcripts import EMPTY, Mark, read
from hardsave.errors import Conflict, HardsaveError, Unavailable

BUDGET_SECONDS = 10.0
LIMIT_SECONDS = 300  # then even a first capture of a large workspace is given up
_ATTEMPTS = 20
_LARGEST_INPUT = 64 * 1024 * 1024
_MANY = 20  # missed saves that one checkpoint names


def main() -> int:
    """Take one call of a hook, of the agent that the first argument names. Always 0."""
    try:
        data = sys.stdin.buffer.read(_LARGEST_INPUT)
        agent = agents.named(next(iter(sys.argv[1:]), None)) or CLAUDE_CODE
        detached(lambda: work(data, os.environ, agent), seconds=BUDGET_SECONDS)
    except OSError:
        pass  # no process to be had: there is nobody to tell, and the agent must go on
    return 0


def detached(job: Callable[[], None], *, seconds: float) -> bool:
    """Let a process of its own do a job; whether it was done in time."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        _do(job)
    os.close(writes)
    try:
        if not select.select([reads], [], [], seconds)[0]:
            return False
        os.waitpid(child, 0)
        return True
    finally:
        os.close(reads)


def _do(job: Callable[[], None]) -> NoReturn:
    """In the child: nobody's output is held open, and nobody's signals are ours."""
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        job()
    finally:
        os._exit(0)  # what even a note could not be written about has nobody left to be told


def work(data: bytes, environment: Mapping[str, str], agent: Agent = CLAUDE_CODE) -> None:
    """Save what a hook was called for, or leave a note that says why not."""
    try:
        event = events.parse(data)
    except ValueError as error:
        place = spool.folder(environment, config.project_root(Path.cwd()))
        spool.fail(_begun(place, {}), f"not the words of a hook: {error}")
        return
    told = environment.get(agent.project_variable) if agent.project_variable else None
    project = config.project_root(Path(told or event.directory or os.getcwd()))
    place = spool.folder(environment, project)
    note = _begun(place, event.metadata(agent.name))
    began = time.monotonic()
    why = _tried(lambda: save(agent, event, project, place, environment))
    late = time.monotonic() - began
    if why is None and late > BUDGET_SECONDS:
        why = f"saved {late:.0f} s late: its files may be of a later moment"
    if why is None:
        spool.end(note)
    else:
        spool.fail(note, why)


def _begun(place: Path, about: Mapping[str, Any]) -> spool.Note:
    name = f"{time.time_ns()}-{os.getpid()}"
    return spool.begin(place, name, {**about, "at": time.time()})


def _tried(job: Callable[[], None]) -> str | None:
    """Why it could not be done; None if it was."""
    try:
        signal.signal(signal.SIGALRM, _give_up)
        signal.alarm(LIMIT_SECONDS)
        job()
    except (HardsaveError, OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 # ours, and told by the note
        return f"a fault of hardsave itself: {error!r}"
    finally:
        signal.alarm(0)
    return None


def _give_up(number: int, frame: FrameType | None) -> None:
    raise Unavailable(f"not saved within {LIMIT_SECONDS} s")


def save(
    agent: Agent, event: Event, project: Path, place: Path, environment: Mapping[str, str]
) -> None:
    """One checkpoint: the files, the transcript so far, and what was missed before."""
    os.chdir(project)
    name = _timeline(agent, event, environment)
    missed = spool.missed(place)
    about: dict[str, Any] = event.metadata(agent.name)
    if missed:
        about["missed"] = [_told(note) for note in missed[-_MANY:]]
        about["missed_count"] = len(missed)
    with hardsave.open() as vault:
        line = vault.timeline(name)
        for attempt in range(_ATTEMPTS):
            try:
                _put(line, agent, event, project, about)
                break
            except Conflict:
                if attempt == _ATTEMPTS - 1:
                    raise
    for note in missed:
        spool.end(note)


def _timeline(agent: Agent, event: Event, environment: Mapping[str, str]) -> str:
    """The one that was named; of the session that this one goes on from; or its own."""
    told = environment.get("HARDSAVE_TIMELINE") or spool.timeline(environment, event.session)
    return told or events.timeline(agent.program, event.session)


def _told(note: spool.Note) -> dict[str, Any]:
    keys = ("hook", "tool", "tool_use_id", "at", "why")
    told = {key: note.about[key] for key in keys if key in note.about}
    return {"why": "the hook was killed", **told}


def _put(
    line: hardsave.Timeline, agent: Agent, event: Event, project: Path, about: dict[str, Any]
) -> None:
    """Add what is new of the transcript to what the head has; all of it if that is another's."""
    how: dict[str, Any] = {
        "status": event.status,
        "description": event.description,
        "metadata": about,
        "workspace": project,
    }
    known = _known(line.head, event)
    is_aside = event.subagent is not None and agent.has_transcripts_of_subagents
    if event.transcript is None or is_aside:
        line.snapshot(**how)  # the conversation stays as the session's last hook has left it
        return
    found = read(Path(event.transcript), known or EMPTY)
    transcript = {
        "agent": agent.name,
        "session": event.session,
        "path": event.transcript,
        "offset": found.mark.offset,
        "sha256": found.mark.sha256,
        "pending": event.pending,
        **({} if event.upcoming is None else {"upcoming": event.upcoming}),
    }
    new = {
        "transcript": transcript,
        "messages": agent.lines.messages(found.lines),
        "lines": found.lines,
    }
    if known is not None and found.goes_on:
        line.append(new, **how)
    else:
        line.save(new, **how)


def _known(head: hardsave.Checkpoint | None, event: Event) -> Mark | None:
    """How much of this transcript the head has; None if its state is something else."""
    if head is None or not isinstance(head.state, Mapping):
        return None
    found = head.state.get("transcript")
    if not isinstance(found, Mapping) or found.get("session") != event.session:
        return None
    return Mark(found["offset"], found["sha256"])


if __name__ == "__main__":
    sys.exit(main())
