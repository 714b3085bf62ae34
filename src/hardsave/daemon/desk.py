"""What a resident does for hooks, on the vault that it has open; and for which of them."""

import os
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import hardsave
from hardsave.agents import registry
from hardsave.daemon import handover, hook, nesting, parentage
from hardsave.daemon.hook import Outcome
from hardsave.daemon.reception import Request
from hardsave.daemon.standby import Ground
from hardsave.errors import Unavailable
from hardsave.vault import projects

_SURROUNDINGS = ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")  # where a user's own things lie


class HookDesk:
    """Does what hooks ask for: those of its agent, which were told of it, and those that save the
    same workspace."""

    def __init__(
        self, vault: hardsave.Vault, store: str, workspace: str, socket: str | None = None
    ) -> None:
        self._vault = vault
        self._store = store
        self._workspace = os.path.realpath(workspace)
        self._socket = socket  # that its agent is told of
        self._code = Ground((handover.__file__,), by_time=True)

    def objection(self, request: Request) -> str | None:
        """Why this is somebody else's to do."""
        if not self._is_told(request):
            return objection(request, self._store, self._workspace, self._code)
        # A hook that was told of another store saves there; so does an agent in another project.
        is_here = request.directory.is_relative_to(self._workspace)
        told = (request.environment, request.directory) if is_here else _told(request)
        wanted = projects.store_url(*told)
        return None if wanted == self._store else f"this is the resident of {self._store}"

    def save(self, request: Request) -> bytes | None:
        """A hook that was not told of us shall try itself what we cannot save: it would have
        opened a store that was damaged or replaced."""
        said = b""

        def afterwards(done: Outcome) -> None:
            nonlocal said
            said = done.warning
            self.afterwards(done)

        if self._work(request, afterwards):
            return None
        if not self._is_told(request) and not hook.is_there(self._vault, request.id):
            raise Unavailable("a call was not saved here; its hook sees to it")
        return said

    def afterwards(self, done: Outcome) -> None:
        """What follows a call."""

    def _is_told(self, request: Request) -> bool:
        told = request.environment.get(handover.VARIABLE)
        return told is not None and told == self._socket

    def _work(self, request: Request, afterwards: hook.Afterwards) -> bool:
        return hook.work(
            request.data,
            request.environment,
            registry.of_hook(request.words),
            hook.Called(request.directory, request.at, request.id, request.caller),
            lambda *_: nullcontext(self._vault),
            afterwards=afterwards,
        )


def _told(request: Request) -> tuple[Mapping[str, str], Path]:
    """What decides where a hook saves that was called elsewhere."""
    environment, directory = request.environment, request.directory
    if not nesting.is_inner(environment, request.caller):
        return environment, directory
    agent = registry.of_hook(request.words)
    try:
        event = agent.event(request.data)
    except ValueError:
        return environment, directory
    project = hook.project_of(agent, event, environment, directory)
    return nesting.own(environment, request.caller, project), project


def objection(request: Request, store: str, workspace: str, code: Ground) -> str | None:
    """Why a hook that has found a resident by itself has to see to itself: it would not have
    saved the same, in the same way and in the same place, as the resident would."""
    if request.code != handover.__file__ or not code.is_as_it_was():
        return "another installation of hardsave"
    if any(request.environment.get(name) != os.environ.get(name) for name in _SURROUNDINGS):
        return "other surroundings"
    if not parentage.sees_the_same_files(request.caller):
        return "another container"
    agent = registry.of_hook(request.words)
    try:
        event = agent.event(request.data)
    except ValueError:
        return "not the words of a hook"
    project = hook.project_of(agent, event, request.environment, request.directory)
    if os.fspath(project) != workspace:
        return f"this is the resident of {workspace}"
    if projects.store_url(request.environment, project) != store:
        return f"this is the resident of {store}"
    return None
