"""The lines of ignore files, and what they mean in directories further down. Pure.

Each line becomes trails (see `globs`). Inside a directory, a line is what is left of its trails
there.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache

from hardsave.objects.hashing import digest
from hardsave.tuples import NamedTuple
from hardsave.workspace.ignore.glob_table import Table, fits
from hardsave.workspace.ignore.globs import DEEP, Deep, Glob, Trail, trails

_BOM = b"\xef\xbb\xbf"
_SHORT = 4  # steps of a trail that are compared as they are
_Key = tuple[tuple[int, bool, bytes], ...]


class Pattern(NamedTuple):
    """One line of an ignore file that can match something."""

    negated: bool
    dir_only: bool
    trails: tuple[Trail, ...]


def parse(content: bytes) -> tuple[Pattern, ...]:
    """The patterns of an ignore file, in order, without those that never match."""
    lines = content.removeprefix(_BOM).split(b"\n")
    patterns = (_pattern(line) for line in lines if not line.startswith(b"#"))
    return tuple(pattern for pattern in patterns if pattern.trails)


def _pattern(line: bytes) -> Pattern:
    # Git reads lines as C strings: what follows a NUL is not there.
    text = _without_spaces(line.removesuffix(b"\r").partition(b"\0")[0])
    negated = text.startswith(b"!")
    text = text[negated:]
    dir_only = text.endswith(b"/")
    return Pattern(negated, dir_only, trails(text.removesuffix(b"/")))


def _without_spaces(text: bytes) -> bytes:
    """The spaces at the end of a line do not count, unless a backslash says so."""
    kept = text.rstrip(b" ")
    backslashes = len(kept) - len(kept.rstrip(b"\\"))
    return text[: len(kept) + backslashes % 2]


# What is left of them in a directory


class _TrailTexts:
    """A trail, and what is left of it after each of its steps as bytes, for sorting and hashing.
    The bytes of a long one are hashes, each made from the next: a line may have a thousand steps,
    and a deep tree as many directories."""

    __slots__ = ("steps", "texts")

    def __init__(self, steps: Trail) -> None:
        self.steps = steps
        texts: list[bytes] = []
        for step in reversed(steps):
            text = b"**" if step is DEEP else b"=" + step.source
            if texts:
                text += b"\0" + texts[-1]
            texts.append(text if len(texts) < _SHORT else b"#" + digest(text))
        self.texts = texts[::-1]


class _Line(NamedTuple):
    """What is left of a pattern in some directory."""

    rank: int  # twice the place of its pattern, plus one if a match is ignored
    dir_only: bool
    way: _TrailTexts
    at: int = 0  # how many of its steps are done

    @property
    def rest(self) -> Trail:
        """What one directory has to know: a name, perhaps anywhere, and whether more follow."""
        return self.way.steps[self.at : self.at + 3]

    @property
    def text(self) -> tuple[int, bool, bytes]:
        """What it means. Sorts by precedence: the last one wins."""
        return self.rank, self.dir_only, self.way.texts[self.at]


class Layer:
    """The ignore files of one directory, and what they mean in directories below."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        lines = [
            _Line(2 * place + (not pattern.negated), pattern.dir_only, _TrailTexts(trail))
            for place, pattern in enumerate(patterns)
            for trail in pattern.trails
        ]
        # Most lines are about a name anywhere below: they are compiled once, for all directories.
        self.everywhere = tuple(line for line in lines if _is_everywhere(line.rest))
        self.everywhere_files, self.everywhere_dirs = _tables(self.everywhere)
        self._lines = [line for line in lines if not _is_everywhere(line.rest)]
        self._states: dict[_Key, State] = {}

    def opening(self) -> "State":
        return self.state(self._lines)

    def state(self, lines: Iterable[_Line]) -> "State":
        """The state with these lines beside those for everywhere: always the same object."""
        found = {line.text: line for line in _furthest(list(lines))}
        key = tuple(sorted(found))
        known = self._states.get(key)
        if known is None:
            known = State(self, tuple(found[text] for text in key))
        return self._states.setdefault(key, known)


def _furthest(lines: Sequence[_Line]) -> Iterable[_Line]:
    """Without lines that are superseded: where any number of directories may follow, a line that is
    less far along the same trail matches nothing more."""
    furthest: dict[_TrailTexts, int] = {}
    for line in lines:
        if line.at and line.way.steps[line.at] is DEEP:
            furthest[line.way] = max(line.at, furthest.get(line.way, 0))
    return (line for line in lines if line.at >= furthest.get(line.way, 0))


@lru_cache(maxsize=128)  # the next walk of a daemon finds its patterns compiled
def layer_of(contents: tuple[bytes, ...]) -> Layer:
    return Layer([pattern for content in contents for pattern in parse(content)])


def _is_everywhere(trail: Trail) -> bool:
    return len(trail) == 2 and trail[0] is DEEP


class State:
    """What a layer means inside one directory."""

    def __init__(self, layer: Layer, lines: tuple[_Line, ...]) -> None:
        self._layer = layer
        self._everywhere = (layer.everywhere_files, layer.everywhere_dirs)
        self._here = _tables(lines) if lines else None
        self._stays = [line for line in lines if line.rest[0] is DEEP]
        self._literal_steps, self._glob_steps = _steps(lines)
        self.matters = bool(lines or layer.everywhere)
        self.digest = _digest_of((*layer.everywhere, *lines))

    def find(self, name: bytes, is_dir: bool) -> int:
        """The rank of the line that decides about a name."""
        found = self._everywhere[is_dir].find(name)
        if self._here is None:
            return found
        return max(found, self._here[is_dir].find(name))

    def enter(self, name: bytes) -> "State":
        if self._here is None:
            return self
        taken = [line for glob, line in self._glob_steps if fits(glob, name)]
        taken += self._literal_steps.get(name, ())
        return self._layer.state([*self._stays, *taken]) if taken else self._otherwise

    @cached_property
    def _otherwise(self) -> "State":
        """Inside a directory that no line names."""
        return self._layer.state(self._stays)


def _tables(lines: Sequence[_Line]) -> tuple[Table, Table]:
    """For files, and for directories."""
    files = Table((line.rank, name) for line, name in _for_names_here(lines) if not line.dir_only)
    return files, Table((line.rank, name) for line, name in _for_names_here(lines))


def _for_names_here(lines: Iterable[_Line]) -> Iterator[tuple[_Line, Glob]]:
    for line in lines:
        match line.rest:
            case (Glob() as name,) | (Deep(), Glob() as name):
                yield line, name


Steps = tuple[dict[bytes, list[_Line]], list[tuple[Glob, _Line]]]


def _steps(lines: Iterable[_Line]) -> Steps:
    """What is left of lines about something further down, by the directory that is entered."""
    literal: dict[bytes, list[_Line]] = {}
    globs: list[tuple[Glob, _Line]] = []
    for line in lines:
        rest = line.rest
        first, *others = rest[1:] if rest[0] is DEEP else rest[:2]
        if not others or first is DEEP:
            continue
        left = line._replace(at=line.at + 1 + (rest[0] is DEEP))
        if first.literal is not None:
            literal.setdefault(first.literal, []).append(left)
        else:
            globs.append((first, left))
    return literal, globs


def _digest_of(lines: Iterable[_Line]) -> bytes:
    texts = sorted(line.text for line in lines)
    return digest(b"\0\0".join(b"%d%d\0" % (rank & 1, dirs) + rest for rank, dirs, rest in texts))
