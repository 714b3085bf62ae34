"""What graph frameworks ask of a saver, met by the public names of Hardsave alone."""

import dataclasses
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import hardsave
from hardsave.objects.shadow import Shadow
from tests.unit.vault.thread_saver import Saved, ThreadSaver, Where, Write

ROOT = Where("t")


@pytest.fixture(params=["memory", "sqlite"])
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[hardsave.Vault]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/store.db"
    with hardsave.open(url) as made:
        yield made


@pytest.fixture
def saver(vault: hardsave.Vault) -> ThreadSaver:
    return ThreadSaver(vault)


def a_run(saver: ThreadSaver, thread: str = "t", turns: int = 4, namespace: str = "") -> Where:
    where = Where(thread, namespace)
    for turn in range(turns):
        state = {"messages": [f"message {at}" for at in range(turn + 1)]}
        metadata = {"source": "loop" if turn else "input", "step": turn}
        where = saver.put(where, f"{turn:04}", state, metadata)
    return where


def ids(found: Iterator[Saved]) -> list[str | None]:
    return [each.where.id for each in found]


def test_the_newest_is_found_and_any_by_its_id(saver: ThreadSaver) -> None:
    where = a_run(saver)
    newest = saver.get_tuple(ROOT)
    assert newest == saver.get_tuple(where)
    assert newest is not None
    assert newest.state["messages"][-1] == "message 3"
    assert (newest.metadata, newest.parent) == ({"source": "loop", "step": 3}, "0002")
    first = saver.get_tuple(ROOT._replace(id="0000"))
    assert first is not None
    assert first.parent is None
    assert saver.get_tuple(ROOT._replace(id="0009")) is None
    assert saver.get_tuple(Where("other")) is None


def test_a_list_is_filtered_by_metadata(saver: ThreadSaver) -> None:
    a_run(saver)
    a_run(saver, "u", 2)
    assert ids(saver.list(ROOT)) == ["0003", "0002", "0001", "0000"]
    assert ids(saver.list(ROOT, filter={"source": "loop"})) == ["0003", "0002", "0001"]
    assert ids(saver.list(ROOT, filter={"source": "loop", "step": 2})) == ["0002"]
    assert ids(saver.list(ROOT, filter={"step": "2"})) == []
    assert ids(saver.list(ROOT, limit=2)) == ["0003", "0002"]
    assert ids(saver.list(ROOT, before="0002")) == ["0001", "0000"]
    everywhere = saver.list(None, filter={"source": "input"})
    assert [each.where.thread for each in everywhere] == ["u", "t"]


def test_a_run_that_goes_on_from_the_past_branches(saver: ThreadSaver) -> None:
    a_run(saver)
    branch = saver.put(ROOT._replace(id="0001"), "0009", {"messages": ["another"]}, {})
    found = saver.get_tuple(ROOT)
    assert found is not None
    assert (found.where, found.parent) == (branch, "0001")
    assert len(list(saver.list(ROOT))) == 5


def test_writes_belong_to_their_checkpoint(saver: ThreadSaver) -> None:
    where = a_run(saver, turns=2)
    saver.put_writes(where, [("messages", "x"), ("route", "next")], "task-b")
    saver.put_writes(where, [("messages", "y")], "task-a")
    saver.put_writes(where, [("messages", "changed"), ("late", 1)], "task-a")
    saver.put_writes(where, [("__error__", "first")], "task-a")
    saver.put_writes(where, [("__error__", "second")], "task-a")
    found = saver.get_tuple(where)
    assert found is not None
    assert found.writes == [
        Write("task-a", "__error__", "second"),
        Write("task-a", "messages", "y"),
        Write("task-a", "late", 1),
        Write("task-b", "messages", "x"),
        Write("task-b", "route", "next"),
    ]
    before = saver.get_tuple(ROOT._replace(id="0000"))
    assert before is not None
    assert before.writes == []


def test_writes_may_come_before_their_checkpoint(saver: ThreadSaver) -> None:
    saver.put_writes(ROOT._replace(id="0000"), [("messages", 1)], "task")
    assert saver.get_tuple(ROOT) is None
    a_run(saver, turns=1)
    found = saver.get_tuple(ROOT)
    assert found is not None
    assert found.writes == [Write("task", "messages", 1)]


def test_a_thread_is_copied_with_its_writes_and_branches(
    saver: ThreadSaver, vault: hardsave.Vault
) -> None:
    where = a_run(saver)
    a_run(saver, namespace="child")
    saver.put(ROOT._replace(id="0001"), "0009", {"messages": ["another"]}, {"step": 9})
    saver.put_writes(where, [("messages", "x")], "task")
    before = vault.store.stats().objects
    saver.copy_thread("t", "copy")
    assert vault.store.stats().objects == before
    for namespace in ("", "child"):
        ours, theirs = (list(saver.list(Where(name, namespace))) for name in ("t", "copy"))
        moved = [each._replace(where=each.where._replace(thread="copy")) for each in ours]
        assert theirs == moved
    saver.delete_thread("t")
    copied = saver.get_tuple(Where("copy", "", "0003"))
    assert copied is not None
    assert copied.writes == [Write("task", "messages", "x")]


def test_a_deleted_thread_is_gone_and_what_comes_again_is_new(saver: ThreadSaver) -> None:
    where = a_run(saver)
    a_run(saver, namespace="child")
    a_run(saver, "t2")
    saver.put_writes(where, [("messages", "old")], "task")
    saver.delete_thread("t")
    assert [saver.get_tuple(Where("t", namespace)) for namespace in ("", "child")] == [None, None]
    assert saver.get_tuple(where) is None
    assert list(saver.list(None, filter={"step": 3})) == list(saver.list(Where("t2"), limit=1))
    saver.put(ROOT, "0003", {"messages": ["new"]}, {})
    assert ids(saver.list(ROOT)) == ["0003"]
    found = saver.get_tuple(where)
    assert found is not None
    assert (found.state, found.writes) == ({"messages": ["new"]}, [])


def test_a_put_that_is_repeated_changes_nothing(saver: ThreadSaver) -> None:
    a_run(saver)
    first = saver.get_tuple(ROOT._replace(id="0001"))
    assert first is not None
    saver.put(ROOT._replace(id="0000"), "0001", first.state, {"step": 1})
    with pytest.raises(hardsave.Conflict):
        saver.put(ROOT._replace(id="0000"), "0001", {"messages": ["other"]}, {"step": 1})
    assert ids(saver.list(ROOT)) == ["0003", "0002", "0001", "0000"]
    found = saver.get_tuple(ROOT._replace(id="0001"))
    assert found is not None
    assert found.state["messages"] == ["message 0", "message 1"]


def test_a_thread_costs_what_is_new_in_each_put(
    saver: ThreadSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    save = Shadow.save

    def counted(self: Shadow, state: object) -> object:
        root, out = save(self, state)
        made.append(len(out))
        return root, out

    monkeypatch.setattr(Shadow, "save", counted)
    draw, where = random.Random(7), ROOT
    messages = [" ".join(f"{draw.random()}" for _ in range(30)) for _ in range(200)]
    for turn in range(5):
        messages.append(f"message {turn}")
        where = saver.put(where, f"{turn:04}", {"messages": messages}, {"step": turn})
    assert max(made[1:]) * 5 < made[0]


def test_files_of_a_put_are_those_that_its_tool_has_left(
    saver: ThreadSaver, vault: hardsave.Vault, tmp_path: Path
) -> None:
    """The put of a turn comes when the tool of the next has written already."""
    work = tmp_path / "work"
    work.mkdir()
    workspace, where = vault.workspace(work), ROOT
    (work / "f").write_text("0")
    captured = workspace.capture()
    for turn in range(3):
        ours, _ = captured, (work / "f").write_text(str(turn + 1))
        captured = workspace.capture()
        where = saver.put(where, f"{turn:04}", {"turn": turn}, {}, ours)
    found = list(vault.timeline("thread/t/").checkpoints())
    files = [each.files for each in reversed(found)]
    assert [each.read("f") for each in files if each is not None] == [b"0", b"1", b"2"]


def test_registered_messages_come_back_as_themselves(saver: ThreadSaver) -> None:
    hardsave.register(Message, "thread_saver.Message")
    saver.put(ROOT, "0000", {"messages": [Message("user", "hi")]}, {})
    found = saver.get_tuple(ROOT)
    assert found is not None
    assert found.state == {"messages": [Message("user", "hi")]}


@dataclasses.dataclass
class Message:
    role: str
    content: str
