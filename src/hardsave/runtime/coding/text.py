"""What the tools do to texts. Pure."""

from collections.abc import Iterator

MAX_SHOWN = 64 * 1024  # characters of one answer: more would only fill the model's memory
MAX_LINE = 500


class Refused(Exception):
    """A tool cannot do that; the model is told why."""


def window(text: str, start: int, count: int) -> str:
    """So many lines from number `start`, counted from 1; says what was left out."""
    lines = text.splitlines(keepends=True)
    if start < 1 or count < 1:
        raise Refused("lines are counted from 1, and at least one is read")
    if start > max(len(lines), 1):
        raise Refused(f"there are only {len(lines)} lines")
    shown = "".join(lines[start - 1 : start - 1 + count])
    cut = shown[:MAX_SHOWN]
    last = start - 1 + len(cut.splitlines())
    if len(cut) == len(shown) and last >= len(lines):
        return cut
    return f"{cut}\n[lines {start} to {last} of {len(lines)}]"


def replaced(text: bytes, old: bytes, new: bytes) -> bytes:
    """The text with `old` replaced, which must stand in it exactly once. Other bytes stay."""
    if not old:
        raise Refused("say which text to replace")
    count = text.count(old)
    if count == 0:
        raise Refused("the text to replace is not there; read the file again")
    if count > 1:
        raise Refused(f"the text to replace is there {count} times; give more of what is around it")
    return text.replace(old, new)


def matches(text: str, wanted: str) -> Iterator[str]:
    """The lines that hold a text, each with its number."""
    for number, line in enumerate(text.splitlines(), 1):
        if wanted in line:
            yield f"{number}: {line.strip()[:MAX_LINE]}"


def both_ends(head: bytes, tail: bytes, left_out: int) -> str:
    """An output by its beginning and its end; errors stand at either."""
    if not left_out:
        return (head + tail).decode(errors="replace")
    texts = [part.decode(errors="replace") for part in (head, tail)]
    return f"\n[… {left_out} bytes left out …]\n".join(texts)
