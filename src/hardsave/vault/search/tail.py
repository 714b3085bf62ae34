"""What a timeline had lately: so that a checkpoint's texts are put into the index once, when they
are new, and what it shares with the one before it is passed over.

Kept are the first bytes of hashes: of the objects that the last checkpoints consist of, as far up
as they change, and of the texts that stand inside of those. They are few, and what was forgotten
is only looked into once more. What begins like another by chance, which takes four billion of
them, would not be found.
"""

from array import array

KEY_BYTES = 8
MOST_KEYS = 256


class Tail:
    """Of one timeline. `is_new` is asked about everything that a checkpoint leads to, from the
    outside in."""

    def __init__(self, known: bytes) -> None:
        self._known = dict.fromkeys(array("Q", known))
        self._met: dict[int, None] = {}

    def is_new(self, hash: bytes) -> bool:
        """Whether neither the last checkpoints had it, nor this one until now."""
        key = int.from_bytes(hash[:KEY_BYTES])
        if key in self._met:
            return False
        self._met[key] = None
        return key not in self._known

    def end_checkpoint(self) -> None:
        """What it had, and as much as there is room for of what those before it had."""
        if len(self._met) < MOST_KEYS:
            self._met.update(self._known)
        self._known, self._met = self._met, {}

    def packed(self) -> bytes:
        return array("Q", self._known).tobytes()[: MOST_KEYS * KEY_BYTES]
