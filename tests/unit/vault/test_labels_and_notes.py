"""What belongs to a checkpoint beside its state: labels that it is found by, and notes."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hardsave

KEY = "sk-ant-api03-" + "A1b2C3d4" * 12


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def vault(url: str) -> Iterator[hardsave.Vault]:
    with hardsave.open(url) as made:
        yield made


def steps(found: hardsave.Page[hardsave.Checkpoint]) -> list[int]:
    return [checkpoint.read("step") for checkpoint in found]


def run(line: hardsave.Timeline, count: int = 6) -> None:
    for step in range(count):
        source = "loop" if step % 2 else "input"
        line.save({"step": step}, labels={"source": source, "run": "7"})


# Labels


def test_checkpoints_are_found_by_all_labels_that_are_asked_for(vault: hardsave.Vault) -> None:
    line = vault.timeline("a")
    run(line)
    line.save({"step": 6})
    assert steps(line.checkpoints(labels={"source": "loop"})) == [5, 3, 1]
    assert steps(line.checkpoints(labels={"source": "loop", "run": "7"}, limit=2)) == [5, 3]
    assert steps(line.checkpoints(labels={"source": "loop", "run": "8"})) == []
    assert steps(line.checkpoints(labels={})) == [6, 5, 4, 3, 2, 1, 0]
    assert line.get("a:2").labels == {"run": "7", "source": "loop"}
    assert line.get("@").labels == {}


def test_pages_of_labelled_checkpoints_go_on_from_their_cursor(vault: hardsave.Vault) -> None:
    line = vault.timeline("a")
    run(line)
    first = line.checkpoints(labels={"source": "loop"}, limit=2)
    assert steps(line.checkpoints(labels={"source": "loop"}, limit=2, after=first.next)) == [1]
    every = vault.checkpoints(labels={"run": "7"}, limit=4)
    rest = vault.checkpoints(labels={"run": "7"}, limit=4, after=every.next)
    assert (steps(every), steps(rest), rest.next) == ([5, 4, 3, 2], [1, 0], None)


def test_labelled_checkpoints_of_all_timelines_come_newest_first(vault: hardsave.Vault) -> None:
    for step in range(4):
        vault.timeline("ab"[step % 2]).append({"step": step}, labels={"run": "9"})
    vault.timeline("a").save({"step": 4}, labels={"run": "8"})
    assert steps(vault.checkpoints(labels={"run": "9"})) == [3, 2, 1, 0]


def test_a_cursor_from_elsewhere_is_refused(vault: hardsave.Vault) -> None:
    run(vault.timeline("a"))
    cursor = vault.checkpoints(labels={"run": "7"}, limit=1).next
    for after in (cursor, "7", "x"):
        with pytest.raises(hardsave.Misuse, match="begin without it"):
            vault.checkpoints(labels={"source": "loop"}, after=after)


@pytest.mark.parametrize(
    "labels",
    [{"a": 1}, {1: "a"}, {"": "a"}, {"a\nb": "a"}, {"a": "\ud800"}, {"a": "x" * 1_001}, ["a"]],
)
def test_labels_are_small_texts(vault: hardsave.Vault, labels: Any) -> None:
    line = vault.timeline("a")
    with pytest.raises(hardsave.Misuse):
        line.save({}, labels=labels)
    with pytest.raises(hardsave.Misuse):
        line.checkpoints(labels=labels)
    assert len(line) == 0


def test_a_checkpoint_has_not_many_labels(vault: hardsave.Vault) -> None:
    with pytest.raises(hardsave.Misuse, match="at most 32 labels, not 33"):
        vault.timeline("a").save({}, labels={str(at): "" for at in range(33)})


def test_at_least_one_label_is_asked_for_among_all_timelines(vault: hardsave.Vault) -> None:
    with pytest.raises(hardsave.Misuse, match="at least one label"):
        vault.checkpoints(labels={})


def test_deleted_checkpoints_are_found_again_after_undo(vault: hardsave.Vault) -> None:
    line = vault.timeline("a")
    run(line, 2)
    line.delete()
    assert steps(vault.checkpoints(labels={"run": "7"})) == []
    line.undo()
    assert steps(vault.checkpoints(labels={"run": "7"})) == [1, 0]


# Notes


def test_notes_are_put_with_a_checkpoint_and_later(vault: hardsave.Vault) -> None:
    line = vault.timeline("a")
    one = line.save({}, notes={"b": [1, None], "a": {"deep": (1, 2)}})
    vault.put_notes(one, {"c": b"\x00", "b": "anew"})
    vault.put_notes("a:1", {"a": "late", "d": 4}, replace=False)
    found = vault.get(one.id).notes
    assert list(found.items()) == [("b", "anew"), ("a", {"deep": (1, 2)}), ("c", b"\x00"), ("d", 4)]
    assert line.save({}).notes == {}


def test_notes_outlive_the_process_that_put_them(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with hardsave.open(url) as vault:
        vault.put_notes(vault.timeline("a").save({}, labels={"k": "v"}), {"b": 1})
    with hardsave.open(url) as vault:
        (found,) = vault.checkpoints(labels={"k": "v"})
        assert found.notes == {"b": 1}


def test_notes_belong_to_a_checkpoint_that_is_there(vault: hardsave.Vault) -> None:
    line = vault.timeline("a")
    gone = line.save({})
    line.save({})
    vault.delete(gone)
    for ref in (gone, "chk_" + "0" * 24, "nothing"):
        with pytest.raises(hardsave.NotFound):
            vault.put_notes(ref, {"a": 1})


@pytest.mark.parametrize("notes", [{"": 1}, {1: 1}, {"a": object()}, {"\ud800": 1}, ["a"], "a"])
def test_bad_notes_are_refused_and_none_of_them_is_put(vault: hardsave.Vault, notes: Any) -> None:
    one = vault.timeline("a").save({})
    with pytest.raises(hardsave.Misuse):
        vault.put_notes(one, notes if not isinstance(notes, dict) else {"good": 1, **notes})
    assert one.notes == {}


def test_a_copy_has_labels_and_notes_of_its_source(vault: hardsave.Vault) -> None:
    one = vault.timeline("a").save({}, labels={"k": "v"}, notes={"b": [1]})
    copy = vault.timeline("b").copy(one)
    other = vault.timeline("b").copy(one, labels={"k": "w"})
    assert (copy.labels, copy.notes) == ({"k": "v"}, {"b": [1]})
    assert other.labels == {"k": "w"}
    vault.put_notes(one, {"b": "changed"})
    assert copy.notes == {"b": [1]}


def test_secrets_are_taken_out_of_labels_and_notes(url: str) -> None:
    with hardsave.open(url, redact=True) as vault:
        one = vault.timeline("a").save({}, labels={"k": KEY}, notes={"n": {"said": KEY}})
        vault.put_notes(one, {"m": KEY})
        assert KEY not in str([one.labels, one.notes])
        assert list(vault.checkpoints(labels={"k": KEY})) == [one]


# Timelines


def test_timelines_are_listed_by_what_their_names_begin_with(vault: hardsave.Vault) -> None:
    for name in ("t1", "t1/a", "t1/b", "t10", "u"):
        vault.timeline(name).save({})
    assert [line.name for line in vault.timelines(prefix="t1/")] == ["t1/a", "t1/b"]
    assert [line.name for line in vault.timelines(prefix="t1", after="t1/a")] == ["t1/b", "t10"]
    assert [line.name for line in vault.timelines()] == ["t1", "t1/a", "t1/b", "t10", "u"]
    with pytest.raises(hardsave.Misuse, match="prefix is text"):
        next(vault.timelines(prefix=7))  # type: ignore[arg-type] # that is the point


def test_coroutines_have_all_of_it(url: str) -> None:
    async def main() -> None:
        async with await hardsave.aio.open(url) as vault:
            line = await vault.timeline("t/a")
            id = hardsave.checkpoint_id("t", "1")
            one = await line.save({"n": 1}, labels={"k": "v"}, notes={"a": 1}, id=id)
            await line.save({"n": 2})
            await vault.put_notes(one, {"b": 2})
            other = await line.append({"m": 3}, parent=one)
            assert (other.parent, await line.load()) == (one.id, {"n": 1, "m": 3})
            assert (await one.labels, await one.notes) == ({"k": "v"}, {"a": 1, "b": 2})
            assert list(await line.checkpoints(labels={"k": "v"})) == [one]
            copied = await (await vault.timeline("t/b")).copy(one)
            assert list(await vault.checkpoints(labels={"k": "v"})) == [copied, one]
            assert [each.name async for each in vault.timelines(prefix="t/b")] == ["t/b"]

    asyncio.run(main())
