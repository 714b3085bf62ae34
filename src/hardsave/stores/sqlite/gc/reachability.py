"""Which objects are needed: the deciding half of collecting, over plain data.

Packs are visited from the newest to the oldest, each once. An object lies in no older pack
than anything it refers to, so by the time a pack is visited, everything outside it that
needs one of its objects has been seen. What is waiting to be met is all that is kept in mind.

A pack in which little could go is left as it is, to save the work of writing it anew: unless
that would keep something in an older pack as well. So what could go and stays is at most a
fifth of its pack, and no object that stays ever lacks one that it refers to.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

from hardsave.objects.hashing import Hash

ENOUGH_DEAD = 0.2  # of a pack's bytes; with less it is not written anew

Refs = Callable[[bytes], Collection[Hash]]


class Reachability:
    """One pass over a user's packs. `roots` are what checkpoints point at."""

    def __init__(self, roots: Iterable[Hash], refs: Refs, *, exact: bool) -> None:
        self.waiting = set(roots)  # needed, and not met yet
        self._refs = refs
        self._exact = exact

    def wants_none(self, hashes: Iterable[Hash]) -> bool:
        """Whether a pack of these can go as a whole, without a look inside."""
        return self.waiting.isdisjoint(hashes)

    def visit(self, objects: Mapping[Hash, bytes], *, stays: bool = False) -> set[Hash]:
        """Those of a pack's objects that go; none if it `stays`, or is left as it is."""
        live = {address for address in objects if address in self.waiting}
        self._follow(objects, live, live)
        dead = objects.keys() - live
        if stays or self._is_left(objects, dead):
            self._follow(objects, dead, set(objects))
            dead = set()
        self.waiting -= live
        return dead

    def _follow(
        self, objects: Mapping[Hash, bytes], begin: Collection[Hash], live: set[Hash]
    ) -> None:
        """Add to `live` what these lead to inside their pack, and wait for what is outside it."""
        stack = list(begin)
        while stack:
            for ref in self._refs(objects[stack.pop()]):
                if ref not in objects:
                    self.waiting.add(ref)
                elif ref not in live:
                    live.add(ref)
                    stack.append(ref)

    def _is_left(self, objects: Mapping[Hash, bytes], dead: Collection[Hash]) -> bool:
        if self._exact or not dead:
            return not dead
        size = sum(map(len, objects.values()))
        if sum(len(objects[address]) for address in dead) > ENOUGH_DEAD * size:
            return False
        refs = (ref for address in dead for ref in self._refs(objects[address]))
        return all(ref in objects or ref in self.waiting for ref in refs)
