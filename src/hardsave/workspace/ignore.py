"""Which files a workspace ignores: git's rules, exactly, and `.hardsaveignore` like them.

Two things are left to the walk: it does not enter a directory that is ignored, so nothing
below one can be included again; and what git tracks is never ignored (see `git.tracked_in`).

The rules of a directory are those of the directory above, one name further along (see
`globs`). So a match compares one name, and most directories of a tree share one `Rules`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

from hardsave.objects.hashing import digest
from hardsave.workspace import gitconfig
from hardsave.workspace.globs import DEEP, Deep, Glob, Trail, trails
from hardsave.workspace.lookup import NO_MATCH, Matcher, Table, matcher

_MEANING = b"ignore 1\0"  # raised when a key of today would not mean what it meant
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


# What applies inside one directory


class Rules:
    """Immutable: what applies inside one directory.

    `key` is a hash of all that decides here and further down. Directories with the same key
    ignore the same names; a comment, or a line for another directory, does not change it.
    """

    __slots__ = ("_inside", "_states", "key")

    def __init__(self, states: "tuple[_State, ...]") -> None:
        self._states = states  # the deepest ignore files first
        self._inside: dict[tuple[_State, ...], Rules] = {states: self}
        self.key: bytes = digest(_MEANING + b"".join(state.digest for state in states))

    def enter(self, name: bytes, patterns: Sequence[bytes]) -> "Rules":
        """The rules inside the directory `name`, which has ignore files with these contents.

        Later files decide over earlier ones: `.gitignore` first, then `.hardsaveignore`.
        """
        below = (state.enter(name) for state in self._states)
        own = tuple(_own(patterns)) if patterns else ()
        states = (*own, *(state for state in below if state.matters))
        known = self._inside.get(states)
        if known is None:
            known = Rules(states)
            if not own:
                self._inside[states] = known
        return known

    def match(self, name: bytes, is_dir: bool) -> bool:
        """Whether this entry of the directory is ignored. A symlink is not a directory."""
        for state in self._states:
            found = state.find(name, is_dir)
            if found != NO_MATCH:
                return found & 1 == 1
        return False


def root_rules(*, exclude_files: Sequence[bytes], patterns: Sequence[bytes]) -> Rules:
    """The rules inside the root of a workspace.

    Later files decide over earlier ones. To do as git does, `exclude_files` are the contents
    of the user's global excludes file, then of `.git/info/exclude`; `patterns` are those of
    the root's own `.gitignore`, then `.hardsaveignore`.
    """
    return Rules(tuple(_own((*exclude_files, *patterns))))


def _own(contents: Sequence[bytes]) -> "Iterator[_State]":
    state = _layer(tuple(contents)).opening()
    if state.matters:
        yield state


class _Way:
    """A trail, and what is left of it after each of its steps as bytes, for sorting and hashing.
    Those of a long one are hashed, each from the next: a line may have a thousand steps, and as
    many directories of a deep tree may be as many steps along it."""

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
    way: _Way
    at: int = 0  # how many of its steps are done

    @property
    def rest(self) -> Trail:
        """What one directory has to know: a name, perhaps anywhere, and whether more follow."""
        return self.way.steps[self.at : self.at + 3]

    @property
    def text(self) -> tuple[int, bool, bytes]:
        """What it means. Sorts by precedence: the last one wins."""
        return self.rank, self.dir_only, self.way.texts[self.at]


class _Layer:
    """The ignore files of one directory, and what becomes of them in those below."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        lines = [
            _Line(2 * place + (not pattern.negated), pattern.dir_only, _Way(trail))
            for place, pattern in enumerate(patterns)
            for trail in pattern.trails
        ]
        # Most lines are about a name anywhere below: they are compiled once, for all directories.
        self.everywhere = tuple(line for line in lines if _is_everywhere(line.rest))
        self.everywhere_files, self.everywhere_dirs = _tables(self.everywhere)
        self._lines = [line for line in lines if not _is_everywhere(line.rest)]
        self._states: dict[_Key, _State] = {}

    def opening(self) -> "_State":
        return self.state(self._lines)

    def state(self, lines: Iterable[_Line]) -> "_State":
        """The state with these lines beside those for everywhere: always the same object."""
        found = {line.text: line for line in _furthest(list(lines))}
        key = tuple(sorted(found))
        known = self._states.get(key)
        if known is None:
            known = _State(self, tuple(found[text] for text in key))
        return self._states.setdefault(key, known)


def _furthest(lines: Sequence[_Line]) -> Iterable[_Line]:
    """Without those that matter no more. Where any number of directories may follow, whatever comes
    earlier on the same way finds nothing that is not found from here."""
    furthest: dict[_Way, int] = {}
    for line in lines:
        if line.at and line.way.steps[line.at] is DEEP:
            furthest[line.way] = max(line.at, furthest.get(line.way, 0))
    return (line for line in lines if line.at >= furthest.get(line.way, 0))


@lru_cache(maxsize=128)  # the next walk of a resident process finds its patterns compiled
def _layer(contents: tuple[bytes, ...]) -> _Layer:
    return _Layer([pattern for content in contents for pattern in parse(content)])


def _is_everywhere(trail: Trail) -> bool:
    return len(trail) == 2 and trail[0] is DEEP


class _State:
    """What a layer means inside one directory."""

    def __init__(self, layer: _Layer, lines: tuple[_Line, ...]) -> None:
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

    def enter(self, name: bytes) -> "_State":
        if self._here is None:
            return self
        taken = [line for matches, line in self._glob_steps if matches(name)]
        taken += self._literal_steps.get(name, ())
        return self._layer.state([*self._stays, *taken]) if taken else self._otherwise

    @cached_property
    def _otherwise(self) -> "_State":
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


Steps = tuple[dict[bytes, list[_Line]], list[tuple[Matcher, _Line]]]


def _steps(lines: Iterable[_Line]) -> Steps:
    """What is left of lines about something further down, by the directory that is entered."""
    literal: dict[bytes, list[_Line]] = {}
    globs: list[tuple[Matcher, _Line]] = []
    for line in lines:
        rest = line.rest
        first, *others = rest[1:] if rest[0] is DEEP else rest[:2]
        if not others or first is DEEP:
            continue
        left = line._replace(at=line.at + 1 + (rest[0] is DEEP))
        if first.literal is not None:
            literal.setdefault(first.literal, []).append(left)
        else:
            globs.append((matcher((first.source,)), left))
    return literal, globs


def _digest_of(lines: Iterable[_Line]) -> bytes:
    texts = sorted(line.text for line in lines)
    return digest(b"\0\0".join(b"%d%d\0" % (rank & 1, dirs) + rest for rank, dirs, rest in texts))


# The user's own excludes file


def global_excludes(environ: Mapping[str, str], home: Path, seen: list[Path]) -> bytes:
    """The content of the excludes file that the user's git configuration names.

    Without such a setting, of `git/ignore` in the user's configuration directory. Empty if
    there is none. Only files are read: git is not asked. `seen` gets those that were asked for.
    """
    configured = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "git"
    chosen = environ.get("GIT_CONFIG_GLOBAL")
    files = [configured / "config", home / ".gitconfig"] if chosen is None else [Path(chosen)]
    settings = [pair for file in files for pair in gitconfig.read(file, home=home, seen=seen)]
    named = gitconfig.last(settings, b"core.excludesfile")
    path = configured / "ignore" if named is None else gitconfig.expanded(named, home=home)
    if path is None:
        return b""
    seen.append(path)
    return gitconfig.content(path)
