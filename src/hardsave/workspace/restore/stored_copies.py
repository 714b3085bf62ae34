"""Checks that files which a restore replaces or removes could come back: their stored copies are
read before."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from hardsave.errors import Corrupt
from hardsave.objects.hashing import Hash
from hardsave.progress import Total, meter
from hardsave.workspace.entries import FILE
from hardsave.workspace.restore.plan import Step
from hardsave.workspace.snapshot import content
from hardsave.workspace.snapshot.content import PART_BYTES, Fetch

_AT_ONCE = 64  # of at most `PART_BYTES` each


def without_sound_copy(steps: Iterable[Step], fetch: Fetch) -> list[bytes]:
    """Paths of files that steps take away, and of which no sound copy is stored."""
    going = {step.path: step.before for step in steps if _loses_content(step)}
    sizes = {each.hash: each.size for each in going.values() if each and each.hash}
    lost = _damaged(sizes, fetch)
    return [path for path, entry in going.items() if entry is not None and entry.hash in lost]


def _loses_content(step: Step) -> bool:
    if step.before is None or step.before.type != FILE or step.do == "chmod":
        return False
    return step.after is None or step.after.hash != step.before.hash


def _damaged(contents: Mapping[Hash, int], fetch: Fetch) -> set[Hash]:
    """Those contents, given with their sizes, that cannot be read as a whole."""
    checked = meter(
        "checking copies", "files", lambda: Total(len(contents), sum(contents.values()))
    )
    small = [address for address, size in contents.items() if size <= PART_BYTES]
    found: set[Hash] = set()
    for address, size in contents.items():
        if size > PART_BYTES:
            if not _is_whole(address, size, fetch):
                found.add(address)
            checked.add(1, size)
    for some in _portions(small):
        checked.add(len(some), sum(contents[each] for each in some))
        try:
            fetch(some)
        except Corrupt:  # one of them: which?
            found |= {each for each in some if not _is_whole(each, contents[each], fetch)}
    return found


def _portions(small: Sequence[Hash]) -> Iterator[Sequence[Hash]]:
    for start in range(0, len(small), _AT_ONCE):
        yield small[start : start + _AT_ONCE]


def _is_whole(address: Hash, size: int, fetch: Fetch) -> bool:
    try:
        for _ in content.read(address, size, fetch):
            pass
    except Corrupt:
        return False
    return True
