"""A session of the OpenAI Agents SDK that is a timeline of a vault.

Each batch of items is one checkpoint, with the files of `workspace` in the same commit. `hooks`
save what lies between two batches: the model's answer, and the result of each tool as it ends.
"""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agents.items import TResponseInputItem
from agents.lifecycle import RunHooks
from agents.memory import SessionSettings
from agents.memory.session import SessionABC
from agents.memory.session_settings import resolve_session_limit

import hardsave
from hardsave.adapters.heads import on_the_head
from hardsave.adapters.openai_agents import turn
from hardsave.adapters.openai_agents.hooks import SavingHooks
from hardsave.adapters.threads import in_thread
from hardsave.values.messages import first_prompt


class HardsaveSession(SessionABC):
    """A conversation that grows by what is new, and can be rewound, forked, searched and compared.

        with hardsave.open() as vault:
            session = HardsaveSession("support-7", vault, workspace="work")
            await Runner.run(agent, "fix it", session=session, hooks=session.hooks())

    The name of the timeline is `session_id`. One run at a time works on a session; `pop_item` and
    `clear_session` are checkpoints like all others, so `hardsave undo` and `rewind` take them back.
    """

    def __init__(
        self,
        session_id: str,
        vault: hardsave.Vault,
        *,
        workspace: str | Path | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._line = vault.timeline(session_id)
        self._workspace = workspace
        self._run: str | None = None
        self._writing = threading.Lock()  # tools of one answer end together

    def hooks(self, also: RunHooks[Any] | None = None) -> SavingHooks:
        """Hooks for `Runner.run` that save the model's answer before its tools run, and each result
        as it comes. `also` are called after them."""
        hooks = SavingHooks(self._note, also)
        self._run = hooks.run
        return hooks

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The newest `limit` items, oldest first, with what a run that died has left."""
        allowed = resolve_session_limit(limit, self.session_settings)
        return await in_thread(lambda: self._items(allowed))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Save a batch: all of it in one commit, or nothing."""
        if items:
            await in_thread(lambda: self._write(lambda state: self._added(state, items)))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take back the newest item, and return it."""
        return await in_thread(self._pop)

    async def clear_session(self) -> None:
        """Begin anew. What was said stays in the history of the timeline."""
        await in_thread(lambda: self._saved(lambda _: {"messages": []}))

    # In a thread

    def _items(self, limit: int | None) -> list[Any]:
        """Only reads: the run whose turn is seen here may still be under way elsewhere."""
        state = _state(self._line.head)
        messages, left = state.get("messages", ()), turn.settled(state.get("turn"))
        if limit is None:
            return [*messages, *left]
        return [*messages[-limit:], *left][-limit:] if limit > 0 else []

    def _added(self, state: Mapping[str, Any], items: list[Any]) -> dict[str, Any]:
        left = state.get("turn")
        if left is None:
            return {"messages": items}
        if left["run"] == self._run:
            return {"messages": items, "turn": turn.rest(left, items)}
        return {"messages": [*turn.settled(left, items), *items], "turn": None}

    def _pop(self) -> Any:
        popped: list[Any] = []

        def without_the_last(state: Mapping[str, Any]) -> dict[str, Any]:
            messages = [*state.get("messages", ()), *turn.settled(state.get("turn"))]
            popped[:] = messages[-1:]
            return {"messages": messages[:-1]}

        self._saved(without_the_last)
        return popped[0] if popped else None

    def _note(self, change: Callable[[Mapping[str, Any] | None], Mapping[str, Any] | None]) -> None:
        """Write how far the turn under way has come, with the files of now. What another run has
        left joins the conversation before it."""

        def noted(state: Mapping[str, Any]) -> dict[str, Any] | None:
            left = state.get("turn")
            changed = change(left)
            if changed is None:
                return None
            is_other = left is not None and left["run"] != changed["run"]
            return {"messages": turn.settled(left) if is_other else [], "turn": changed}

        self._write(noted)

    def _write(self, delta: Callable[[Mapping[str, Any]], dict[str, Any] | None]) -> None:
        """Append what `delta` makes of the state at the head, if it makes anything."""

        def append(head: hardsave.Checkpoint | None) -> None:
            made = delta(_state(head))
            if made is not None:
                title = first_prompt(made.get("messages", ()))
                self._line.append(made, workspace=self._workspace, expect=head, title=title)

        with self._writing:
            on_the_head(self._line, append)

    def _saved(self, change: Callable[[Mapping[str, Any]], dict[str, Any]]) -> None:
        def save(head: hardsave.Checkpoint | None) -> None:
            self._line.save(change(_state(head)), workspace=self._workspace, expect=head)

        with self._writing:
            on_the_head(self._line, save)


def _state(head: hardsave.Checkpoint | None) -> Mapping[str, Any]:
    return {} if head is None else head.state
