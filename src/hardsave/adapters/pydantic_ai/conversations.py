"""A store of conversations for Pydantic AI's harness: each is a timeline.

A save is refused if another writer was faster, as the harness expects it. Names and archiving are
checkpoints, too, so they can be taken back.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import TypeAdapter
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai_harness.step_persistence.conversations import (
    ConversationConflict,
    ConversationSummary,
    SavedConversation,
    conversation_text,
    ensure_inactive,
)

import hardsave
from hardsave.adapters.heads import on_the_head
from hardsave.adapters.pydantic_ai.growth import tail
from hardsave.adapters.threads import in_thread

_ROOM = "conversations"
_SUMMARY = TypeAdapter(ConversationSummary)
_GONE = "Session was deleted. Start a new session before saving."
_CHANGED = "Session changed in another process. Resume it again before continuing."


class HardsaveConversationStore:
    """What `SqliteConversationStore` offers, on a vault: files in the same commit, storage that
    grows by what is new, and a history that can be rewound. The timeline is `conversations/ID`.
    """

    def __init__(self, vault: hardsave.Vault, *, workspace: str | Path | None = None) -> None:
        self._vault = vault
        self._workspace = workspace

    async def save(
        self, *, summary: ConversationSummary, messages: Sequence[ModelMessage]
    ) -> ConversationSummary:
        """Save what was said, if no other writer has since the summary was read."""
        used = [each.usage.total_tokens for each in messages if isinstance(each, ModelResponse)]
        updated = replace(
            summary,
            revision=summary.revision + 1,
            updated_at=datetime.now(UTC),
            message_count=len(messages),
            total_tokens=sum(used),
        )
        data = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
        return await in_thread(lambda: self._save(summary.revision, updated, data))

    async def get(self, *, conversation_id: str) -> SavedConversation:
        summary, messages = await in_thread(lambda: self._get(conversation_id))
        history = ModelMessagesTypeAdapter.validate_python(messages)
        return SavedConversation(summary=summary, messages=history)

    async def listing(
        self, *, query: str = "", limit: int = 200, offset: int = 0, archived: bool | None = None
    ) -> list[ConversationSummary]:
        """Summaries, the last updated first. A query looks in titles, tags and what was said."""
        if limit < 1 or offset < 0:
            raise ValueError("limit must be positive and offset nonnegative")
        return await in_thread(lambda: self._listing(query, archived)[offset : offset + limit])

    async def name(
        self,
        *,
        source: ConversationSummary,
        title: str,
        subtitle: str = "",
        tags: tuple[str, ...] = (),
        manual: bool = False,
        tokens: int = 0,
    ) -> bool:
        """Name a conversation, if it is as it was when the name was thought of."""

        def named(now: ConversationSummary) -> ConversationSummary:
            now = replace(now, naming_tokens=now.naming_tokens + tokens)
            is_other = (now.revision, now.naming_version) != (
                source.revision,
                source.naming_version,
            )
            if is_other or (now.title_source == "user" and not manual):
                return now
            return replace(
                now,
                title=title,
                subtitle=subtitle,
                tags=tags,
                title_source="user" if manual else "generated",
                naming_version=now.naming_version + 1,
                named_revision=now.revision,
            )

        def write() -> bool:
            try:
                before, after = self._changed(source.id, named)
            except LookupError:
                return False
            return after.naming_version != before.naming_version

        return await in_thread(write)

    async def set_archived(self, *, conversation_id: str, archived: bool) -> ConversationSummary:
        def marked(now: ConversationSummary) -> ConversationSummary:
            if archived == (now.archived_at is not None):
                return now
            return replace(now, archived_at=datetime.now(UTC) if archived else None)

        return await in_thread(lambda: self._changed(conversation_id, marked)[1])

    async def delete(self, *, source: ConversationSummary) -> None:
        """Hide a conversation that is as it was read; `hardsave undo` brings it back."""
        await in_thread(lambda: self._delete(source))

    # In a thread

    def _line(self, id: str) -> hardsave.Timeline:
        return self._vault.timeline(f"{_ROOM}/{quote(id, safe='')}")

    def _save(self, expected: int, updated: ConversationSummary, data: Any) -> ConversationSummary:
        line = self._line(updated.id)
        head = line.head
        if head is None and expected != 0:
            raise ConversationConflict(_GONE)
        before: list[Any] = []
        if head is not None:
            prior = _summary(head)
            if prior.revision != expected:
                raise ConversationConflict(_CHANGED)
            updated = _renewed(updated, prior)
            before = list(head.state["messages"])
        told, more = _SUMMARY.dump_python(updated, mode="json"), tail(before, data)
        try:
            if more is None:
                state = {"summary": told, "messages": data}
                line.save(state, expect=head, workspace=self._workspace)
            else:
                delta = {"summary": told, "messages": more}
                line.append(delta, expect=head, workspace=self._workspace, title=updated.title)
        except hardsave.Conflict as error:
            raise ConversationConflict(_CHANGED) from error
        return updated

    def _get(self, id: str) -> tuple[ConversationSummary, list[Any]]:
        head = self._line(id).head
        if head is None:
            raise LookupError(f"No saved session: {id}")
        return _summary(head), list(head.state["messages"])

    def _listing(self, query: str, archived: bool | None) -> list[ConversationSummary]:
        heads = [line.head for line in self._vault.timelines(prefix=f"{_ROOM}/")]
        found = [(_summary(head), head) for head in heads if head is not None]
        kept = [
            summary
            for summary, head in found
            if archived in (None, summary.archived_at is not None)
            and (not query or _matches(query, summary, head))
        ]
        return sorted(kept, key=lambda each: (-each.updated_at.timestamp(), each.id))

    def _changed(
        self, id: str, change: Callable[[ConversationSummary], ConversationSummary]
    ) -> tuple[ConversationSummary, ConversationSummary]:
        """The summary before and after."""
        line = self._line(id)

        def write(
            head: hardsave.Checkpoint | None,
        ) -> tuple[ConversationSummary, ConversationSummary]:
            if head is None:
                raise LookupError(f"No saved session: {id}")
            before = _summary(head)
            after = change(before)
            if after != before:
                line.append({"summary": _SUMMARY.dump_python(after, mode="json")}, expect=head)
            return before, after

        return on_the_head(line, write)

    def _delete(self, source: ConversationSummary) -> None:
        ensure_inactive(source)
        line = self._line(source.id)
        head = line.head
        if head is None or _summary(head).revision != source.revision:
            raise ConversationConflict("Session changed or was deleted. Refresh the browser.")
        line.delete()


def _summary(head: hardsave.Checkpoint) -> ConversationSummary:
    return _SUMMARY.validate_python(dict(head.state["summary"]))


def _renewed(updated: ConversationSummary, prior: ConversationSummary) -> ConversationSummary:
    """What was said is new; a name that was given meanwhile stays, and it is archived no more."""
    return replace(
        updated,
        title=prior.title,
        subtitle=prior.subtitle,
        tags=prior.tags,
        title_source=prior.title_source,
        naming_version=prior.naming_version,
        named_revision=prior.named_revision,
        naming_tokens=prior.naming_tokens,
        archived_at=None,
    )


def _matches(query: str, summary: ConversationSummary, head: hardsave.Checkpoint) -> bool:
    wanted = query.casefold()
    if wanted in _SUMMARY.dump_json(summary).decode().casefold():
        return True
    history = ModelMessagesTypeAdapter.validate_python(list(head.state["messages"]))
    return wanted in conversation_text(history).casefold()
