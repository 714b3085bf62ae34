"""Server-sent events out of bytes, however these are cut. Pure."""

from hardsave.tuples import NamedTuple


class Message(NamedTuple):
    """One message of a stream. `id` is None if it has none; some have nothing else: a place to go
    on from."""

    event: str
    data: str
    id: str | None


class Parser:
    """Takes bytes as they come, and gives the messages that are whole."""

    def __init__(self) -> None:
        self._rest = b""
        self._event = ""
        self._data: list[str] = []
        self._id: str | None = None

    def feed(self, data: bytes) -> list[Message]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        found = [self._line(line.removesuffix(b"\r").decode("utf-8", "replace")) for line in lines]
        return [each for each in found if each is not None]

    def _line(self, line: str) -> Message | None:
        if not line:
            return self._end()
        name, _, value = line.partition(":")  # a comment has no name
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self._id = value
        return None

    def _end(self) -> Message | None:
        found = Message(self._event, "\n".join(self._data), self._id)
        is_one = bool(self._event or self._data or self._id)
        self._event, self._data, self._id = "", [], None
        return found if is_one else None
