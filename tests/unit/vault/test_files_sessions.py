"""Two sessions in one workspace: what one takes back is its own."""

import random
from typing import Any

import pytest

from hardsave.errors import Conflict, Unavailable
from hardsave.stores.local.file_lock import FileLock
from hardsave.vault.line import Timeline
from hardsave.vault.restore import sessions
from hardsave.vault.restore.sessions import Brought, Saved
from hardsave.vault.workspaces import place
from tests.unit.vault.desk import Desk, put, refusal


@pytest.fixture
def other(desk: Desk) -> Timeline:
    return desk.vault.timeline("other")


def interleaved(desk: Desk, other: Timeline) -> str:
    """Each changes files of its own in turn; the target is before all of them."""
    desk.write(mine="0", theirs="0", shared="0", sub__both="0")
    start = desk.save(0)
    desk.write(mine="1", new_mine="n")
    desk.save(1)
    desk.write(theirs="1", new_theirs="n", sub__their="t")
    desk.save(1, other)
    desk.write(mine="2", shared="main")
    desk.save(2)
    desk.write(theirs="2", shared="other")
    desk.save(2, other)
    return start


def test_by_default_it_refuses_and_lists_what_others_did(desk: Desk, other: Timeline) -> None:
    start = interleaved(desk, other)
    before = desk.seen()
    error = refusal(desk.line.rewind, start)
    assert isinstance(error, Conflict)
    for path in ("theirs (other)", "new.theirs (other)", "shared (other)", "sub/their (other)"):
        assert path in str(error)
    assert "mine (" not in str(error)
    assert (desk.seen(), desk.log()) == (before, [])
    told = refusal(desk.line.rewind, start, dry_run=True)
    assert isinstance(told, Conflict)


def test_mine_leaves_the_others_files_byte_for_byte(desk: Desk, other: Timeline) -> None:
    start = interleaved(desk, other)
    before = desk.seen()
    done = desk.line.rewind(start, scope="mine")
    after = desk.seen()
    assert desk.read("mine") == "0"
    assert not (desk.work / "new.mine").exists()
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert changed == {b"mine", b"new.mine"}
    assert done.files is not None
    kept = ["new.theirs", "shared", "sub/their", "theirs"]
    assert [each.path for each in done.files.kept] == kept
    assert all("'other'" in each.reason for each in done.files.kept)
    assert desk.line.load() == {"turn": 0}
    assert other.load() == {"turn": 2}


@pytest.mark.parametrize(("scope", "left"), [("mine", "2"), ("everyone", "0")])
def test_a_restore_has_the_same_scopes(desk: Desk, other: Timeline, scope: Any, left: str) -> None:
    start = interleaved(desk, other)
    desk.write(mine="3")
    desk.save(3)  # so that this timeline is the last that saved here
    workspace = desk.vault.workspace(desk.work)
    assert isinstance(refusal(workspace.restore, start), Conflict)
    workspace.restore(start, scope=scope)
    assert (desk.read("mine"), desk.read("theirs")) == ("0", left)


def test_everyone_takes_all_of_it_back(desk: Desk, other: Timeline) -> None:
    desk.write(mine="0")
    first = desk.seen()
    start = desk.save(0)
    desk.write(theirs="1")
    desk.save(1, other)
    desk.line.rewind(start, scope="everyone")
    assert desk.seen() == first
    desk.line.undo()
    assert desk.read("theirs") == "1"


def test_what_everyone_lost_comes_and_goes_with_undo_and_redo(desk: Desk, other: Timeline) -> None:
    """Also when the present is as an old checkpoint has it, which then stands for the present."""
    start = interleaved(desk, other)
    whole = desk.seen()
    desk.line.rewind(start, scope="everyone")
    first = desk.seen()
    desk.line.undo()
    assert desk.seen() == whole
    desk.line.redo()
    assert desk.seen() == first
    desk.line.rewind("main:3", scope="everyone")
    desk.line.undo()
    assert desk.seen() == first


def test_each_undo_takes_back_its_own(desk: Desk, other: Timeline) -> None:
    start = interleaved(desk, other)
    desk.line.rewind(start, scope="mine")
    desk.write(theirs="3")
    desk.save(3, other)  # sees what the rewind has brought, and did not do it
    desk.line.undo()
    assert desk.read("mine") == "2"
    assert desk.read("new.mine") == "n"
    assert desk.read("theirs") == "3"
    desk.line.redo()
    assert desk.read("mine") == "0"
    assert desk.read("theirs") == "3"


def test_both_rewind_and_both_undo(desk: Desk, other: Timeline) -> None:
    desk.write(mine="0", theirs="0")
    desk.save(0)
    desk.save(0, other)
    desk.write(mine="1")
    desk.save(1)
    desk.write(theirs="1")
    desk.save(1, other)
    whole = desk.seen()
    desk.line.rewind("main:1", scope="mine")
    other.rewind("other:1", scope="mine")
    assert (desk.read("mine"), desk.read("theirs")) == ("0", "0")
    desk.line.undo()
    assert (desk.read("mine"), desk.read("theirs")) == ("1", "0")
    other.undo()
    assert desk.seen() == whole
    assert (desk.line.load(), other.load()) == ({"turn": 1}, {"turn": 1})


def test_what_another_session_changed_after_a_rewind_is_kept_by_its_undo(
    desk: Desk, other: Timeline
) -> None:
    desk.write(a="0", b="0")
    desk.save(0)
    desk.write(a="1", b="1")
    desk.save(1)
    desk.line.rewind("main:1")
    desk.write(a="theirs")
    desk.save(1, other)
    desk.line.undo()
    assert (desk.read("a"), desk.read("b")) == ("theirs", "1")


def test_a_rewind_of_the_other_is_no_change_of_it(desk: Desk, other: Timeline) -> None:
    desk.write(a="0")
    desk.save(0, other)
    desk.write(a="1")
    desk.save(1, other)
    mine = desk.save(1)
    other.rewind("other:1")
    assert desk.read("a") == "0"
    desk.line.rewind(mine)
    assert desk.read("a") == "1"


def one_after_the_other(desk: Desk, other: Timeline) -> None:
    desk.write(a="0")
    desk.save(0)
    desk.write(a="1")
    desk.save(1)
    desk.write(a="theirs", new="n")
    desk.save(0, other)
    desk.write(a="theirs again")
    desk.save(1, other)


@pytest.mark.parametrize("ref", ["main:1", "main:2", "other:1", "other:2"])
def test_after_everything_went_back_no_further_rewind_is_refused(
    desk: Desk, other: Timeline, ref: str
) -> None:
    one_after_the_other(desk, other)
    desk.line.rewind("main:1", scope="everyone")
    desk.vault.timeline(ref.split(":")[0]).rewind(ref)
    files = desk.vault.get(ref).files
    assert files is not None
    assert desk.read("a").encode() == files.read("a")


def test_what_another_made_and_a_rewind_brought_back_is_still_its_own(
    desk: Desk, other: Timeline
) -> None:
    one_after_the_other(desk, other)
    other.rewind("other:1")
    assert "a (other), new (other);" in str(refusal(desk.line.rewind, "main:1"))
    desk.line.rewind("main:1", scope="everyone")
    desk.line.undo()
    assert "a (other), new (other);" in str(refusal(desk.line.rewind, "main:1"))


def test_what_is_as_the_target_has_it_is_no_reason_to_refuse(desk: Desk, other: Timeline) -> None:
    one_after_the_other(desk, other)
    desk.write(a="1")
    error = refusal(desk.line.rewind, "main:2")
    assert "since: new (other);" in str(error)
    (desk.work / "new").unlink()
    assert desk.line.rewind("main:2").files is not None


def test_operations_of_both_are_undone_one_after_the_other(desk: Desk, other: Timeline) -> None:
    one_after_the_other(desk, other)
    desk.line.rewind("main:1", scope="everyone")
    other.rewind("other:1")
    desk.vault.undo()
    assert desk.read("a") == "0"
    desk.vault.undo()
    assert (desk.read("a"), desk.read("new")) == ("theirs again", "n")


def test_an_undo_keeps_what_a_later_rewind_of_another_brought(desk: Desk, other: Timeline) -> None:
    one_after_the_other(desk, other)
    desk.line.rewind("main:1", scope="everyone")
    other.rewind("other:1")
    done = desk.line.undo()
    assert desk.read("a") == "theirs"
    assert done.files is not None
    assert [each.path for each in done.files.kept] == ["a"]


def test_unsaved_work_of_the_other_is_not_claimed_by_a_safety_checkpoint(
    desk: Desk, other: Timeline
) -> None:
    desk.write(mine="0", theirs="0")
    desk.save(0)
    desk.save(0, other)
    desk.write(mine="1")
    desk.save(1)
    desk.write(theirs="being written")  # and not saved yet
    done = desk.line.rewind("main:1", scope="mine")
    assert desk.read("theirs") == "being written"
    assert done.files is not None
    assert [each.path for each in done.files.kept] == ["theirs"]
    assert "no timeline has saved" in done.files.kept[0].reason
    desk.save(1, other)
    desk.line.rewind("main:2", scope="mine")
    desk.line.rewind("main:1", scope="mine")
    assert (desk.read("mine"), desk.read("theirs")) == ("0", "being written")


def test_a_directory_that_both_use_stays(desk: Desk, other: Timeline) -> None:
    desk.write(a="0")
    desk.save(0)
    desk.write(d__mine="m")
    desk.save(1)
    desk.write(d__theirs="t")
    desk.save(1, other)
    desk.line.rewind("main:1", scope="mine")
    assert not (desk.work / "d/mine").exists()
    assert desk.read("d/theirs") == "t"
    desk.line.undo()
    assert desk.read("d/mine") == "m"


def test_a_directory_that_is_made_for_mine_goes_with_the_undo(desk: Desk, other: Timeline) -> None:
    desk.write(d__mine="m", d__theirs="t")
    desk.save(0)
    (desk.work / "d/mine").unlink()
    desk.save(1)
    (desk.work / "d/theirs").unlink()
    (desk.work / "d").rmdir()
    desk.save(1, other)
    before = desk.seen()
    desk.line.rewind("main:1", scope="mine")
    after = desk.seen()
    assert after.keys() == {b"d", b"d/mine"}
    desk.line.undo()
    assert desk.seen() == before
    desk.line.redo()
    assert desk.seen() == after


def test_an_empty_directory_of_mine_goes(desk: Desk, other: Timeline) -> None:
    desk.write(a="0")
    desk.save(0)
    (desk.work / "empty").mkdir()
    desk.save(1)
    desk.write(theirs="t")
    desk.save(1, other)
    desk.line.rewind("main:1", scope="mine")
    assert not (desk.work / "empty").exists()


def test_mine_with_paths_takes_what_is_both(desk: Desk, other: Timeline) -> None:
    start = interleaved(desk, other)
    desk.write(shared="main again")
    done = desk.line.rewind(start, paths=["mine"], scope="mine")
    assert desk.read("mine") == "0"
    assert desk.read("new.mine") == "n"
    assert done.files is not None
    assert done.files.kept == ()


def test_with_paths_it_refuses_only_what_others_did_to_these(desk: Desk, other: Timeline) -> None:
    start = interleaved(desk, other)
    before = desk.seen()
    for asked in ("shared", "sub", "sub/their"):
        assert isinstance(refusal(desk.line.rewind, start, paths=["mine", asked]), Conflict)
    error = refusal(desk.line.rewind, start, paths=["theirs"])
    assert "theirs (other);" in str(error)
    assert "shared" not in str(error)
    assert desk.seen() == before
    desk.line.rewind(start, paths=["mine", "sub/both"])
    assert desk.read("mine") == "0"
    desk.vault.undo()
    assert desk.seen() == before


def test_another_workspace_is_nobodys_business(desk: Desk, other: Timeline) -> None:
    desk.write(a="0")
    start = desk.save(0)
    elsewhere = desk.work.with_name("elsewhere")
    elsewhere.mkdir()
    other.save({}, workspace=elsewhere)
    desk.write(a="1")
    desk.save(1)
    desk.line.rewind(start)
    assert desk.read("a") == "0"


# Workspaces that lie in each other


def nested(desk: Desk, other: Timeline) -> str:
    """One session works in all of it, another in a directory of it alone."""
    desk.write(mine="0", sub__theirs="0", sub__mine="0")
    start = desk.save(0)
    save_inside(desk, other, 0)
    desk.write(mine="1", sub__mine="1")
    desk.save(1)
    desk.write(sub__theirs="1", sub__new="n")
    save_inside(desk, other, 1)
    return start


def save_inside(desk: Desk, line: Timeline, turn: int) -> str:
    return line.save({"turn": turn}, workspace=desk.work / "sub").id


def test_what_a_session_saved_in_a_directory_of_the_workspace_is_its_own(
    desk: Desk, other: Timeline
) -> None:
    start = nested(desk, other)
    before = desk.seen()
    error = refusal(desk.line.rewind, start)
    assert isinstance(error, Conflict)
    assert "sub/new (other), sub/theirs (other);" in str(error)
    assert "mine (" not in str(error)
    assert desk.seen() == before
    done = desk.line.rewind(start, scope="mine")
    assert (desk.read("mine"), desk.read("sub/mine"), desk.read("sub/theirs")) == ("0", "0", "1")
    assert done.files is not None
    assert [each.path for each in done.files.kept] == ["sub/new", "sub/theirs"]
    desk.line.undo()
    assert desk.seen() == before
    desk.line.rewind(start, scope="everyone")
    assert desk.read("sub/theirs") == "0"


def test_what_a_session_saved_in_a_directory_around_the_workspace_is_its_own(
    desk: Desk, other: Timeline
) -> None:
    desk.write(sub__theirs="0", sub__mine="0", outside="0")
    start = save_inside(desk, desk.line, 0)
    desk.save(0, other)
    desk.write(sub__theirs="1", outside="1")
    desk.save(1, other)
    desk.write(sub__mine="1")
    save_inside(desk, desk.line, 1)
    error = refusal(desk.line.rewind, start)
    assert isinstance(error, Conflict)
    assert "since: theirs (other);" in str(error)
    desk.line.rewind(start, scope="mine")
    assert (desk.read("sub/mine"), desk.read("sub/theirs")) == ("0", "1")
    assert desk.read("outside") == "1"


def test_whoever_saves_it_first_has_made_it_in_whichever_workspace(
    desk: Desk, other: Timeline
) -> None:
    desk.write(sub__one="0", sub__two="0")
    start = desk.save(0)
    save_inside(desk, other, 0)
    desk.write(sub__one="1")
    desk.save(1)
    save_inside(desk, other, 1)  # sees it, and has not done it
    desk.line.rewind(start)
    assert desk.read("sub/one") == "0"
    save_inside(desk, other, 2)  # sees what a rewind has brought
    desk.line.undo()
    assert desk.read("sub/one") == "1"


def test_a_directory_that_is_ignored_is_not_shared(desk: Desk, other: Timeline) -> None:
    desk.write(_hardsaveignore="sub/\n", mine="0", sub__theirs="0")
    start = desk.save(0)
    save_inside(desk, other, 0)
    desk.write(mine="1", sub__theirs="1")
    desk.save(1)
    save_inside(desk, other, 1)
    desk.line.rewind(start)
    assert (desk.read("mine"), desk.read("sub/theirs")) == ("0", "1")


def test_a_directory_that_came_later_does_not_go_with_a_rewind(desk: Desk, other: Timeline) -> None:
    desk.write(mine="0")
    start = desk.save(0)
    desk.write(sub__theirs="1")
    save_inside(desk, other, 1)
    assert isinstance(refusal(desk.line.rewind, start), Conflict)
    desk.line.rewind(start, scope="mine")
    assert desk.read("sub/theirs") == "1"


@pytest.mark.parametrize("seed", range(30))
def test_random_sessions_in_workspaces_around_each_other_take_back_their_own(
    desk: Desk, seed: int
) -> None:
    """Each changes files of its own, in its workspace, which lies around or in those of others."""
    play = random.Random(seed)
    roots = {"a": desk.work, "b": desk.work / "sub", "c": desk.work / "sub/deep", "d": desk.work}
    for who, root in roots.items():
        desk.write(**{f"{'sub__' * (d > 0)}{'deep__' * (d > 1)}{who}{d}": "0" for d in range(3)})
        desk.vault.timeline(who).save({}, workspace=root)
    start = desk.seen()
    marks = {who: desk.vault.timeline(who).save({}, workspace=at).id for who, at in roots.items()}
    for turn in range(play.randrange(2, 12)):
        who = play.choice("abcd")
        path = play.choice([f"{who}0", f"sub/{who}1", f"sub/deep/{who}2"])
        if (desk.work / path).is_relative_to(roots[who]):
            put(desk.work, path, f"{turn}")
            desk.vault.timeline(who).save({}, workspace=roots[who])
    who = play.choice("abcd")
    now = desk.seen()
    desk.vault.timeline(who).rewind(marks[who], scope="mine")
    own = {path: was for path, was in start.items() if path[-2:-1] == who.encode()}
    assert desk.seen() == {**now, **own}


# Decided over plain data


def changes(old: Saved | Brought | None, new: Saved) -> list[bytes]:
    """Snapshots are texts here, one letter a path."""
    assert old is not None
    pairs = zip(old.snapshot, new.snapshot, strict=True)
    return [b"%d" % at for at, (one, other) in enumerate(pairs) if one != other]


def test_random_sessions_are_told_apart() -> None:
    for seed in range(300):
        play = random.Random(seed)
        tree = bytearray(b"0" * 8)
        since = Saved("", bytes(tree))
        happened: list[Saved | Brought] = []
        truth: dict[str, set[bytes]] = {"me": set(), "you": set()}
        for _ in range(play.randrange(1, 8)):
            who = play.choice(("me", "you"))
            saved = Saved("", bytes(tree))
            for at in play.sample(range(8), play.randrange(1, 4)):
                tree[at] = (tree[at] - 48 + 1) % 10 + 48
                truth[who].add(b"%d" % at)
            if play.random() < 0.3:
                brought = frozenset(changes(saved, Saved("", bytes(tree))))
                truth["you"] -= brought  # what the user asked for is no change of the other
                happened.append(Brought(who, brought, bytes(tree)))
                who = play.choice(("me", "you"))  # whoever saves it has not done it
            happened.append(Saved(who, bytes(tree)))
        found = sessions.shares(since, happened, "me", changes)
        assert found.mine == truth["me"], seed
        assert {*found.others} == truth["you"], seed


def test_what_another_session_was_the_first_to_save_is_kept_and_told(
    desk: Desk, other: Timeline
) -> None:
    desk.write(mine="0")
    start = desk.save(0)
    desk.write(mine="1")
    desk.save(1, other)  # sees it, and nobody can tell who wrote it
    desk.save(1)
    done = desk.line.rewind(start, scope="mine")
    assert desk.read("mine") == "1"
    assert done.files is not None
    (kept,) = done.files.kept
    assert kept.path == "mine"
    assert kept.reason == "timeline 'other' has changed it"  # who made it is not known
    assert desk.line.load() == {"turn": 0}
    desk.line.undo()
    assert desk.line.load() == {"turn": 1}


def test_one_that_was_stopped_in_the_middle_does_not_hold_everybody_for_ever(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write(a="1")
    desk.save(1)
    held = FileLock(str(desk.vault._context.places.at(desk.work)._lock_file))
    held.acquire(1)
    monkeypatch.setattr(place, "CAPTURE_SECONDS", 0.05)
    desk.write(a="2")
    error = refusal(desk.save, 2)
    assert isinstance(error, Unavailable)
    assert "it may be stopped" in str(error)
    held.close()
    desk.save(2)
    assert len(desk.line) == 2
