"""What a restore leaves alone: paths that one side has and the rules of the other ignore, and those
that either could not capture: what was there then is unknown, and what is there now is in no
snapshot that could bring it back.

An older `.gitignore` must not make yesterday's build output deletable, so what only the present
has goes only if neither side's rules ignore it. Both are found in the snapshots themselves, because
ignore files are always captured. What the target has comes back where nothing lies; where
something lies that rules ignore, it is reported as not saved, and the caller captures it first:
then it is exempt from the rules of the present.
"""

from collections.abc import Sequence

from hardsave.defaults import IGNORE_FILES
from hardsave.objects.hashing import Hash
from hardsave.tuples import NamedTuple
from hardsave.workspace.entries import DIRECTORY, FILE, Entry, last_name, lies_in
from hardsave.workspace.ignore.rules import Rules
from hardsave.workspace.scan.capture_policy import Exempt
from hardsave.workspace.snapshot import content, directory
from hardsave.workspace.snapshot.compare import Pair, TreeFilter
from hardsave.workspace.snapshot.content import Fetch


class Side(NamedTuple):
    """The rules of one snapshot, in one directory."""

    rules: Rules
    exempt: Exempt
    inside_ignored: bool = False

    def enter(self, path: bytes, tree: Hash | None, fetch: Fetch) -> "Side":
        name = last_name(path)
        inside = self.inside_ignored or self.rules.match(name, True)
        return Side(self.rules.enter(name, patterns(tree, fetch)), self.exempt, inside)

    def leaves_out(self, path: bytes, own: Entry | None, others: Entry | None) -> bool:
        """Whether its rules leave a path alone. Rules do not count for what the snapshot has: git
        tracked it, perhaps in a nested repository, or it was included. Ignore files are captured
        in any case."""
        is_lone_ignore_file = others is None and last_name(path) in IGNORE_FILES
        if own is not None and is_lone_ignore_file and self.ignores(path, own):
            return True
        is_other = own is None or (own.type == DIRECTORY) != (others and others.type == DIRECTORY)
        return others is not None and is_other and self.ignores(path, others)

    def ignores(self, path: bytes, entry: Entry) -> bool:
        return self.matches(path, entry) and not self.exempt.holds(path)

    def matches(self, path: bytes, entry: Entry) -> bool:
        """Whether rules match it, tracked or not."""
        return self.inside_ignored or self.rules.match(last_name(path), entry.type == DIRECTORY)


class Missed(NamedTuple):
    """Paths that are there, or were, and could not be captured."""

    now: frozenset[bytes] = frozenset()
    then: frozenset[bytes] = frozenset()


NOTHING_MISSED = Missed()


class Seen(NamedTuple):
    """What a comparison finds beside differences.

    `modes`: present modes of the directories that it looked into. `unsaved`: what the target has
    where the present did not capture anything, because it could not or its rules ignore it.
    `spared`: what the target has where something of another kind lies that its own rules ignore.
    `meant`: what only the target has, and what comes back in spite of rules, if nothing lies there.
    `matched`: what the target has although rules of either side match it: once it is back, it may
    not be captured.
    """

    modes: dict[bytes, int]
    unsaved: dict[bytes, Entry]
    spared: set[bytes]
    meant: set[bytes]
    matched: set[bytes]


class RestoreFilter:
    """The filter of a restore. With `paths`, everything else is left alone as well."""

    def __init__(
        self,
        present: Side,
        target: Side,
        fetch: Fetch,
        paths: Sequence[bytes] | None,
        missed: Missed,
        seen: Seen,
    ) -> None:
        self._sides = (present, target)
        self._fetch = fetch
        self._paths = paths
        self._missed = missed
        self._seen = seen

    def enter(self, pair: Pair) -> TreeFilter:
        present, target = self._sides
        if pair.old is not None:
            self._seen.modes[pair.path] = pair.old_mode
        if not pair.path:
            return self  # the sides are those of the top directory already
        return RestoreFilter(
            present.enter(pair.path, pair.old, self._fetch),
            target.enter(pair.path, pair.new, self._fetch),
            self._fetch,
            self._paths,
            self._missed,
            self._seen,
        )

    def leaves_out(self, path: bytes, old: Entry | None, new: Entry | None) -> bool:
        if self._paths is not None and not any(_meet(path, each) for each in self._paths):
            return True
        if new is None and path in self._missed.then:
            return True
        present, target = self._sides
        now, then = present.leaves_out(path, old, new), target.leaves_out(path, new, old)
        if old is None and new is not None:
            is_ignored_then = target.ignores(path, new)
            if now or path in self._missed.now or is_ignored_then:
                return self._stays_out(path, new, is_ignored_then=is_ignored_then)
        if new is not None:
            self._note(path, new, now=now, then=then)
        return now or then

    def _note(self, path: bytes, new: Entry, *, now: bool, then: bool) -> None:
        """Note whether rules match what the target has, or keep it from coming back. An ignore file
        that ignores itself is no loss."""
        if not (now or then):
            if any(side.matches(path, new) for side in self._sides):
                self._seen.matched.add(path)
        elif last_name(path) in IGNORE_FILES:
            pass
        elif now:
            self._seen.unsaved[path] = new
        else:
            self._seen.spared.add(path)

    def _stays_out(self, path: bytes, new: Entry, *, is_ignored_then: bool) -> bool:
        """Of what only the target has. If git tracked it, or it was included, it was captured in
        spite of the rules, and comes back in spite of those of now. That does not hold for ignore
        files, which are captured in any case."""
        if path not in self._missed.now and last_name(path) in IGNORE_FILES and is_ignored_then:
            return True
        is_meant = is_ignored_then or self._sides[1].exempt.holds(path)
        if path in self._missed.now or not is_meant:
            self._seen.unsaved[path] = new
            return True
        self._seen.meant.add(path)
        return False


def _meet(path: bytes, chosen: bytes) -> bool:
    """Whether one lies in the other: above a chosen path there is more to see."""
    return lies_in(path, chosen) or lies_in(chosen, path)


def patterns(tree: Hash | None, fetch: Fetch) -> list[bytes]:
    """The contents of a directory's ignore files, as the snapshot has them."""
    found: list[bytes] = []
    for name in IGNORE_FILES:
        entry = None if tree is None else directory.find(tree, name, fetch)
        is_file = entry is not None and entry.type == FILE
        found.append(_text(entry, fetch) if is_file and entry is not None else b"")
    return found


def _text(entry: Entry, fetch: Fetch) -> bytes:
    assert entry.hash is not None
    return b"".join(content.read(entry.hash, entry.size, fetch))
