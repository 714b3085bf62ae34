"""What a checkpoint did not save and a rewind does not bring back is named."""

import os
import sys
from pathlib import Path

import pytest

import hardsave
from hardsave.vault.save.capturing import MAX_IGNORED_NOTED
from tests.unit.vault.desk import Desk
from tests.unit.vault.test_files_watched import age
from tests.unit.workspace.git_room import built


def ignored(desk: Desk, id: str) -> tuple[str, ...]:
    files = desk.line.get(id).files
    assert files is not None
    return files.ignored


def told(done: hardsave.Rewind) -> list[tuple[str, bool]]:
    return [(each.path, each.is_gone) for each in done.not_saved]


def test_an_ignored_file_that_is_gone_is_named_by_plan_and_result(desk: Desk) -> None:
    desk.write(_gitignore=".env\n*.log\n", _env="KEY=1", a_txt="one", run_log="noise")
    target = desk.save(1)
    assert ignored(desk, target) == (".env",)
    (desk.work / ".env").unlink()
    desk.write(a_txt="two")
    plan = desk.line.rewind(target, dry_run=True)
    assert told(plan) == told(desk.line.rewind(target)) == [(".env", True)]
    assert desk.line.get(target).not_captured == ()


def test_a_secret_that_was_left_out_is_named_and_one_that_is_as_it_was_is_not(desk: Desk) -> None:
    desk.write(_env="KEY=1", id__rsa="key", a_txt="one")
    for name in (".env", "id/rsa"):
        os.utime(desk.work / name, (0, 0))
    target = desk.save(1)
    desk.write(a_txt="two")
    assert told(desk.line.rewind(target, dry_run=True)) == []
    desk.write(_env="KEY=2")  # written now, long after the clock of the tests
    assert told(desk.line.rewind(target, dry_run=True)) == [(".env", False)]
    assert told(desk.line.rewind(target, paths=["a.txt"], dry_run=True)) == []


def test_a_directory_of_that_name_and_templates_are_no_loss(desk: Desk) -> None:
    desk.write(_gitignore=".env*\n", _env__lib_py="", _env_example="KEY=")
    assert ignored(desk, desk.save(1)) == ()


def test_what_is_ignored_is_noted_by_each_later_save_too(desk: Desk) -> None:
    desk.write(_gitignore="*.sqlite\n", sub__local_sqlite="rows", a_txt="one")
    desk.save(1)
    age()
    desk.write(a_txt="two")
    assert ignored(desk, desk.save(2)) == ("sub/local.sqlite",)
    (desk.work / "sub/local.sqlite").unlink()
    assert ignored(desk, desk.save(3)) == ()


def test_no_more_than_some_are_noted(desk: Desk) -> None:
    desk.write(_gitignore="*.db\n")
    for number in range(MAX_IGNORED_NOTED + 5):
        (desk.work / f"{number:03}.db").write_text("")
    assert len(ignored(desk, desk.save(1))) == MAX_IGNORED_NOTED


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
def test_a_watched_workspace_notes_what_comes_and_goes(desk: Desk) -> None:
    desk.write(_gitignore=".env\n", a_txt="one")
    with desk.vault.workspace(desk.work).watch():
        for number, step in enumerate(["write", "change", "remove"]):
            if step == "remove":
                (desk.work / ".env").unlink()
            else:
                desk.write(_env=f"KEY={number}")
            desk.write(a_txt=f"{number}")
            age()
            assert ignored(desk, desk.save(number)) == (() if step == "remove" else (".env",))


def test_what_rules_ignore_now_and_the_target_has_comes_back_as_before(desk: Desk) -> None:
    desk.write(local_db="rows", a_txt="one")
    target = desk.save(1)
    desk.write(_gitignore="*.db\n", local_db="others")
    desk.save(2)
    done = desk.line.rewind(target)
    assert desk.read("local.db") == "rows"
    assert told(done) == []


def test_a_rewind_across_a_checkout_names_both_branches(tmp_path: Path) -> None:
    repository = built(tmp_path / "work")
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        line = vault.timeline("main")
        target = line.save({}, workspace=repository.root)
        assert line.rewind(target, dry_run=True).checkout is None
        repository.write("b", "more")
        repository.git("commit", "-aqm", "further on the same branch")
        assert line.rewind(target, dry_run=True).checkout is None
        repository.git("checkout", "-qf", "side")
        found = line.rewind(target, dry_run=True).checkout
        assert found is not None
        assert (found.then.branch, found.now.branch, found.can_return) == ("main", "side", True)
        assert line.rewind(target, git=True, dry_run=True).checkout is None
        done = line.rewind(target)
        assert done.checkout == found
