"""Git's configuration files: a list of settings in their order; and the excludes file that they
name.

No program that they name is run. `[include]` is followed, because people keep some of their own
settings apart that way; `[includeIf]` is not, because its conditions are about repositories.
A line that git would refuse is skipped.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hardsave.logs import log
from hardsave.tuples import NamedTuple
from hardsave.workspace.filesystem.bounded_read import read_path

_LIMIT = 16 * 1024 * 1024  # more than is ever written by hand
_NONE = Path(os.devnull)  # as git's manual tells people to say that there is no such file
_DEEPEST_INCLUDE = 10  # as git


class Setting(NamedTuple):
    """`key` is `section.name` or `section.subsection.name`, in lower case but the subsection."""

    key: bytes
    value: bytes | None  # None: a name alone, which git takes for true


def last(settings: Sequence[Setting], key: bytes) -> bytes | None:
    """The value that counts: the last one."""
    return next((value for name, value in reversed(settings) if name == key), None)


# Reading text

_SECTION = re.compile(rb'\[([-.0-9A-Za-z]+)(?:[ \t]+"((?:\\.|[^"\\\n])*)")?\]')
_NAME = re.compile(rb"([A-Za-z][-0-9A-Za-z]*)[ \t]*(=?)")
_PLAIN = re.compile(rb'[^\s"\\#;]+')  # what stands for itself, wherever in a value
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"b": b"\b", b"\\": b"\\", b'"': b'"', b"\n": b""}


def parse(content: bytes) -> Iterator[Setting]:
    """The settings of a configuration file, in order."""
    text = content.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    section, at = b"", 0
    while at < len(text):
        if text[at : at + 1].isspace():
            at += 1
        elif header := _SECTION.match(text, at):
            section, at = _section(header), header.end()
        elif name := _NAME.match(text, at):
            value, at = _value(text, name.end())
            yield Setting(section + b"." + name[1].lower(), value if name[2] else None)
        else:
            at = _end_of_line(text, at)


def _section(header: re.Match[bytes]) -> bytes:
    if header[2] is None:
        return header[1].lower()
    return header[1].lower() + b"." + re.sub(rb"\\(.)", rb"\1", header[2])


def _value(text: bytes, at: int) -> tuple[bytes, int]:
    """The rest of a line as git means it, and where the line ends."""
    value, spaces, quoted = bytearray(), bytearray(), False
    while at < len(text) and (byte := text[at : at + 1]) != b"\n":
        if plain := _PLAIN.match(text, at):
            byte = plain[0]
        at += len(byte)
        if byte in b"#;" and not quoted:
            break
        if byte.isspace() and not quoted:
            spaces += byte if value else b""  # those at either end do not count
            continue
        if byte == b'"':
            quoted = not quoted
            byte = b""
        elif byte == b"\\":
            byte = _ESCAPED.get(text[at : at + 1], b"")
            at += 1
        value += spaces + byte
        spaces.clear()
    return bytes(value), _end_of_line(text, at)


def _end_of_line(text: bytes, at: int) -> int:
    return text.find(b"\n", at) + 1 or len(text)


# Reading files


def read(path: Path, *, home: Path, seen: list[Path], depth: int = 0) -> Iterator[Setting]:
    """The settings of a user's own file, with those of files that it includes; empty if it is not
    there. The paths that were tried are added to `seen`."""
    seen.append(path)
    for setting in parse(content(path)):
        yield setting
        if setting.key == b"include.path" and setting.value and depth < _DEEPEST_INCLUDE:
            included = expanded(setting.value, home=home, beside=path)
            if included is not None:
                yield from read(included, home=home, seen=seen, depth=depth + 1)


def expanded(value: bytes, *, home: Path, beside: Path | None = None) -> Path | None:
    """The file that a setting names. None: it does not name one, or one of another user.

    A relative path counts from the file `beside`, if that is given.
    """
    if value.startswith(b"~/"):
        return home / os.fsdecode(value[2:])
    path = Path(os.fsdecode(value))
    if value.startswith(b"~") or b"\0" in value or not value:
        return None
    if beside is not None:
        return beside.parent / path
    return path if path.is_absolute() else None


def content(path: Path) -> bytes:
    """The content of a file of the user's own; empty if it is none, too large or unreadable."""
    if path == _NONE:
        return b""
    data, problem = read_path(path, limit=_LIMIT)
    if problem:
        log(__name__).warning("%s is left out of the ignore rules: %s", path, problem)
    return data or b""


# The user's own excludes file


def global_excludes(environ: Mapping[str, str], home: Path, seen: list[Path]) -> bytes:
    """The content of the excludes file that the user's git configuration names.

    Without such a setting, of `git/ignore` in the user's configuration directory. Empty if
    there is none. Only files are read: git is not run. The paths tried are added to `seen`.
    """
    configured = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "git"
    chosen = environ.get("GIT_CONFIG_GLOBAL")
    files = [configured / "config", home / ".gitconfig"] if chosen is None else [Path(chosen)]
    settings = [pair for file in files for pair in read(file, home=home, seen=seen)]
    named = last(settings, b"core.excludesfile")
    path = configured / "ignore" if named is None else expanded(named, home=home)
    if path is None:
        return b""
    seen.append(path)
    return content(path)
