"""Which objects hold a text, or lead to one that does.

Found in one pass over the store's objects, each pack read once: an object lies behind what it
refers to, or in the same pack. Compaction beside it may change that order, and an object may be
missed that leads to the text. So a purge that has found some looks again when it is through.
"""

from collections.abc import Mapping

from hardsave.objects import envelope
from hardsave.objects.hashing import Hash
from hardsave.progress import meter
from hardsave.vault.addresses import Addresses
from hardsave.vault.context import Context
from hardsave.vault.scratch import Scratch

_NO_REFS = b"\0"


class TextHolders:
    """Of all objects that a user has when it is made. Memory does not grow with them."""

    def __init__(self, context: Context, text: bytes, scratch: Scratch) -> None:
        self._text = text
        self._held = Addresses(scratch)
        self.count = 0
        """So many hold it, or lead to it."""
        looked = meter("looking for the text", "objects", context.volume)
        for part in context.store.scan(context.user):
            envelope.check(part.items())
            self._look_at(part)
            looked.add(len(part), sum(map(len, part.values())))

    def __contains__(self, address: Hash) -> bool:
        return address in self._held

    def _look_at(self, part: Mapping[Hash, bytes]) -> None:
        for address, data in part.items():
            if self._text in data:
                self._add(address)
        while self.count and self._add_referring(part):
            pass  # some of a part may lie before what they refer to

    def _add_referring(self, part: Mapping[Hash, bytes]) -> bool:
        """Add those that refer to one that is held; whether there were any."""
        before = self.count
        for address, data in part.items():
            if data[1:2] != _NO_REFS and any(ref in self._held for ref in envelope.refs(data)):
                self._add(address)
        return self.count > before

    def _add(self, address: Hash) -> None:
        if address not in self._held:
            self._held.add(address)
            self.count += 1
