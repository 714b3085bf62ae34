"""What is new in a checkpoint, as lists tell it: kept in its row when it is saved. Pure.

A list of checkpoints reads rows alone: no state is decoded for it, and no trees are compared. The
row holds a msgpack array of the fields in the order of `_KEPT`, without those at its end that have
nothing to tell: five bytes for most saves of a program, some hundred for those of an agent CLI.
"""

from typing import Any

from hardsave.errors import Corrupt
from hardsave.objects.codec import Codec
from hardsave.objects.types import Types
from hardsave.record import Record

SAFETY = "safety"  # the phase of what was saved for an operation alone
LINE = 200  # characters that a line of a list has room for
PROMPT = 1_000
BRIEF = 72  # of a message that only the state tells: a program may save a thousand of them a minute
PATHS = 5  # of the files that have changed
TITLE = 200
MAX_BYTES = 1 << 17  # five paths and all texts, with room to spare
_CUT = "…"
_LEAST = 4  # characters: shorter beginnings of a text that is purged stand in half of all words


class FileCounts(Record):
    """Files of a checkpoint against its parent; of a first one, all of them were added."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    total: int = 0
    """How many it has."""


class StepSummary(Record):
    """What a checkpoint has that its parent has not, in a few words."""

    messages: int | None = None
    """How many the state has; None if it has none."""
    new_messages: int = 0
    said: str = ""
    """The beginning of the last message, or the tools that it calls; one line."""
    prompt: str = ""
    """The beginning of the user's prompt that this checkpoint is the first to have."""
    call: str = ""
    """The tool call that it was saved before or after: `Bash(make test)`."""
    call_id: str = ""
    phase: str = ""
    """`before` or `after` that call; `safety` if it was saved for an operation alone."""
    outside: tuple[str, ...] = ()
    """What the call reached beyond the files of this machine, as far as that is recognised."""
    files: FileCounts | None = None
    """None if it was saved without files, or what they were before is not known."""
    paths: tuple[str, ...] = ()
    """The first five of the files that differ from the parent's; none of a first one."""
    not_captured: int = 0
    """How many paths were left out."""
    lost: str = ""
    """Why most files were left out, if an ignore rule does that."""
    by: str = ""
    """Who saved it, if `hardsave.acting_as` said so."""


_KEPT = (
    "messages",
    "new_messages",
    "said",
    "prompt",
    "files",
    "paths",
    "not_captured",
    "call",
    "call_id",
    "phase",
    "outside",
    "lost",
    "by",
)
_NOTHING: tuple[Any, ...] = (None, 0, "", "", None, [], 0, "", "", "", [], "", "")
_TEXTS = ("said", "prompt", "call", "call_id", "lost", "by")
_codec = Codec(Types())


def line(text: str, limit: int = LINE) -> str:
    """The beginning of a text, on one line."""
    head = text[:limit]
    if head.isprintable() and "  " not in head and head[:1] != " ":  # nearly always
        return text.rstrip() if len(text) <= limit else head[:-1].rstrip() + _CUT
    flat = " ".join(text[: 4 * limit].split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + _CUT


def beginning(text: str, limit: int = PROMPT) -> str:
    """The beginning of a text of several lines."""
    text = text.strip()
    return text if len(text) <= limit else text[: limit - 1].rstrip() + _CUT


def encode(summary: StepSummary) -> bytes:
    files = summary.files
    values = [getattr(summary, name) for name in _KEPT]
    values[4] = None if files is None else list(files.as_dict().values())
    return packed([list(each) if isinstance(each, tuple) else each for each in values])


def packed(values: list[Any]) -> bytes:
    """The bytes for a row: plain fields in the order of `_KEPT`, all or the first of them."""
    while values and values[-1] == _NOTHING[len(values) - 1]:
        values.pop()
    return _codec.sketch(values)  # which is the encoding, of numbers and texts


def signed(data: bytes | None, by: str | None) -> bytes | None:
    """The bytes for a row with who saves it, not who has saved what it is a copy of."""
    if data is None:
        return None
    values = _codec.decode(data)
    if by is None and len(values) < len(_KEPT):  # it has no name
        return data
    told = [*values, *_NOTHING[len(values) :]]
    return packed([*told[:-1], by or ""])


def decode(data: bytes) -> StepSummary:
    """`Corrupt` if it is not what `encode` makes."""
    values = _codec.decode(data)
    if type(values) is not list or len(values) > len(_KEPT) or len(data) > MAX_BYTES:
        raise Corrupt("a checkpoint's summary is malformed")
    values += _NOTHING[len(values) :]
    found = dict(zip(_KEPT, values, strict=True))
    for name in ("paths", "outside"):
        found[name] = _texts(found[name])
    if found["files"] is not None:
        found["files"] = FileCounts(*_numbers(found["files"], 4))
    _numbers([found["messages"] or 0, found["new_messages"], found["not_captured"]], 3)
    _texts([found[name] for name in (*_TEXTS, "phase")])
    return StepSummary(**found)


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(type(each) is str for each in values):
        raise Corrupt("a checkpoint's summary is malformed")
    return tuple(values)


def _numbers(values: Any, count: int) -> list[int]:
    is_right = isinstance(values, list) and len(values) == count
    if not is_right or not all(type(each) is int for each in values):
        raise Corrupt("a checkpoint's summary is malformed")
    return list(values)


def without(summary: StepSummary, text: str, replacement: str) -> StepSummary:
    """The same without a text that is purged."""

    def cleaned(each: str) -> str:
        return without_text(each, text, replacement)

    return summary.replace(
        outside=tuple(map(cleaned, summary.outside)),
        paths=tuple(map(cleaned, summary.paths)),
        **{name: cleaned(getattr(summary, name)) for name in _TEXTS},
    )


def without_text(kept: str, text: str, replacement: str) -> str:
    """A text that was put on one line, and cut, perhaps in the middle of what is purged."""
    for form in {text, " ".join(text.split())}:
        kept = kept.replace(form, replacement)
        if kept.endswith(_CUT):
            left = kept[: -len(_CUT)]
            sizes = range(min(len(form), len(left)), _LEAST - 1, -1)
            size = next((size for size in sizes if left.endswith(form[:size])), 0)
            kept = left[: len(left) - size] + replacement + _CUT if size else kept
    return kept
