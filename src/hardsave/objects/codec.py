"""One value, one encoding: msgpack, with extension types for what msgpack cannot tell apart.

`encode` takes any mix of None, bool, int, float, str, bytes, list, tuple, dict, set,
frozenset, datetime, date, time, timedelta, UUID, Decimal, Enum, dataclasses, pydantic
models and msgspec structs. The same value gives the same bytes on every machine: integers
take their shortest form, NaN has one bit pattern, sets are sorted by their encoding. The
order of a dict's keys is part of its value, and comes back.

Nearly everything goes through ormsgpack at the speed of C. It refuses lone surrogates,
keys that are not strings, and deep nesting; those go through `slow`, written in Python,
which makes the same bytes for everything both can encode (a property test says so) and
knows the path to a value that cannot be encoded.
"""

import enum
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import ormsgpack

from hardsave.errors import Corrupt
from hardsave.objects import slow, wire
from hardsave.objects.conversions import REVIVALS, conversions, exactly
from hardsave.objects.types import DEFAULT_TYPES, Types, fields_of

if TYPE_CHECKING:
    from hardsave.objects.redaction import Cleaning

_OPTIONS = (
    ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_UUID
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_BIG_INT
)
_ATOMS = frozenset(
    {str, bool, float, bytes, type(None)}
)  # every value of these types is encoded as it is
_LEAVES = _ATOMS | {int, bytearray, memoryview}
OPAQUE = frozenset({ormsgpack.Ext, ormsgpack.Fragment})
"""What ormsgpack writes as it stands, and no reader could read again."""
_FROM_HOOK = ("ext_hook failed",)
_MOST_INT = 1 << 63  # of ints that are surely plain
_BUFFERS = frozenset({bytearray, memoryview})
# A float64 whose exponent is all ones: infinity or NaN. 0xcb never precedes 0x7f or 0xff
# inside UTF-8, so text cannot match; a match inside binary data only costs time.
_SPECIAL_FLOAT = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")


class Codec:
    """`encode` and `decode` over one registry of classes.

    With `verbatim=True` decoding revives dicts and no other extension type: they are carried
    as `wire.Verbatim`, so that what was read can be written again unchanged, values of
    unregistered classes included.

    With a `redaction` no secret gets into an encoding; a sketch has the value as it is, and is
    stored only if it is canonical: then there is none in it.
    """

    def __init__(
        self,
        types: Types = DEFAULT_TYPES,
        *,
        verbatim: bool = False,
        redaction: "Cleaning | None" = None,
    ) -> None:
        self.types = types
        self.redaction = redaction
        self._nested = frozenset({wire.MAP}) if verbatim else wire.NESTED
        self._verbatim = verbatim
        self._revive = self._reviver(())  # what most decoding needs: nothing to refer to

    def encode(self, value: object, path: str = "state") -> bytes:
        """The canonical bytes of `value`. `Unstorable` names the path to what has none."""
        data = self._quick(value) if _is_plain(value) else self._converted(value)
        if data is None or not self.is_canonical(data):
            return slow.encode(value, self._parts, path, self.redaction)
        return data

    def encode_upto(self, limit: int, value: object, path: str) -> bytes | None:
        """The canonical bytes if they are at most `limit`; None if there are more.

        What is nested deeply is not written to its end to find that out: a builder that splits
        it asks again on every level. Like a sketch it is for values that `sizes` has looked at.
        """
        data = self._quick(value)
        if data is None or not self.is_canonical(data):
            return slow.encode_upto(limit, value, self._parts, path, self.redaction)
        return data if len(data) <= limit else None

    def is_canonical(self, sketch: bytes) -> bool:
        """Whether a sketch is certainly the encoding, with nothing to redact in it."""
        if b"\xcb" in sketch and _SPECIAL_FLOAT.search(sketch):  # few values hold a float
            return False
        return self.redaction is None or not self.redaction.suspects(sketch)

    def is_sketch_longer(self, limit: int, value: object) -> bool:
        """Whether a sketch has more bytes than `limit`."""
        data = self._quick(value)
        if data is None:
            return slow.encode_upto(limit, value, self._parts, "state") is None
        return len(data) > limit

    def keys(self, keys: list[Any]) -> list[Any]:
        """The keys of one dict as they are to be encoded: distinct also without secrets."""
        if self.redaction is None or not self.redaction.suspects(self.sketch(keys)):
            return keys
        return self.redaction.keys(keys)

    def sketch(self, value: object) -> bytes:
        """Bytes to compare with an earlier sketch: as fast as can be, perhaps not canonical.

        Equal sketches mean equal values; unequal ones may still encode to the same bytes.
        """
        try:
            return ormsgpack.packb(value, None, _OPTIONS)
        except TypeError:
            data = self._quick(value)
            return slow.encode(value, self._parts, "state") if data is None else data

    def decode(self, data: bytes, refs: Sequence[Any] = ()) -> Any:
        """The value of canonical bytes. `refs` are what its REF marks stand for, in order."""
        try:
            revive = self._reviver(refs) if refs else self._revive
            return ormsgpack.unpackb(data, ext_hook=revive)
        except (ValueError, RecursionError) as error:
            if is_from_hook(error):
                check_not_interrupted(lambda: ormsgpack.unpackb(data, ext_hook=self._reviver(refs)))
            return slow.decode(data, self._builder(refs), self._nested)

    def _quick(self, value: object) -> bytes | None:
        """What ormsgpack makes of a value; None if it cannot: `slow` can, or says where not.

        It is given no function of ours to call. While one ran, another thread might change
        the very list that ormsgpack is walking through, which it does not survive.
        """
        try:
            return ormsgpack.packb(value, None, _OPTIONS)
        except TypeError:
            return self._converted(value)

    def _converted(self, value: object) -> bytes | None:
        """The same for a value with something in it that is not plain: a copy has it as it is
        stored."""
        try:
            return self._packed(value)
        except Exception:  # noqa: BLE001 # `slow` meets it again, and knows the path to it
            return None

    def _packed(self, value: object) -> bytes:
        plain = value if type(value) in _ATOMS else self._plain_copy(value)
        return ormsgpack.packb(plain, None, _OPTIONS)

    def _plain_copy(self, value: Any) -> Any:
        """`value` in containers of our own, and what is not plain as an extension value."""
        kind = type(value)
        if kind is int and -_MOST_INT <= value < _MOST_INT:
            return value
        if kind is dict:
            fields = value.copy()  # in one step: another thread may be changing it
            for key, item in fields.items():
                if type(item) not in _ATOMS:
                    fields[key] = self._plain_copy(item)
            return fields
        if kind is list:
            return [
                item if type(item) in _ATOMS else self._plain_copy(item) for item in value.copy()
            ]
        if kind in _BUFFERS:
            return bytes(value)
        code, content = self._parts(value)
        if code is None:
            return self._plain_copy(content) if type(content) in (list, dict) else content
        return ormsgpack.Ext(code, self._content(code, content))

    def _content(self, code: int, content: Any) -> bytes:
        """What an extension value holds, encoded."""
        if isinstance(content, bytes):
            return content
        if code in (wire.SET, wire.FROZENSET):
            return wire.array(sorted(map(self._packed, content)))
        return self._packed(content)

    def _parts(self, value: object) -> tuple[int | None, Any]:
        """(extension code, bytes or a value to encode inside it); code None: plain data."""
        exact = exactly().get(type(value))
        if exact is not None:  # by far the most, and the others ask many questions
            return exact(value)
        if isinstance(value, wire.Verbatim):
            return value.code, value.data
        if isinstance(value, enum.Enum):
            name = self.types.name_of(type(value))
            return wire.ENUM, [name, value.name, _plain(value.value)]
        for cls, parts in conversions():
            if isinstance(value, cls):
                return parts(value)
        fields = fields_of(value)
        if fields is not None:
            return wire.OBJECT, [self.types.name_of(type(value)), fields]
        raise TypeError(refusal(value))

    def _reviver(self, refs: Sequence[Any]) -> Callable[[int, bytes], Any]:
        build = self._builder(refs)

        def revive(code: int, data: bytes) -> Any:
            if code in self._nested:
                return build(code, ormsgpack.unpackb(data, ext_hook=revive))
            return build(code, data)

        return revive

    def _builder(self, refs: Sequence[Any]) -> Callable[[int, Any], Any]:
        """A function from (code, content) to the value; content of nested codes is decoded."""
        coming = iter(refs)
        types = self.types

        def build(code: int, content: Any) -> Any:
            try:
                if code == wire.REF:
                    return next(coming)
                if self._verbatim and code != wire.MAP:
                    return wire.Verbatim(code, content)
                if code == wire.OBJECT:
                    return types.object_from(*content)
                if code == wire.ENUM:
                    return types.enum_from(*content)
                return REVIVALS[code](content)
            except StopIteration:
                raise Corrupt("an object marks more references than it lists") from None
            except KeyError:
                raise Corrupt(f"extension type {code} is not known to this version") from None
            except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
                raise Corrupt(f"a stored value of extension type {code} is malformed") from error

        return build


def is_from_hook(error: Exception) -> bool:
    """Whether ormsgpack could not go on because a function of ours, which it called, has raised."""
    return error.args == _FROM_HOOK


def check_not_interrupted(again: Callable[[], object]) -> None:
    """Raise the Ctrl-C that has struck there, if it was one.

    ormsgpack drops every exception that its hook raises. What is wrong with the bytes is so each
    time; what does not come `again` came from the handler of a signal.
    """
    try:
        again()
    except (ValueError, RecursionError, Corrupt):
        return
    raise KeyboardInterrupt


def _is_plain(value: Any) -> bool:
    """Whether ormsgpack may be given a value as it is: it also writes `OPAQUE` objects."""
    try:
        return type(value) in _LEAVES or _are_plain(value)
    except RuntimeError:  # another thread is changing it, or it is nested deeply
        return False


def _are_plain(values: Any) -> bool:
    if type(values) is dict:
        values = values.values()
    elif type(values) is not list:
        return False
    if _LEAVES.issuperset(map(type, values)):
        return True
    for value in values:  # noqa: SIM110 # a generator takes twice the time
        if type(value) not in _LEAVES and not _are_plain(value):
            return False
    return True


def _plain(value: object) -> object:
    """A `str` or `int` subclass member's value without its enum coat."""
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    return value


def refusal(value: object) -> str:
    """Why a value cannot be stored that is none of those that can be."""
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__} has no stored form; pass plain data instead"
