"""The ignore rules that reach a workspace from outside of it, as plain data.

They are the user's own excludes file, that of the repository, and the ignore files of directories
above. No snapshot has them, so a capture stores them: a restore leaves alone what they ignored.
"""

from collections.abc import Callable, Sequence

from hardsave.tuples import NamedTuple
from hardsave.workspace.ignore import rules as ignore
from hardsave.workspace.ignore.rules import RootRules, Rules


class OuterRules(NamedTuple):
    """Contents of ignore files; one without any rule is empty."""

    inside: bytes = b""  # where in its repository the workspace lies; empty: at its top, or in none
    excludes: tuple[bytes, ...] = ()
    above: tuple[tuple[bytes, ...], ...] = ()  # of each directory, from the repository's top down

    @property
    def is_nothing(self) -> bool:
        return not self.inside and not any(self.excludes)

    def rules(self) -> RootRules | None:
        """The rules of the workspace's top directory; None if they ignore the workspace itself."""
        if not self.above:
            return self._at_top
        *names, last = self.inside.split(b"/")
        rules = self._at_top(self.above[0])
        for name, patterns in zip(names, self.above[1:], strict=True):
            if rules.match(name, True):
                return None
            rules = rules.enter(name, patterns)
        return None if rules.match(last, True) else _entering(rules.enter, last)

    def _at_top(self, patterns: Sequence[bytes]) -> Rules:
        return ignore.root_rules(exclude_files=self.excludes, patterns=patterns)

    def below(self, tracked: frozenset[bytes]) -> frozenset[bytes]:
        """Of the paths that git tracks, those in the workspace, relative to it."""
        if not self.inside:
            return tracked
        start = self.inside + b"/"
        return frozenset(path[len(start) :] for path in tracked if path.startswith(start))


def if_any_rule(content: bytes) -> bytes:
    """The content of an ignore file; nothing if it has no rule, only comments as git makes it."""
    if all(line.startswith(b"#") or not line.strip(b" \r") for line in content.split(b"\n")):
        return b""
    from hardsave.workspace.ignore.patterns import parse  # which takes a while to load

    return content if parse(content) else b""


def _entering(enter: Callable[[bytes, Sequence[bytes]], Rules], name: bytes) -> RootRules:
    return lambda patterns: enter(name, patterns)
