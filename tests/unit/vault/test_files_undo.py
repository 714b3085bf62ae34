"""Undo and redo walk over what happened to files, and touch nothing else."""

from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.errors import NotFound
from hardsave.timeline.diff import FileDiff
from hardsave.workspace.snapshot import directory
from tests.unit.vault.desk import Desk, Picture, put, refusal
from tests.unit.workspace.repository import Repository
from tests.unit.workspace.room import picture


def steps(desk: Desk, count: int) -> tuple[list[str], list[Picture]]:
    """Checkpoints, and what was there when they were saved."""
    ids, seen = [], []
    for turn in range(count):
        desk.write(a_txt=f"text {turn}", **{f"new_{turn}": "x"})
        ids.append(desk.save(turn))
        seen.append(desk.seen())
    return ids, seen


def test_a_walk_back_and_forth_ends_where_it_began(desk: Desk) -> None:
    ids, seen = steps(desk, 4)
    desk.line.rewind(ids[2])
    desk.line.rewind(ids[0])
    desk.line.rewind(ids[1], what="files")
    stations = [seen[0], seen[2], seen[3]]
    for at in stations:
        desk.line.undo()
        assert desk.seen() == at
    assert desk.line.load() == {"turn": 3}
    assert isinstance(refusal(desk.line.undo), NotFound)
    for at in (seen[2], seen[0], seen[1]):
        desk.line.redo()
        assert desk.seen() == at
    assert isinstance(refusal(desk.line.redo), NotFound)


def test_an_undo_takes_unsaved_work_to_a_checkpoint_and_redo_brings_it_back(desk: Desk) -> None:
    ids, seen = steps(desk, 2)
    desk.line.rewind(ids[0])
    desk.write(a_txt="typed after the rewind")
    desk.line.undo()
    assert desk.seen() == seen[1]
    desk.line.redo()
    assert desk.read("a.txt") == "typed after the rewind"


def test_an_undo_leaves_alone_what_its_operation_never_touched(desk: Desk) -> None:
    desk.write(other="as it was", d__kept="k")
    ids, _ = steps(desk, 2)
    desk.line.rewind(ids[0])
    desk.write(other="edited since", notes="written since", d__more="m")
    (desk.work / "made").mkdir()
    desk.line.undo()
    assert desk.read("a.txt") == "text 1"
    assert desk.read("other") == "edited since"
    assert desk.read("notes") == "written since"
    assert desk.read("d/more") == "m"
    assert (desk.work / "made").is_dir()
    desk.write(other="edited again")
    desk.line.redo()
    assert desk.read("a.txt") == "text 0"
    assert desk.read("other") == "edited again"


def test_a_directory_that_came_by_a_rewind_goes_with_its_undo_unless_it_is_used(
    desk: Desk,
) -> None:
    desk.write(d__one="1", e__two="2")
    (desk.work / "empty").mkdir()
    one = desk.save(1)
    for path in ("d/one", "e/two"):
        (desk.work / path).unlink()
        (desk.work / path).parent.rmdir()
    (desk.work / "empty").rmdir()
    desk.write(a_txt="a")
    desk.save(2)
    before = desk.seen()
    desk.line.rewind(one)
    desk.write(e__mine="written since")
    desk.line.undo()
    assert not (desk.work / "d").exists()
    assert not (desk.work / "empty").exists()
    assert desk.read("e/mine") == "written since"
    (desk.work / "e/mine").unlink()
    (desk.work / "e").rmdir()
    assert desk.seen() == before


def test_hard_links_are_parted_and_joined_by_undo(desk: Desk) -> None:
    desk.write(one="same", two="same")
    first = desk.save(1)
    apart = desk.seen()
    (desk.work / "two").unlink()
    (desk.work / "two").hardlink_to(desk.work / "one")
    desk.save(2)
    joined = desk.seen()
    desk.line.rewind(first)
    assert desk.seen() == apart
    desk.line.undo()
    assert desk.seen() == joined


def test_a_new_operation_clears_redo_and_a_save_does_not(desk: Desk) -> None:
    ids, seen = steps(desk, 3)
    desk.line.rewind(ids[0])
    desk.line.undo()
    desk.save(9)
    desk.line.redo()
    assert desk.seen() == seen[0]
    desk.line.undo()
    desk.line.rewind(ids[1])
    assert isinstance(refusal(desk.line.redo), NotFound)


def test_undo_outlives_the_process(tmp_path: Path) -> None:
    url, work = f"sqlite:///{tmp_path}/store.db", tmp_path / "work"
    pictures = []
    with hardsave.open(url) as vault:
        for turn in range(3):
            put(work, "a.txt", f"text {turn}")
            vault.timeline("main").save({"turn": turn}, workspace=work)
            pictures.append(picture(work))
    with hardsave.open(url) as vault:
        vault.timeline("main").rewind("main:1")
    assert picture(work) == pictures[0]
    with hardsave.open(url) as vault:
        vault.undo()
        assert vault.timeline("main").load() == {"turn": 2}
    assert picture(work) == pictures[2]
    with hardsave.open(url) as vault:
        vault.redo()
        assert vault.timeline("main").load() == {"turn": 0}
    assert picture(work) == pictures[0]


def test_undo_of_paths_touches_these_paths(desk: Desk) -> None:
    desk.write(a_txt="one", b_txt="one", sub__c="one")
    one = desk.save(1)
    desk.write(a_txt="two", b_txt="two", sub__c="two")
    desk.save(2)
    desk.line.rewind(one, paths=["a.txt", "sub"])
    desk.write(b_txt="edited", sub__d="new")
    desk.line.undo()
    assert [desk.read(path) for path in ("a.txt", "b.txt", "sub/c")] == ["two", "edited", "two"]
    assert desk.read("sub/d") == "new"


def test_undo_of_a_path_takes_the_directories_away_that_it_needed(desk: Desk) -> None:
    desk.write(a="1", d__e__f="1", d__g="1")
    desk.save(1)
    for path in ("d/e/f", "d/g"):
        (desk.work / path).unlink()
    (desk.work / "d/e").rmdir()
    (desk.work / "d").rmdir()
    before = desk.seen()
    desk.line.rewind("main:1", paths=["d/e/f"])
    after = desk.seen()
    assert after.keys() == {b"a", b"d", b"d/e", b"d/e/f"}
    desk.line.undo()
    assert desk.seen() == before
    desk.line.redo()
    assert desk.seen() == after
    desk.write(d__mine="appeared")
    desk.line.undo()
    assert desk.read("d/mine") == "appeared"


def test_an_undone_restore_of_a_purged_target_still_goes_back(desk: Desk) -> None:
    ids, seen = steps(desk, 2)
    desk.line.rewind(ids[0], what="files")
    desk.vault.store.purge(ids[0])
    desk.line.undo()
    assert desk.seen() == seen[1]


def test_an_undo_to_a_purged_present_is_refused(desk: Desk) -> None:
    ids, seen = steps(desk, 2)
    desk.line.rewind(ids[0])
    desk.vault.store.purge(ids[1])
    assert isinstance(refusal(desk.line.undo), NotFound)
    assert (desk.seen(), desk.line.load()) == (seen[0], {"turn": 0})


@pytest.mark.parametrize("count", [1, 3])
def test_undo_of_all_timelines_takes_the_latest_first(desk: Desk, count: int) -> None:
    ids, seen = steps(desk, count + 1)
    other = desk.line.fork(name="other")
    for at in reversed(range(count)):
        desk.line.rewind(ids[at])
    for at in range(1, count + 1):
        desk.vault.undo()
        assert desk.seen() == seen[at]
    desk.vault.undo()  # the fork
    assert other.head is None


def test_saves_since_a_rewind_are_left_by_its_undo_with_their_files(desk: Desk) -> None:
    ids, seen = steps(desk, 2)
    desk.line.rewind(ids[0])
    desk.write(wrong="way", a_txt="worse")
    desk.save(7)
    desk.write(notes="by hand")
    desk.line.undo()
    assert desk.read("notes") == "by hand"
    (desk.work / "notes").unlink()
    assert (desk.seen(), desk.line.load()) == (seen[1], {"turn": 1})
    desk.line.redo()
    assert (desk.read("wrong"), desk.line.load()) == ("way", {"turn": 7})


def test_saves_since_a_restore_stay_when_it_is_undone(desk: Desk) -> None:
    ids, _ = steps(desk, 2)
    desk.line.rewind(ids[0], what="files")
    desk.write(good="way")
    desk.save(7)
    desk.line.undo()
    assert (desk.read("good"), desk.read("a.txt")) == ("way", "text 1")
    assert desk.line.load() == {"turn": 7}


def test_after_an_undo_of_files_alone_the_head_means_what_it_meant(desk: Desk) -> None:
    """As after the restore: what was saved before the undo is not what `@` names."""
    desk.write(a_txt="one")
    one = desk.save(1)
    desk.write(a_txt="two")
    two = desk.save(2)
    desk.line.rewind(one, what="files")
    desk.write(b_txt="unsaved")
    for step, text in ((desk.line.undo, "two"), (desk.line.redo, "one")) * 2:
        step()
        assert desk.read("a.txt") == text
        assert desk.read("b.txt") == "unsaved"
        assert desk.line.head is not None
        assert desk.line.head.id == two
    assert desk.line.undo().kind == "undo"
    assert desk.vault.workspace(desk.work).status("@").files == FileDiff(added=("b.txt",))


def test_an_undo_takes_away_what_its_rewind_brought_although_rules_ignore_it(desk: Desk) -> None:
    desk.vault.workspace(desk.work, include=("build", "log"))
    put(desk.work, ".gitignore", "build/\nlog\n")
    desk.write(a="one", log="one", build__a="one", build__deep__b="one", sub__log="one")
    one = desk.save(1)
    desk.vault.workspace(desk.work)  # from now on nobody asks for them
    for path in ("log", "sub/log", "build/a", "build/deep/b"):
        (desk.work / path).unlink()
    (desk.work / "build/deep").rmdir()
    (desk.work / "sub").rmdir()
    desk.write(a="two", build__own="never saved")
    before = desk.seen()
    desk.line.rewind(one)
    after = desk.seen()
    for _ in range(2):
        desk.line.undo()
        assert desk.seen() == before
        desk.line.redo()
        assert desk.seen() == after
    desk.write(log="written since", build__deep__c="never saved")
    desk.line.undo()
    assert desk.read("log") == "written since"
    assert desk.read("build/deep/c") == "never saved"
    assert desk.read("build/own") == "never saved"
    assert not (desk.work / "sub").exists()
    assert not (desk.work / "build/deep/b").exists()


def test_what_lay_there_before_a_rewind_is_not_its_to_take_away(desk: Desk) -> None:
    desk.vault.workspace(desk.work, include=("log",))
    put(desk.work, ".gitignore", "log\n")
    desk.write(a="one", log="the same")
    one = desk.save(1)
    desk.vault.workspace(desk.work)
    desk.write(a="two")
    desk.line.rewind(one)
    desk.line.undo()
    assert (desk.read("a"), desk.read("log")) == ("two", "the same")


def test_what_was_brought_from_a_checkpoint_that_is_gone_stays(desk: Desk) -> None:
    desk.vault.workspace(desk.work, include=("log",))
    put(desk.work, ".gitignore", "log\n")
    desk.write(a="one", log="one")
    one = desk.save(1)
    desk.vault.workspace(desk.work)
    (desk.work / "log").unlink()
    desk.write(a="two")
    desk.save(2)
    desk.vault.workspace(desk.work).restore(one)
    desk.vault.store.purge(one)
    desk.line.undo()
    assert (desk.read("a"), desk.read("log")) == ("two", "one")


def test_an_undo_takes_away_what_git_tracked_then_and_does_not_any_more(desk: Desk) -> None:
    repository = Repository(desk.work).init()
    desk.write(a="one", sub__log="one")
    put(desk.work, ".gitignore", "log\n")
    repository.git("add", "--force", ".")
    one = desk.save(1)
    repository.git("rm", "-r", "--quiet", "--cached", ".")
    (desk.work / ".gitignore").unlink()
    (desk.work / "sub/log").unlink()
    (desk.work / "sub").rmdir()
    before = desk.seen()
    desk.line.rewind(one)
    assert desk.read("sub/log") == "one"
    desk.line.undo()
    assert desk.seen() == before


def test_an_undo_brings_back_what_its_rewind_replaced_by_what_is_ignored_since(desk: Desk) -> None:
    repository = Repository(desk.work).init()
    desk.write(a="one", log="one")
    put(desk.work, ".gitignore", "log\n")
    repository.git("add", "--force", ".")
    one = desk.save(1)
    repository.git("rm", "-r", "--quiet", "--cached", ".")
    (desk.work / ".gitignore").unlink()
    desk.write(a="two", log="two")
    before = desk.seen()
    desk.line.rewind(one)
    after = desk.seen()
    assert desk.read("log") == "one"
    for _ in range(2):
        desk.line.undo()
        assert desk.seen() == before
        desk.line.redo()
        assert desk.seen() == after
    desk.write(log="written since")
    desk.line.undo()
    assert desk.seen() == before
    desk.line.redo()
    assert desk.read("log") == "written since"


def test_an_undo_brings_back_what_its_rewind_removed_and_its_rules_ignore(desk: Desk) -> None:
    """Git tracked it then, though it was not there; the index of today does not."""
    repository = Repository(desk.work).init()
    put(desk.work, ".gitignore", "out/\n")
    desk.write(out__a="one", out__b="one", out__c="one")
    repository.git("add", "--force", ".")
    (desk.work / "out/a").unlink()
    one = desk.save(1)
    repository.git("rm", "-r", "--quiet", "--cached", ".")
    (desk.work / ".gitignore").unlink()
    desk.write(out__a="two")
    (desk.work / "out/c").chmod(0o755)
    (desk.work / "out").chmod(0o700)
    before = desk.seen()
    desk.line.rewind(one)
    after = desk.seen()
    assert b"out/a" not in after
    for _ in range(2):
        desk.line.undo()
        assert desk.seen() == before
        desk.line.redo()
        assert desk.seen() == after
    desk.write(out__a="written since")
    desk.line.undo()
    assert desk.seen() == before
    desk.line.redo()
    assert desk.read("out/a") == "written since"


def test_a_redo_brings_what_the_rules_that_are_here_again_ignore(desk: Desk) -> None:
    repository = Repository(desk.work).init()
    desk.write(a="one", log="one")
    repository.git("add", ".")
    one = desk.save(1)
    repository.git("rm", "-r", "--quiet", "--cached", ".")
    put(desk.work, ".gitignore", "log\n")
    (desk.work / "log").unlink()
    desk.write(a="two")
    before = desk.seen()
    desk.line.rewind(one)
    after = desk.seen()
    assert desk.read("log") == "one"
    for _ in range(2):
        desk.line.undo()
        assert desk.seen() == before
        desk.line.redo()
        assert desk.seen() == after


def test_an_undo_takes_away_what_git_tracked_until_its_rewind(desk: Desk) -> None:
    """The ignore file ignores itself, so the rewind has left it where it is."""
    repository = Repository(desk.work).init()
    repository.git("commit", "--quiet", "--allow-empty", "--message", "first")
    desk.write(sub__a="one", sub__b="one")
    one = desk.save(1)
    repository.git("add", ".")
    put(desk.work, ".gitignore", "*\n")
    (desk.work / "sub/a").unlink()
    desk.write(sub__b="two")
    before = _without_git(desk)
    desk.line.rewind(one, git=True)
    after = _without_git(desk)
    assert (desk.read("sub/a"), desk.read("sub/b")) == ("one", "one")
    for _ in range(2):
        desk.line.undo()
        assert _without_git(desk) == before
        desk.line.redo()
        assert _without_git(desk) == after


def _without_git(desk: Desk) -> Picture:
    """Git keeps what a rewind leaves behind."""
    return {path: each for path, each in desk.seen().items() if not path.startswith(b".git/")}


def test_a_path_is_linked_again_to_files_that_were_not_asked_for(desk: Desk) -> None:
    desk.write(a="one")
    one = desk.save(1)
    (desk.work / "a").unlink()
    desk.write(b="two", c="other")
    (desk.work / "a").hardlink_to(desk.work / "b")
    before = desk.seen()
    desk.line.rewind(one, paths=["a"])
    after = desk.seen()
    assert (desk.read("a"), desk.read("b")) == ("one", "two")
    desk.line.undo()
    assert desk.seen() == before
    assert (desk.work / "a").samefile(desk.work / "b")
    desk.line.redo()
    assert desk.seen() == after
    desk.write(b="changed since")  # then it is not what it was linked to
    desk.line.undo()
    assert (desk.read("a"), desk.read("b")) == ("two", "changed since")


def test_an_undo_tells_what_it_has_done_to_files_and_what_it_has_left(desk: Desk) -> None:
    desk.write(a="one", b="one")
    one = desk.save(1)
    desk.write(a="two", b="two")
    desk.save(2)
    desk.line.rewind(one)
    desk.write(a="theirs")
    desk.save(3, desk.vault.timeline("other"))
    told = desk.line.undo().files
    assert told is not None
    assert told.changed == ("b",)
    assert [each.path for each in told.kept] == ["a"]
    assert desk.read("a") == "theirs"
    told = desk.line.redo().files
    assert told is not None
    assert (told.changed, told.kept) == (("b",), ())


def test_an_undo_of_what_is_there_already_reads_no_directory_for_each_file(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"n{number:03}" for number in range(300)]
    for text in ("old", "new"):
        desk.write(**dict.fromkeys(names, text))
        desk.save()
    desk.line.rewind("@~1")
    desk.write(**dict.fromkeys(names, "new"))
    read: list[bytes] = []
    entries_of = directory.entries_of

    def counted(address: bytes, *parts: Any) -> Any:
        read.append(address)
        return entries_of(address, *parts)

    monkeypatch.setattr(directory, "entries_of", counted)
    desk.line.undo()
    assert {desk.read(name) for name in names} == {"new"}
    assert len(read) < 100
