"""What the daemon does for hooks, on the vault that it has open; and for which hooks."""

import os
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import hardsave
from hardsave.agents import registry
from hardsave.daemon import processes, protocol, running_agents, save
from hardsave.daemon.lifecycle import Lifecycle, SameFiles
from hardsave.daemon.save import Afterwards, Outcome
from hardsave.daemon.server import Request
from hardsave.errors import Unavailable
from hardsave.vault import projects

_SURROUNDINGS = ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")  # where a user's own things lie


class HookHandler:
    """Does what hooks ask for: those of its agent, which were told of it, and those that save the
    same workspace."""

    def __init__(
        self, vault: hardsave.Vault, store: str, workspace: str, socket: str | None = None
    ) -> None:
        self._vault = vault
        self._store = store
        self._workspace = os.path.realpath(workspace)
        self._socket = socket  # that its agent is told of
        self._code = SameFiles((protocol.__file__,), by_time=True)

    def objection(self, request: Request) -> str | None:
        """Why the hook has to save by itself."""
        if not self._is_told(request):
            return objection(request, self._store, self._workspace, self._code)
        # A hook that was told of another store saves there; so does an agent in another project.
        is_here = request.directory.is_relative_to(self._workspace)
        told = (request.environment, request.directory) if is_here else _told(request)
        wanted = projects.store_url(*told)
        return None if wanted == self._store else f"this is the daemon of {self._store}"

    def save(self, request: Request) -> bytes | None:
        """A hook that was not told of this daemon shall try itself what could not be saved here:
        it would have opened a store that was damaged or replaced."""
        said = b""

        def afterwards(done: Outcome) -> None:
            nonlocal said
            said = done.warning
            self.afterwards(done)

        if self._work(request, afterwards):
            return None
        if not self._is_told(request) and not save.is_there(self._vault, request.id):
            raise Unavailable("a call was not saved here; its hook saves by itself")
        return said

    def afterwards(self, done: Outcome) -> None:
        """What follows a call."""

    def _is_told(self, request: Request) -> bool:
        told = request.environment.get(protocol.SOCKET_VARIABLE)
        return told is not None and told == self._socket

    def _work(self, request: Request, afterwards: Afterwards) -> bool:
        return save.work(
            request.data,
            request.environment,
            registry.of_hook(request.words),
            save.Called(request.directory, request.at, request.id, request.caller),
            lambda *_: nullcontext(self._vault),
            afterwards=afterwards,
        )


class EvictableHandler(HookHandler):
    """Does what hooks ask for, and counts their agents and sessions."""

    def __init__(
        self, vault: hardsave.Vault, store: str, workspace: str, lifecycle: Lifecycle
    ) -> None:
        super().__init__(vault, store, workspace)
        self._lifecycle = lifecycle
        self.has_seen_an_end = False

    def objection(self, request: Request) -> str | None:
        if unfit := self._lifecycle.why_unfit():
            self._lifecycle.nudge()
            return unfit
        if foreign := super().objection(request):
            return foreign
        spec = registry.of_hook(request.words)
        agent = processes.agent_of(request.caller, spec.program)
        if agent is None:
            return "the agent that has called is unknown"
        self._lifecycle.asked(agent, spec.event(request.data).session)
        return None

    def save(self, request: Request) -> bytes | None:
        """A daemon that could not save ends, so that the hook can be alone with the store."""
        try:
            return super().save(request)
        except Unavailable:
            self._lifecycle.failed()
            raise

    def afterwards(self, done: Outcome) -> None:
        if done.event.status == "ended" and done.is_saved:
            self.has_seen_an_end = True
            self._lifecycle.sessions.end(done.event.session)


def _told(request: Request) -> tuple[Mapping[str, str], Path]:
    """What decides where a hook saves that was called elsewhere."""
    environment, directory = request.environment, request.directory
    if not running_agents.is_inner(environment, request.caller):
        return environment, directory
    agent = registry.of_hook(request.words)
    try:
        event = agent.event(request.data)
    except ValueError:
        return environment, directory
    project = save.project_of(agent, event, environment, directory)
    return running_agents.own_environment(environment, request.caller, project), project


def objection(request: Request, store: str, workspace: str, code: SameFiles) -> str | None:
    """Why a hook that has found the daemon by itself has to save by itself: it would not have
    saved the same, in the same way and in the same place, as the daemon would."""
    if request.code != protocol.__file__ or not code.are_the_same():
        return "another installation of hardsave"
    if any(request.environment.get(name) != os.environ.get(name) for name in _SURROUNDINGS):
        return "other surroundings"
    if not processes.sees_the_same_files(request.caller):
        return "another container"
    agent = registry.of_hook(request.words)
    try:
        event = agent.event(request.data)
    except ValueError:
        return "not the input of a hook"
    project = save.project_of(agent, event, request.environment, request.directory)
    if os.fspath(project) != workspace:
        return f"this is the daemon of {workspace}"
    if projects.store_url(request.environment, project) != store:
        return f"this is the daemon of {store}"
    return None
