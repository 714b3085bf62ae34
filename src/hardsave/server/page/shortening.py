"""What is sent of a script or a stylesheet: without what is there for readers of the source. Pure.

This is no parser. It relies on how these files are written: no text goes over several lines, and a
line with a pattern, a division or a template within a template in it is sent as it stands.
"""

import re

_COMMENTS = re.compile(r"^[ ]*(/\*.*?\*/[ ]*|//[^\n]*)\n", re.MULTILINE | re.DOTALL)
_REMARK = re.compile(r"[ ]+// [^\"'`]*$")  # no text is open: its end would follow
_TEXT = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`)""")
_AROUND_SIGNS = re.compile(r" ?(=>|[!=]==|&&|\|\||\?\?|[<>]=?|[][,={}?:()]) ?")
_GOES_ON = ("{", "(", ",", ";")
_AROUND_MARKS = re.compile(r"\s*([{};,])\s*")


def script(source: str) -> str:
    lines = _COMMENTS.sub("", source).splitlines()
    return "".join(map(_ended, filter(None, map(_line, lines))))


def _ended(line: str) -> str:
    """With its end, unless a sign says already that more comes; a remark has no other end."""
    return line if line.endswith(_GOES_ON) and "//" not in line else f"{line}\n"


def _line(line: str) -> str:
    parts = _TEXT.split(_REMARK.sub("", line.strip()))
    is_nested = any(text.count("${") > text.count("}") for text in parts[1::2])
    if is_nested or any(sign in code for code in parts[::2] for sign in "`/"):
        return "".join(parts)
    return "".join(
        part if at % 2 else _AROUND_SIGNS.sub(r"\1", part) for at, part in enumerate(parts)
    )


def stylesheet(source: str) -> str:
    """Its selectors have no space before a colon that they can do without, and none behind one."""
    return _AROUND_MARKS.sub(r"\1", _COMMENTS.sub("", source)).replace(": ", ":").strip()
