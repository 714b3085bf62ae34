"""What a store does not claim is refused by name, with the next step; all else is not."""

import pytest

from hardsave.stores import claims, on_disk
from hardsave.stores.base import Store
from hardsave.stores.claims import CLAIMS, NotClaimed
from hardsave.testing.batches import Line, refs_of, trace

LARGE = "large workspaces"


class Claiming:
    """Needs a `store` fixture. A store that does not do everything says so a second time, in the
    class of its tests: it cannot lose a claim without that being seen."""

    not_claimed: frozenset[str] = frozenset()
    """Of `stores.claims.CLAIMS` and "large workspaces" those that this store refuses."""

    def test_the_store_claims_what_its_tests_say(self, store: Store) -> None:
        refused: set[str] = {what for what in CLAIMS if getattr(store.claims, what)}
        if store.claims.max_workspace_bytes is not None:
            refused.add(LARGE)
        assert refused == self.not_claimed

    def test_what_is_not_claimed_is_refused_by_name_with_the_next_step(self, store: Store) -> None:
        for what in CLAIMS:
            if what not in self.not_claimed:
                claims.check(store.claims, what)
                continue
            with pytest.raises(NotClaimed, match=f"^{what} is not for this store: ."):
                claims.check(store.claims, what)

    def test_a_workspace_that_is_too_large_is_refused_and_no_other(self, store: Store) -> None:
        most = store.claims.max_workspace_bytes
        claims.check_workspace(store.claims, 1 << 40 if most is None else most)
        if most is not None:
            with pytest.raises(NotClaimed, match=str(most)):
                claims.check_workspace(store.claims, most + 1)

    def test_compacting_is_done_or_refused_and_changes_nothing(self, store: Store) -> None:
        line = Line(store)
        for _ in range(3):
            line.save()
        before = trace(store)
        compact_if_claimed(store)
        assert trace(store) == before


def compact_if_claimed(store: Store) -> None:
    """Compacts, or sees that it is refused."""
    if not store.claims.compact:
        on_disk.compact(store, refs_of)
        return
    with pytest.raises(NotClaimed):
        on_disk.compact(store, refs_of)
