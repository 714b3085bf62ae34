"""Replacing a text inside encoded values, wherever it stands: values, keys, class names, bytes.

Works on the encoding itself, so that nothing has to be revived: what nobody registered is
reached like everything else. Without recursion, because values nest deeper than Python does.
"""

from hardsave.errors import Corrupt
from hardsave.objects import wire

_FIXED = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
_TEXTS = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_BINARIES = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_EXTENSIONS = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_FIXED_EXTENSIONS = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_COLLECTIONS = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}


def replaced(data: bytes, old: bytes, new: bytes) -> bytes:
    """Encoded values with `old` replaced by `new` in every text and every bytes value."""
    if old not in data:
        return data
    # For each nested extension under way: its code, where it ends, the place of its header
    # among the pieces, and how much was written before it. No level is copied into the next.
    frames: list[tuple[int, int, int, int]] = []
    out = _Pieces()
    at, end = 0, len(data)
    while True:
        if at == end:
            if not frames:
                return b"".join(out.pieces)
            code, end, place, before = frames.pop()
            out.fill(place, wire.ext_header(code, out.size - before))
            continue
        if at > end:
            raise Corrupt("an encoded value ends in the middle")
        first = data[at]
        if first in _EXTENSIONS or first in _FIXED_EXTENSIONS:
            code, start, size = _extension(data, at, first)
            if code in wire.NESTED:
                frames.append((code, end, len(out.pieces), out.size))
                out.add(b"")
                at, end = start, start + size
                continue
            content = data[start : start + size]
            out.add(wire.ext(code, content.replace(old, new) if code == wire.TEXT else content))
            at = start + size
            continue
        at = _plain(data, at, first, out, old, new)


class _Pieces:
    """What is rewritten so far."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0

    def add(self, piece: bytes) -> None:
        self.pieces.append(piece)
        self.size += len(piece)

    def fill(self, place: int, piece: bytes) -> None:
        """Put in what was left out, because it says how long the rest is."""
        self.pieces[place] = piece
        self.size += len(piece)


def _extension(data: bytes, at: int, first: int) -> tuple[int, int, int]:
    """(code, where its content starts, how long it is)."""
    width = _EXTENSIONS.get(first, 0)
    size = int.from_bytes(data[at + 1 : at + 1 + width]) if width else _FIXED_EXTENSIONS[first]
    return data[at + 1 + width], at + 2 + width, size


def _plain(data: bytes, at: int, first: int, out: _Pieces, old: bytes, new: bytes) -> int:
    """Rewrite one header or scalar; where the next one starts."""
    if 0xA0 <= first <= 0xBF:
        return _sized(data, at + 1, first & 0x1F, out, old, new, is_text=True)
    for widths, is_text in ((_TEXTS, True), (_BINARIES, False)):
        if first in widths:
            start = at + 1 + widths[first]
            size = int.from_bytes(data[at + 1 : start])
            return _sized(data, start, size, out, old, new, is_text=is_text)
    following = at + 1 + _FIXED.get(first, 0) + _COLLECTIONS.get(first, 0)
    out.add(data[at:following])
    return following


def _sized(
    data: bytes, start: int, size: int, out: _Pieces, old: bytes, new: bytes, *, is_text: bool
) -> int:
    content = data[start : start + size].replace(old, new)
    out.add(wire.text(content.decode()) if is_text else wire.binary(content))
    return start + size
