"""Objects as the vault reads them: one user's, every byte checked against its hash."""

from collections.abc import Collection, Mapping
from typing import Any

from hardsave.errors import Corrupt
from hardsave.objects.codec import Codec
from hardsave.objects.envelope import check
from hardsave.objects.hashing import Hash
from hardsave.objects.redaction import Redaction
from hardsave.objects.tree import Builder, Reader
from hardsave.objects.types import Types
from hardsave.stores.base import Store


class Objects:
    """Reads and builds one user's objects."""

    def __init__(
        self,
        store: Store,
        user: str | None,
        types: Types,
        max_value_bytes: int,
        redaction: Redaction | None = None,
    ) -> None:
        self._store = store
        self._user = user
        codec = Codec(types, redaction=redaction)
        self.codec = codec
        self.builder = Builder(codec, max_value_bytes)
        self.reader = Reader(codec, self.fetch)
        self.verbatim = Reader(Codec(types, verbatim=True), self.fetch)

    def redacted(self, text: Any) -> Any:
        """A text that is stored beside objects, without secrets."""
        redaction = self.codec.redaction
        return text if redaction is None else redaction.scalar(text)

    def fetch(self, wanted: Collection[Hash]) -> Mapping[Hash, bytes]:
        """Objects by hash. Damage and absence are `Corrupt`."""
        found = self._store.read(self._user, wanted)
        try:
            check([(address, found[address]) for address in wanted])
        except KeyError:
            missing = next(address for address in wanted if address not in found)
            raise Corrupt(f"object {missing.hex()} is missing; run verify") from None
        return found
