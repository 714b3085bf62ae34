"""Ctrl-C in the middle of a commit to a store in memory: all of it is there, or nothing."""

import copy
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import count
from typing import Any

from hardsave.stores.base import Batch
from hardsave.stores.memory import ledger, store
from hardsave.stores.memory import tenant as tenant_module
from hardsave.stores.memory.store import MemoryStore
from hardsave.vault.vault import Vault
from tests.unit.tracing import at_line, interrupt
from tests.unit.vault.operations import drop

_FILES = {module.__file__ for module in (store, ledger, tenant_module)}


class _Recording(MemoryStore):
    """Keeps the store as it was before each commit, and the batch of it."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[tuple[dict[str | None, Any], Batch]] = []

    def commit(self, batch: Batch) -> int:
        self.commits.append((copy.deepcopy(self._tenants), batch))
        return super().commit(batch)


def _interrupted_at_line(line: int) -> AbstractContextManager[None]:
    """A block in which the nth line of the store is interrupted before it is run.

    Python calls handlers of signals where functions begin and loops go round: there are none such
    lines between a commit's end and the flag that says so.
    """
    return at_line(line, interrupt, _FILES, but=("commit",))


def _portrait(store: MemoryStore) -> object:
    """All that it holds, in its order."""
    store.stats(None)  # the next call finishes what was decided
    found = []
    for tenant in store._tenants.values():
        own = {**vars(tenant), "ledger": vars(tenant.ledger)}
        found.append({name: repr(value) for name, value in own.items()})
    return found


def _lived() -> _Recording:
    """A store with a past in which every kind of commit occurs."""
    store = _Recording()
    with Vault(store) as vault:
        line = vault.timeline("main")
        first = line.save({"turn": 1})
        for turn in (2, 3):
            line.save({"turn": turn})
        line.rewind("@~1")
        line.undo()
        fork = line.fork(name="other")
        fork.save({"turn": 4})
        vault.timeline("other").delete()
        vault.undo()
        line.rewind("main:2")
        drop(store, first)
        tasks = vault.tasks
        tasks.add("first")
        tasks.add("second", after=["first"])
        with tasks.attempt("first") as attempt:
            attempt.step("one", lambda: 1)
        tasks.add("third", after=["second"])
        tasks.cancel("second")
        tasks.forget(keep_completed=0)
    return store


def _copy(tenants: dict[str | None, Any]) -> MemoryStore:
    store = MemoryStore()
    store._tenants = copy.deepcopy(tenants)
    return store


def test_an_interrupt_at_any_line_of_a_commit_leaves_all_of_it_or_nothing() -> None:
    outcomes = [
        outcome for tenants, batch in _lived().commits for outcome in _outcomes(tenants, batch)
    ]
    assert outcomes.count("nothing") > 100
    assert outcomes.count("all") > 100


def _outcomes(tenants: dict[str | None, Any], batch: Batch) -> Iterator[str]:
    """What is there after an interrupt at each of the lines of a commit."""
    nothing = _portrait(_copy(tenants))
    done = _copy(tenants)
    done.commit(batch)
    all_of_it = _portrait(done)
    for line in count(1):
        store = _copy(tenants)
        try:
            with _interrupted_at_line(line):
                store.commit(batch)
        except KeyboardInterrupt:
            found = _portrait(store)
            assert found in (nothing, all_of_it), (batch.event, line)
            yield "all" if found == all_of_it else "nothing"
            store.commit(batch)  # as after `Unavailable`: it may be repeated
            assert _portrait(store) == all_of_it
        else:
            return
