"""How people name a checkpoint.

In the order in which a text is understood:

    @ or @~2            the head, or so many parents before it
    chk_ and 24 digits  a whole id
    TIMELINE:N or :N    by number, on that timeline or on this one
    a name              the newest of that name on this timeline
    chk_… or digits     a unique beginning of an id
"""

from hardsave.errors import Misuse
from hardsave.objects.records import ID_BYTES, Id, named_id
from hardsave.timeline.names import id_digits, is_full_id, is_number, numbered
from hardsave.tuples import NamedTuple


class Back(NamedTuple):
    """So many parents before the head."""

    steps: int


class Whole(NamedTuple):
    id: Id


class Numbered(NamedTuple):
    timeline: str  # empty: the one in question
    seq: int


class Named(NamedTuple):
    """A name; if there is none like it, the beginning of an id (low and high bound)."""

    name: str
    low: Id | None
    high: Id | None


Ref = Back | Whole | Numbered | Named


def parse(ref: object) -> Ref:
    """What `ref` means. Any text may be a name, so only malformed `@…` is refused."""
    if not isinstance(ref, str) or not ref:
        raise Misuse(f"a ref is a text such as '@', '@~2', 'chk_…' or a name, not {ref!r}")
    if ref.startswith("@"):
        back = "0" if ref == "@" else ref.removeprefix("@~")
        if not is_number(back):
            raise Misuse(f"{ref!r} is not a ref; the head is '@', its parents '@~1', '@~2' …")
        return Back(_number(back))
    if is_full_id(ref):
        return Whole(from_text(ref))
    if (found := numbered(ref)) is not None:
        timeline, number = found
        return Numbered(timeline, _number(number))
    return Named(ref, *_bounds(ref))


def _number(digits: str) -> int:
    """A number; one so long that nothing has it is cut to one that nothing has either."""
    return int(digits) if len(digits) <= 18 else 1 << 62


def _bounds(ref: str) -> tuple[Id | None, Id | None]:
    digits = id_digits(ref)
    if digits is None:
        return None, None
    width = ID_BYTES * 2
    return bytes.fromhex(digits.ljust(width, "0")), bytes.fromhex(digits.ljust(width, "f"))


def to_text(id: Id) -> str:
    return "chk_" + id.hex()


def checkpoint_id(*parts: str) -> str:
    """The id of a checkpoint that a program names by texts of its own: the same for the same texts.
    `line.save(state, id=hardsave.checkpoint_id(thread, step))`"""
    if not parts or not all(isinstance(each, str) for each in parts):
        raise Misuse(f"checkpoint_id takes texts, one or more, not {parts!r}")
    try:
        return to_text(named_id(*parts))
    except UnicodeEncodeError as error:
        raise Misuse(f"an id cannot be made of lone surrogates ({parts!r})") from error


def from_text(text: str) -> Id:
    return bytes.fromhex(text.removeprefix("chk_"))
