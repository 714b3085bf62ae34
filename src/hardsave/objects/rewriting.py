"""Replacing a text in stored values, wherever it stands: values, keys, class names, bytes.

A value is read with no class revived (see `keeping`), and built anew: the result has the form of
any saved state, and objects of unregistered classes stay what they are.

A date, a time or a Decimal whose text has it becomes a text; a zone whose name has it becomes an
offset. Keys that would become equal get the new text several times over; members of a set that
become equal are one.
"""

from collections.abc import Sequence
from typing import Any

from hardsave.objects import wire
from hardsave.objects.builder import Builder
from hardsave.objects.codec import Codec
from hardsave.objects.hashing import Hash
from hardsave.objects.keeping import MOMENTS, TEXTS, Keeping
from hardsave.objects.levels import Out
from hardsave.objects.reader import Reader
from hardsave.objects.tree import Fetch


class Rewriting:
    """Puts `new` in the place of `old`. `new` repeated must not have `old` in it."""

    def __init__(self, old: str, new: str, fetch: Fetch) -> None:
        self._replacing = _Replacing(old, new)
        self._keeping = Keeping(self._replacing.scalar)
        self._reader = Reader(self._keeping, fetch)
        codec = Codec(redaction=self._replacing)
        self._builder = Builder(codec, max_value_bytes=0)  # never asked: sizes stay as they are

    def value(self, data: bytes) -> bytes:
        """One encoded value without the text."""
        if not self._replacing.suspects(data):
            return data
        return self._builder.codec.encode(self._keeping.decode(data))

    def root(self, root: Hash) -> tuple[Hash, Out]:
        """The address of a whole value without the text, and the objects that may be new."""
        out = Out()
        return self._builder.root(self._reader.load(root), out), out


class _Replacing:
    """The same to a codec as a redaction: it says what is written in the place of what."""

    def __init__(self, old: str, new: str) -> None:
        self._old = old
        self._new = new
        self._old_bytes = old.encode("utf-8", "surrogatepass")
        self._plain = Codec()

    def suspects(self, data: bytes) -> bool:
        return self._old_bytes in data

    def scalar(self, value: Any) -> Any:
        if isinstance(value, bytes | bytearray | memoryview):
            new = self._new.encode("utf-8", "surrogatepass")
            return bytes(value).replace(self._old_bytes, new)
        text = _text(value)
        if text is not None and self._old in text:
            return text.replace(self._old, self._new)
        if _is_moment(value) and self._old in str(value.data[2]):
            return wire.Kept(value.code, [*value.data[:2], None])  # without the name of its zone
        return value

    def keys(self, keys: Sequence[Any]) -> list[Any]:
        encoded = [self._plain.encode(key) for key in keys]
        taken = {data for data in encoded if not self.suspects(data)}
        clean = list(keys)
        for at, data in enumerate(encoded):
            if self.suspects(data):
                data = self._distinct(keys[at], taken)
                clean[at] = Keeping(self.scalar).decode(data)
                taken.add(data)
        return clean

    def _distinct(self, key: Any, taken: set[bytes]) -> bytes:
        """A key without the text, encoded: none of those that are `taken`."""
        again = self
        while (data := Codec(redaction=again).encode(key)) in taken:
            again = _Replacing(self._old, again._new + self._new)
        return data


def _text(value: Any) -> str | None:
    """What a scalar is stored as, if that is a text."""
    if type(value) is str:
        return value
    if isinstance(value, wire.Verbatim) and value.code in TEXTS:
        return str(value.data, "ascii")
    return str(value.data[0]) if _is_moment(value) else None


def _is_moment(value: Any) -> bool:
    return isinstance(value, wire.Kept) and value.code in MOMENTS
