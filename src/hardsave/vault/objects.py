"""Objects as the vault reads them: one user's, every byte checked against its hash."""

import contextlib
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from hardsave.errors import Corrupt, NotFound
from hardsave.logs import log
from hardsave.objects.builder import Builder
from hardsave.objects.codec import Codec
from hardsave.objects.envelope import check
from hardsave.objects.hashing import Hash
from hardsave.objects.reader import Reader
from hardsave.objects.records import CheckpointRecord
from hardsave.objects.tree import Fetch
from hardsave.objects.types import Types
from hardsave.progress import check_deadline
from hardsave.stores import on_disk
from hardsave.stores.base import Store
from hardsave.stores.object_cache import ObjectCache
from hardsave.timeline.refs import to_text

if TYPE_CHECKING:
    from hardsave.objects.redaction import Redaction

_OURS = 0  # a vault has one user


class Objects:
    """Reads and builds one user's objects."""

    def __init__(
        self,
        store: Store,
        user: str | None,
        types: Types,
        max_value_bytes: int,
        redaction: "Redaction | None" = None,
    ) -> None:
        self._store = store
        self._user = user
        self._has_reported = False
        self._proven = ObjectCache()
        codec = Codec(types, redaction=redaction)
        self.codec = codec
        self.builder = Builder(codec, max_value_bytes)
        self.reader = Reader(codec, self.fetch)
        self.verbatim = Reader(Codec(types, verbatim=True), self.fetch)

    def redacted(self, text: Any) -> Any:
        """A text that is stored beside objects, without secrets."""
        redaction = self.codec.redaction
        return text if redaction is None else redaction.scalar(text)

    def as_saved(self, value: Any) -> Any:
        """A value as it comes back from objects."""
        return self.codec.decode(self.codec.encode(value))

    def fetch(
        self, wanted: Collection[Hash], owner: CheckpointRecord | None = None
    ) -> Mapping[Hash, bytes]:
        """Objects by hash. Damage and absence are `Corrupt`, unless a second copy helps out."""
        proven = self._proven.get(_OURS, wanted)
        if len(proven) == len(wanted):
            return proven
        check_deadline()  # here, because every call that reads much comes by
        left = [address for address in wanted if address not in proven] if proven else wanted
        try:
            read = self._store.read(self._user, left)
            found = dict(zip(left, map(read.__getitem__, left), strict=True))
            check(found.items())
        except (Corrupt, KeyError) as damage:
            if owner is not None:
                self._check_it_stands(owner)
            return proven | self._rescued(left, damage)
        self._proven.put(_OURS, found)
        return proven | found if proven else found

    def fetch_of(self, owner: CheckpointRecord) -> Fetch:
        """The same for what a checkpoint leads to. If that was dropped while a caller held on to
        it, what is missing is no damage, but `NotFound`."""
        return lambda wanted: self.fetch(wanted, owner)

    def reader_of(self, owner: CheckpointRecord) -> Reader:
        return Reader(self.codec, self.fetch_of(owner))

    def labels_of(self, owner: CheckpointRecord) -> dict[str, str]:
        return dict(self._store.labels(self._user, [owner.id]).get(owner.id, ()))

    def notes_of(self, owner: CheckpointRecord) -> dict[str, Any]:
        notes = self._store.notes(self._user, [owner.id]).get(owner.id, ())
        return {key: self.codec.decode(data) for key, data in notes}

    def forget(self) -> None:
        """Read everything anew: some of it may be stored no longer."""
        self._proven = ObjectCache()

    def _check_it_stands(self, owner: CheckpointRecord) -> None:
        with contextlib.suppress(Corrupt):  # then something else is damaged, too
            now = self._store.checkpoint(self._user, owner.id)
            if now is None or (now.root, now.snapshot) != (owner.root, owner.snapshot):
                raise NotFound(
                    f"checkpoint {to_text(owner.id)} was dropped or purged since it was looked up; "
                    "look it up again"
                )

    def _rescued(self, wanted: Collection[Hash], damage: Exception) -> dict[Hash, bytes]:
        """The same, one by one: one damaged object does not hide its neighbours."""
        found: dict[Hash, bytes] = {}
        bad: list[Hash] = []
        for address in wanted:
            try:
                data = self._store.read(self._user, [address])[address]
                check([(address, data)])
                found[address] = data
            except (Corrupt, KeyError):
                bad.append(address)
        second = on_disk.rescued(self._store, self._user, bad)
        for address in bad:
            if address not in second:
                if isinstance(damage, Corrupt):
                    raise damage
                raise Corrupt(f"object {address.hex()} is missing; run verify") from None
        check(list(second.items()))
        found |= second
        self._report(bad)
        return found

    def _report(self, bad: list[Hash]) -> None:
        """Loudly, and once: a user who goes on without a repair knows."""
        if bad and not self._has_reported:
            self._has_reported = True
            log(__name__).error(
                "object %s is damaged or missing; it was read from the backup. Run repair",
                bad[0].hex(),
            )
