"""What is sent of a script or a stylesheet: without what is there for readers of the source. Pure.

This is no parser. It relies on how these files are written: no text goes over several lines, and a
line with a pattern, a division or a template in it is sent as it stands.
"""

import re

_COMMENTS = re.compile(r"^[ ]*(/\*.*?\*/[ ]*|//[^\n]*)\n", re.MULTILINE | re.DOTALL)
_REMARK = re.compile(r"[ ]+// [^\"'`]*$")  # no text is open: its end would follow
_TEXT = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')""")
_AROUND_SIGNS = re.compile(r" ?(=>|[!=]==|&&|\|\||[,={}?:()]) ?")
_AROUND_MARKS = re.compile(r"\s*([{};,])\s*")


def script(source: str) -> str:
    lines = _COMMENTS.sub("", source).splitlines()
    return "\n".join(filter(None, map(_line, lines))) + "\n"


def _line(line: str) -> str:
    parts = _TEXT.split(_REMARK.sub("", line.strip()))
    if any(sign in code for code in parts[::2] for sign in "`/"):
        return "".join(parts)
    return "".join(
        part if at % 2 else _AROUND_SIGNS.sub(r"\1", part) for at, part in enumerate(parts)
    )


def stylesheet(source: str) -> str:
    """Its selectors have no space before a colon that they can do without, and none behind one."""
    return _AROUND_MARKS.sub(r"\1", _COMMENTS.sub("", source)).replace(": ", ":").strip()
