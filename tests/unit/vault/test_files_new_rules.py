"""An ignore rule that was written after a checkpoint does not keep its files from coming back."""

import pytest

from hardsave.vault.checkpoint import Checkpoint
from tests.unit.vault.desk import Desk, put, wipe
from tests.unit.workspace.repository import Repository

EVERYTHING = "*\n"


def forty(desk: Desk) -> str:
    """A checkpoint with forty files."""
    for number in range(40):
        put(desk.work, f"src/{number}.py" if number % 2 else f"{number}.py", "one")
    return desk.save(1)


def held(checkpoint: Checkpoint | None) -> list[str]:
    """The files of a checkpoint."""
    assert checkpoint is not None
    assert checkpoint.files is not None
    return sorted(file.path for file in checkpoint.files.list() if file.kind != "directory")


@pytest.mark.parametrize("rules", [".gitignore", ".hardsaveignore", ".git/info/exclude"])
def test_a_rule_for_everything_keeps_nothing_from_coming_back(desk: Desk, rules: str) -> None:
    if rules.startswith(".git/"):
        Repository(desk.work).init()
    desk.write(broken_py="one", gone_py="one", sub__deep__gone_py="one", same_py="one")
    one = desk.save(1)
    put(desk.work, rules, EVERYTHING)
    desk.write(broken_py="two", since_py="never saved", bin__python="never saved")
    (desk.work / "gone.py").unlink()
    (desk.work / "sub/deep/gone.py").unlink()
    (desk.work / "sub/deep").rmdir()
    before = desk.seen()
    done = desk.line.rewind(one)
    after = desk.seen()
    assert done.files is not None
    assert done.files.is_complete
    assert done.files.changed == ("broken.py",)
    assert done.files.created == ("gone.py", "sub/deep/gone.py")
    for path in ("broken.py", "gone.py", "sub/deep/gone.py", "same.py"):
        assert desk.read(path) == "one"
    assert (desk.read("since.py"), desk.read("bin/python")) == ("never saved", "never saved")
    for _ in range(2):
        desk.line.undo()
        assert desk.seen() == before
        desk.line.redo()
        assert desk.seen() == after
    assert not desk.line.rewind(one).files


def test_files_come_back_though_only_the_rule_is_left(desk: Desk) -> None:
    desk.write(a="one", sub__b="one")
    (desk.work / "empty").mkdir()
    (desk.work / "link").symlink_to("a")
    one, then = desk.save(1), desk.seen()
    wipe(desk.work)
    put(desk.work, ".gitignore", EVERYTHING)
    before = desk.seen()
    desk.line.rewind(one)
    assert {path: at for path, at in desk.seen().items() if path != b".gitignore"} == then
    desk.line.undo()
    assert desk.seen() == before


def test_what_lies_where_a_directory_was_makes_room_as_often_as_it_is_asked_to(desk: Desk) -> None:
    desk.write(sub__a="one", link__b="one")
    one = desk.save(1)
    wipe(desk.work)
    desk.write(sub="a file now")
    (desk.work / "link").symlink_to("/")
    put(desk.work, ".gitignore", EVERYTHING)
    before = desk.seen()
    desk.line.rewind(one)
    after = desk.seen()
    assert (desk.read("sub/a"), desk.read("link/b")) == ("one", "one")
    for _ in range(2):
        desk.line.undo()
        assert desk.seen() == before
        desk.line.redo()
        assert desk.seen() == after


def test_an_ignore_file_that_has_come_to_ignore_itself_goes_back(desk: Desk) -> None:
    put(desk.work, ".gitignore", "*.pyc\n")
    desk.write(a="one")
    one, then = desk.save(1), desk.seen()
    put(desk.work, ".gitignore", EVERYTHING)
    desk.write(a="two")
    before = desk.seen()
    desk.line.rewind(one)
    assert desk.seen() == then
    desk.line.undo()
    assert desk.seen() == before


def test_one_path_comes_back_and_no_other_is_captured_for_it(desk: Desk) -> None:
    desk.write(a="one", b="one", sub__c="one", sub__d="one")
    one = desk.save(1)
    put(desk.work, ".gitignore", EVERYTHING)
    desk.write(a="two", b="two", sub__c="two", sub__d="two")
    done = desk.line.rewind(one, paths=["a", "sub/c"])
    assert (desk.read("a"), desk.read("sub/c")) == ("one", "one")
    assert (desk.read("b"), desk.read("sub/d")) == ("two", "two")
    assert held(done.before) == [".gitignore", "a", "sub/c"]


def test_what_was_never_captured_is_not_captured_for_a_rewind(desk: Desk) -> None:
    desk.vault.workspace(desk.work, include=(".env",))
    desk.write(_env="TOKEN=1", modules__kept="one", a="one")
    one = desk.save(1)
    desk.vault.workspace(desk.work)
    put(desk.work, ".gitignore", "modules/\n.env\n")
    desk.write(_env="TOKEN=2", modules__other="never saved", modules__kept="two", a="two")
    done = desk.line.rewind(one)
    assert (desk.read(".env"), desk.read("modules/other")) == ("TOKEN=2", "never saved")
    assert desk.read("modules/kept") == "one"
    assert done.files is not None
    assert [each.path for each in done.files.missing] == [".env"]
    assert held(done.before) == [".gitignore", "a", "modules/kept"]


def test_a_watch_sees_what_was_captured_for_a_rewind_alone(desk: Desk) -> None:
    """The next capture goes by the rules again, object for object as a vault that knows nothing."""
    one = forty(desk)
    put(desk.work, ".gitignore", "*.py\n")
    put(desk.work, "0.py", "two")
    with desk.vault.workspace(desk.work).watch():
        desk.line.rewind(one, paths=["0.py"])
        saved = desk.vault.get(desk.save(2))
    another = Desk(desk.work, desk.store)
    line = another.vault.timeline("other")
    assert held(line.save({}, workspace=desk.work)) == held(saved)
    assert held(saved) == [".gitignore"]
    another.vault.close()


# Said aloud


@pytest.mark.parametrize(
    ("file", "text", "rule"),
    [
        (".gitignore", "# all\n*\n", ".gitignore:2 ('*')"),
        (".hardsaveignore", "*.log\n*.py\n!*.txt\n", ".hardsaveignore:2 ('*.py')"),
    ],
)
def test_a_capture_that_loses_most_of_its_files_to_a_new_rule_says_so(
    desk: Desk, file: str, text: str, rule: str
) -> None:
    forty(desk)
    put(desk.work, file, text)
    said = f"a new rule in {rule} leaves out 40 of 40 files that the last checkpoint had"
    [shown] = desk.vault.workspace(desk.work).status().not_captured
    assert (shown.path, shown.reason) == (".", said)
    [saved] = desk.vault.get(desk.save(2)).not_captured
    assert saved == shown
    assert desk.vault.get(desk.save(3)).not_captured == ()


def test_a_directory_that_is_lost_counts_with_all_beneath_it(desk: Desk) -> None:
    for number in range(9):
        put(desk.work, f"lib/deep/{number}", "one")
    desk.write(a="one", lib__b="one", sub__c="one")
    desk.save(1)
    put(desk.work, "sub/.gitignore", "c\n")
    put(desk.work, ".gitignore", "lib/\n")
    [said] = desk.vault.get(desk.save(2)).not_captured
    assert "a new rule in .gitignore:1 ('lib/') leaves out 11 of 12 files" in said.reason


def test_a_rule_from_outside_is_said_to_be_from_there(desk: Desk) -> None:
    Repository(desk.work).init()
    forty(desk)
    put(desk.work, ".git/info/exclude", "*.py\n")
    [said] = desk.vault.get(desk.save(2)).not_captured
    assert said.reason.startswith("a new rule from outside of the workspace leaves out 40 of 40")


def test_a_rule_that_leaves_most_in_is_not_worth_a_word(desk: Desk) -> None:
    forty(desk)
    put(desk.work, ".gitignore", "1?.py\n/src/3*\n")
    assert desk.vault.get(desk.save(2)).not_captured == ()
    (desk.work / "0.py").unlink()  # what is gone is not ignored
    assert desk.vault.get(desk.save(3)).not_captured == ()


def test_what_is_said_of_a_loss_keeps_nothing_from_coming_back(desk: Desk) -> None:
    forty(desk)
    put(desk.work, ".gitignore", EVERYTHING)
    two = desk.save(2)
    put(desk.work, "0.py", "two")
    desk.line.rewind("main:1")
    assert desk.read("0.py") == "one"
    assert desk.line.rewind(two, dry_run=True).files is not None
