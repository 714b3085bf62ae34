"""Timelines against a plain model: two handles each, whatever comes in whatever order."""

import copy
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)

from hardsave import ANY_HEAD
from hardsave.errors import Conflict, NotFound, Unstorable
from hardsave.stores.memory import MemoryStore
from hardsave.vault.line import Timeline
from hardsave.vault.vault import Vault
from tests.unit.vault.stage import Clock

NAMES = ("one", "two", "three", "four")

small = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.text(max_size=5),
    st.lists(st.integers(0, 3), max_size=3),
)
# Texts that are objects of their own, in lists long enough to be split.
long_lists = st.builds(
    lambda count, start: [f"{start + n} ".ljust(150, ".") for n in range(count)],
    st.integers(0, 40),
    st.integers(0, 50),
)
states = st.dictionaries(st.sampled_from(["a", "b", "messages"]), small | long_lists, max_size=3)


class Model:
    """What a vault should hold: for each checkpoint its state and parent, for each line its own."""

    def __init__(self) -> None:
        self.states: dict[str, Any] = {}
        self.parents: dict[str, str | None] = {}
        self.names: dict[str, str | None] = {}
        self.heads: dict[str, str | None] = {}
        self.lines: dict[str, list[str]] = {}

    def history(self, line: str) -> list[str]:
        """Ids from the head back to the beginning."""
        found = []
        at = self.heads.get(line)
        while at is not None:
            found.append(at)
            at = self.parents[at]
        return found


class Timelines(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore()
        self.vault = Vault(self.store, clock=Clock())
        self.model = Model()
        self.handles: dict[tuple[str, int], Timeline] = {}
        self.seen: dict[tuple[str, int], str | None] = {}

    def handle(self, name: str, number: int) -> Timeline:
        """One of two handles on a line; it has seen the head of the moment it was made."""
        if (name, number) not in self.handles:
            self.handles[name, number] = self.vault.timeline(name)
            self.seen[name, number] = self.model.heads.get(name)
        return self.handles[name, number]

    def write(
        self,
        method: str,
        name: str,
        number: int,
        given: Any,
        expected: Any,
        any_head: bool,
        label: Any,
    ) -> None:
        line = self.handle(name, number)
        head = self.model.heads.get(name)
        options = {"expect": ANY_HEAD} if any_head else {}
        if not any_head and self.seen[name, number] != head:
            with pytest.raises(Conflict):
                getattr(line, method)(copy.deepcopy(given), name=label)
            return
        saved = getattr(line, method)(copy.deepcopy(given), name=label, **options)
        self.model.states[saved.id] = copy.deepcopy(expected)
        self.model.parents[saved.id] = head
        self.model.names[saved.id] = label
        self.model.heads[name] = self.seen[name, number] = saved.id
        self.model.lines.setdefault(name, []).append(saved.id)
        assert saved.seq == len(self.model.lines[name])
        assert saved.parent == head

    where = st.tuples(st.sampled_from(NAMES[:2]), st.integers(0, 1))
    labels = st.sampled_from([None, None, "plan", "test"])

    @rule(at=where, state=states, any_head=st.booleans(), label=labels)
    def save(self, at: tuple[str, int], state: Any, any_head: bool, label: Any) -> None:
        self.write("save", *at, state, state, any_head, label)

    @rule(at=where, delta=states, any_head=st.booleans(), label=labels)
    def append(self, at: tuple[str, int], delta: Any, any_head: bool, label: Any) -> None:
        head = self.model.heads.get(at[0])
        grown = dict(self.model.states[head]) if head else {}
        for key, value in delta.items():
            old = grown.get(key)
            both = isinstance(old, list) and isinstance(value, list)
            grown[key] = old + value if both else value
        self.write("append", *at, delta, grown, any_head, label)

    @rule(at=where, state=states)
    def fail(self, at: tuple[str, int], state: Any) -> None:
        """A save that cannot work changes nothing."""
        with pytest.raises(Unstorable):
            self.handle(*at).save({**state, "bad": object()})
        with pytest.raises(Unstorable):
            self.handle(*at).append({**state, "bad": [object()]})

    @rule(at=where, back=st.integers(0, 6))
    def look(self, at: tuple[str, int], back: int) -> None:
        """Load by steps back; the head itself counts as seen."""
        line = self.handle(*at)
        history = self.model.history(at[0])
        ref = f"@~{back}" if back else "@"
        if back == 0:
            self.seen[at] = self.model.heads.get(at[0])
        if back < len(history):
            assert line.load(ref) == self.model.states[history[back]]
            assert line.get(ref).id == history[back]
        else:
            with pytest.raises(NotFound):
                line.load(ref)

    @rule(at=where, label=st.sampled_from(["plan", "test"]))
    def by_name(self, at: tuple[str, int], label: str) -> None:
        own = [id for id in self.model.lines.get(at[0], []) if self.model.names[id] == label]
        if own:
            assert self.handle(*at).load(label) == self.model.states[own[-1]]
        else:
            with pytest.raises(NotFound):
                self.handle(*at).load(label)

    @precondition(lambda self: self.model.states)
    @rule(data=st.data())
    def by_id_and_number(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.model.states)))
        for found in (self.vault.get(id), self.vault.get(id[:20])):
            assert found.read() == self.model.states[id]
            assert found.parent == self.model.parents[id]
        number = self.model.lines[found.timeline].index(id) + 1
        assert self.vault.get(f"{found.timeline}:{number}").id == id

    @rule(at=where, back=st.integers(0, 4), name=st.sampled_from(NAMES))
    def fork(self, at: tuple[str, int], back: int, name: str) -> None:
        history = self.model.history(at[0])
        line = self.handle(*at)
        if back >= len(history):
            with pytest.raises(NotFound):
                line.fork(f"@~{back}", name=name)
        elif name in self.model.heads:
            with pytest.raises(Conflict):
                line.fork(f"@~{back}", name=name)
        else:
            fork = line.fork(f"@~{back}", name=name)
            self.model.heads[name] = history[back]
            self.model.lines.setdefault(name, [])
            assert fork.load() == self.model.states[history[back]]

    @precondition(lambda self: len(self.model.states) > 1)
    @rule(data=st.data())
    def diff(self, data: st.DataObject) -> None:
        old, new = (data.draw(st.sampled_from(sorted(self.model.states))) for _ in range(2))
        found = self.vault.diff(old, new)
        same = self.vault.get(old).record.root == self.vault.get(new).record.root
        assert bool(found) is not same
        before, after = self.vault.get(old), self.vault.get(new)
        for path in found.removed:
            before.read(*path)
        for path in (*found.added, *found.changed):
            after.read(*path)

    @rule(name=st.sampled_from(NAMES))
    def listing(self, name: str) -> None:
        line = self.vault.timeline(name)
        wanted = self.model.lines.get(name, [])[::-1]
        found: list[str] = []
        page = line.checkpoints(limit=3)
        found += [cp.id for cp in page]
        while page.next is not None:
            page = line.checkpoints(limit=3, after=page.next)
            found += [cp.id for cp in page]
        assert found == wanted
        assert len(line) == len(wanted)

    @invariant()
    def heads_agree(self) -> None:
        assert {line.name for line in self.vault.timelines()} == self.model.heads.keys()
        for name, id in self.model.heads.items():
            standing = self.store.timeline(None, name)
            assert standing is not None
            assert standing.head is not None
            assert "chk_" + standing.head.hex() == id

    def teardown(self) -> None:
        assert self.vault.verify().ok
        for id, state in self.model.states.items():
            assert self.vault.get(id).read() == state
        self.vault.close()


TestTimelines = Timelines.TestCase
TestTimelines.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
