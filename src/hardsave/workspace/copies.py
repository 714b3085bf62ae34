"""Whether what is about to go could come back: its stored copy is read before its only good one
is replaced or removed."""

from collections.abc import Iterator, Mapping, Sequence

from hardsave.errors import Corrupt
from hardsave.objects.hashing import Hash
from hardsave.workspace import content
from hardsave.workspace.content import PART_BYTES, Fetch

_AT_ONCE = 64  # of at most `PART_BYTES` each


def damaged(contents: Mapping[Hash, int], fetch: Fetch) -> set[Hash]:
    """Those contents, given with their sizes, that cannot be read as a whole."""
    small = [address for address, size in contents.items() if size <= PART_BYTES]
    found = {
        address
        for address, size in contents.items()
        if size > PART_BYTES and not _is_whole(address, size, fetch)
    }
    for some in _portions(small):
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
