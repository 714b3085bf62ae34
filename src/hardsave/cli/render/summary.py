"""What a list says about a checkpoint: its messages and files, against its parent."""

from collections.abc import Iterable, Mapping
from typing import Any

from hardsave import Checkpoint, StepSummary, Vault, wording
from hardsave.cli.render import changed_files
from hardsave.errors import NotFound
from hardsave.timeline import story
from hardsave.tuples import NamedTuple
from hardsave.values import messages
from hardsave.vault.checkpoint import record_of
from hardsave.vault.files import difference

_CARRIED = 1_000  # checkpoints in a row that have added files alone
NAMED = 5  # of the files that have changed; a line has no room for more


class Summary(NamedTuple):
    """One checkpoint. None stands for "has none": no messages in the state, no files."""

    messages: int | None
    new_messages: int
    last: str  # the beginning of the last message
    files: Mapping[str, int] | None  # +, ~ and - against the parent; of a first one how many
    paths: tuple[str, ...]  # the first of these; none of a first one
    not_captured: int
    lost: str  # to an ignore rule, if that is most of the files


class Summaries:
    """Makes summaries, and keeps what it has read: the parent of one checkpoint is the next in a
    list."""

    def __init__(self, vault: Vault, checkpoints: Iterable[Checkpoint] = ()) -> None:
        self._vault = vault
        self._parents: dict[str, Checkpoint | None] = {}
        self._checkpoints = {each.id: each for each in checkpoints}

    def parent(self, one: Checkpoint) -> Checkpoint | None:
        """The nearest one before it that is still there."""
        if one.id not in self._parents:
            self._parents[one.id] = self._found(one)
        return self._parents[one.id]

    def _found(self, one: Checkpoint) -> Checkpoint | None:
        if one.parent is None or one.parent in self._checkpoints:
            return self._checkpoints.get(one.parent or "")
        try:
            return next(self._vault.timeline(one.timeline).ancestors(one.id), None)
        except NotFound:
            return None

    def state_origin(self, one: Checkpoint) -> Checkpoint:
        """The checkpoint that the state of this one was saved with, which may have added files
        alone: then they are newer than what was said, perhaps from the middle of a tool."""
        found = one
        for _ in range(_CARRIED):
            parent = self.parent(found)
            if parent is None or record_of(parent).root != record_of(one).root:
                break
            found = parent
        return found

    def older_state(self, one: Checkpoint) -> Checkpoint | None:
        """The same, if there is a conversation and files are newer than that."""
        state_origin = self.state_origin(one)
        is_same = record_of(one).snapshot in (None, record_of(state_origin).snapshot)
        return None if is_same or messages.of(one.state) is None else state_origin

    def of(self, one: Checkpoint) -> Summary:
        """As it was kept when it was saved; of an older checkpoint, as its state and files tell."""
        kept = one.summary
        if kept is None:
            return self._computed(one)
        return _of_kept(kept, is_root=one.parent is None)

    def _computed(self, one: Checkpoint) -> Summary:
        parent = self.parent(one)
        count, last = _messages(one)
        before = _messages(parent)[0] if parent is not None and count is not None else None
        files, paths = _files(parent, one)
        return Summary(
            messages=count,
            new_messages=(count or 0) - (before or 0),
            last=last,
            files=files,
            paths=paths,
            not_captured=len(one.not_captured),
            lost=next((each.reason for each in one.not_captured if each.is_loss), ""),
        )


def _of_kept(kept: StepSummary, *, is_root: bool) -> Summary:
    return Summary(
        messages=kept.messages,
        new_messages=kept.new_messages,
        last=wording.line(kept.said),
        files=story.counts(kept, is_first=is_root),
        paths=kept.paths,
        not_captured=kept.not_captured,
        lost=kept.lost,
    )


def _messages(one: Checkpoint) -> tuple[int | None, str]:
    found = messages.of(one.state)
    if found is None:
        return None, ""
    _, items = found
    return len(items), _last(items[-3:])


def _last(items: Any) -> str:
    """What was last said; results of tools say little, but whose they are."""
    has_result = False
    for item in reversed(items):
        message = messages.read(item)
        if has_result and message.calls:
            return wording.line(f"after {', '.join(call.tool for call in message.calls)}", 200)
        if message.text.strip():
            return wording.line(message.text, 200)
        if message.calls:
            return wording.line(f"{message.calls[-1].tool}({message.calls[-1].arguments})", 200)
        has_result = has_result or bool(message.results)
    return ""


def _files(
    parent: Checkpoint | None, one: Checkpoint
) -> tuple[dict[str, int] | None, tuple[str, ...]]:
    files = one.files
    if files is None:
        return None, ()
    before = None if parent is None else parent.files
    if before is None:
        return {"": sum(1 for each in files.list() if each.kind != "directory")}, ()
    found = changed_files.signed(difference(before, files))
    return changed_files.counts(found), tuple(path for _, path in found[:NAMED])
