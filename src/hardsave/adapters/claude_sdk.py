"""A session store of the Claude Agent SDK that keeps sessions as timelines of a vault.

Needs the extra `claude-sdk`. The SDK mirrors the transcript of Claude Code to the store, batch by
batch. Each batch is one checkpoint, with the files of `workspace` in the same commit: the SDK's own
file checkpointing cannot be used beside a store. Entries are kept as they come, under `messages`,
so that `hardsave log`, `diff`, `search` and the dashboard read them.

The SDK hands entries over while Claude Code goes on. `hooks` keep a tool waiting until its call is
saved: then no checkpoint has files of a tool that its transcript knows nothing of.
"""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from claude_agent_sdk import SessionStore, fold_session_summary
from claude_agent_sdk.types import (
    HookContext,
    HookEvent,
    HookInput,
    HookMatcher,
    SessionKey,
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
    SyncHookJSONOutput,
)

import hardsave
from hardsave.adapters.heads import on_the_head
from hardsave.adapters.quoting import quoted
from hardsave.adapters.threads import in_thread
from hardsave.logs import log
from hardsave.values.messages import first_prompt

__all__ = ["HardsaveSessionStore"]

_ROOM = "claude-sdk"
_LONGEST = 100  # characters of a project in a name
_KNOWN = 64  # sessions whose ids of entries are remembered
_CALLS = 1_000  # ids of calls that are remembered as saved
_PATIENCE_SECONDS = 5.0  # a tool waits for a tenth; longer only where the SDK hands nothing over


class HardsaveSessionStore(SessionStore):
    """Sessions that grow by what is new, on any machine that reaches the vault's store.

        with hardsave.open() as vault:
            store = HardsaveSessionStore(vault, workspace=".")
            options = ClaudeAgentOptions(
                session_store=store, session_store_flush="eager", hooks=store.hooks(), cwd="."
            )

    `hardsave rewind` on a session's timeline takes back conversation and files; the next run with
    `resume` goes on from there.
    """

    def __init__(self, vault: hardsave.Vault, *, workspace: str | Path | None = None) -> None:
        self._vault = vault
        self._workspace = workspace
        self._known: OrderedDict[str, tuple[str, set[str]]] = OrderedDict()
        self._writing = threading.Lock()
        self._calls: OrderedDict[str, asyncio.Event] = OrderedDict()

    def hooks(self) -> dict[HookEvent, list[HookMatcher]]:
        """For `ClaudeAgentOptions(hooks=…)`, beside `session_store_flush="eager"`: no tool begins
        before its call is saved, so each checkpoint has the files of its moment."""
        return {"PreToolUse": [HookMatcher(hooks=[self._wait_for_call])]}

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Save a batch in one commit. An entry whose `uuid` is there already is left out."""
        await in_thread(lambda: self._append(key, entries))
        for id in _called(entries):
            self._call(id).set()

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """All entries of a session, or of one of its subagents; None if there is none."""
        return await in_thread(lambda: self._load(key))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project, the last updated first."""
        return await in_thread(
            lambda: [
                {"session_id": id, "mtime": _milliseconds(session)}
                for id, session in self._sessions(project_key)
            ]
        )

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """What the SDK has folded out of each session of a project."""
        return await in_thread(lambda: self._summaries(project_key))

    async def delete(self, key: SessionKey) -> None:
        """Hide a session and its subagents, or one of these; `hardsave undo` brings it back."""
        await in_thread(lambda: self._delete(key))

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """The subagents of a session."""
        return await in_thread(lambda: self._subkeys(key))

    # Tools that wait

    async def _wait_for_call(
        self, told: HookInput, id: str | None, context: HookContext
    ) -> SyncHookJSONOutput:
        if id is not None:
            try:
                await asyncio.wait_for(self._call(id).wait(), _PATIENCE_SECONDS)
            except TimeoutError:
                log(__name__).warning(
                    "call %s begins before it is saved: the SDK has not handed it over; set "
                    "session_store_flush='eager', or leave the hooks of the store out",
                    id,
                )
        return {}

    def _call(self, id: str) -> asyncio.Event:
        """That a call is saved."""
        found = self._calls.setdefault(id, asyncio.Event())
        if len(self._calls) > _CALLS:
            self._calls.popitem(last=False)
        return found

    # In a thread

    def _append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        line = self._vault.timeline(_timeline(key))
        with self._writing:
            on_the_head(line, lambda head: self._append_on(line, head, key, entries))

    def _append_on(
        self,
        line: hardsave.Timeline,
        head: hardsave.Checkpoint | None,
        key: SessionKey,
        entries: list[SessionStoreEntry],
    ) -> None:
        known = self._ids_at(line.name, head)
        new = list(_new(entries, known))
        if not new:
            return
        delta: dict[str, Any] = {"messages": new}
        if not key.get("subpath"):
            delta["summary"] = _folded(key, head, new)["data"]
        saved = line.append(delta, expect=head, workspace=self._workspace, title=first_prompt(new))
        self._remember(line.name, saved.id, known | set(_ids(new)))

    def _load(self, key: SessionKey) -> list[Any] | None:
        head = self._vault.timeline(_timeline(key)).head
        return None if head is None else list(head.state["messages"])

    def _sessions(self, project: str) -> Iterator[tuple[str, "hardsave.Session[Any]"]]:
        before = _beginning(project)
        for session in _all(lambda after: self._vault.sessions(prefix=before, after=after)):
            rest = session.timeline.removeprefix(before)
            if "/" not in rest:
                yield unquote(rest), session

    def _summaries(self, project: str) -> list[SessionSummaryEntry]:
        found: list[SessionSummaryEntry] = []
        for id, session in self._sessions(project):
            head = self._vault.timeline(session.timeline).head
            if head is not None and "summary" in head.state:
                data = _plain(head.state["summary"])
                found.append({"session_id": id, "mtime": _milliseconds(session), "data": data})
        return found

    def _delete(self, key: SessionKey) -> None:
        gone = [_timeline(key)]
        if not key.get("subpath"):
            gone += [_timeline({**key, "subpath": sub}) for sub in self._subkeys(key)]
        for name in gone:
            line = self._vault.timeline(name)
            if line.head is not None:
                line.delete()

    def _subkeys(self, key: SessionKey | SessionListSubkeysKey) -> list[str]:
        before = _main(key) + "/"
        found = _all(lambda after: self._vault.sessions(prefix=before, after=after))
        return [unquote(session.timeline.removeprefix(before)) for session in found]

    # Which entries are there

    def _ids_at(self, name: str, head: hardsave.Checkpoint | None) -> set[str]:
        if head is None:
            return set()
        at, ids = self._known.get(name, ("", set()))
        return ids if at == head.id else set(_ids(head.state["messages"]))

    def _remember(self, name: str, at: str, ids: set[str]) -> None:
        self._known[name] = (at, ids)
        self._known.move_to_end(name)
        if len(self._known) > _KNOWN:
            self._known.popitem(last=False)


# Names


def _timeline(key: SessionKey) -> str:
    subpath = key.get("subpath")
    return f"{_main(key)}/{quote(subpath, safe='')}" if subpath else _main(key)


def _main(key: SessionKey | SessionListSubkeysKey) -> str:
    return _beginning(key["project_key"]) + quote(key["session_id"], safe="")


def _beginning(project: str) -> str:
    """How the names of a project's timelines begin."""
    return f"{_ROOM}/{quoted(project, _LONGEST)}/"


# Entries


def _ids(entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    return (id for entry in entries if isinstance(id := entry.get("uuid"), str))


def _called(entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The tools that are called in entries, by the ids of the calls."""
    for entry in entries:
        message = entry.get("message")
        content = message.get("content") if isinstance(message, Mapping) else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, Mapping) and block.get("type") == "tool_use":
                yield str(block.get("id"))


def _new(entries: Iterable[SessionStoreEntry], known: set[str]) -> Iterator[SessionStoreEntry]:
    seen = set(known)
    for entry in entries:
        id = entry.get("uuid")
        if id is None or id not in seen:
            yield entry
        if id is not None:
            seen.add(id)


def _folded(
    key: SessionKey, head: hardsave.Checkpoint | None, new: list[SessionStoreEntry]
) -> SessionSummaryEntry:
    before: SessionSummaryEntry | None = None
    if head is not None and "summary" in head.state:
        data = _plain(head.state["summary"])
        before = {"session_id": key["session_id"], "mtime": 0, "data": data}
    return fold_session_summary(before, key, new)


def _plain(value: Any) -> Any:
    """Data of the SDK, out of a view of what is stored."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | hardsave.StateList):
        return [_plain(each) for each in value]
    return value


def _milliseconds(session: "hardsave.Session[Any]") -> int:
    return int(session.updated_at.timestamp() * 1000)


def _all(
    page: "Callable[[str | None], hardsave.Page[hardsave.Session[Any]]]",
) -> "Iterator[hardsave.Session[Any]]":
    after = None
    while True:
        found = page(after)
        yield from found
        if found.next is None:
            return
        after = found.next
