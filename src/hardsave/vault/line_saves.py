"""The half of a timeline's handle that saves. `line.Timeline` says what a save promises."""

import os
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias

from hardsave.errors import Misuse
from hardsave.objects.records import CheckpointRecord, TimelineRecord, filled
from hardsave.tasks import current
from hardsave.timeline.step_summary import StepSummary
from hardsave.vault.checkpoint import Checkpoint, Ref
from hardsave.vault.context import Context
from hardsave.vault.events import SaveFailed
from hardsave.vault.save.parts import Parts
from hardsave.vault.save.receipt import wanted
from hardsave.vault.save.request import ANY_HEAD, About, Expected, Form, Parent, SaveRequest, about
from hardsave.vault.save.saving import Saving

Directory: TypeAlias = str | os.PathLike[str]
"""A path, or a `Workspace`, which is one."""

if TYPE_CHECKING:
    from hardsave.vault.save.captured import CapturedFiles, Held
    from hardsave.vault.save.capturing import Taking


class TimelineSaves:
    """Puts checkpoints on top of one timeline."""

    def __init__(self, context: Context, name: str, seen: TimelineRecord | None) -> None:
        self._context = context
        self._name = name
        self._lock = threading.RLock()
        self._saving = Saving(context, name, seen)

    def save(
        self,
        state: Any,
        *,
        name: str | None = None,
        kind: str | None = None,
        status: str = "running",
        description: str = "",
        metadata: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        notes: Mapping[str, Any] | None = None,
        workspace: "Directory | CapturedFiles | None" = None,
        expect: Expected = None,
        step: StepSummary | None = None,
        title: str = "",
        id: str | None = None,
        parent: Ref | None = "@",
    ) -> Checkpoint:
        """Save a whole state. What has not changed since the last save costs a comparison.

        What another thread changes in it meanwhile may be saved now, or with the next save.
        With a `workspace` its files are captured and committed together with the state; or those
        that were captured before, by `workspace.capture()`.
        `step` says what lists tell of it: the prompt, the tool call; messages and files are counted
        without it. `title` is for a timeline that has none yet.

        `metadata` is data of any kind. `labels` are texts that checkpoints are found by (see
        `checkpoints`). `notes` are data under keys that can be added to later: see
        `Vault.put_notes`.

        `id` is for a save that may be asked for twice, or is named by the caller: `chk_` and 24 hex
        digits, random ones or those of `hardsave.checkpoint_id`. If a checkpoint has it already,
        that one is returned and nothing is written; `Conflict` if it is on another timeline or has
        another state. `parent` is the checkpoint that it stands on,
        if that is not the head; None: it begins anew. Either way it becomes the head.
        """
        what = about(*(self._context, name, kind, status, description, metadata), id=id)
        form: Form = "parts" if isinstance(state, Parts) else "whole"
        request = self._request(what, form, state, expect, step, title, parent, labels, notes)
        return self._made(request, workspace)

    def append(
        self,
        delta: Mapping[str, Any],
        *,
        name: str | None = None,
        kind: str | None = None,
        status: str = "running",
        description: str = "",
        metadata: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        notes: Mapping[str, Any] | None = None,
        workspace: "Directory | CapturedFiles | None" = None,
        expect: Expected = None,
        step: StepSummary | None = None,
        title: str = "",
        id: str | None = None,
        parent: Ref | None = "@",
    ) -> Checkpoint:
        """Save the parent's state with `delta` added: lists grow, other keys are replaced. See
        `save` for the rest; without a `parent` it is the head.

        Costs what is in `delta`, however large the state has become. Inside of an attempt at a
        task it is made once: if the attempt begins again, the same append gives the checkpoint that
        is there, unless the attempt has looked at the timeline before, and so goes on from it.
        """
        if not isinstance(delta, (dict, Mapping)):  # asks of a dict nothing more
            raise Misuse(f"append takes a dict of what is new, not {type(delta).__name__}")
        what = about(*(self._context, name, kind, status, description, metadata), id=id)
        request = self._request(what, "grown", delta, expect, step, title, parent, labels, notes)
        work = current.work(self._context.store, self._context.user)
        if work is None or what.is_chosen or parent != "@" or expect not in (None, ANY_HEAD):
            return self._made(request, workspace)
        return self._appended(request, workspace)

    def _appended(
        self, request: SaveRequest, workspace: "Directory | CapturedFiles | None"
    ) -> Checkpoint:
        """The same as part of an attempt."""
        from hardsave.vault.save import appending

        own = appending.own(self._context, self._name, request.about, request.state)
        if own is None:
            return self._made(request, workspace)
        if own.made is not None and workspace is None:
            return self._checkpoint(own.made)
        if own.made is not None:  # the state is there; the files may be newer
            return self._made(request._replace(form="carried", expect=ANY_HEAD), workspace)
        try:
            about = request.about._replace(id=own.id)
            return self._made(request._replace(about=about), workspace)
        except BaseException:  # the next append like this one is the same
            own.work.give_up_append(own.id)
            raise

    def save_files(
        self,
        workspace: "Directory | CapturedFiles",
        *,
        name: str | None = None,
        kind: str | None = None,
        status: str | None = "running",
        description: str = "",
        metadata: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        notes: Mapping[str, Any] | None = None,
        step: StepSummary | None = None,
        title: str = "",
        id: str | None = None,
    ) -> Checkpoint:
        """Save the files of a workspace, or files captured before, beside the state that the head
        has by then; also with its status, if that is None."""
        said = (self._context, name, kind, status, description, metadata)
        what = about(*said, id=id, carries=True)
        if workspace is None:
            raise Misuse("workspace is the directory whose files are to be saved, not None")
        request = self._request(what, "carried", None, ANY_HEAD, step, title, "@", labels, notes)
        return self._made(request, workspace)

    def copy(
        self,
        ref: Ref,
        *,
        metadata: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        expect: Expected = None,
        id: str | None = None,
        parent: Ref | None = "@",
    ) -> Checkpoint:
        """Save a checkpoint once more, here: its state and files, and all that it says of itself
        but for what is given. With its notes, and without any new objects."""
        source = self._context.find(ref, self._name)
        one = self._checkpoint(source)
        said = (source.name, source.kind, source.status, source.description)
        metadata = one.metadata if metadata is None else metadata
        labels = one.labels if labels is None else labels
        what = about(self._context, *said, metadata, id=id)
        rest = (None, "", parent, labels, one.notes)
        return self._made(self._request(what, "copied", source, expect, *rest), None)

    def _request(
        self,
        what: About,
        form: Form,
        state: Any,
        expect: Expected,
        step: StepSummary | None,
        title: str,
        parent: Ref | None,
        labels: Mapping[str, str] | None,
        notes: Mapping[str, Any] | None,
    ) -> SaveRequest:
        if step is None and labels is None and notes is None and title == "" and parent == "@":
            said = (what, form, state, expect, None, "", None, None)
            return filled(SaveRequest, said)  # most saves say no more
        from hardsave.vault.save import attached
        from hardsave.vault.save import request as save_request

        told = save_request.step(self._context, step), save_request.title(self._context, title)
        stands_on: Parent | None = None
        if parent != "@":
            stands_on = Parent(None if parent is None else self._find(parent).id)
        beside = attached.attached(self._context, labels, notes)
        return SaveRequest(what, form, state, expect, *told, stands_on, beside)

    def _made(
        self, request: SaveRequest, workspace: "Directory | CapturedFiles | None"
    ) -> Checkpoint:
        """The checkpoint that was asked for. Handlers are told, also of one that fails; the caller
        gets that error all the same."""
        try:
            record = self._saved(request, workspace)
            if request.form in ("whole", "parts"):
                self._context.look(self._name)
            checkpoint = self._checkpoint(record)
            self._context.events.tell("checkpoint_saved", checkpoint)
        except BaseException:  # Ctrl-C may strike after the commit, as in one who is told of it
            with self._lock:
                self._saving.doubt(request.about.id)
            raise
        return checkpoint

    def _checkpoint(self, record: CheckpointRecord) -> Checkpoint:
        """One that the caller has made: to see it is no look at the timeline."""
        context = self._context
        return Checkpoint(record, context.objects, context.user, context.places)

    def _saved(
        self, request: SaveRequest, workspace: "Directory | CapturedFiles | None"
    ) -> CheckpointRecord:
        try:
            with self._lock:
                waiting = wanted()
                if workspace is None:
                    record = self._saving.save(request)
                else:
                    with self._files(workspace) as files:
                        record = self._saving.save(request, files)
                self._saving.hand_over(record, waiting)
                return record
        except Exception as error:
            self._context.events.tell("save_failed", SaveFailed(self._name, error))
            raise

    def _files(
        self, workspace: "Directory | CapturedFiles"
    ) -> "AbstractContextManager[Taking | Held]":
        from hardsave.vault.restore.settling import settled
        from hardsave.vault.save.captured import CapturedFiles, Held  # with all that files need

        if isinstance(workspace, CapturedFiles):
            return nullcontext(Held(workspace, self._context))
        return settled(self._context, self._context.places.at(workspace))

    def _find(self, ref: Ref) -> CheckpointRecord:
        self._context.look(self._name)
        return self._context.find(ref, self._name)
