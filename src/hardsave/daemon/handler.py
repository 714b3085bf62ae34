"""What the daemon does for hooks, on the vault that it has open; and for which hooks."""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path

import hardsave
from hardsave.agents import registry
from hardsave.agents.events import Event
from hardsave.daemon import processes, protocol, running_agents, save
from hardsave.daemon.attribution import NOTHING, About
from hardsave.daemon.calls import CallLog, head_moment, look_at
from hardsave.daemon.election import Address
from hardsave.daemon.lifecycle import Lifecycle, SameFiles
from hardsave.daemon.save import Afterwards, Outcome
from hardsave.daemon.server import Request
from hardsave.errors import Unavailable
from hardsave.logs import log
from hardsave.vault.workspaces import projects

_LATELY_SECONDS = 600.0
OTHER_INSTALLATION = "another installation of hardsave"
_SURROUNDINGS = ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")  # where a user's own things lie


class HookHandler:
    """Does what hooks ask for: those of the agent of a run, which were told of this daemon, and
    those that save the same workspace and have found it by themselves."""

    def __init__(
        self,
        vault: hardsave.Vault,
        address: Address,
        lifecycle: Lifecycle,
        calls: CallLog,
        timeline: str | None = None,
        lost: Callable[[], str] = str,
    ) -> None:
        """`lost` says why nothing can be saved in the vault any more; empty if it can."""
        self._vault = vault
        self._lost = lost
        self._address = address
        self._workspace = os.path.realpath(address.workspace)
        self._lifecycle = lifecycle
        self._calls = calls
        self._timeline = timeline  # of its run
        self._code = SameFiles((protocol.__file__,), by_time=True)
        self.has_seen_an_end = False
        self._other_saved = 0.0  # when another session was last seen to have saved here
        lifecycle.sessions.agent_ended = calls.agent_ended

    def objection(self, request: Request) -> str | None:
        """Why the hook has to save by itself."""
        if unfit := self._lifecycle.why_unfit():
            self._lifecycle.nudge()
            return unfit
        if self._is_told(request):
            return self._objection_to_own(request)
        if foreign := objection(request, self._address.url, self._workspace, self._code):
            if foreign == OTHER_INSTALLATION:
                self.outdated()
            return foreign
        spec = registry.of_hook(request.words)
        agent = processes.agent_of(request.caller, spec.program)
        if agent is None and not self._lifecycle.has_run:
            return "the agent that has called is unknown"
        if agent is not None:
            self._lifecycle.asked(agent, spec.event(request.data).session)
        return None

    def _objection_to_own(self, request: Request) -> str | None:
        """A hook that was told of another store saves there; an agent in another project, too."""
        is_here = request.directory.is_relative_to(self._workspace)
        told = (request.environment, request.directory) if is_here else _told(request)
        store = self._address.url
        return None if projects.store_url(*told) == store else f"this is the daemon of {store}"

    def outdated(self) -> None:
        """A hook of another version has called. It saves by itself, and leaves a daemon of its own
        version in this one's place, unless there is a run to save for."""
        if not self._lifecycle.has_run:
            self._lifecycle.end("a hook of another installation has called")

    def save(self, request: Request) -> bytes | None:
        """A hook that was not told of this daemon shall try itself what could not be saved here:
        it opens a store that was damaged or replaced anew, and is alone with it. So does each hook
        once the server of the store is away."""
        self._check_server()
        said = b""

        def afterwards(done: Outcome) -> None:
            nonlocal said
            said = done.warning
            if done.event.status == "ended" and done.is_saved:
                self.has_seen_an_end = True
                self._lifecycle.sessions.end(done.event.session)

        if self._work(request, afterwards):
            return None
        self._check_server()
        if not self._is_told(request) and not save.is_there(self._vault, request.id):
            self._lifecycle.failed()
            raise Unavailable("a call was not saved here; its hook saves by itself")
        return said

    def _check_server(self) -> None:
        if why := self._lost():
            self._lifecycle.failed()
            raise Unavailable(f"its hook saves by itself: {why}")

    def _is_told(self, request: Request) -> bool:
        told = request.environment.get(protocol.SOCKET_VARIABLE)
        return self._lifecycle.has_run and told == self._address.socket

    def _work(self, request: Request, afterwards: Afterwards) -> bool:
        try:
            return save.work(
                request.data,
                request.environment,
                registry.of_hook(request.words),
                save.Called(request.directory, request.at, request.id, request.caller),
                lambda *_: nullcontext(self._vault),
                afterwards=afterwards,
                attribute=lambda *about: self._attributed(request, *about),
            )
        finally:
            self._calls.hook_done()

    def _attributed(
        self, request: Request, line: hardsave.Timeline, event: Event, project: Path
    ) -> About:
        """Which calls have made what this hook saves; its own, if no other has run meanwhile."""
        if line.name == self._timeline:
            self._calls.has_hooks = True
        if os.path.realpath(project) != self._workspace:
            return NOTHING
        try:
            agent = registry.of_hook(request.words)
            self._calls.hook(agent, event, request.at / 1e9, line.name)
            head, workspace = line.head, self._vault.workspace(project)
            after = head_moment(head)
            if head is None or head.files is None or not self._is_shared(line, event, workspace):
                return self._calls.about_calls(after)
            return self._calls.about_hook(event, look_at(workspace, head), after)
        except Exception:  # noqa: BLE001 # ours; the call is saved all the same
            log(__name__).exception("which calls have made a change cannot be told")
            return NOTHING

    def _is_shared(
        self, line: hardsave.Timeline, event: Event, workspace: hardsave.Workspace
    ) -> bool:
        """Whether what this hook saves may be the work of other calls than its own, by now or when
        it is captured: of its own session, of another that works here, or has saved here lately."""
        last, now = workspace.last, time.time()
        if last is not None and last.timeline != line.name:
            self._other_saved = max(self._other_saved, head_moment(last))
        return (
            self._calls.is_shared(event.tool_use_id, head_moment(line.head), now)
            or self._lifecycle.sessions.has_others(event.session)
            or now - self._other_saved < _LATELY_SECONDS
        )


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
        return OTHER_INSTALLATION
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
