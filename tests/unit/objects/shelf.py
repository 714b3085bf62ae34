"""Objects kept in memory, with a count of how many were asked for."""

from collections.abc import Collection, Mapping

from hardsave.objects import envelope
from hardsave.objects.builder import Builder
from hardsave.objects.codec import Codec
from hardsave.objects.hashing import Hash
from hardsave.objects.levels import Out
from hardsave.objects.reader import Reader

MIB = 1 << 20


class Shelf:
    """What was put so far. `builder` and `reader` work over it."""

    def __init__(self, codec: Codec | None = None) -> None:
        self.codec = codec or Codec()
        self.builder = Builder(self.codec, MIB)
        self.reader = Reader(self.codec, self.fetch)
        self.objects: dict[Hash, bytes] = {}
        self.fetched = 0

    def fetch(self, wanted: Collection[Hash]) -> Mapping[Hash, bytes]:
        self.fetched += len(wanted)
        return {address: self.objects[address] for address in wanted}

    def verbatim(self) -> Reader:
        """A reader as growth needs it."""
        return Reader(Codec(self.codec.types, verbatim=True), self.fetch)

    def put(self, out: Out) -> int:
        """Keep objects; how many bytes of them were not known."""
        new = {address: data for address, data in out.items() if address not in self.objects}
        self.objects.update(new)
        return sum(map(len, new.values()))

    def build(self, value: object) -> Hash:
        """Build from scratch, and keep the objects."""
        out = Out()
        root = self.builder.root(value, out)
        self.put(out)
        return root

    def root_of(self, value: object) -> Hash:
        """The address of a value, which is not kept."""
        return self.builder.root(value, Out())

    def reachable(self, root: Hash) -> set[Hash]:
        """All objects under `root`. A missing one is a KeyError."""
        found: set[Hash] = set()
        todo = [root]
        while todo:
            address = todo.pop()
            if address not in found:
                found.add(address)
                todo += envelope.unseal(self.objects[address]).refs
        return found
