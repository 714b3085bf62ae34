"""A step store of Pydantic AI's harness: each run is a timeline.

The state at its head has all that the store was told of a run: `run`, `events`, `effects`, the
`messages` of the newest snapshot with what else is known of that (`snapshot`), and, where that one
was interrupted, the newest one that was not (`complete`). So a rewind takes messages, events and
effects back together.
"""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import TypeAdapter
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai_harness.step_persistence import (
    ContinuableSnapshot,
    RunRecord,
    StepEvent,
    ToolEffectRecord,
)

import hardsave
from hardsave.adapters.heads import on_the_head
from hardsave.adapters.pydantic_ai.growth import tail
from hardsave.adapters.threads import in_thread
from hardsave.values.messages import first_prompt

State = Mapping[str, Any]

_ROOM = "pydantic-ai"
_RUN, _EVENT = TypeAdapter(RunRecord), TypeAdapter(StepEvent)
_SNAPSHOT, _EFFECT = TypeAdapter(ContinuableSnapshot), TypeAdapter(ToolEffectRecord)


class HardsaveStepStore:
    """For `StepPersistence(store=…)`. With `workspace=`, each write has the files of its moment in
    the same commit. The timeline of a run is `pydantic-ai/RUN`.
    """

    def __init__(self, vault: hardsave.Vault, *, workspace: str | Path | None = None) -> None:
        self._vault = vault
        self._workspace = workspace
        self._writing = threading.Lock()

    async def register_run(self, record: RunRecord) -> None:
        await self._write(record.run_id, lambda _: {"run": _RUN.dump_python(record, mode="json")})

    async def get_run(self, *, run_id: str) -> RunRecord | None:
        return await in_thread(lambda: _run(self._state(run_id)))

    async def list_runs(
        self, *, parent_run_id: str | None = None, conversation_id: str | None = None
    ) -> list[RunRecord]:
        """Matching runs, the earliest first."""
        found = await in_thread(lambda: [_run(line.head.state) for line in self._lines()])  # type: ignore[union-attr] # a line that is listed has a head
        runs = [
            run
            for run in found
            if run is not None
            and parent_run_id in (None, run.parent_run_id)
            and conversation_id in (None, run.conversation_id)
        ]
        return sorted(runs, key=lambda run: run.started_at)

    async def append_event(self, event: StepEvent) -> None:
        def added(state: State) -> dict[str, Any] | None:
            key = event.idempotency_key
            if key is not None and any(
                e["idempotency_key"] == key for e in state.get("events", ())
            ):
                return None
            return {"events": [_EVENT.dump_python(event, mode="json")]}

        await self._write(event.run_id, added)

    async def list_events(self, *, run_id: str) -> list[StepEvent]:
        events = await in_thread(lambda: list(self._state(run_id).get("events", ())))
        return [_EVENT.validate_python(event) for event in events]

    async def save_snapshot(self, snapshot: ContinuableSnapshot) -> None:
        await in_thread(lambda: self._save_snapshot(snapshot))

    async def latest_snapshot(
        self, *, run_id: str, include_interrupted: bool = False
    ) -> ContinuableSnapshot | None:
        return await in_thread(lambda: _latest(self._state(run_id), include_interrupted))

    async def record_tool_effect(self, record: ToolEffectRecord) -> None:
        told = _EFFECT.dump_python(record, mode="json")

        def added(state: State) -> dict[str, Any]:
            return {"effects": {**state.get("effects", {}), record.tool_call_id: told}}

        await self._write(record.run_id, added)

    async def get_tool_effect(self, *, run_id: str, tool_call_id: str) -> ToolEffectRecord | None:
        return next(
            (e for e in await self._effects(run_id) if e.tool_call_id == tool_call_id), None
        )

    async def list_unresolved_tool_effects(self, *, run_id: str) -> list[ToolEffectRecord]:
        return [each for each in await self._effects(run_id) if each.status == "started"]

    async def _effects(self, run_id: str) -> list[ToolEffectRecord]:
        found = await in_thread(lambda: dict(self._state(run_id).get("effects", {})))
        return [_EFFECT.validate_python(each) for each in found.values()]

    async def _write(self, run_id: str, delta: Callable[[State], dict[str, Any] | None]) -> None:
        await in_thread(lambda: self._appended(run_id, delta))

    # In a thread

    def _line(self, run_id: str) -> hardsave.Timeline:
        return self._vault.timeline(f"{_ROOM}/{quote(run_id, safe='')}")

    def _lines(self) -> list[hardsave.Timeline]:
        return list(self._vault.timelines(prefix=f"{_ROOM}/"))

    def _state(self, run_id: str) -> State:
        return _state(self._line(run_id).head)

    def _appended(self, run_id: str, delta: Callable[[State], dict[str, Any] | None]) -> None:
        line = self._line(run_id)

        def append(head: hardsave.Checkpoint | None) -> None:
            made = delta(_state(head))
            if made is not None:
                line.append(made, expect=head, workspace=self._workspace)

        with self._writing:
            on_the_head(line, append)

    def _save_snapshot(self, snapshot: ContinuableSnapshot) -> None:
        messages = ModelMessagesTypeAdapter.dump_python(snapshot.messages, mode="json")
        told = _SNAPSHOT.dump_python(snapshot, mode="json", exclude={"messages"})
        line = self._line(snapshot.run_id)

        def write(head: hardsave.Checkpoint | None) -> None:
            state = _state(head)
            if _is_repeated(state.get("snapshot_keys"), snapshot.idempotency_key):
                return
            before = list(state.get("messages", ()))
            new = {
                "snapshot": told,
                "complete": _complete(state, before) if snapshot.state != "complete" else None,
                "snapshot_keys": _keys(state.get("snapshot_keys"), snapshot.idempotency_key),
            }
            more = tail(before, messages)
            title = first_prompt(messages)
            if more is None:
                whole = {**(line.load(head) if head is not None else {}), **new}
                line.save(
                    {**whole, "messages": messages},
                    expect=head,
                    workspace=self._workspace,
                    title=title,
                )
            else:
                line.append(
                    {**new, "messages": more}, expect=head, workspace=self._workspace, title=title
                )

        with self._writing:
            on_the_head(line, write)


def _state(head: hardsave.Checkpoint | None) -> State:
    return {} if head is None else head.state


def _run(state: State) -> RunRecord | None:
    found = state.get("run")
    return None if found is None else _RUN.validate_python(dict(found))


def _latest(state: State, include_interrupted: bool) -> ContinuableSnapshot | None:
    told, messages = state.get("snapshot"), state.get("messages", ())
    if told is not None and told["state"] != "complete" and not include_interrupted:
        complete = state.get("complete") or {"snapshot": None, "messages": ()}
        told, messages = complete["snapshot"], complete["messages"]
    if told is None:
        return None
    history = ModelMessagesTypeAdapter.validate_python(list(messages))
    return _SNAPSHOT.validate_python({**told, "messages": history})


def _complete(state: State, messages: list[Any]) -> Any:
    """The newest snapshot that was not interrupted, once one that was comes on top."""
    told = state.get("snapshot")
    if told is not None and told["state"] == "complete":
        return {"snapshot": told, "messages": messages}
    return state.get("complete")


# Keys. The harness numbers its snapshots: `0000012:…`. What is older than the newest number was
# saved before, or is overtaken.


def _number(key: str) -> int | None:
    digits, colon, _ = key.partition(":")
    return int(digits) if colon and digits.isascii() and digits.isdigit() else None


def _is_repeated(known: Mapping[str, Any] | None, key: str | None) -> bool:
    if key is None or known is None:
        return False
    number = _number(key)
    if number is not None and known["number"] is not None and number < known["number"]:
        return True
    return key in known["keys"]


def _keys(known: Mapping[str, Any] | None, key: str | None) -> Any:
    if key is None:
        return known
    number = _number(key)
    if known is None or (number is not None and known["number"] not in (None, number)):
        return {"number": number, "keys": [key]}
    return {
        "number": number if number is not None else known["number"],
        "keys": [*known["keys"], key],
    }
