"""What a terminal sends, as names of keys. Pure: bytes in, keys out."""

_NAMED = {
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x03": "interrupt",
    "\x04": "escape",  # Ctrl-D
    "\x07": "escape",  # Ctrl-G
    "\x0e": "down",  # Ctrl-N
    "\x10": "up",  # Ctrl-P
    "\x15": "clear",  # Ctrl-U
}
_SEQUENCES = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1bOH": "home",
    "\x1bOF": "end",
    "\x1b[1~": "home",
    "\x1b[4~": "end",
    "\x1b[Z": "back tab",
}


def decode(data: bytes, *, waits: bool) -> tuple[list[str], bytes]:
    """The keys in what has come so far, and what is not whole yet.

    An escape may be a key, or begin a sequence whose rest comes in a moment: as long as that
    `waits`, it is kept. Letters stand for themselves; what is not known is left out.
    """
    keys: list[str] = []
    while data:
        used, key = _first(data)
        if used == 0 and waits:
            return keys, data
        if used == 0:
            used, key = 1, "escape" if data[:1] == b"\x1b" else ""
        data = data[used:]
        if key:
            keys.append(key)
    return keys, b""


def _first(data: bytes) -> tuple[int, str]:
    """How many bytes the first key has, 0 if some are missing; and its name, empty: unknown."""
    if data[0] == 0x1B:
        return _sequence(data)
    length = _utf8_length(data[0])
    if len(data) < length:
        return 0, ""
    text = data[:length].decode(errors="replace")
    return length, _NAMED.get(text, text if text.isprintable() and text != "\ufffd" else "")


def _sequence(data: bytes) -> tuple[int, str]:
    if len(data) == 1:
        return 0, ""
    if data[1:2] not in (b"[", b"O"):
        return 1, "escape"
    for at in range(2, len(data)):
        if 0x40 <= data[at] <= 0x7E:
            return at + 1, _SEQUENCES.get(data[: at + 1].decode("latin-1"), "")
    return 0, ""


def _utf8_length(first: int) -> int:
    """How many bytes a letter has that begins so; 1 for what begins none."""
    for low, high, length in ((0xC0, 0xE0, 2), (0xE0, 0xF0, 3), (0xF0, 0xF8, 4)):
        if low <= first < high:
            return length
    return 1
