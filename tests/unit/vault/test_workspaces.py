"""A workspace is a directory of a host: two hosts with the same paths share a store, and nothing
else."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hardsave.errors import Conflict, Misuse, NotFound, WorkspaceTaken
from hardsave.objects.records import WorkspaceRecord
from hardsave.stores.memory import MemoryStore
from hardsave.vault.checkpoint import record_of
from hardsave.vault.retention import upkeep
from hardsave.vault.save.capturing import Taking
from hardsave.vault.vault import Vault

FIRST = ("", b"", b"")


class Kept(MemoryStore):
    """One that outlives a vault."""

    def close(self) -> None:
        pass


@pytest.fixture
def store() -> Kept:
    return Kept()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The path that both hosts have. What lies there is written by whichever test."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def hosts(store: Kept) -> Iterator[tuple[Vault, Vault]]:
    with Vault(store, host=lambda: "a") as one, Vault(store, host=lambda: "b") as two:
        yield one, two


Hosts = tuple[Vault, Vault]


def put(folder: Path, **files: str) -> None:
    """Have these files in a directory and no others: that of the host that looks next."""
    for path in folder.iterdir():
        path.unlink()
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)


def rows(store: Kept) -> list[WorkspaceRecord]:
    return store.workspaces(None, FIRST, 99)


# Two hosts


def test_captures_of_two_hosts_at_one_path_do_not_mix(hosts: Hosts, work: Path) -> None:
    one, two = hosts
    put(work, a_txt="of a")
    of_a = one.timeline("on-a").save_files(work)
    put(work, b_txt="of b")
    assert two.workspace(work).last is None
    of_b = two.timeline("on-b").save_files(work)
    assert one.workspace(work).last == of_a
    assert two.workspace(work).last == of_b
    assert [each.id for each in one.moments(work)] == [of_a.id]
    assert [each.id for each in two.moments(work)] == [of_b.id]
    assert [each.timeline for each in one.sessions(workspace=work)] == ["on-a"]
    assert [each.timeline for each in two.sessions(workspace=work)] == ["on-b"]
    assert [each.timeline for each in two.sessions()] == ["on-b", "on-a"]


def test_a_checkpoint_says_of_which_host_its_directory_is(hosts: Hosts, work: Path) -> None:
    one, two = hosts
    saved = one.timeline("main").save_files(work)
    mine, theirs = one.get(saved.id).files, two.get(saved.id).files
    assert mine is not None
    assert theirs is not None
    assert (mine.workspace, mine.host) == (str(work), None)
    assert (theirs.workspace, theirs.host) == (str(work), "a")


def test_a_status_compares_with_what_this_host_has_saved(hosts: Hosts, work: Path) -> None:
    one, two = hosts
    put(work, a_txt="of a")
    one.timeline("on-a").save_files(work)
    put(work, b_txt="of b")
    two.timeline("on-b").save_files(work)
    assert not two.workspace(work).status().files
    put(work, a_txt="of a")
    assert not one.workspace(work).status().files


def test_a_search_finds_what_changed_on_its_own_host(hosts: Hosts, work: Path) -> None:
    one, two = hosts
    put(work, a_txt="a")
    one.timeline("on-a").save_files(work)
    put(work, b_txt="b")
    two.timeline("on-b").save_files(work)
    found = [(hit.timeline, hit.path, hit.change) for hit in one.search("txt")]
    assert sorted(found) == [("on-a", "a.txt", "added"), ("on-b", "b.txt", "added")]


def test_a_rewind_takes_back_what_others_on_this_host_have_not_changed(
    hosts: Hosts, work: Path
) -> None:
    one, two = hosts
    put(work, a_txt="first")
    first = one.timeline("on-a").save_files(work)
    put(work, a_txt="of b")
    two.timeline("on-b").save_files(work)  # no other session of this directory
    put(work, a_txt="second")
    one.timeline("on-a").save_files(work)
    assert one.timeline("on-a").rewind(first, what="files").files is not None
    assert (work / "a.txt").read_text() == "first"


def test_files_of_another_host_go_nowhere_by_themselves(hosts: Hosts, work: Path) -> None:
    one, two = hosts
    put(work, a_txt="first")
    first = one.timeline("main").save_files(work)
    put(work, a_txt="second")
    one.timeline("main").save_files(work)
    put(work, a_txt="of b")
    with pytest.raises(Misuse, match="of host a, and this host has never saved there"):
        two.timeline("main").rewind(first)
    assert (work / "a.txt").read_text() == "of b"
    two.timeline("main").rewind(first, workspace=work)
    assert (work / "a.txt").read_text() == "first"


def test_an_operation_on_files_of_another_host_is_undone_there(hosts: Hosts, work: Path) -> None:
    one, two = hosts
    put(work, a_txt="first")
    first = one.timeline("main").save_files(work)
    put(work, a_txt="second")
    one.timeline("main").save_files(work)
    one.timeline("main").rewind(first)
    with pytest.raises(Misuse, match="is of another host, a; go there"):
        two.undo()
    one.undo()
    assert (work / "a.txt").read_text() == "second"


def test_what_another_host_saved_is_its_own_to_clean_up(hosts: Hosts, work: Path) -> None:
    one, two = hosts
    one.timeline("on-a").save_files(work)
    two.timeline("on-b").save_files(work)
    for vault, own, other in ((one, "on-a", "on-b"), (two, "on-b", "on-a")):
        shares = upkeep.shares_of(vault._context, str(work))
        names = [each.timelines for each in shares if each.timelines is not None]
        assert any(own in each for each in names)
        assert not any(other in each for each in names)


# Epochs


def taken_meanwhile(monkeypatch: pytest.MonkeyPatch, take: Callable[[], object]) -> None:
    """Have a workspace taken over while the next capture reads files."""
    look = Taking.look
    left = [take]

    def looks(self: Taking) -> object:
        found = look(self)
        if left:
            left.pop()()
        return found

    monkeypatch.setattr(Taking, "look", looks)


def test_a_capture_begun_before_a_takeover_is_refused_and_nothing_is_written(
    hosts: Hosts, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = hosts
    put(work, a_txt="first")
    line = one.timeline("main")
    first = line.save_files(work)
    there = tmp_path / "there"
    there.mkdir()
    put(work, a_txt="second")
    before = one.store.stats()
    taken_meanwhile(monkeypatch, lambda: two.workspace(there).take_over(first))
    with pytest.raises(WorkspaceTaken, match=r"taken over before this capture.*of host b now"):
        line.save_files(work)
    assert line.head == first
    assert one.store.stats().checkpoints == before.checkpoints
    assert isinstance(WorkspaceTaken(), Conflict)


def test_after_a_takeover_each_host_goes_on_with_a_workspace(
    hosts: Hosts, store: Kept, work: Path
) -> None:
    one, two = hosts
    put(work, a_txt="first")
    first = one.timeline("main").save_files(work)
    id = record_of(first).workspace
    assert id is not None
    taken = two.workspace(work).take_over(first)
    assert store.workspace(None, id) == WorkspaceRecord(id, "b", str(work).encode(), 1)
    assert taken.last == first
    second = two.timeline("main").save_files(work)
    assert record_of(second).workspace == id
    with pytest.raises(WorkspaceTaken, match="of host b now"):  # it is told once
        one.timeline("other").save_files(work)
    third = one.timeline("other").save_files(work)
    assert record_of(third).workspace not in (None, id)
    assert one.workspace(work).last == third
    assert [each.id for each in two.moments(work)] == [second.id, first.id]


def test_a_place_that_was_taken_over_says_so_to_a_handle_that_has_it(
    hosts: Hosts, work: Path
) -> None:
    one, two = hosts
    first = one.timeline("main").save_files(work)
    handle = one.workspace(work)
    two.workspace(work).take_over(first)
    with pytest.raises(WorkspaceTaken, match="of host b now"):
        handle.status(first)
    assert handle.save_files(timeline="main").files is not None  # of a workspace of its own


def test_an_attempt_takes_a_workspace_over_from_the_one_before(
    store: Kept, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Vault(store) as old, Vault(store) as new:
        first = old.timeline("main").save_files(work)
        put(work, a_txt="late")
        taken_meanwhile(monkeypatch, lambda: new.workspace(work).take_over())
        with pytest.raises(WorkspaceTaken, match="epoch 1"):
            old.timeline("main").save_files(work)
        assert new.workspace(work).last == first
        assert old.timeline("main").save_files(work).seq == 2
        assert len(rows(store)) == 1


def test_a_directory_that_was_saved_before_a_takeover_leaves_that_without_a_host(
    hosts: Hosts, store: Kept, work: Path
) -> None:
    one, two = hosts
    first = one.timeline("main").save_files(work)
    own = two.timeline("own").save_files(work)
    taken = two.workspace(work).take_over(first)
    assert taken.last == first
    left = store.workspace(None, record_of(own).workspace or b"")
    assert left is not None
    assert left.host == ""


def test_what_has_no_files_is_not_taken_over(hosts: Hosts, work: Path) -> None:
    one, _ = hosts
    saved = one.timeline("main").save({"turn": 1})
    with pytest.raises(NotFound, match="without files"):
        one.workspace(work).take_over(saved)


def test_a_save_without_a_takeover_asks_for_no_epoch(store: Kept, work: Path) -> None:
    with Vault(store) as vault:
        vault.timeline("main").save_files(work)
        vault.timeline("main").save_files(work)
    (found,) = rows(store)
    assert found.epoch == 0


# Moves


def test_workspaces_in_a_directory_that_was_moved_are_where_they_are_now(
    store: Kept, work: Path
) -> None:
    (work / "inner").mkdir()
    beside = work.with_name("work-2")
    beside.mkdir()
    with Vault(store) as vault:
        saved = [vault.timeline("t").save_files(each) for each in (work, work / "inner", beside)]
    new = work.rename(work.with_name("new"))
    moves = [(str(work), str(new))]
    with Vault(store, moves=moves) as vault:
        for one, path in zip(saved, (new, new / "inner", beside), strict=True):
            assert vault.workspace(path).last == one
        before = rows(store)
    with Vault(store, moves=moves):
        assert rows(store) == before


def test_captures_from_before_and_after_a_move_become_one_workspaces(
    store: Kept, work: Path
) -> None:
    with Vault(store) as vault:
        first = vault.timeline("t").save_files(work)
        new = work.rename(work.with_name("new"))
        second = vault.timeline("t").save_files(new)
    with Vault(store, moves=[(str(work), str(new))]) as vault:
        assert [each.id for each in vault.moments(new)] == [second.id, first.id]
        assert len(rows(store)) == 1


# Imports, and stores from before


def test_an_imported_workspace_is_that_of_the_first_host_that_captures_there(
    work: Path, tmp_path: Path
) -> None:
    put(work, a_txt="a")
    with Vault(MemoryStore(), host=lambda: "a") as source:
        saved = source.timeline("main").save_files(work)
        source.export_file(tmp_path / "export")
    store = Kept()
    with Vault(store, host=lambda: "b") as vault:
        vault.import_file(tmp_path / "export")
        (row,) = rows(store)
        assert (row.host, row.path) == ("", str(work).encode())
        assert vault.workspace(work).last == saved
        with pytest.raises(Misuse, match="never saved there"):
            vault.timeline("main").rewind(saved, what="files")
        after = vault.timeline("main").save_files(work)
        assert record_of(after).workspace == row.id
        assert rows(store) == [row._replace(host="b", epoch=1)]
    with Vault(store, host=lambda: "c") as other:
        assert other.workspace(work).last is None


def test_an_import_leaves_a_workspace_that_is_here_as_it_is(work: Path, tmp_path: Path) -> None:
    store = Kept()
    with Vault(store, host=lambda: "a") as vault:
        saved = vault.timeline("main").save_files(work)
        vault.export_file(tmp_path / "export")
        before = rows(store)
        vault.timeline("main").delete()
        vault.import_file(tmp_path / "export")
        assert rows(store) == before
    with Vault(MemoryStore(), host=lambda: "a") as anew:
        anew.import_file(tmp_path / "export")
        assert anew.workspace(work).last == saved


def test_a_path_with_a_purged_text_is_gone_from_its_workspace(tmp_path: Path) -> None:
    secret = tmp_path / "sesame"
    secret.mkdir()
    store = Kept()
    with Vault(store) as vault:
        saved = vault.timeline("main").save_files(secret)
        vault.store.purge(text="sesame")
        assert all(b"sesame" not in row.path + row.id for row in rows(store))
        files = vault.get(saved.id).files
        assert files is not None
        assert "sesame" not in files.workspace
        assert vault.timeline("main").save_files(secret).seq == 2
