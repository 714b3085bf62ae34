"""States that no framework has written, under each adapter but LangGraph's: see `audited`."""

import asyncio
import pickle
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import hardsave
from hardsave.adapters.agent_framework import HardsaveCheckpointStorage
from hardsave.adapters.claude_sdk import HardsaveSessionStore
from hardsave.adapters.google_adk import HardsaveSessionService
from hardsave.adapters.openai_agents import HardsaveSession, HardsaveSnapshot
from hardsave.adapters.pydantic_ai import HardsaveConversationStore, HardsaveStepStore
from tests.frameworks.audited import in_a_process, watched

URL = "sqlite:///store.db"


class Evil:
    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return eval, ("open('owned', 'w')",)  # what unpickling calls


PICKLED = pickle.dumps(Evil())
TOUCH = {"args": ["touch", "owned"]}
HOSTILE: list[Any] = [
    PICKLED,
    "os.system",
    {"maf": "subprocess:Popen", "value": TOUCH},
    {"maf": "turtledemo:main", "value": TOUCH},  # which nothing else imports
    {"maf": "builtins:eval", "value": "open('owned', 'w')"},
    {"maf": "builtins:bytes", "value": {"source": 9}},
    {"maf": "pathlib:Path", "value": "owned"},
    {"maf": "type", "value": "subprocess:Popen"},
    {"maf": "type"},
    {"maf": ["type"], "value": 1},
    {"maf": "event", "value": {"data": {"maf": "os:system", "value": "touch owned"}}},
    {"maf": "agent_framework._types:Message", "value": {"type": "os.system", "contents": TOUCH}},
    {"maf": "agent_framework._types:Content", "value": {"type": "subprocess.Popen", **TOUCH}},
    {"__pickled__": PICKLED, "__type__": "subprocess:Popen"},
    {"py/object": "subprocess.Popen", "py/reduce": [{"py/function": "os.system"}, ["touch owned"]]},
    {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {"command": "touch owned"}},
    {"__class__": "subprocess.Popen", "__init__": TOUCH, "__reduce__": ["os.system"]},
    {"type": "turtledemo.main", "module": "turtledemo", "name": "main", "kind": "turtledemo"},
    {"kind": "response", "parts": [{"part_kind": "subprocess.Popen", **TOUCH}]},
    {"type": "subprocess.Popen", "call_id": {"os": "system"}, **TOUCH},
]
HARMLESS: list[Any] = ["text", {"maf": "type", "value": "builtins:str"}, {"maf": "no:Thing"}, {}]


class Planted(NamedTuple):
    """States that hold a value wherever an adapter keeps one, and the reads that come upon it."""

    states: dict[str, Any]
    reads: list[Callable[[hardsave.Vault], Awaitable[object]]]


def claude_sdk(name: str, value: Any) -> Planted:
    state = {"messages": [value, {"uuid": value}], "summary": value}
    project = f"p{name}"
    return Planted(
        {f"claude-sdk/{project}/s": state},
        [
            lambda v: HardsaveSessionStore(v).load({"project_key": project, "session_id": "s"}),
            lambda v: HardsaveSessionStore(v).list_sessions(project),
            lambda v: HardsaveSessionStore(v).list_session_summaries(project),
        ],
    )


def openai_agents(name: str, value: Any) -> Planted:
    turn = {"run": "r", "response": [value], "started": [value], "outputs": {"a": value}}
    session, snapshot = f"session-{name}", HardsaveSnapshot(id=name, url=URL)
    return Planted(
        {
            session: {"messages": [value], "turn": None},
            f"{session}-dead": {"messages": [value], "turn": turn},
            f"sandbox/{name}": {"pieces": [value], "bytes": value},
        },
        [
            lambda v: HardsaveSession(session, v).get_items(),
            lambda v: HardsaveSession(f"{session}-dead", v).get_items(),
            lambda v: HardsaveSession(session, v).pop_item(),
            lambda _: snapshot.restore(),
        ],
    )


def pydantic_steps(name: str, value: Any) -> Planted:
    state = {
        "run": value,
        "events": [value],
        "effects": {"e": value},
        "messages": [value],
        "snapshot": {"state": "complete", "run_id": value, "step_index": 1},
    }
    return Planted(
        {f"pydantic-ai/{name}": state},
        [
            lambda v: HardsaveStepStore(v).get_run(run_id=name),
            lambda v: HardsaveStepStore(v).list_events(run_id=name),
            lambda v: HardsaveStepStore(v).latest_snapshot(run_id=name),
            lambda v: HardsaveStepStore(v).list_unresolved_tool_effects(run_id=name),
        ],
    )


def pydantic_conversations(name: str, value: Any) -> Planted:
    summary = {"id": "c", "workspace": "/w"}
    return Planted(
        {
            f"conversations/{name}": {"summary": summary, "messages": [value]},
            f"conversations/{name}-s": {"summary": {**summary, "title": value}, "messages": []},
        },
        [
            lambda v: HardsaveConversationStore(v).get(conversation_id=name),
            lambda v: HardsaveConversationStore(v).get(conversation_id=f"{name}-s"),
        ],
    )


def agent_framework(name: str, value: Any) -> Planted:
    state = {
        "workflow_name": "w",
        "graph_signature_hash": "h",
        "checkpoint_id": "i",
        "timestamp": "2026-01-01",
        "messages": {"a": [value]},
        "state": {"x": value},
        "pending_request_info_events": {},
    }
    whole = {**state, "messages": {}, "pending_request_info_events": {"r": value}}
    return Planted(
        {f"agent-framework/{name}": state, f"agent-framework/{name}-e": {**whole, "state": value}},
        [
            lambda v: HardsaveCheckpointStorage(v).get_latest(workflow_name=name),
            lambda v: HardsaveCheckpointStorage(v).get_latest(workflow_name=f"{name}-e"),
        ],
    )


def google_adk(name: str, value: Any) -> Planted:
    at: dict[str, Any] = {"app_name": name, "user_id": "u"}
    begun = {"session": {"app": name, "user": "u", "id": "s"}, "updated": 1.0}
    event = {"id": "e", "author": "u", "timestamp": 1.0}
    fields = ("content", "actions", "output", "node_info", "custom_metadata", "grounding_metadata")
    keyed = ("state_delta", "agent_state", "requested_auth_configs", "requested_tool_confirmations")
    events = [
        value,
        {**event, "message": value},
        {**event, "state": value},
        {**event, **dict.fromkeys(fields, value)},
        {
            **event,
            "content": {"role": "user", "parts": [value]},
            "actions": {key: {"k": value} for key in keyed},
        },
    ]
    states = {
        f"google-adk/{name}/u/{n}": {**begun, "state": {"k": value}, "messages": [each]}
        for n, each in enumerate(events)
    }
    odd = {**begun, "session": value, "state": value, "messages": []}

    def read(id: int) -> Callable[[hardsave.Vault], Awaitable[object]]:
        return lambda v: HardsaveSessionService(v).get_session(**at, session_id=str(id))

    return Planted(
        {
            **states,
            f"google-adk/{name}-odd/u/s": odd,
            f"google-adk/{name}/u": {"state": {"k": value}},
            f"google-adk/{name}": {"state": value},
        },
        [
            *map(read, range(len(states))),
            lambda v: HardsaveSessionService(v).list_sessions(app_name=name),
            lambda v: HardsaveSessionService(v).list_sessions(app_name=f"{name}-odd"),
            lambda v: HardsaveSessionService(v).get_user_state(**at),
        ],
    )


ADAPTERS = (
    *(claude_sdk, openai_agents, pydantic_steps, pydantic_conversations),
    *(agent_framework, google_adk),
)


def planted(values: Iterable[Any], kind: str) -> list[Planted]:
    return [make(f"{kind}{n}", each) for n, each in enumerate(values) for make in ADAPTERS]


def read_all() -> None:
    with hardsave.open(URL) as vault:

        async def read(each: Callable[[hardsave.Vault], Awaitable[object]]) -> None:
            await each(vault)

        reads = [[r for each in planted(*some) for r in each.reads] for some in (WARM, COLD)]
        watched(lambda each: asyncio.run(read(each)), *reads)


WARM, COLD = (HARMLESS, "harmless-"), (HOSTILE, "hostile-")


def test_nothing_is_imported_constructed_or_run(tmp_path: Path) -> None:
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        for each in [*planted(*WARM), *planted(*COLD)]:
            for name, state in each.states.items():
                line = vault.timeline(name)
                line.save(state, labels={"maf_checkpoint": "i"}, status="whole")
    in_a_process(__name__, "read_all()", tmp_path)


@pytest.mark.parametrize("value", HOSTILE[2:13], ids=str)
def test_what_no_workflow_has_saved_is_refused_with_a_sentence(value: Any, tmp_path: Path) -> None:
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        first, _ = agent_framework("w", value).states.values()
        vault.timeline("agent-framework/w").save(first, labels={"maf_checkpoint": "i"})
        storage = HardsaveCheckpointStorage(vault)
        with pytest.raises(hardsave.Misuse, match=r"types=|does not make one"):
            asyncio.run(storage.get_latest(workflow_name="w"))
