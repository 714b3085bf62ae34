"""What a caller wants to be saved, checked and made plain before anything is looked up."""

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal

from hardsave.defaults import MAX_METADATA_BYTES
from hardsave.errors import Conflict, Misuse
from hardsave.objects.records import Id, filled
from hardsave.timeline import names
from hardsave.timeline.step_summary import TITLE, StepSummary, beginning, line
from hardsave.tuples import NamedTuple
from hardsave.vault.arguments import whole_id
from hardsave.vault.checkpoint import Checkpoint
from hardsave.vault.context import Context

if TYPE_CHECKING:
    from hardsave.vault.save.attached import Attached

RUNNING: Final = "running"  # the status of a checkpoint that is given none
_EMPTY_MAP = b"\x80"


class AnyHead(Enum):
    """`expect=ANY_HEAD`: save on top of the head that there is by then."""

    ANY_HEAD = "any head"


ANY_HEAD: Final = AnyHead.ANY_HEAD
Expected = Checkpoint | str | AnyHead | None


class CaptureGone(Conflict):
    """Files that were captured before their save are not stored any more."""


class About(NamedTuple):
    """What a checkpoint says of itself, redacted and checked: all but its place and its state."""

    id: Id
    created_at: int
    name: str | None
    kind: str
    status: str | None  # None: that of the checkpoint which it stands on
    description: str
    metadata: bytes
    is_chosen: bool = False  # the id is the caller's: a checkpoint may have it already


Form = Literal["whole", "grown", "parts", "carried", "copied"]


class Parent(NamedTuple):
    """The checkpoint that one is to stand on, if that is not the head; None: it stands on none."""

    id: Id | None


class SaveRequest(NamedTuple):
    """What a caller wants to be saved: a `whole` state, its parent's state `grown` by a delta, one
    that comes in `parts`, the parent's own, `carried` along with files, or one `copied` with its
    files from the checkpoint whose record takes the place of the state."""

    about: About
    form: Form
    state: Any = None
    expect: Expected = None
    step: StepSummary | None = None  # what the caller knows of it; the rest is filled in
    title: str = ""  # for a timeline that has none
    parent: Parent | None = None  # None: the head
    attached: "Attached | None" = None  # labels and notes

    @property
    def may_double(self) -> bool:
        """Whether to save it twice would have it twice in the state."""
        return self.form == "grown" or (self.form == "parts" and self.state.goes_on)


def about(
    context: Context,
    name: str | None,
    kind: str | None,
    status: str | None,
    description: str,
    metadata: Mapping[str, Any] | None,
    *,
    id: str | None = None,
    carries: bool = False,
) -> About:
    """One that `carries` the state of the head has the head's status, if it is given none."""
    if status is None and not carries:
        raise Misuse("a status is text, not None")
    objects = context.objects
    if objects.codec.redaction is not None:
        redacted = objects.redacted
        name, status, description = redacted(name), redacted(status), redacted(description)
    if name is not None:
        names.check_checkpoint(name)
    kind = names.check_kind(kind) if kind else ("automatic" if name is None else "manual")
    if status is not None and status is not RUNNING:
        names.check_status(status)
    if description != "":
        names.check_description(description)
    encoded = _EMPTY_MAP
    if metadata is not None and not isinstance(metadata, Mapping):
        raise Misuse(f"metadata is a dict, not {type(metadata).__name__}")
    if metadata:
        encoded = objects.codec.encode(dict(metadata), "metadata")
    if len(encoded) > MAX_METADATA_BYTES:
        raise Misuse(f"metadata takes at most {MAX_METADATA_BYTES} bytes; use the state")
    made = context.new_id() if id is None else whole_id(id, "id is a whole id")
    said = (name, kind, status, description, encoded)
    return filled(About, (made, context.clock(), *said, id is not None))


def step(context: Context, given: StepSummary | None) -> StepSummary | None:
    """What a caller knows of a step, as it is kept: cut, and without secrets."""
    if given is None:
        return None
    if not isinstance(given, StepSummary):
        raise Misuse(f"step is a StepSummary, not {type(given).__name__}")
    if given.phase not in ("", "before", "after"):
        raise Misuse(f"the phase of a step is 'before', 'after' or '', not {given.phase!r}")
    redacted = context.objects.redacted
    return StepSummary(
        prompt=beginning(redacted(given.prompt)),
        call=line(redacted(given.call)),
        call_id=line(redacted(given.call_id)),
        phase=given.phase,
        outside=tuple(line(redacted(each)) for each in given.outside),
    )


def title(context: Context, given: str) -> str:
    if not isinstance(given, str):
        raise Misuse(f"a title is text, not {type(given).__name__}")
    return line(context.objects.redacted(given), TITLE)
