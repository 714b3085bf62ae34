"""Which objects are needed, decided over plain data."""

from collections.abc import Mapping
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from hardsave.objects.hashing import Hash
from hardsave.stores.sqlite.gc.reachability import ENOUGH_DEAD, Reachability

Pack = dict[Hash, bytes]


def name(number: int) -> Hash:
    return number.to_bytes(20)


def data(refs: list[int], size: int) -> bytes:
    """An object: how many it refers to, which, and filling."""
    return bytes([len(refs)]) + b"".join(map(name, refs)) + b"." * size


def refs(of: bytes) -> list[Hash]:
    return [of[1 + 20 * at : 21 + 20 * at] for at in range(of[0])]


class World(NamedTuple):
    packs: list[Pack]  # oldest first
    roots: set[Hash]
    recent: int  # so many of the newest are not indexed

    @property
    def objects(self) -> Pack:
        return {address: found for pack in self.packs for address, found in pack.items()}


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Objects that refer to others in their own pack, in any order, or in older ones."""
    counts = draw(st.lists(st.integers(1, 6), min_size=1, max_size=8))
    packs: list[Pack] = []
    first = 0
    for count in counts:
        # A number stands for a moment; only in its pack is the order of objects another one.
        made = {
            name(n): data(
                draw(st.lists(st.integers(0, max(n - 1, 0)), max_size=3)) if n else [],
                draw(st.integers(0, 200)),
            )
            for n in range(first, first + count)
        }
        order = draw(st.permutations(list(made)))
        packs.append({address: made[address] for address in order})
        first += count
    roots = draw(st.sets(st.integers(0, first - 1), max_size=4))
    return World(packs, set(map(name, roots)), draw(st.integers(0, len(packs))))


def reached(objects: Mapping[Hash, bytes], roots: set[Hash]) -> set[Hash]:
    found: set[Hash] = set()
    stack = list(roots)
    while stack:
        address = stack.pop()
        if address not in found:
            found.add(address)
            stack += refs(objects[address])
    return found


def judged(world: World, *, exact: bool) -> tuple[list[set[Hash]], Reachability]:
    """What goes of each pack, oldest first; and what was waited for in vain."""
    marking = Reachability(world.roots, refs, exact=exact)
    gone: list[set[Hash]] = []
    indexed = len(world.packs) - world.recent
    for at, pack in reversed(list(enumerate(world.packs))):
        if at < indexed and marking.wants_none(pack):
            gone.append(set(pack))
        else:
            gone.append(marking.visit(pack, stays=at >= indexed))
    return gone[::-1], marking


@settings(max_examples=40)
@given(worlds(), st.booleans())
def test_what_a_checkpoint_leads_to_stays(world: World, exact: bool) -> None:
    gone, marking = judged(world, exact=exact)
    assert reached(world.objects, world.roots).isdisjoint(set().union(*gone))
    assert marking.waiting == set()


@settings(max_examples=40)
@given(worlds(), st.booleans())
def test_nothing_that_stays_lacks_what_it_refers_to(world: World, exact: bool) -> None:
    gone, _ = judged(world, exact=exact)
    every = set().union(*gone)
    for address in world.objects.keys() - every:
        assert every.isdisjoint(refs(world.objects[address]))


@settings(max_examples=40)
@given(worlds(), st.booleans())
def test_a_sweep_that_stops_anywhere_leaves_nothing_that_lacks_what_it_refers_to(
    world: World, exact: bool
) -> None:
    gone, _ = judged(world, exact=exact)
    left = dict(world.objects)
    for some in reversed(gone):
        for address in some:
            del left[address]
        assert all(ref in left for found in left.values() for ref in refs(found))


@settings(max_examples=40)
@given(worlds())
def test_exactly_what_nothing_leads_to_goes(world: World) -> None:
    gone, _ = judged(world, exact=True)
    recent = {a for pack in world.packs[len(world.packs) - world.recent :] for a in pack}
    needed = reached(world.objects, world.roots | recent)
    assert set().union(*gone) == world.objects.keys() - needed


@settings(max_examples=40)
@given(worlds())
def test_what_could_go_and_stays_is_a_small_part_of_its_pack(world: World) -> None:
    world = world._replace(recent=0)
    needed = reached(world.objects, world.roots)
    gone, _ = judged(world, exact=False)
    for pack, some in zip(world.packs, gone, strict=True):
        left = [len(found) for address, found in pack.items() if address not in needed | some]
        assert sum(left) <= ENOUGH_DEAD * sum(map(len, pack.values()))


def test_a_pack_in_which_little_could_go_is_left_as_it_is() -> None:
    little = {name(0): data([], 100), name(1): data([], 10)}
    assert Reachability([name(0)], refs, exact=False).visit(little) == set()
    assert Reachability([name(0)], refs, exact=True).visit(little) == {name(1)}
    much = {name(0): data([], 100), name(1): data([], 90)}
    assert Reachability([name(0)], refs, exact=False).visit(much) == {name(1)}


def test_a_pack_is_not_left_if_that_would_keep_something_in_another() -> None:
    little = {name(8): data([], 100), name(9): data([5], 0)}
    assert Reachability([name(8)], refs, exact=False).visit(little) == {name(9)}
    assert Reachability([name(8), name(5)], refs, exact=False).visit(little) == set()


def test_what_was_referred_to_from_an_older_pack_is_still_waited_for() -> None:
    marking = Reachability([name(1)], refs, exact=False)
    assert marking.visit({name(7): data([], 50)}) == {name(7)}
    assert marking.visit({name(1): data([7], 50)}) == set()
    assert marking.waiting == {name(7)}
