"""The conversation that is under way, and keeping it: the one place of the loop that saves.

Saves cost what is new, and several that are wanted at once are one. They come one after the other,
also if the caller that wanted one is cancelled. A save that fails does not stop the agent, unless
the vault is `strict`: it is logged, told as an event, counted, and made up for by the next one. A
`Conflict` does stop it: another process has taken this conversation somewhere else, and two that
go on with it would call the same tools twice.
"""

import asyncio
import contextlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pydantic_ai.messages import ModelMessage

from hardsave.errors import Conflict, HardsaveError
from hardsave.logs import log
from hardsave.runtime.loop import conversation as conversations
from hardsave.runtime.loop import messages as forms
from hardsave.runtime.loop.conversation import Conversation, Status
from hardsave.runtime.loop.journal import Noted, State
from hardsave.tuples import NamedTuple
from hardsave.vault.checkpoint import Checkpoint, record_of
from hardsave.vault.line import Timeline
from hardsave.vault.line_saves import Directory
from hardsave.vault.save.request import ANY_HEAD

Now = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


class Mark(NamedTuple):
    """How messages were when they were kept, from the last mark to this one."""

    end: int
    hash: int


def begins_with(messages: list[ModelMessage], others: list[ModelMessage]) -> bool:
    """Whether a list begins with what another one holds.

    Asked for in this way, messages that are the same objects in both are not touched. Slices would
    count references to each of them, thousands in memory that were not looked at for a while.
    """
    try:
        return others <= messages
    except TypeError:  # the first two that are not equal have no order
        return False


class Record:
    """Used by one event loop; what is saved is saved in a thread."""

    def __init__(
        self,
        line: Timeline,
        workspace: Directory | None,
        conversation: Conversation,
        *,
        is_kept: bool,
        is_strict: Callable[[], bool] = lambda: False,
        now: Now = utc_now,
    ) -> None:
        self.failures = 0
        self.last: Checkpoint | None = None
        self._line = line
        self._workspace = workspace
        self._is_strict = is_strict
        self._now = now
        self._conversation = conversation
        self._live: list[ModelMessage] = forms.live(conversation.messages)
        self._kept_messages: int | None = len(self._live) if is_kept else None
        self._marks = [Mark(len(self._live), hash(forms.dumped(self._live)))] if is_kept else []
        self._kept_rest: dict[str, Any] = {}
        self._turn = asyncio.Lock()
        self._wanted = self._kept = 0
        self._note = ""

    # Looking

    @property
    def conversation(self) -> Conversation:
        return self._conversation

    @property
    def messages(self) -> list[ModelMessage]:
        return list(self._live)

    def noted(self, id: str) -> Noted | None:
        """What is on record about a call of the last response."""
        return self._conversation.calls.get(id)

    # Happenings: each returns when it is kept

    async def opened(self) -> None:
        """There is a prompt, or what was there had to be repaired."""
        await self._keep("resumed" if self._conversation.prompt is None else "prompt")

    async def responded(self, messages: Sequence[ModelMessage], **about: Any) -> None:
        """The model has answered: `messages` end in its response."""
        turn = self._conversation.turn + 1
        self._take(messages)
        self._change(prompt=None, calls={}, turn=turn, **about)
        await self._keep(f"response {turn}")

    async def approved(self, id: str, tool: str, args: Mapping[str, Any] | None) -> None:
        """A person allows a call, perhaps with other arguments: those hold for every try."""
        self._note_call(id, Noted(tool, "approved", self._moment(), args=args))
        await self._keep(f"{tool} approved")

    async def began(self, id: str, tool: str) -> None:
        """A tool is about to be called."""
        self._note_call(id, Noted(tool, "began", self._moment(), args=self._args(id)))
        await self._keep(f"before {tool}")

    async def ended(self, id: str, tool: str, state: State, value: Any) -> None:
        """A tool has returned, or ended otherwise."""
        self._note_call(id, Noted(tool, state, self._moment(), value, self._args(id)))
        await self._keep(f"{tool} {state}")

    def _args(self, id: str) -> Mapping[str, Any] | None:
        noted = self.noted(id)
        return None if noted is None else noted.args

    def forget(self, id: str) -> None:
        """A call that was put off, to be made another time."""
        calls = {key: noted for key, noted in self._conversation.calls.items() if key != id}
        self._change(calls=calls)

    async def finished(
        self, status: Status, messages: Sequence[ModelMessage] | None = None, **about: Any
    ) -> None:
        """The run is over. Now all messages are looked at, for once: a tool may have changed one
        in place."""
        if messages is not None:
            self._take(messages)
        if not await asyncio.to_thread(self._are_as_kept):
            self._kept_messages = None
        self._change(status=status, **about)
        await self._keep(status)

    # Keeping

    def _take(self, messages: Sequence[ModelMessage]) -> None:
        """Have them in the place of what was there, whose beginning they mostly are."""
        taken = messages if isinstance(messages, list) else list(messages)
        if begins_with(taken, self._live):
            self._live += taken[len(self._live) :]
        else:
            self._live = list(taken)
            self._kept_messages = None  # older messages were replaced: all of them are saved

    def _are_as_kept(self) -> bool:
        begin = 0
        for mark in self._marks:
            try:
                if hash(forms.dumped(self._live[begin : mark.end])) != mark.hash:
                    return False
            except HardsaveError:
                return False  # the save will say what is wrong
            begin = mark.end
        return True

    def _note_call(self, id: str, noted: Noted) -> None:
        self._change(calls={**self._conversation.calls, id: noted})

    def _change(self, **fields: Any) -> None:
        self._conversation = replace(self._conversation, **fields)

    def _moment(self) -> str:
        return self._now().isoformat(timespec="seconds")

    async def _keep(self, note: str) -> None:
        self._wanted += 1
        mine, self._note = self._wanted, note
        async with self._turn:
            if self._kept >= mine:
                return  # the save of another has taken this along
            upto = self._wanted
            await self._kept_or_reported()
            self._kept = upto

    async def _kept_or_reported(self) -> None:
        kept, self._kept_messages = self._kept_messages, None  # until it is certain
        count, rest = len(self._live), conversations.without_messages(self._conversation)
        try:
            new = forms.dumped(self._live[kept or 0 :])
            save = self._prepared(kept, new, rest)
            self.last = await _to_its_end(save)
        except Conflict:
            raise
        except Exception as error:  # any error: the agent's work goes on
            self.failures += 1
            if self._is_strict():
                raise
            log(__name__).exception(
                "a conversation on timeline %r could not be saved (%s); the agent goes on, and "
                "the next save makes up for it",
                self._line.name,
                error,
            )
        else:
            self._kept_messages, self._kept_rest = count, rest
            if kept is None:
                self._marks.clear()
            if count > (kept or 0):
                self._marks.append(Mark(count, hash(new)))

    def _prepared(
        self, kept: int | None, dumped: bytes, rest: dict[str, Any]
    ) -> Callable[[], Checkpoint]:
        """A save with all its data made plain, so that a thread can do it."""
        new = json.loads(dumped)
        prompt = self._conversation.prompt
        how: dict[str, Any] = {
            "status": self._conversation.status,
            "description": self._note,
            "workspace": self._files(),
            "title": prompt if isinstance(prompt, str) else "",
        }
        if kept is None:
            whole = {"messages": new, **rest}
            return lambda: self._saved(lambda **more: self._line.save(whole, **how, **more))
        delta = {"messages": new, **self._changed(rest)}
        return lambda: self._saved(lambda **more: self._line.append(delta, **how, **more))

    def _changed(self, rest: dict[str, Any]) -> dict[str, Any]:
        """What is not as it was saved. The caller's own data may have changed in place."""
        kept = self._kept_rest
        return {
            key: value
            for key, value in rest.items()
            if key == "data" or key not in kept or kept[key] != value
        }

    def _files(self) -> Directory | None:
        """A workspace that an agent has removed as a whole costs no conversation."""
        if self._workspace is None:
            return None
        place = getattr(self._workspace, "path", self._workspace)
        if os.path.isdir(place):
            return self._workspace
        log(__name__).warning("%s is gone: the conversation is saved without files", place)
        return None

    def _saved(self, save: Callable[..., Checkpoint]) -> Checkpoint:
        try:
            return save()
        except Conflict:
            head = self._line.head
            if (
                head is None
                or self.last is None
                or record_of(head).root != record_of(self.last).root
            ):
                raise
            return save(expect=ANY_HEAD)  # only files were saved in between


async def _to_its_end(save: Callable[[], Checkpoint]) -> Checkpoint:
    """A save in a thread. A caller cancelled meanwhile waits until it has ended: what is saved
    next must not be overtaken by what was wanted before."""
    saving = asyncio.ensure_future(asyncio.to_thread(save))
    try:
        return await asyncio.shield(saving)
    except asyncio.CancelledError:
        while not saving.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([saving])
        if not saving.cancelled() and (error := saving.exception()) is not None:
            log(__name__).warning("a save has failed after its caller was cancelled: %s", error)
        raise
