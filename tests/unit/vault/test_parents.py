"""Saves that stand on another checkpoint than the head, and copies of checkpoints."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import hardsave


@pytest.fixture(params=["memory", "sqlite"])
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[hardsave.Vault]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/store.db"
    with hardsave.open(url) as made:
        yield made


def messages(*texts: str) -> dict[str, list[str]]:
    return {"messages": list(texts)}


def test_a_save_stands_on_its_parent_and_becomes_the_head(vault: hardsave.Vault) -> None:
    line = vault.timeline("a")
    first, second = line.save(messages("1")), line.save(messages("1", "2"))
    other = line.save(messages("1", "3"), parent=first)
    assert (other.parent, other.seq) == (first.id, 3)
    head = line.head
    assert head == other
    assert [each.id for each in line.ancestors()] == [first.id]
    assert {each.id for each in line.children(first)} == {second.id, other.id}
    assert line.save(messages("1", "3", "4")).parent == other.id


def test_an_append_grows_on_its_parent(vault: hardsave.Vault) -> None:
    line = vault.timeline("a")
    first = line.append(messages("1"))
    line.append(messages("2"))
    line.append(messages("3"), parent=first.id)
    assert line.load() == messages("1", "3")
    line.append(messages("4"))
    assert line.load() == messages("1", "3", "4")
    assert line.load("a:2") == messages("1", "2")


def test_new_messages_are_counted_from_the_parent(vault: hardsave.Vault) -> None:
    line = vault.timeline("a")
    first = line.save(messages("1"))
    line.save(messages("1", "2", "3", "4"))
    other = line.save(messages("1", "5"), parent=first)
    assert other.summary is not None
    assert (other.summary.messages, other.summary.new_messages) == (2, 1)


def test_a_save_without_a_parent_begins_anew(vault: hardsave.Vault) -> None:
    line = vault.timeline("a")
    line.save(messages("1"))
    alone = line.append(messages("2"), parent=None)
    assert (alone.parent, alone.seq) == (None, 2)
    assert list(line.ancestors()) == []
    assert line.load() == messages("2")


def test_the_first_save_may_name_the_head_or_none(vault: hardsave.Vault) -> None:
    assert vault.timeline("a").save({}, parent="@").parent is None
    assert vault.timeline("b").save({}, parent=None).parent is None


def test_a_parent_may_be_on_another_timeline(vault: hardsave.Vault) -> None:
    source = vault.timeline("a").append(messages("1"))
    made = vault.timeline("b").append(messages("2"), parent=source)
    assert (made.timeline, made.seq, made.parent) == ("b", 1, source.id)
    assert vault.timeline("b").load() == messages("1", "2")


def test_the_head_is_expected_all_the_same(vault: hardsave.Vault) -> None:
    line, late = vault.timeline("a"), vault.timeline("a")
    first = line.save(messages("1"))
    with pytest.raises(hardsave.Conflict):
        late.save(messages("2"), parent=first)
    made = late.save(messages("2"), parent=first, expect=hardsave.ANY_HEAD)
    assert (made.seq, made.parent) == (2, first.id)


def test_a_parent_that_is_not_there_or_was_deleted_is_not_found(vault: hardsave.Vault) -> None:
    line = vault.timeline("a")
    gone = line.save(messages("1"))
    line.save(messages("2"))
    vault.delete(gone)
    for ref in (gone, "chk_" + "0" * 24):
        with pytest.raises(hardsave.NotFound):
            line.save({}, parent=ref)
    assert len(line) == 1


def test_undo_of_a_rewind_leads_back_to_a_save_with_a_parent(vault: hardsave.Vault) -> None:
    line = vault.timeline("a")
    first = line.save(messages("1"))
    line.save(messages("2"))
    other = line.save(messages("3"), parent=first)
    line.rewind(first)
    line.undo()
    assert line.head == other


# Copies


def test_a_copy_has_the_state_and_what_the_source_says_of_itself(vault: hardsave.Vault) -> None:
    source = vault.timeline("a").save(
        messages("1"), name="plan", status="done", description="d", metadata={"k": [1, None]}
    )
    before = vault.store.stats().objects
    made = vault.timeline("b").copy(source)
    said = (made.name, made.kind, made.status, made.description, made.metadata, made.summary)
    assert said == ("plan", "manual", "done", "d", {"k": [1, None]}, source.summary)
    assert (made.timeline, made.seq, made.parent) == ("b", 1, None)
    assert vault.timeline("b").load() == messages("1")
    assert vault.store.stats().objects == before


def test_a_copy_has_the_files(vault: hardsave.Vault, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "f").write_text("one")
    source = vault.timeline("a").save({}, workspace=work)
    vault.timeline("a").delete()
    vault.timeline("a").undo()
    made = vault.timeline("b").copy(source)
    assert made.files is not None
    assert made.files.read("f") == b"one"


def test_saves_go_on_from_a_copy(vault: hardsave.Vault) -> None:
    source = vault.timeline("a").append(messages("1"))
    line = vault.timeline("b")
    line.append(messages("other"))
    line.copy(source, parent=None, id=hardsave.checkpoint_id("b", "1"))
    line.append(messages("2"))
    assert line.load() == messages("1", "2")
    line.save(messages("whole"))
    assert line.load() == messages("whole")
