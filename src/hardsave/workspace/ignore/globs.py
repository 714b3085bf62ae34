"""One pattern of an ignore file, split into the names of a path. Pure.

Git compares a pattern with a whole path. Here it becomes a *trail*: one `Glob` for each name
of a path, and `DEEP` where any number of directories may stand between two names. A walk
follows a trail name by name, so that every question is about one name in one directory.

What git does is the measure, also where it surprises: git compares the part of a pattern before
its first special character and cuts it off, so `a**/b` begins with stars as far as git's matcher
knows, and means `ab` as well as `a…/…/b`.
"""

import re
from collections.abc import Iterable, Iterator
from enum import Enum

from hardsave.tuples import NamedTuple

_SPECIAL = re.compile(rb"[*?\[\\]")
_CLASSED = re.compile(rb"[?\[\\]")
_SLASH = ord("/")
_LONGEST = 8192  # bytes: the longest path that a system takes, each byte of it escaped


class Deep(Enum):
    """Any number of directories, or none."""

    DEEP = b"**"


DEEP = Deep.DEEP


class Glob(NamedTuple):
    """What one name must look like. At most one of `literal`, `suffix` and `prefix` is there: the
    cheap cases."""

    source: bytes  # a regular expression for the whole name; equal sources mean the same
    texts: tuple[bytes | None, ...]  # what stands between its stars; None: not just one text
    literal: bytes | None = None  # this name and no other
    suffix: bytes | None = None  # every name that ends so
    prefix: bytes | None = None  # every name that begins so


Trail = tuple[Glob | Deep, ...]


def trails(text: bytes) -> tuple[Trail, ...]:
    """The trails of a pattern without its `!` and its last slash; none if it never matches."""
    if b"/" not in text:
        name = of_name(text)
        return ((DEEP, name),) if name else ()
    text = text.removeprefix(b"/")
    special = _SPECIAL.search(text)
    pieces = _pieces(text, opening=special.start() if special else len(text))
    return tuple(_spelled(pieces)) if pieces else ()


def of_name(text: bytes) -> Glob | None:
    """A pattern without slashes, about one name anywhere; None if it never matches."""
    if not _CLASSED.search(text):  # most are so, and a workspace may have 100,000 of them
        first, *others = text[: _LONGEST + 1].split(b"*")
        runs = (first, *filter(None, others[:-1]), *others[-1:])
        return _of_runs(map(re.escape, runs), runs) if 0 < len(text) <= _LONGEST else None
    pieces = _pieces(text, opening=-1) or ()
    return glob([piece for piece in pieces if not isinstance(piece, _Mark)]) if pieces else None


# Reading a pattern


class _Byte(NamedTuple):
    """Something that stands for exactly one byte of a name."""

    source: bytes
    literal: bytes | None = None


class _Star(NamedTuple):
    """Any bytes of one name."""


class _Mark(Enum):
    SLASH = "/"
    DIRECTORIES = "**/"  # any number of directories, or none
    BELOW = "**\\/"  # anything, and then a slash
    ALL = "**"  # anything, at the end of a pattern


_Piece = _Byte | _Star | _Mark
_Name = tuple[_Byte | _Star, ...]
_ANY = _Byte(b".")


def _pieces(text: bytes, opening: int) -> list[_Piece] | None:
    """The pattern, piece by piece. None: it is malformed, and git never matches such a one.

    `opening` is where git's matcher begins, which it takes for the beginning of a name. One that
    is longer than any path is no pattern either: it would only take time.
    """
    if len(text) > _LONGEST:
        return None
    pieces: list[_Piece] = []
    at = 0
    while at < len(text):
        read = _piece(text, at, opening)
        if read is None:
            return None
        piece, at = read
        if piece is not _Mark.DIRECTORIES or pieces[-1:] != [piece]:  # twice any number is that
            pieces.append(piece)
    return pieces


def _piece(text: bytes, at: int, opening: int) -> tuple[_Piece, int] | None:
    match text[at : at + 1]:
        case b"*":
            return _stars(text, at, opening)
        case b"?":
            return _ANY, at + 1
        case b"[":
            return _class(text, at + 1)
        case b"\\":
            at += 1
            if at == len(text):
                return None
    byte = text[at : at + 1]
    return (_Mark.SLASH if byte == b"/" else _Byte(re.escape(byte), byte)), at + 1


def _stars(text: bytes, at: int, opening: int) -> tuple[_Piece, int]:
    end = at
    while text[end : end + 1] == b"*":
        end += 1
    begins_a_name = at == opening or text[at - 1 : at] == b"/"
    if end - at > 1 and begins_a_name:
        if end == len(text):
            return _Mark.ALL, end
        if text[end] == _SLASH:
            return _Mark.DIRECTORIES, end + 1
        if text[end : end + 2] == b"\\/":
            return _Mark.BELOW, end + 2
    return _Star(), end


# Character classes


def _is_punctuation(byte: int) -> bool:
    return 0x20 < byte < 0x7F and not chr(byte).isalnum()


_NAMED_CLASSES = {
    name: frozenset(members)
    for name, members in {
        b"alnum": b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        b"alpha": b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        b"blank": b" \t",
        b"cntrl": bytes([*range(0x20), 0x7F]),
        b"digit": b"0123456789",
        b"graph": bytes(range(0x21, 0x7F)),
        b"lower": b"abcdefghijklmnopqrstuvwxyz",
        b"print": bytes(range(0x20, 0x7F)),
        b"punct": bytes(byte for byte in range(256) if _is_punctuation(byte)),
        b"space": b" \t\n\r",  # git's own: without vertical tab and form feed
        b"upper": b"ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        b"xdigit": b"0123456789ABCDEFabcdef",
    }.items()
}
# The byte after a backslash is meant as it is. A class may begin with its closing bracket.
_MEMBER = re.compile(rb"\\(.)|([^\\])", re.DOTALL)
_RANGE_END = re.compile(rb"-(?:\\(.)|([^\\\]]))", re.DOTALL)


def _class(text: bytes, at: int) -> tuple[_Byte, int] | None:
    """The class that begins after a bracket, and where it ends. None: it does not end."""
    negated = text[at : at + 1] in (b"!", b"^")
    at += negated
    members: set[int] = set()
    first = True
    while first or text[at : at + 1] != b"]":
        first = False
        read = _members(text, at)
        if read is None:
            return None
        found, at = read
        members.update(found)
    return _Byte(_class_source(set(range(256)) - members if negated else members)), at + 1


def _members(text: bytes, at: int) -> tuple[Iterable[int], int] | None:
    named = _named(text, at)
    if named is not None:
        members = _NAMED_CLASSES.get(named)
        return None if members is None else (members, at + len(b"[::]") + len(named))
    single = _MEMBER.match(text, at)
    if single is None:
        return None
    low = (single[1] or single[2])[0]
    high = _RANGE_END.match(text, single.end())
    if high is None:
        return (low,), single.end()
    # Git takes the lower end by itself, before it sees that a range turns backwards.
    return {low, *range(low, (high[1] or high[2])[0] + 1)}, high.end()


def _named(text: bytes, at: int) -> bytes | None:
    """The name of a class like `[:alpha:]`; None if there is none here. No regular expression: it
    would go through the rest of the line at each of ten thousand brackets."""
    if not text.startswith(b"[:", at):
        return None
    end = text.find(b"]", at)
    return text[at + 2 : end - 1] if end > at + 2 and text[end - 1 : end] == b":" else None


def _class_source(members: set[int]) -> bytes:
    if not members:
        return b"(?!)"
    runs: list[list[int]] = []
    for byte in sorted(members):
        if runs and runs[-1][1] == byte - 1:
            runs[-1][1] = byte
        else:
            runs.append([byte, byte])
    return b"[%b]" % b"".join(b"\\x%02x-\\x%02x" % (low, high) for low, high in runs)


# Putting it together, one name at a time


class _Step(NamedTuple):
    """The last step of a trail, and those before it: a longer trail shares them. Copied for every
    piece, a line of a hundred thousand bytes would hold a walk up for minutes."""

    before: "_Step | None"
    step: Glob | Deep


_Branch = tuple[_Step | None, _Name]


def _spelled(pieces: list[_Piece]) -> Iterator[Trail]:
    """The trails of a pattern. There are two where stars begin in the middle of a name."""
    branches: list[_Branch] = [(None, ())]
    for part in _parts(pieces):
        if isinstance(part, _Mark):
            branches = _unlike(longer for each in branches for longer in _longer(*each, part))
        else:
            branches = [(done, name + part) for done, name in branches]
    yield from (_trail(_Step(done, glob(name))) for done, name in branches if name)


def _parts(pieces: Iterable[_Piece]) -> Iterator[_Mark | _Name]:
    """Marks, and all that stands between two of them."""
    name: list[_Byte | _Star] = []
    for piece in pieces:
        if not isinstance(piece, _Mark):
            name.append(piece)
            continue
        yield tuple(name)
        yield piece
        name = []
    yield tuple(name)


def _longer(done: _Step | None, name: _Name, mark: _Mark) -> Iterator[_Branch]:
    """A trail and the name it has begun, with a mark after it; nothing if no path is like that."""
    deeper = _Step(_Step(done, glob((*name, _Star()))), DEEP) if name else _deep(done)
    match mark:
        case _Mark.SLASH if name:
            yield _Step(done, glob(name)), ()
        case _Mark.DIRECTORIES:
            if name:
                yield done, name
            yield deeper, ()
        case _Mark.BELOW:
            yield (deeper if name else _Step(_Step(done, glob((_Star(),))), DEEP)), ()
        case _Mark.ALL:
            if name:
                yield done, (*name, _Star())
            yield deeper, (_Star(),)


def _deep(done: _Step | None) -> _Step:
    return done if done is not None and done.step is DEEP else _Step(done, DEEP)


def _unlike(branches: Iterator[_Branch]) -> list[_Branch]:
    """Only stars that follow each other at the beginning of a pattern lead to the same twice."""
    found = list(branches)
    return found if len(found) < 3 else list(dict.fromkeys(found))


def _trail(last: _Step) -> Trail:
    steps: list[Glob | Deep] = []
    at: _Step | None = last
    while at is not None:
        steps.append(at.step)
        at = at.before
    return tuple(reversed(steps))


def glob(pieces: Iterable[_Byte | _Star]) -> Glob:
    """The pieces of one name."""
    runs: list[list[_Byte]] = [[]]
    for piece in pieces:
        if isinstance(piece, _Byte):
            runs[-1].append(piece)
        elif len(runs) == 1 or runs[-1]:
            runs.append([])
    sources = (b"".join(piece.source for piece in run) for run in runs)
    return _of_runs(sources, tuple(_literal(run) for run in runs))


def _of_runs(sources: Iterable[bytes], texts: tuple[bytes | None, ...]) -> Glob:
    """What stands between the stars of one name, as expressions and, where it is one, as text."""
    source = _source([*sources])
    match texts:
        case (bytes(literal),):
            return Glob(source, texts, literal=literal)
        case (b"", bytes(suffix)):
            return Glob(source, texts, suffix=suffix)
        case (bytes(prefix), b""):
            return Glob(source, texts, prefix=prefix)
    return Glob(source, texts)


def _literal(run: list[_Byte]) -> bytes | None:
    parts = [piece.literal for piece in run if piece.literal is not None]
    return b"".join(parts) if len(parts) == len(run) else None


def _source(runs: list[bytes]) -> bytes:
    """The first place where a run fits is always good enough, except for the last run.

    The atomic groups say so. Without them `*a*a*a*a*b` would try every way to place its
    stars, and a hostile pattern would stop the walk.
    """
    first, *middle = runs
    if not middle:
        return first
    *middle, last = middle
    return first + b"".join(b"(?>.*?%b)" % run for run in middle) + b".*" + last
