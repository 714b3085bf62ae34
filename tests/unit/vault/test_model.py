"""Operations drawn at random, from two processes, against a plain model of what they mean."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from hardsave.errors import Conflict, HardsaveError, NotFound
from hardsave.objects.records import LogRecord
from hardsave.stores.base import Batch, Changes
from hardsave.stores.sqlite import SqliteStore
from hardsave.timeline.refs import from_text
from hardsave.vault.vault import Vault
from tests.unit.vault.second_process import Raised, SecondProcess, perform

NAMES = ("main", "other", "third")


class Point:
    """A checkpoint of the model."""

    def __init__(self, line: str, seq: int, parent: "Point | None", state: Any) -> None:
        self.line, self.seq, self.parent, self.state = line, seq, parent, state
        self.is_hidden = False
        self.is_dropped = False

    @property
    def ref(self) -> str:
        return f"{self.line}:{self.seq}"


class Line:
    def __init__(self) -> None:
        self.head: Point | None = None
        self.last_seq = 0
        self.is_deleted = False
        self.points: list[Point] = []

    def where(self) -> tuple[Point | None, bool]:
        return self.head, self.is_deleted


class Done:
    """An operation: where turning it around leads, and the last number when it was turned."""

    def __init__(self, kind: str, line: str) -> None:
        self.kind, self.line = kind, line
        self.before: tuple[Point | None, bool] = (None, True)
        self.seq_after = 0
        self.hidden: set[Point] = set()


class Model:
    """What the words mean, said as plainly as possible."""

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}
        self.log: list[tuple[str, Done]] = []

    def save(self, name: str, state: Any) -> None:
        line = self.lines.setdefault(name, Line())
        line.last_seq += 1
        point = Point(name, line.last_seq, line.head, state)
        line.points.append(point)
        line.head, line.is_deleted = point, False

    def append(self, name: str, item: Any) -> None:
        line = self.lines.get(name)
        state = dict(line.head.state) if line is not None and line.head is not None else {}
        self.save(name, {**state, "items": [*state.get("items", []), item]})

    def operate(self, kind: str, name: str, head: Point | None, *, deleted: bool) -> Done:
        done = Done(kind, name)
        was_born = name not in self.lines
        line = self.lines.setdefault(name, Line())
        done.before = (None, True) if was_born else line.where()
        line.head, line.is_deleted = head, deleted
        done.seq_after = line.last_seq
        self.log.append(("do", done))
        return done

    def hide(self, kind: str, name: str) -> int:
        line = self.lines[name]
        points = {point for point in line.points if not point.is_hidden and not point.is_dropped}
        if not points and line.head is None and kind == "clear":
            return 0
        done = self.operate(kind, name, None, deleted=kind == "delete")
        done.hidden = points
        for point in points:
            point.is_hidden = True
        return len(points)

    def stacks(self, name: str | None) -> tuple[list[Done], list[Done]]:
        """(what can be undone, what can be redone) of one timeline, or of all."""
        done: list[Done] = []
        undone: list[Done] = []
        for step, operation in self.log:
            if name not in (None, operation.line):
                continue
            if step == "do":
                done.append(operation)
                undone.clear()
            elif step == "undo":
                done.remove(operation)
                undone.append(operation)
            else:
                if operation in undone:
                    undone.remove(operation)
                done.append(operation)
        return done, undone

    def step(self, name: str | None, kind: str) -> None:
        done, undone = self.stacks(name)
        stack = done if kind == "undo" else undone
        if not stack:
            raise NotFound("nothing")
        operation = stack[-1]
        line = self.lines[operation.line]
        target = operation.before
        if target[0] is not None and target[0].is_dropped:
            raise NotFound("dropped")
        if target[1] and line.last_seq > operation.seq_after:
            raise Conflict("it has saves")
        operation.before, operation.seq_after = line.where(), line.last_seq
        line.head, line.is_deleted = target
        for point in operation.hidden:
            point.is_hidden = kind == "redo"
        self.log.append((kind, operation))

    def visible(self, name: str) -> list[Point]:
        line = self.lines.get(name, Line())
        return [p for p in reversed(line.points) if not p.is_hidden and not p.is_dropped]

    def history(self, name: str) -> list[Point]:
        line = self.lines.get(name, Line())
        if line.head is None:
            return []
        found, point = [line.head], line.head.parent
        while point is not None:
            shown = not point.is_hidden or point.line != line.head.line or line.head.is_hidden
            if shown and not point.is_dropped:
                found.append(point)
            point = point.parent
        return found


class Machine(RuleBasedStateMachine):
    """Both processes, the model, and what they must agree on after every step."""

    second: ClassVar[SecondProcess]
    compared: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.vault = Vault(SqliteStore(self.folder / "store.db"))
        self.second.open(self.folder / "store.db")
        self.model = Model()
        self.count = 0

    def teardown(self) -> None:
        assert self.vault.store.verify().faults == ()
        self.vault.close()
        shutil.rmtree(self.folder, ignore_errors=True)  # the other one may still feed its backup

    @rule(name=st.sampled_from(NAMES), there=st.booleans())
    def save(self, name: str, there: bool) -> None:
        self.count += 1
        state = {"count": self.count, "text": "x" * 200}
        self.both(there, name, "save", {"state": state}, lambda: self.model.save(name, state))

    @rule(name=st.sampled_from(NAMES), there=st.booleans())
    def append(self, name: str, there: bool) -> None:
        self.count += 1
        item = f"item {self.count} ".ljust(150, ".")
        delta = {"items": [item]}
        self.both(there, name, "append", {"delta": delta}, lambda: self.model.append(name, item))

    @rule(name=st.sampled_from(NAMES), pick=st.integers(0, 1000), there=st.booleans())
    def rewind(self, name: str, pick: int, there: bool) -> None:
        point = self.pick(pick)
        line = self.model.lines.get(name)
        if point is None or line is None or line.head is point:
            return
        self.both(
            there,
            name,
            "rewind",
            {"ref": point.ref},
            lambda: self.model.operate("rewind", name, point, deleted=False),
        )

    @rule(
        name=st.sampled_from(NAMES),
        to=st.sampled_from(NAMES),
        pick=st.integers(0, 1000),
        there=st.booleans(),
    )
    def fork(self, name: str, to: str, pick: int, there: bool) -> None:
        point = self.pick(pick)
        if point is None:
            return

        def forked() -> None:
            if to in self.model.lines and not self.model.lines[to].is_deleted:
                raise Conflict("exists")
            self.model.operate("fork", to, point, deleted=False)

        self.both(there, name, "fork", {"ref": point.ref, "name": to}, forked)

    @rule(
        name=st.sampled_from(NAMES),
        kind=st.sampled_from(["clear", "delete"]),
        there=st.booleans(),
    )
    def hide(self, name: str, kind: str, there: bool) -> None:
        def hidden() -> int:
            line = self.model.lines.get(name)
            if line is None and kind == "clear":
                return 0
            if line is None or line.is_deleted:
                raise NotFound("no timeline")
            return self.model.hide(kind, name)

        self.both(there, name, kind, {}, hidden)

    @rule(
        name=st.sampled_from([*NAMES, None]),
        kind=st.sampled_from(["undo", "redo"]),
        there=st.booleans(),
    )
    def step(self, name: str | None, kind: str, there: bool) -> None:
        self.both(there, name, kind, {}, lambda: self.model.step(name, kind))

    @rule(pick=st.integers(0, 1000))
    def drop(self, pick: int) -> None:
        heads = [line.head for line in self.model.lines.values()]
        points = [p for line in self.model.lines.values() for p in line.points]
        free = [point for point in points if point not in heads and not point.is_dropped]
        if not free:
            return
        point = free[pick % len(free)]
        query = self.vault._context.history
        found = next(r for r in query.line(point.line, hidden=True) if r.seq == point.seq)
        entry = LogRecord(0, from_text(f"{self.count:024x}"), None, "retain", 0, b"\x80")
        self.count += 1
        changes = Changes(drop=[found.id])
        self.vault._context.store.commit(Batch(None, entry, changes=changes))
        point.is_dropped = True

    def both(
        self,
        there: bool,
        name: str | None,
        method: str,
        arguments: dict[str, Any],
        expected: Callable[[], Any],
    ) -> None:
        """Do it for real and in the model; answers and errors must be the same."""
        said = raised = None
        try:
            if there:
                said = self.second.do(name, method, **arguments)
            else:
                said = perform(self.vault, name, method, arguments)
        except Raised as error:
            raised = str(error)
        except HardsaveError as error:
            raised = type(error).__name__
        answer = refused = None
        try:
            answer = expected()
        except HardsaveError as error:
            refused = type(error).__name__
        assert raised == refused
        assert said == (answer if isinstance(answer, int) else None)

    def pick(self, number: int) -> Point | None:
        points = [point for name in NAMES for point in self.model.visible(name)]
        return points[number % len(points)] if points else None

    @invariant()
    def they_agree(self) -> None:
        Machine.compared += 1
        listed = {name for name, line in self.model.lines.items() if not line.is_deleted}
        assert {line.name for line in self.vault.timelines()} == listed
        for name in NAMES:
            line = self.vault.timeline(name)
            shown = self.model.visible(name)
            assert len(line) == len(shown)
            assert [each.seq for each in line.checkpoints(limit=10_000)] == [p.seq for p in shown]
            head, history = line.head, self.model.history(name)
            assert (head is None) == (not history)
            if head is not None:
                assert head.read() == history[0].state
                found = [(each.timeline, each.seq) for each in line.ancestors()]
                assert found == [(point.line, point.seq) for point in history[1:]]


@pytest.fixture(scope="module", autouse=True)
def _second() -> Iterator[None]:
    Machine.second = SecondProcess()
    yield
    Machine.second.close()


def run(*, examples: int, steps: int) -> None:
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_two_processes_and_the_model_agree() -> None:
    run(examples=20, steps=50)


@pytest.mark.torture
def test_two_processes_and_the_model_agree_for_100_000_steps() -> None:
    """Steps that were taken: hypothesis ends most examples before the most that it may take."""
    before = Machine.compared
    while Machine.compared - before < 100_000:
        run(examples=35, steps=300)
