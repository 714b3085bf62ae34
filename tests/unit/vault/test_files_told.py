"""A restore tells what it will do, does that, and does it nowhere else."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hardsave.errors import Misuse
from hardsave.vault.restore.plan import FileChanges
from hardsave.workspace.filesystem.safe_open import RootDirectory
from tests.unit.vault.desk import Desk, put, refusal, wipe
from tests.unit.workspace.room import picture


def both(desk: Desk, ref: str, **options: object) -> FileChanges:
    """What a rewind says before and after, which is the same."""
    given = {"workspace": desk.work, **options}
    told = desk.line.rewind(ref, dry_run=True, **given).files  # type: ignore[arg-type] # as given
    done = desk.line.rewind(ref, **given).files  # type: ignore[arg-type] # as given
    assert told is not None
    assert told == done
    return told


def too_large(work: Path) -> None:
    (work / "odd").write_bytes(b"x" * 2_000)


def a_pipe(work: Path) -> None:
    (work / "odd").unlink()
    os.mkfifo(work / "odd")


@pytest.mark.parametrize(
    ("become", "why"), [(too_large, "larger than the cap"), (a_pipe, "a FIFO")]
)
def test_what_cannot_be_saved_first_is_kept_and_said_to_be(
    desk: Desk, become: Callable[[Path], None], why: str
) -> None:
    workspace = desk.vault.workspace(desk.work, max_file_bytes=1_000)
    desk.write(odd="small", a_txt="one")
    one = desk.save(1)
    become(desk.work)
    desk.write(a_txt="two")
    there = os.lstat(desk.work / "odd")
    told = both(desk, one, workspace=workspace)
    assert (told.created, told.changed) == ((), ("a.txt",))
    [kept] = told.kept
    assert kept.path == "odd"
    assert told.missing == (kept,)
    assert not told.is_complete
    assert kept.reason.startswith("it could not be saved first: ")
    assert why in kept.reason
    assert os.lstat(desk.work / "odd") == there


def test_what_todays_rules_ignore_comes_back_and_is_saved_first(desk: Desk) -> None:
    desk.write(a_txt="one", same_txt="same", gone_txt="one", sub__b_txt="one", c="one")
    one, then = desk.save(1), desk.seen()
    put(desk.work, ".gitignore", "*.txt\nsub/\n")
    desk.write(a_txt="nowhere else", c="two")
    (desk.work / "gone.txt").unlink()
    before = desk.seen()
    told = both(desk, one)
    assert (told.created, told.changed) == (("gone.txt",), ("a.txt", "c"))
    assert (told.removed, told.kept) == ((".gitignore",), ())
    assert desk.seen() == then
    desk.line.undo()
    assert desk.seen() == before


def test_a_secret_that_was_asked_for_once_is_not_replaced_by_whoever_does_not(desk: Desk) -> None:
    desk.vault.workspace(desk.work, include=(".env",))
    desk.write(_env="TOKEN=1", a_txt="one")
    one = desk.save(1)
    desk.vault.workspace(desk.work)
    desk.write(_env="TOKEN=2", a_txt="two")
    assert [each.path for each in both(desk, one).kept] == [".env"]
    assert desk.read(".env") == "TOKEN=2"


def test_what_was_asked_for_and_is_ignored_comes_back_without_asking_again(desk: Desk) -> None:
    put(desk.work, ".gitignore", ".env\nbuild/\n")
    for path in (".env", "build/a", "build/b", "build/deep/c"):
        put(desk.work, path, "asked for")
    desk.vault.workspace(desk.work, include=(".env", "build", "build/*"))
    one, then = desk.save(1), desk.seen()
    another = Desk(desk.work, desk.store)  # nobody asks here
    wipe(desk.work)
    before = desk.seen()
    both(another, one)
    another.line.undo()
    assert another.seen() == before
    another.line.redo()
    assert another.seen() == then
    another.line.undo()
    told = both(another, one)
    assert told.created == (".env", ".gitignore", "build/a", "build/b", "build/deep/c")
    assert another.seen() == then
    put(desk.work, "build/a", "made again")
    (desk.work / "build/b").unlink()
    told = both(another, one)
    assert (told.created, told.changed, told.kept) == (("build/b",), ("build/a",), ())
    another.line.undo()
    assert another.read("build/a") == "made again"
    another.vault.close()


def test_what_is_as_it_shall_be_is_not_worth_a_word(desk: Desk) -> None:
    desk.vault.workspace(desk.work, include=(".env",))
    desk.write(_env="TOKEN=1", a_txt="one")
    one = desk.save(1)
    desk.vault.workspace(desk.work)
    desk.write(a_txt="two")
    assert both(desk, one).kept == ()


def test_of_what_was_not_asked_for_nothing_is_said(desk: Desk) -> None:
    workspace = desk.vault.workspace(desk.work, max_file_bytes=1_000)
    desk.write(odd="small", a_txt="one")
    one = desk.save(1)
    desk.write(a_txt="two")
    too_large(desk.work)
    assert both(desk, one, workspace=workspace, paths=["a.txt"]).kept == ()


def test_a_directory_that_cannot_be_looked_into_is_left_with_all_that_is_in_it(desk: Desk) -> None:
    desk.write(d__in_txt="one", a_txt="one")
    one = desk.save(1)
    (desk.work / "d/in.txt").unlink()
    (desk.work / "d").rmdir()
    os.mkfifo(desk.work / "d")
    desk.write(a_txt="two")
    told = both(desk, one)
    assert [each.path for each in told.kept] == ["d"]
    assert told.created == ()


def test_directories_are_told_where_no_file_speaks_for_them(desk: Desk) -> None:
    desk.write(a_txt="one", full__b_txt="b")
    (desk.work / "empty/deep").mkdir(parents=True)
    (desk.work / "shut").mkdir(mode=0o700)
    one = desk.save(1)
    (desk.work / "empty/deep").rmdir()
    (desk.work / "empty").rmdir()
    (desk.work / "shut").chmod(0o755)
    (desk.work / "new/inner").mkdir(parents=True)
    desk.write(other__c_txt="c")
    told = both(desk, one)
    assert told.created == ("empty/deep/",)
    assert told.changed == ("shut/",)
    assert told.removed == ("new/inner/", "other/c.txt")
    assert str(told) == "1 created, 1 changed, 2 removed"
    assert (desk.work / "empty/deep").is_dir()


def test_directories_that_hold_what_is_not_saved_are_told_to_stay(desk: Desk) -> None:
    put(desk.work, ".gitignore", "build/\n")
    desk.write(a_txt="one", place="a file")
    one = desk.save(1)
    (desk.work / "place").unlink()
    put(desk.work, "place/.env", "TOKEN=1")
    desk.write(place__b="b", new__inner__c_py="c", new__inner__build__c="c", other__d="d")
    before = desk.seen()
    told = both(desk, one)
    assert (told.created, told.removed) == ((), ("new/inner/c.py", "other/d", "place/b"))
    assert {each.path for each in told.kept} == {"new", "new/inner", "place"}
    assert {each.reason for each in told.kept} == {"not empty"}
    operations = desk.log()
    assert not both(desk, one)
    assert desk.log() == operations
    desk.line.undo()
    assert desk.seen() == before


def test_bytes_are_those_that_are_written(desk: Desk) -> None:
    workspace = desk.vault.workspace(desk.work, max_file_bytes=1_000)
    desk.write(a_txt="12345", b_txt="123", odd="small")
    one = desk.save(1)
    desk.write(a_txt="other", b_txt="123456")
    too_large(desk.work)
    assert both(desk, one, workspace=workspace).bytes == 8


# Where it happens


def test_a_workspace_that_has_become_a_link_is_not_followed(desk: Desk, tmp_path: Path) -> None:
    """Somebody's directory that was never saved must not be made like an old checkpoint."""
    desk.write(a_txt="one")
    one = desk.save(1)
    desk.write(a_txt="two")
    desk.save(2)
    desk.line.rewind(one)
    put(tmp_path, "elsewhere/keep", "mine")
    desk.work.rename(tmp_path / "moved")
    desk.work.symlink_to(tmp_path / "elsewhere")
    for call in (lambda: desk.line.rewind("main:2"), desk.line.undo):
        error = refusal(call)
        assert isinstance(error, Misuse)
        assert f"leads to '{tmp_path / 'elsewhere'}'" in str(error)
    assert list(picture(tmp_path / "elsewhere")) == [b"keep"]
    desk.work.unlink()
    (tmp_path / "moved").rename(desk.work)
    desk.line.undo()
    assert desk.read("a.txt") == "two"


@pytest.mark.parametrize("path", ["a\0b", "\ud800"])
def test_what_is_no_path_is_misuse(desk: Desk, path: str) -> None:
    desk.write(a_txt="one")
    one = desk.save(1)
    assert isinstance(refusal(desk.line.rewind, one, paths=[path]), Misuse)
    assert isinstance(refusal(desk.line.rewind, one, workspace=path), Misuse)
    assert isinstance(refusal(desk.vault.workspace, path), Misuse)


def test_a_directory_that_cannot_be_looked_into_is_told_to_stay(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a directory then and now; whether what is in it is the same, nobody knows."""
    desk.write(a_txt="one", shut__b="one")
    desk.save(1)
    desk.write(a_txt="two", shut__b="two")
    real = RootDirectory.open

    def refused(self: RootDirectory, path: bytes, *given: int) -> int:
        if path == b"shut":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(self, path, *given)

    monkeypatch.setattr(
        RootDirectory, "open", refused
    )  # whoever runs tests may be allowed everything
    done = desk.line.rewind("main:1", what="files")
    monkeypatch.undo()
    assert done.files is not None
    assert [each.path for each in done.files.kept] == ["shut"]
    assert done.files.missing == done.files.kept
    assert "Permission denied" in done.files.kept[0].reason
    assert (desk.read("a.txt"), desk.read("shut/b")) == ("one", "two")


def test_a_directory_that_is_ignored_in_the_place_of_a_file_is_told_to_stay(desk: Desk) -> None:
    desk.write(build="a file", a="one")
    one = desk.save(1)
    (desk.work / "build").unlink()
    put(desk.work, "build/made", "by hand")
    put(desk.work, ".gitignore", "build/\n")
    told = both(desk, one)
    assert [(each.path, each.reason) for each in told.kept] == [("build", "not empty")]
    assert told.missing == told.kept
    assert desk.read("build/made") == "by hand"


def test_a_directory_that_todays_rules_ignore_takes_the_place_of_a_file(desk: Desk) -> None:
    desk.write(build__made="one", a="one")
    one = desk.save(1)
    wipe(desk.work)
    desk.write(build="a file", a="two")
    put(desk.work, ".gitignore", "build/\n")
    told = both(desk, one)
    assert (told.created, told.kept) == (("build/made",), ())
    desk.line.undo()
    assert desk.read("build") == "a file"


def test_a_directory_that_the_rules_of_then_ignore_is_told_to_stay(desk: Desk) -> None:
    put(desk.work, ".gitignore", "build/\n")
    desk.write(build="a file", a="one")
    one = desk.save(1)
    wipe(desk.work)
    desk.write(build__made="two", a="two")
    told = both(desk, one)
    assert [(each.path, "the rules of that checkpoint" in each.reason) for each in told.kept] == [
        ("build", True)
    ]
    assert desk.read("build/made") == "two"


def test_a_file_comes_back_though_another_name_of_it_cannot(desk: Desk) -> None:
    desk.write(a="one")
    (desk.work / "b").hardlink_to(desk.work / "a")
    one = desk.save(1)
    wipe(desk.work)
    put(desk.work, ".gitignore", "*.log\n")
    put(desk.work, "a/x.log", "not saved")
    told = both(desk, one)
    assert (told.created, [each.path for each in told.kept]) == (("b",), ["a"])
    assert (desk.read("b"), desk.read("a/x.log")) == ("one", "not saved")


@pytest.mark.parametrize("replaced", [False, True])
def test_a_directory_that_went_with_its_parent_is_not_told_to_be_kept(
    desk: Desk, replaced: bool
) -> None:
    if replaced:
        desk.write(top="a file")
    desk.write(a="one")
    one, then = desk.save(1), desk.seen()
    wipe(desk.work)
    desk.write(top__inner__deep__file="two", a="one")
    for path in ("top/inner/deep", "top/inner", "top"):
        (desk.work / path).chmod(0o555)
    assert both(desk, one).kept == ()
    assert desk.seen() == then
