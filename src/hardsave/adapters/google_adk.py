"""A session service of Google ADK that keeps sessions as timelines of a vault.

Needs the extra `google-adk`. Each event is one checkpoint, with the files of `workspace` in the
same commit. Events are kept as ADK writes them as JSON, under `messages`, so that `hardsave log`,
`diff`, `search` and the dashboard read them. State that sessions share, `app:` and `user:`, has
timelines of its own: what takes a session back leaves it alone, as ADK's own rewind does.
"""

import asyncio
import threading
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from weakref import WeakValueDictionary

from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.sessions import BaseSessionService, Session, State
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse

import hardsave
from hardsave.adapters.heads import on_the_head
from hardsave.adapters.quoting import quoted
from hardsave.adapters.threads import in_thread
from hardsave.tuples import NamedTuple
from hardsave.values.messages import first_prompt

__all__ = ["HardsaveSessionService"]

_ROOM = "google-adk"
_PARTS = 3  # of a session's name, behind the room
_LONGEST = 60  # characters of an app, a user or a session in a name
_LAST = slice(-1, None)


class HardsaveSessionService(BaseSessionService):
    """Sessions that grow by what is new, on any machine that reaches the vault's store.

        with hardsave.open() as vault:
            sessions = HardsaveSessionService(vault, workspace="work")
            runner = Runner(app_name="notes", agent=agent, session_service=sessions)

    The timeline of a session is `google-adk/APP/USER/SESSION`. `hardsave rewind` takes back its
    events, its state and the files; the next run goes on from there.
    """

    def __init__(self, vault: hardsave.Vault, *, workspace: str | Path | None = None) -> None:
        self._vault = vault
        self._workspace = workspace
        self._appending: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()
        self._sharing = threading.Lock()

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Begin a session. `AlreadyExistsError` if there is one of that id."""
        told = EventActions(state_delta=state or {}).model_dump(mode="json")["state_delta"]
        at = _Place(app_name, user_id, (session_id or "").strip() or str(uuid.uuid4()))
        return await in_thread(lambda: self._create(at, told))

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """A session as it is now; None if there is none."""
        at = _Place(app_name, user_id, session_id.strip())
        return await in_thread(lambda: self._get(at, config or GetSessionConfig()))

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """Sessions without their events, the last updated last."""
        return await in_thread(lambda: self._list(app_name, user_id))

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Hide a session; `hardsave undo` brings it back."""
        at = _Place(app_name, user_id, session_id.strip())
        await in_thread(lambda: self._delete(at))

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """What the sessions of a user share, by keys without `user:`."""
        at = _Place(app_name, user_id)
        return await in_thread(lambda: self._shared(at.of_user))

    async def append_event(self, session: Session, event: Event) -> Event:
        """Save an event with what it changes in the state. `StaleSessionError` if the session has
        events by now that `session` lacks. An event that was saved before is not saved again."""
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        told = event.model_dump(mode="json", exclude_none=True)
        at = _Place(session.app_name, session.user_id, session.id)
        async with self._alone(at):
            saved = await in_thread(lambda: self._append(at, session, told))
            session._storage_update_marker = saved.id
            session.last_update_time = event.timestamp
            if session.events[_LAST] != [event]:
                self._commit_event_to_session(session, event)
        return event

    def _alone(self, at: "_Place") -> asyncio.Lock:
        """Branches of an agent share a session: their events are saved one after the other."""
        key = id(asyncio.get_running_loop()), at.timeline
        return self._appending.setdefault(key, asyncio.Lock())

    # In a thread

    def _create(self, at: "_Place", told: dict[str, Any]) -> Session:
        line = self._vault.timeline(at.timeline)
        if line.head is not None:
            raise AlreadyExistsError(f"Session with id {at.id} already exists.")
        state = {
            "session": at._asdict(),
            "state": self._own(at, told),
            "messages": [],
            "updated": time.time(),
        }
        try:
            saved = line.save(state, workspace=self._workspace)
        except hardsave.Conflict as error:
            if line.head is None:
                raise
            raise AlreadyExistsError(f"Session with id {at.id} already exists.") from error
        return _session(at, saved, [], self._shared(at.of_app), self._shared(at.of_user))

    def _get(self, at: "_Place", config: GetSessionConfig) -> Session | None:
        head = self._vault.timeline(at.timeline).head
        if head is None:
            return None
        recent, after = config.num_recent_events, config.after_timestamp
        wanted = slice(0) if recent == 0 else slice(-recent if recent else None, None)
        events = [_event(told) for told in head.read("messages", wanted)]
        if after is not None:
            events = [each for each in events if each.timestamp >= after]
        return _session(at, head, events, self._shared(at.of_app), self._shared(at.of_user))

    def _list(self, app: str, user: str | None) -> ListSessionsResponse:
        begins = _Place(app, "").of_app if user is None else _Place(app, user).of_user
        of_app, of_users = self._shared(_Place(app, "").of_app), dict[str, dict[str, Any]]()
        found = []
        for line in self._vault.timelines(prefix=f"{begins}/"):
            head = line.head
            if head is None or line.name.count("/") != _PARTS:
                continue  # what sessions share
            at = _place(line.name, head.read("session"))
            if at.user not in of_users:
                of_users[at.user] = self._shared(at.of_user)
            found.append(_session(at, head, [], of_app, of_users[at.user]))
        found.sort(key=lambda each: (each.last_update_time, each.user_id, each.id))
        return ListSessionsResponse(sessions=found)

    def _delete(self, at: "_Place") -> None:
        line = self._vault.timeline(at.timeline)
        if line.head is not None:
            line.delete()

    def _append(self, at: "_Place", session: Session, told: dict[str, Any]) -> hardsave.Checkpoint:
        line = self._vault.timeline(at.timeline)
        head = line.head
        if head is None:
            raise SessionNotFoundError(f"Session {at.id} not found.")
        last = head.read("messages", _LAST)
        if last == [line.as_saved(told)]:
            return head  # the answer of the first time was lost
        if session._storage_update_marker != head.id and not _ends_with(session, last):
            raise _stale(at)
        delta = {"messages": [told], "updated": told["timestamp"]}
        if own := self._own(at, told["actions"]["state_delta"]):
            delta["state"] = {**head.read("state"), **own}
        title = first_prompt([told])
        try:
            return line.append(delta, expect=head, workspace=self._workspace, title=title)
        except hardsave.Conflict as error:
            if line.head == head:
                raise
            raise _stale(at) from error

    # State

    def _own(self, at: "_Place", delta: Mapping[str, Any]) -> dict[str, Any]:
        """The part of a change that is the session's own. What sessions share is saved before: an
        event that is in a session has done all that it says."""
        of_app, of_user, own = dict[str, Any](), dict[str, Any](), dict[str, Any]()
        for key, value in delta.items():
            if key.startswith(State.APP_PREFIX):
                of_app[key.removeprefix(State.APP_PREFIX)] = value
            elif key.startswith(State.USER_PREFIX):
                of_user[key.removeprefix(State.USER_PREFIX)] = value
            elif not key.startswith(State.TEMP_PREFIX):
                own[key] = value
        self._share(at.of_app, of_app)
        self._share(at.of_user, of_user)
        return own

    def _share(self, timeline: str, delta: dict[str, Any]) -> None:
        if not delta:
            return
        line = self._vault.timeline(timeline)

        def share(head: hardsave.Checkpoint | None) -> None:
            before = {} if head is None else head.read("state")
            line.save({"state": {**before, **delta}}, expect=head)

        with self._sharing:
            on_the_head(line, share)

    def _shared(self, timeline: str) -> dict[str, Any]:
        head = self._vault.timeline(timeline).head
        return {} if head is None else head.read("state")


class _Place(NamedTuple):
    """A session, or a user without one."""

    app: str
    user: str
    id: str = ""

    @property
    def of_app(self) -> str:
        return f"{_ROOM}/{quoted(self.app, _LONGEST)}"

    @property
    def of_user(self) -> str:
        return f"{self.of_app}/{quoted(self.user, _LONGEST)}"

    @property
    def timeline(self) -> str:
        return f"{self.of_user}/{quoted(self.id, _LONGEST)}"


def _place(timeline: str, told: dict[str, str]) -> _Place:
    """Where a session is that was begun as `told`: a fork of it is what its own name says."""
    at = _Place(**told)
    if at.timeline == timeline:
        return at
    return _Place(*map(unquote, timeline.split("/")[1:]))


def _session(
    at: _Place,
    head: hardsave.Checkpoint,
    events: list[Event],
    of_app: Mapping[str, Any],
    of_user: Mapping[str, Any],
) -> Session:
    found = Session(
        id=at.id,
        app_name=at.app,
        user_id=at.user,
        state={
            **head.read("state"),
            **{State.APP_PREFIX + key: value for key, value in of_app.items()},
            **{State.USER_PREFIX + key: value for key, value in of_user.items()},
        },
        events=events,
        last_update_time=head.read("updated"),
    )
    found._storage_update_marker = head.id  # kept by copies; ADK has it for this
    return found


def _event(told: Any) -> Event:
    try:
        return Event.model_validate(told)
    except (TypeError, ValueError) as error:
        raise hardsave.Misuse(f"a message in the session is no event of ADK: {error}") from error


def _ends_with(session: Session, last: list[Any]) -> bool:
    return [_event(told).id for told in last] == [each.id for each in session.events[_LAST]]


def _stale(at: _Place) -> StaleSessionError:
    return StaleSessionError(
        f"Session {at.id} was modified in storage since it was loaded; get it again, then append"
    )
