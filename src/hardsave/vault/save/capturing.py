"""Taking the files of a workspace, so that they can be committed with a checkpoint.

Contract. Nothing is written into the workspace or its repository, and no program is run. What
is small travels in the checkpoint's own commit; of what is large, all but the end is stored
ahead of it, under a pin that is given back when the commit has been made or given up. The
caller holds the place's lock from before the capture until after the commit. The commit names the
epoch that the workspace had when the capture began: if another host or attempt has taken it over
since, `WorkspaceTaken`, and nothing is written.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from hardsave.errors import Corrupt, Unavailable
from hardsave.objects import envelope
from hardsave.objects.hashing import Hash, digest
from hardsave.stores.claims import check_workspace
from hardsave.stores.workspaces import WorkspaceMove
from hardsave.tuples import NamedTuple
from hardsave.vault.context import Context
from hardsave.vault.save.pin import Pin
from hardsave.vault.workspaces import local_data
from hardsave.vault.workspaces.place import Last, Place
from hardsave.workspace.entries import NotCaptured
from hardsave.workspace.filesystem.exhaustion import unavailable_if_disk_fails
from hardsave.workspace.git.nested_repository import UNREADABLE
from hardsave.workspace.scan import cache as caches
from hardsave.workspace.scan import git_context
from hardsave.workspace.scan.cache import Cache
from hardsave.workspace.scan.git_context import GitContext
from hardsave.workspace.scan.newly_ignored import loss
from hardsave.workspace.scan.result import Scan
from hardsave.workspace.scan.scanner import scan
from hardsave.workspace.snapshot import capture
from hardsave.workspace.snapshot.builder import BATCH_BYTES, snapshot
from hardsave.workspace.snapshot.capture import Capture, Git
from hardsave.workspace.snapshot.content import Put

if TYPE_CHECKING:
    from hardsave.vault.ahead import Ahead

LOOK_BYTES = 256 << 20  # of contents that a look keeps in memory if they cannot be stored
MAX_IGNORED_NOTED = 100  # ignored files that a checkpoint names because nothing else has them


class Taken(NamedTuple):
    """Captured files, not committed yet."""

    where: WorkspaceMove  # the workspace as it was before anything was read
    address: Hash  # of the capture
    snapshot: Hash
    objects: Mapping[Hash, bytes]  # to be stored with the commit
    requires: frozenset[Hash]  # stored already, or so the cache says
    not_captured: tuple[NotCaptured, ...]  # but for what is ignored
    around: GitContext
    cache: Cache
    last: Last
    read: int  # files whose content was read
    also: frozenset[bytes] = frozenset()  # captured although rules ignore them
    lost: str = ""  # why most files are not in it, if an ignore rule does that
    files: int | None = None  # how many; None: only directories that changed were looked at
    known: Mapping[Hash, Hash] = MappingProxyType({})  # the snapshot of the capture before, by it

    @property
    def workspace(self) -> bytes:
        """The id that its checkpoint names."""
        return self.where.become.id

    def file_count(self) -> int:
        """How many files it has."""
        if self.files is not None:
            return self.files
        return sum(len(self.cache.stats(path).files) for path in self.cache.paths())


class Taking:
    """One capture, perhaps repeated: what the cache speaks of may be gone by the commit."""

    def __init__(self, context: Context, place: Place, *, only_looks: bool = False) -> None:
        self._context = context
        self._place = place
        self._only_looks = only_looks
        self._pin = Pin(context, "capture")
        self._taken: Taken | None = None
        self._gathered: _Gathered | None = None
        self._also: frozenset[bytes] = frozenset()
        self._is_done = False  # something was committed that may point at what was put
        self.branches: Iterable[str] = ()  # that the position is to know of besides

    def take(self, *, afresh: bool = False) -> Taken:
        """The files as they are now; `afresh` trusts nothing that was seen before."""
        if afresh:
            self._place.forget()
        if self._taken is None or afresh:
            self._taken = self._captured()
        return self._taken

    def take_also(self, paths: frozenset[bytes]) -> Taken:
        """The same with these paths, although rules ignore them: a restore replaces nothing that
        is not captured."""
        self._also |= paths
        self._taken = self._captured()
        return self._taken

    def done(self) -> None:
        """The commit was made: what was seen is there to build on."""
        self._is_done = True
        if self._taken is not None:
            self._place.remember(self._taken.cache, self._taken.last)

    def end(self, *, is_given_up: bool = False) -> None:
        """Nothing of it is under way after this. `is_given_up`: what was put is not needed, unless
        a commit was made before."""
        if self._gathered is not None:
            self._gathered.give_up()
            is_given_up = is_given_up or self._gathered.is_unstored
        self._pin.give_back(is_given_up=is_given_up and not self._is_done)

    def look(self) -> tuple[GitContext, Scan]:
        """What lies there. Reads no content."""
        place = self._place
        before = None if place.last is None else place.last.around
        known = place.cache.last_scan.tracked_key if place.cache.last_scan else b""
        around = git_context.look(
            place.path, branches=self.branches, last=before, known_index=known
        )
        found = scan(
            place.root,
            rules=around.rules,
            tracked=partial(_exempt, around, self._also) if self._also else around.paths,
            tracked_key=_exempt_key(around, self._also) if self._also else around.tracked_key,
            cache=place.cache,
            policy=place.policy,
            sure=place.sure,
            changed=None if place.eyes is None else place.eyes.changed(place.cache),
        )
        return around, found

    def _captured(self) -> Taken:
        where = self._context.places.begun(self._place)
        around, found = self.look()
        if not self._only_looks:
            check_workspace(self._context.store.claims, found.total_bytes)
        is_first = found.cache is caches.EMPTY or not (found.cache.folders or found.cache.packed)
        make = _Kept if self._only_looks else _Gathered
        gathered = self._gathered = make(self._context, self._pin, asks=is_first)
        taken = snapshot(found, gathered.put)
        lost = loss(found)
        rest = gathered.rest()
        told = [each for each in taken.not_captured if not each.is_ignored]
        missed = _missed(around, tuple(told), lost)
        noted = [each for each in taken.not_captured if each.is_ignored][:MAX_IGNORED_NOTED]
        made: dict[Hash, bytes] = {}
        last = self._last()
        git = _git(around, last, made.__setitem__)
        outside = capture.write_outer_rules(around.outer_rules, made.__setitem__)
        address = capture.write(
            Capture(taken.root, (*missed, *noted), git, outside), made.__setitem__
        )
        own, known = _fresh(address, made, last)
        objects = {**rest, **own}
        return Taken(
            where=where,
            address=address,
            snapshot=taken.root,
            objects=objects,
            requires=frozenset({address} | known | taken.requires) - objects.keys(),
            not_captured=missed,
            around=around,
            cache=taken.cache,
            last=Last(address, frozenset(envelope.refs(made[address])), around, git),
            read=taken.read,
            also=self._also,
            lost="" if lost is None else lost.reason,
            files=None if found.is_incremental else sum(len(each.files) for each in found.found),
            known=_known_root(self._place.cache),
        )

    def _last(self) -> Last | None:
        """The newest capture of this workspace, in this store."""
        place, context = self._place, self._context
        if place.last is None and place.cache is not caches.EMPTY:
            rows = context.store.captured(context.user, place.id, None, 1)
            if rows and rows[0].snapshot is not None:
                place.last = self._known(rows[0].snapshot)
        return place.last

    def _known(self, address: Hash) -> Last | None:
        kept = self._place.cache.capture
        if kept and kept[0] == address:
            return Last(address, frozenset(kept[1:]))
        try:
            data = self._context.objects.fetch([address])[address]
        except Corrupt:  # nothing to build on, and no reason not to save what is there
            return None
        return Last(address, frozenset(envelope.refs(data)))


class _Gathered:
    """Keeps the last batch for the commit; those before it go ahead, while others are made, and
    as soon as they are full.

    A first capture may find much of it stored, by another cache's leave. So it asks before it
    compresses, until there is a batch of which nothing was there: then the rest is new as well,
    or the store leaves out of it what it has.
    """

    def __init__(self, context: Context, pin: Pin, *, asks: bool) -> None:
        self._context = context
        self._pin = pin
        self._asks = asks
        self._ahead: Ahead | None = None
        self._last: Mapping[Hash, bytes] = {}
        self.is_unstored = False  # some of it could not be stored
        if asks:
            self._put({})  # from here on, nothing goes that is found to be there

    def put(self, objects: Mapping[Hash, bytes]) -> None:
        if self._last:
            self._send(self._last)
        self._last = objects
        if sum(map(len, objects.values())) >= BATCH_BYTES:  # the last one is hardly ever full
            self._send(objects)
            self._last = {}

    def _send(self, objects: Mapping[Hash, bytes]) -> None:
        from hardsave.vault.ahead import Ahead  # most captures are one batch

        self._settle()
        self._ahead = Ahead(partial(self._store, objects))

    def _store(self, objects: Mapping[Hash, bytes]) -> None:
        self._put(self._missing(objects))

    def _put(self, objects: Mapping[Hash, bytes]) -> None:
        self._pin.put(objects)

    def _missing(self, objects: Mapping[Hash, bytes]) -> Mapping[Hash, bytes]:
        if not self._asks:
            return objects
        missing = self._context.store.missing(self._context.user, objects.keys())
        self._asks = len(missing) < len(objects)
        return {address: data for address, data in objects.items() if address in missing}

    def rest(self) -> Mapping[Hash, bytes]:
        """What is left to be stored, once all that went ahead has arrived."""
        self._settle()
        return self._missing(self._last)

    def _settle(self) -> None:
        """What went ahead has arrived, or its error is raised here."""
        if self._ahead is not None:
            self._ahead.wait()  # if interrupted here, it still has to be given up
            self._ahead = None

    def give_up(self) -> None:
        """Nothing of it is under way after this, also if it failed."""
        if self._ahead is not None:
            self._ahead.join()


class _Kept(_Gathered):
    """The same for a look: what cannot be stored, as on a full disk, is kept in memory. Nothing is
    going to be committed; so of contents no more is kept than fits."""

    def __init__(self, context: Context, pin: Pin, *, asks: bool) -> None:
        self._unstored: dict[Hash, bytes] = {}
        self._left = LOOK_BYTES
        super().__init__(context, pin, asks=asks)

    def _put(self, objects: Mapping[Hash, bytes]) -> None:
        if not self.is_unstored:
            try:
                super()._put(objects)
            except Unavailable:
                self.is_unstored = True
            else:
                return
        for address, data in objects.items():
            if self._left > len(data) or data[0] != envelope.CONTENT:
                self._unstored[address] = data
                self._left -= len(data)

    def rest(self) -> Mapping[Hash, bytes]:
        return {**super().rest(), **self._unstored}


def _known_root(cache: Cache) -> Mapping[Hash, Hash]:
    """The snapshot that the capture before has, without reading that."""
    return {cache.capture[0]: cache.root} if cache.capture else {}


def _exempt(around: GitContext, also: frozenset[bytes]) -> frozenset[bytes]:
    """Paths that no ignore rule counts for: what git tracks, and what a restore is to replace."""
    return around.tracked | also


def _exempt_key(around: GitContext, also: frozenset[bytes]) -> bytes | None:
    """The same key, the same paths."""
    key = around.tracked_key
    return None if key is None else digest(b"\0".join((key, *sorted(also))))


def _missed(
    around: GitContext, missed: tuple[NotCaptured, ...], lost: NotCaptured | None
) -> tuple[NotCaptured, ...]:
    if lost is not None:
        missed = (lost, *missed)
    if not around.problem:
        return missed
    return (*missed, NotCaptured(b".git/index", UNREADABLE + around.problem))


def _git(around: GitContext, last: Last | None, put: Put) -> Git | None:
    """Git's position as it is stored: one that the capture before has is not made again."""
    position = around.position
    if position is None:
        return None
    if last is not None and last.around is not None and last.around.position is position:
        return last.git
    return capture.write_git(position, put)


def _fresh(
    address: Hash, made: Mapping[Hash, bytes], last: Last | None
) -> tuple[dict[Hash, bytes], set[Hash]]:
    """Those of a capture's own objects that the one before did not have, and those it had."""
    known: frozenset[Hash] = frozenset() if last is None else last.refs
    if last is not None and last.address == address:
        return {}, set()
    kept: set[Hash] = set()
    stack = [address]
    while stack:
        one = stack.pop()
        if one in made and one not in kept:
            kept.add(one)
            stack += [ref for ref in envelope.refs(made[one]) if ref not in known]
    had = {ref for ref in envelope.refs(made[address]) if ref in known}
    return {one: data for one, data in made.items() if one in kept}, had


@contextmanager
def taking(context: Context, place: Place, *, only_looks: bool = False) -> Iterator[Taking]:
    """Captures inside the place's lock; the pin ends with the block."""
    with unavailable_if_disk_fails(place.root), place.locked():
        local_data.drop_if_purged(context)
        one = Taking(context, place, only_looks=only_looks)
        try:
            yield one
        except BaseException:
            one.end(is_given_up=True)
            raise
        one.end()
