"""Going on with an agent whose conversation was brought back: told, offered, and started.

At a terminal the user is asked, and this process becomes the agent. Elsewhere the command is
printed. Inside of an agent, which cannot be in two conversations at once, its user is told to quit
it; under a `hardsave run` the agent is ended and started again instead.
"""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from hardsave import Checkpoint, config, wording
from hardsave.cli.errors import Exit
from hardsave.cli.session import Session
from hardsave.errors import Misuse, NotFound
from hardsave.tuples import NamedTuple

if TYPE_CHECKING:
    from hardsave.agents.conversation import Resumption
    from hardsave.agents.spec import AgentSpec

_SHOWN = 60  # characters of a prompt
_BROUGHT_BACK = "goes on in the conversation that was brought back"


def workspace_of(session: Session, one: Checkpoint) -> str | None:
    """Where the files of a checkpoint are by now, and so the agent that works on them."""
    files = one.files
    return None if files is None or files.host else session.where(files)


class Inside(NamedTuple):
    """The agent that this command was typed in, by its shell escape, or that has called it."""

    agent: "AgentSpec"
    pid: int
    restart: str  # where its `hardsave run` listens; empty if it cannot start it again

    def of_run(self, timeline: str) -> "Inside":
        """The same; it is started again only if a command is about its own timeline."""
        from hardsave.daemon import running_agents

        run = running_agents.run_around(os.environ)
        is_own = run is not None and run.timeline == timeline
        return self if is_own else self._replace(restart="")


class Leaving:
    """While the head moves, nothing is saved of what the agent around this command still says, if
    it is to be ended: its hooks may call at any moment. Only an agent that is started again stays
    so: what its user says to one that goes on is saved."""

    def __init__(self, around: Inside | None) -> None:
        self._around = around if around and around.restart else None
        self._left: tuple[str, tuple[int, int]] | None = None  # its session and its process

    def __enter__(self) -> "Leaving":
        from hardsave.agents import sessions
        from hardsave.stores.host import processes

        if self._around is not None:
            session = os.environ.get(self._around.agent.session_variable)
            began = processes.started(self._around.pid)
            if session and began:
                self._left = session, (self._around.pid, began)
                sessions.leave(os.environ, *self._left)
        return self

    def __exit__(self, *_: object) -> None:
        from hardsave.agents import sessions

        if self._left is not None:
            sessions.come_back(os.environ, self._left[0])

    def restarted(self, session: Session, back: "Resumption | None") -> bool:
        """Let the `hardsave run` around this command end its agent and start it again, once this
        process has ended; whether it does."""
        if self._around is None or back is None:
            return False
        if back.command is not None and _is_taken(session, back, self._around):
            self._left = None
            return True
        self._go_elsewhere(back)
        return False

    def _go_elsewhere(self, back: "Resumption") -> None:
        """The agent stays, in a conversation that was left: until its user says more there."""
        from hardsave.agents import sessions

        if self._left is not None and self._left[0] != back.session:
            sessions.leave(os.environ, self._left[0])
            self._left = None


def inside(session: Session) -> Inside | None:
    """The agent around this command, where there is no terminal to ask on; else None."""
    if session.out.can_ask or session.out.as_json:
        return None
    from hardsave.daemon import restart, running_agents

    found = running_agents.agent_above()
    if found is None:
        return None
    is_own = not running_agents.is_inner(os.environ, os.getpid())
    return Inside(*found, os.environ.get(restart.VARIABLE, "") if is_own else "")


def check(session: Session, around: Inside | None, *, at_once: bool) -> None:
    """Refuse --resume where no agent could be started, before anything is done."""
    if at_once and not _has_terminal(session) and not (around and around.restart):
        raise Misuse("--resume starts the agent at a terminal, and there is none to start it on")


def _has_terminal(session: Session) -> bool:
    """Whether an agent could be started here, and its user asked."""
    return session.out.can_ask and session.out.is_terminal


def _is_taken(session: Session, back: "Resumption", around: Inside) -> bool:
    """Whether the `hardsave run` around this command ends its agent and starts it again."""
    from hardsave.daemon import restart

    how = "begins anew" if back.session is None else _BROUGHT_BACK
    said = f"hardsave: {around.agent.program} {how}"
    # It could not be edited any more where it is sent at once.
    prompt = back.prompt if around.agent.prefills else ""
    wanted = restart.Next(back.agent, back.session, prompt, back.directory, said)
    answer = restart.ask(around.restart, wanted)
    if isinstance(answer, str):
        session.out.say(f"{around.agent.program} cannot be started again here: {answer}")
        return False
    answer.detach()  # closed when this process ends: then all of this is done
    session.out.say(f"{around.agent.program} ends now, and goes on from there")
    return True


def tell(session: Session, back: "Resumption | None") -> Exit | None:
    """Print how to go on, or why that cannot be."""
    if back is None:
        return None
    if back.command is None:
        session.out.say(f"the conversation was left as it is: {wording.shown(back.why)}")
        if still_open := _open_agent(back):
            session.out.say(f"{still_open} is still open and does not know of this")
        return Exit.FAILED
    if back.why:
        session.out.say(back.why)
    command = session.settings.invocation.from_directory(back.directory, back.command)
    if still_open := _open_agent(back):
        session.out.to_type(
            f"{still_open} is still open and does not know of this: quit it, then type", command
        )
    else:
        session.out.to_type("go on with", command)
    return None


def _open_agent(back: "Resumption") -> str:
    """The agent that is still in the conversation that was left, as far as that can be seen: one
    of the same kind, in the same directory; empty if there is none."""
    from hardsave.daemon import running_agents

    directory = Path(back.directory or os.getcwd())
    found = running_agents.open_agents(directory, back.agent)
    return ", ".join(map(str, found[:3]))


def offer(
    session: Session,
    back: "Resumption | None",
    timeline: str,
    *,
    at_once: bool = False,
    begun_on: str | None = None,
    store: str | None = None,
) -> None:
    """Ask whether to go on now on a timeline, and become the agent if so. `begun_on` is the one
    that its session has begun on, if that is another; `store` where it saves, if that is not the
    store of its directory."""
    if back is None or back.command is None:
        return
    if not at_once and (not _has_terminal(session) or _open_agent(back)):
        return
    agent = _agent(back)
    before = _command_of_run(session, begun_on or timeline)
    words = agent.started_as(before, back.session, back.prompt)
    if shutil.which(words[0]) is None:
        return
    if not at_once and not _is_wanted(session, agent, back.prompt):
        return
    prompt = back.prompt
    if prompt and not agent.prefills:
        prompt = edited("prompt: ", prompt)
    words = agent.started_as(before, back.session, prompt)
    if before:
        words = _under_run(session, timeline, words)
    _become(session, words, back.directory, {} if store is None else {config.STORE_VARIABLE: store})


def _agent(back: "Resumption") -> "AgentSpec":
    from hardsave.agents import registry

    agent = registry.named(back.agent)
    assert agent is not None  # it has made this
    return agent


def _is_wanted(session: Session, agent: "AgentSpec", prompt: str) -> bool:
    if prompt:
        session.out.say(f"taken back: {wording.line(prompt, _SHOWN)}")
    there = ", with that prompt to edit" if prompt and agent.prefills else ""
    answers = {"y": "yes", "n": "no"}
    return session.out.ask(f"go on now{there}?", answers, what="rewind", default="y") == "y"


def edited(question: str, text: str) -> str:
    """A text as the user wants it, on one line: Enter takes it; empty if there is to be none."""
    import readline  # which nothing else needs

    shown = " ".join(text.split())
    readline.set_startup_hook(lambda: readline.insert_text(shown))
    try:
        given = input(question).strip()
    except EOFError:
        return ""
    finally:
        readline.set_startup_hook()
    return text if given == shown else given


def _command_of_run(session: Session, timeline: str) -> Sequence[str]:
    """The command of the `hardsave run` that saves on a timeline; nothing if there was none."""
    try:
        first = session.vault.get(f"{timeline}:1")
    except NotFound:
        return ()
    found = first.metadata.get("command")
    if not isinstance(found, Sequence) or isinstance(found, str):
        return ()
    return [str(word) for word in found]


def _under_run(session: Session, timeline: str, words: Sequence[str]) -> list[str]:
    store = ["--store", session.url] if session.settings.store else []
    run = [sys.executable, "-P", "-m", "hardsave", "run", *store]
    return [*run, "--timeline", timeline, "--", *words]


def _become(
    session: Session, words: Sequence[str], directory: str | None, also: Mapping[str, str]
) -> NoReturn:
    from hardsave.daemon import launch

    session.close()
    if directory is not None:
        os.chdir(directory)
    launch.become_program(words, launch.without_coercion({**os.environ, **also}))
