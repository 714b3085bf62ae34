"""A rewind takes files and state back together, keeps what is not its own, and can be undone."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import hardsave
from hardsave.errors import Conflict, Misuse, NotFound
from hardsave.vault.restore.rewind_request import What
from hardsave.vault.vault import Vault
from hardsave.workspace.restore import execution, plan, steps
from hardsave.workspace.snapshot import content
from tests.unit.vault.desk import Desk, put, refusal, wipe
from tests.unit.vault.stage import Watched
from tests.unit.workspace.room import leftovers, picture


def two_steps(desk: Desk) -> tuple[str, str]:
    """Two checkpoints that differ in everything that can."""
    desk.write(a_txt="one", sub__gone="old", same="same")
    (desk.work / "empty").mkdir()
    (desk.work / "link").symlink_to("a.txt")
    one = desk.save(1)
    desk.write(a_txt="two", new__deep__file="new")
    shutil.rmtree(desk.work / "sub")
    (desk.work / "empty").rmdir()
    (desk.work / "link").unlink()
    (desk.work / "link").symlink_to("elsewhere")
    (desk.work / "same").chmod(0o600)
    return one, desk.save(2)


@pytest.mark.parametrize("what", ["file", "symlink", "secret"])
def test_what_lies_where_a_file_is_now_is_told_to_stay_before_and_after(
    desk: Desk, tmp_path: Path, what: str
) -> None:
    """Only the file in the directory is asked for, and the directory is something else by now."""
    over = ".env" if what == "secret" else "a"
    put(desk.work, f"{over}/b", "one")
    put(desk.work, "c", "one")
    one = desk.save(1)
    shutil.rmtree(desk.work / over)
    if what == "symlink":
        (desk.work / over).symlink_to(tmp_path)
    else:
        put(desk.work, over, "a file")
    put(desk.work, "c", "two")
    before = desk.seen()
    asked = [f"{over}/b", "c"]
    shown = desk.line.rewind(one, paths=asked, dry_run=True).files
    done = desk.line.rewind(one, paths=asked).files
    assert shown is not None
    assert shown == done
    assert shown.created == ()
    assert shown.changed == ("c",)
    (kept,) = shown.kept
    assert kept.path in (over, f"{over}/b")
    assert "in the way" in kept.reason or "could not be saved first" in kept.reason
    assert desk.seen() == {**before, b"c": desk.seen()[b"c"]}
    assert desk.read("c") == "one"
    assert not (tmp_path / "b").exists()
    desk.vault.undo()
    assert desk.seen() == before


def test_state_and_files_go_back_and_come_again(desk: Desk) -> None:
    desk.write(a_txt="one")
    first = desk.seen()
    one = desk.save(1)
    desk.write(a_txt="two", b_txt="new")
    second = desk.seen()
    desk.save(2)
    done = desk.line.rewind(one)
    assert (done.moved, desk.line.load(), desk.seen()) == (True, {"turn": 1}, first)
    assert done.files is not None
    assert (done.files.changed, done.files.removed) == (("a.txt",), ("b.txt",))
    desk.line.undo()
    assert (desk.line.load(), desk.seen()) == ({"turn": 2}, second)
    desk.line.redo()
    assert (desk.line.load(), desk.seen()) == ({"turn": 1}, first)


def test_everything_that_can_differ_comes_back(desk: Desk) -> None:
    one, two = two_steps(desk)
    second = desk.seen()
    desk.line.rewind(one)
    assert (desk.work / "empty").is_dir()
    assert desk.read("sub/gone") == "old"
    assert os.readlink(desk.work / "link") == "a.txt"
    assert not (desk.work / "new").exists()
    desk.line.rewind(two)
    assert desk.seen() == second


@pytest.mark.parametrize(("what", "turn", "text"), [("state", 1, "two"), ("files", 2, "one")])
def test_state_or_files_alone(desk: Desk, what: What, turn: int, text: str) -> None:
    desk.write(a_txt="one")
    one = desk.save(1)
    desk.write(a_txt="two")
    desk.save(2)
    desk.line.rewind(one, what=what)
    assert (desk.line.load()["turn"], desk.read("a.txt")) == (turn, text)
    desk.line.undo()
    assert (desk.line.load()["turn"], desk.read("a.txt")) == (2, "two")
    desk.line.redo()
    assert (desk.line.load()["turn"], desk.read("a.txt")) == (turn, text)


def test_paths_alone_leave_the_head_and_everything_else(desk: Desk) -> None:
    one, _ = two_steps(desk)
    before = desk.seen()
    done = desk.line.rewind(one, paths=["sub/", "a.txt"])
    after = desk.seen()
    assert not done.moved
    assert desk.line.load() == {"turn": 2}
    assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    changed = {p for p in before.keys() | after.keys() if before.get(p) != after.get(p)}
    assert changed == {b"a.txt", b"sub", b"sub/gone"}
    assert desk.log()[0] == "restore"
    desk.line.undo()
    assert desk.seen() == before


@pytest.mark.parametrize("wrong", ["/etc/passwd", "../up", "sub/../../x", "", ".git/config"])
def test_paths_that_lead_elsewhere_are_refused(desk: Desk, wrong: str) -> None:
    one, _ = two_steps(desk)
    before = desk.seen()
    assert isinstance(refusal(desk.line.rewind, one, paths=[wrong]), Misuse)
    assert (desk.seen(), desk.log()) == (before, [])


def test_a_path_that_nobody_has_is_an_error(desk: Desk) -> None:
    one, _ = two_steps(desk)
    assert isinstance(refusal(desk.line.rewind, one, paths=["a.txt", "typo.txt"]), NotFound)
    assert desk.log() == []
    assert isinstance(refusal(desk.line.rewind, one, paths="a.txt"), Misuse)


@pytest.mark.parametrize(
    "given", [{"paths": ["a.txt"]}, {"scope": "mine"}, {"git": True}, {"workspace": "."}]
)
def test_what_is_about_files_is_refused_for_the_state_alone(
    desk: Desk, given: dict[str, Any]
) -> None:
    one, _ = two_steps(desk)
    error = refusal(desk.line.rewind, one, what="state", **given)
    assert isinstance(error, Misuse)
    assert next(iter(given)) in str(error)
    assert desk.log() == []


def test_a_dry_run_tells_what_is_then_done_and_does_nothing(desk: Desk, store: Watched) -> None:
    one, _ = two_steps(desk)
    desk.write(unsaved="x")
    before, commits = desk.seen(), len(store.batches)
    told = desk.line.rewind(one, dry_run=True)
    assert (desk.seen(), len(store.batches), desk.log()) == (before, commits, [])
    done = desk.line.rewind(one)
    assert told.files == done.files
    assert told.target == done.target
    assert (told.moved, done.moved) == (False, True)


def test_the_present_is_saved_only_if_it_is_not_saved_already(desk: Desk) -> None:
    desk.write(a_txt="one")
    one = desk.save(1)
    desk.write(a_txt="two")
    two = desk.save(2)
    done = desk.line.rewind(one)
    assert done.before is not None
    assert (done.before.id, len(desk.line)) == (two, 2)
    desk.write(a_txt="three")
    done = desk.line.rewind(two)
    assert done.before is not None
    assert (done.before.seq, len(desk.line)) == (3, 3)
    assert done.before.files is not None
    assert done.before.files.read("a.txt") == b"three"
    assert done.before.read() == {"turn": 1}


def test_a_rewind_to_where_everything_is_does_nothing(desk: Desk, store: Watched) -> None:
    desk.write(a_txt="one")
    one = desk.save(1)
    commits = len(store.batches)
    done = desk.line.rewind(one)
    assert (done.moved, bool(done.files), len(store.batches)) == (False, False, commits)


def test_files_that_are_as_they_shall_be_keep_their_times(desk: Desk) -> None:
    desk.write(a_txt="one", same="same")
    os.utime(desk.work / "same", ns=(1, 1_234_567_890_123_456_789))
    one = desk.save(1)
    desk.write(a_txt="two")
    desk.save(2)
    desk.line.rewind(one)
    assert (desk.work / "same").stat().st_mtime_ns == 1_234_567_890_123_456_789


def test_what_a_shell_did_is_taken_back_like_everything_else(desk: Desk) -> None:
    """Nobody told us of these edits: what is on the disk counts."""
    desk.write(a_txt="one", sub__b_txt="two")
    before = desk.seen()
    one = desk.save(1)
    wipe(desk.work)
    os.system(f"echo rubbish > '{desk.work}/rubbish'")  # noqa: S605 # a shell, on purpose
    desk.line.rewind(one)
    assert desk.seen() == before


def test_ignored_files_survive_every_rewind_also_across_a_changed_gitignore(desk: Desk) -> None:
    desk.write(_gitignore="", a_txt="one")
    one = desk.save(1)
    desk.write(_gitignore="build/\n*.log\n", build__out="built", x_log="logged", a_txt="two")
    two = desk.save(2)
    desk.line.rewind(one)  # whose rules know nothing of them
    assert desk.read("build/out") == "built"
    assert desk.read("x.log") == "logged"
    assert desk.read("a.txt") == "one"
    desk.line.rewind(two)
    assert desk.read("build/out") == "built"
    desk.line.undo()
    desk.line.undo()
    assert desk.read("x.log") == "logged"


def test_files_that_were_never_captured_are_never_removed(desk: Desk) -> None:
    desk.write(a_txt="one")
    one = desk.save(1)
    desk.write(d__b_txt="two", d___env="TOKEN=1", a_txt="two")
    os.mkfifo(desk.work / "d/fifo")
    desk.save(2)
    done = desk.line.rewind(one)
    assert desk.read("d/.env") == "TOKEN=1"
    assert (desk.work / "d/fifo").exists()
    assert not (desk.work / "d/b.txt").exists()
    assert done.files is not None
    assert [each.path for each in done.files.kept] == ["d"]


def test_a_file_that_appears_after_the_present_was_saved_is_kept(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write(a_txt="one", sub__x="x")
    one = desk.save(1)
    desk.write(a_txt="two", new__file="n")
    shutil.rmtree(desk.work / "sub")
    desk.save(2)
    real = execution.prepared

    def late(*given: object) -> object:
        desk.write(a_txt="edited meanwhile", new__late="l", sub="a file")
        return real(*given)  # type: ignore[arg-type] # as it was called

    monkeypatch.setattr(execution, "prepared", late)
    done = desk.line.rewind(one)
    assert desk.read("a.txt") == "edited meanwhile"
    assert desk.read("new/late") == "l"
    assert desk.read("sub") == "a file"
    assert done.files is not None
    assert {"a.txt", "new"} <= {each.path for each in done.files.kept}
    assert "a.txt" not in done.files.changed


def test_an_unwritten_workspace_needs_no_git(desk: Desk, tmp_path: Path) -> None:
    assert desk.vault.workspace(desk.work).save_files().git is None


def test_a_rewind_over_checkpoints_without_files_moves_the_state(desk: Desk) -> None:
    desk.line.save({"turn": 0})
    desk.write(a_txt="one")
    desk.save(1)
    done = desk.line.rewind("main:1")
    assert (done.files, desk.line.load(), desk.read("a.txt")) == (None, {"turn": 0}, "one")
    error = refusal(desk.line.rewind, "main:1", what="files")
    assert "without files" in str(error)


def test_a_moved_workspace_has_to_be_named(desk: Desk, tmp_path: Path) -> None:
    desk.write(a_txt="one")
    one = desk.save(1)
    desk.write(a_txt="two")
    two = desk.save(2)
    moved = desk.work.rename(tmp_path / "moved")
    error = refusal(desk.line.rewind, one)
    assert isinstance(error, Misuse)
    assert "workspace=" in str(error)
    assert desk.line.load() == {"turn": 2}
    desk.line.rewind(one, workspace=moved)
    assert (moved / "a.txt").read_text() == "one"
    desk.line.undo()
    assert (moved / "a.txt").read_text() == "two"
    assert desk.line.get().id == two or desk.line.load() == {"turn": 2}


def test_a_timeline_that_saves_two_directories_is_asked_which(desk: Desk, tmp_path: Path) -> None:
    desk.write(a_txt="one")
    one = desk.save(1)
    put(tmp_path / "other", "precious", "two")
    desk.line.save({"turn": 2}, workspace=tmp_path / "other")
    desk.write(a_txt="two")
    error = refusal(desk.line.rewind, one)
    assert isinstance(error, Misuse)
    assert all(word in str(error) for word in (str(desk.work), str(tmp_path / "other")))
    assert "workspace=" in str(error)
    assert (tmp_path / "other/precious").read_text() == "two"
    desk.line.rewind(one, workspace=desk.work)
    assert (desk.read("a.txt"), desk.line.load()) == ("one", {"turn": 1})
    assert (tmp_path / "other/precious").read_text() == "two"


def test_a_deleted_workspace_comes_back_in_an_empty_directory(desk: Desk) -> None:
    desk.write(a_txt="one", sub__b_txt="two")
    before = desk.seen()
    one = desk.save(1)
    shutil.rmtree(desk.work)
    assert "make it" in str(refusal(desk.line.rewind, one, what="files"))
    desk.work.mkdir()
    desk.line.rewind(one, what="files")
    assert desk.seen() == before


def test_undo_of_a_rewind_whose_workspace_is_gone_says_what_to_do(desk: Desk) -> None:
    desk.write(a_txt="one")
    one = desk.save(1)
    desk.write(a_txt="two")
    desk.save(2)
    desk.line.rewind(one)
    shutil.rmtree(desk.work)
    error = refusal(desk.line.undo)
    assert str(desk.work) in str(error)
    assert "make it" in str(error)


def test_restore_brings_files_and_moves_nothing(desk: Desk) -> None:
    one, _ = two_steps(desk)
    before = desk.seen()
    workspace = desk.vault.workspace(desk.work)
    done = workspace.restore(one)
    assert (done.moved, desk.line.load()) == (False, {"turn": 2})
    assert desk.read("a.txt") == "one"
    assert desk.log() == ["restore"]
    desk.vault.undo()
    assert desk.seen() == before
    assert workspace.restore(one, paths=["a.txt"], dry_run=True).files.changed == ("a.txt",)  # type: ignore[union-attr]


def test_a_rewind_tells_its_handlers_what_it_did(desk: Desk) -> None:
    heard: list[object] = []
    for event in ("rewound", "checkpoint_restored"):
        desk.vault.on(event, lambda done, event=event: heard.append(event))
    one, _ = two_steps(desk)
    desk.line.rewind(one, dry_run=True)
    desk.line.rewind(one, paths=["a.txt"])
    desk.line.rewind(one)
    assert heard == ["checkpoint_restored", "rewound"]


def test_a_handle_can_go_on_saving_after_a_rewind(desk: Desk) -> None:
    one, _ = two_steps(desk)
    desk.line.rewind(one)
    desk.write(a_txt="three")
    third = desk.line.save({"turn": 3}, workspace=desk.work)
    assert third.parent == one
    assert desk.vault.store.verify().faults == ()


def test_a_workspace_in_a_subdirectory_of_a_repository_leaves_the_rest_alone(
    tmp_path: Path, store: Watched
) -> None:
    repository = tmp_path / "repository"
    put(repository, ".git/HEAD", "ref: refs/heads/main\n")
    put(repository, ".git/config", "[core]\n")
    (repository / ".git/refs").mkdir()
    (repository / ".git/objects").mkdir()
    put(repository, ".gitignore", "*.tmp\n")
    put(repository, "outside.txt", "outside")
    desk = Desk(repository / "work", store)
    desk.write(a_txt="one", x_tmp="ignored from above")
    one = desk.save(1)
    put(repository, "outside.txt", "changed outside")
    desk.write(a_txt="two")
    desk.save(2)
    outside = {path: seen for path, seen in picture(repository).items() if b"work" not in path}
    desk.line.rewind(one)
    assert desk.read("a.txt") == "one"
    assert desk.read("x.tmp") == "ignored from above"
    saved = desk.vault.get(one)
    assert saved.git is not None
    assert saved.git.branch == "main"
    assert saved.files is not None
    assert "x.tmp" not in saved.files
    left = {path: seen for path, seen in picture(repository).items() if b"work" not in path}
    assert left == outside
    desk.vault.close()


def test_a_damaged_content_refuses_the_restore_and_touches_nothing(
    desk: Desk, store: Watched
) -> None:
    desk.write(a_txt="one", b_txt="first")
    one = desk.save(1)
    desk.write(a_txt="two", b_txt="second")
    desk.save(2)
    before = desk.seen()
    damaged = [address for address, data in store.objects.items() if data.endswith(b"first")]
    for address in damaged:
        store.objects[address] = b"rubbish"
    error = refusal(desk.line.rewind, one)
    assert isinstance(error, hardsave.Corrupt)
    assert (desk.seen(), desk.line.load(), desk.log()) == (before, {"turn": 2}, [])
    desk.write(c_txt="still usable")
    desk.save(3)


def test_an_import_cannot_choose_where_files_go(desk: Desk, tmp_path: Path) -> None:
    desk.write(a_txt="planted")
    one = desk.save(1)
    desk.vault.export_file(tmp_path / "export")
    wipe(desk.work)
    with Vault(Watched()) as vault:
        vault.import_file(tmp_path / "export")
        line = vault.timeline("main")
        error = refusal(line.rewind, one, what="files")
        assert isinstance(error, Misuse)
        assert "never saved there" in str(error)
        assert list(desk.work.iterdir()) == []
        line.rewind(one, what="files", workspace=tmp_path / "work")
        assert desk.read("a.txt") == "planted"


def test_conflicts_name_sessions_and_ways_out(desk: Desk) -> None:
    desk.write(a_txt="one")
    one = desk.save(1)
    other = desk.vault.timeline("other")
    desk.write(b_txt="theirs")
    desk.save(1, other)
    error = refusal(desk.line.rewind, one)
    assert isinstance(error, Conflict)
    assert "b.txt (other)" in str(error)


def test_after_a_restore_of_files_the_head_means_what_it_meant(desk: Desk) -> None:
    """What was saved before the restore is reachable, and is not what `@` names: to restore the
    same again brings nothing else back."""
    desk.write(a_txt="good")
    head = desk.line.save({"turn": 1}, workspace=desk.work)
    desk.write(a_txt="broken")
    for _ in range(2):
        desk.line.rewind("@", what="files")
        assert desk.read("a.txt") == "good"
        assert desk.line.head == head
    desk.line.undo()
    assert desk.read("a.txt") == "broken"


def test_a_file_whose_stored_copy_is_damaged_is_not_replaced_and_not_removed(
    desk: Desk, store: Watched
) -> None:
    """Its only good copy lies in the workspace."""
    large = "l" * (content.PART_BYTES + 1)
    desk.write(a_txt="one", b_txt="one", large="small")
    desk.save(1)
    desk.write(a_txt="good", b_txt="two", large=large, new_txt="mine", other="o")
    desk.save(2)
    for text in ("good", "mine", large[:1]):
        del store.objects[content.of_bytes(text.encode())[0]]
    desk.vault._context.objects.forget()
    done = desk.line.rewind("main:1", what="files")
    assert done.files is not None
    assert [each.path for each in done.files.kept] == ["a.txt", "large", "new.txt"]
    assert all("run verify" in each.reason for each in done.files.kept)
    assert (desk.read("a.txt"), desk.read("new.txt"), desk.read("large")) == ("good", "mine", large)
    assert (desk.read("b.txt"), (desk.work / "other").exists()) == ("one", False)
    assert leftovers(desk.work) == []


@pytest.mark.parametrize("cut_off", [False, True])
def test_no_mode_is_changed_under_a_name_outside_of_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut_off: bool
) -> None:
    """As with a backup of hard links: `cp -al work backup`."""
    url, work, outside = f"sqlite:///{tmp_path}/s.db", tmp_path / "work", tmp_path / "backup"
    put(work, "tool", "content")
    (work / "tool").chmod(0o755)
    with hardsave.open(url) as vault:
        vault.timeline("main").save({}, workspace=work)
        (work / "tool").chmod(0o600)
        outside.hardlink_to(work / "tool")
        if cut_off:
            monkeypatch.setattr(steps.Steps, "_move", mock.Mock(side_effect=KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                vault.timeline("main").rewind("main:1", what="files")
            monkeypatch.undo()
            vault.timeline("main").save_files(work)  # which recovers
        else:
            vault.timeline("main").rewind("main:1", what="files")
        assert oct((work / "tool").stat().st_mode) == "0o100755"
        assert oct(outside.stat().st_mode) == "0o100600"
        assert (work / "tool").read_text() == outside.read_text() == "content"
        assert leftovers(work) == []
        vault.timeline("main").undo()
        assert oct((work / "tool").stat().st_mode) == "0o100600"


@pytest.mark.parametrize(("ignored", "compared"), [(False, 1), (True, 2)])
def test_a_restore_is_planned_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, ignored: bool, compared: int
) -> None:
    """It is compared once more if something is captured that rules ignore."""
    one, _ = two_steps(desk)
    if ignored:
        put(desk.work, ".gitignore", "a.txt\n")
    counts = dict.fromkeys(("compared", "arranged"), 0)

    def counted(name: str) -> Callable[..., object]:
        real = getattr(plan, name)

        def count(*given: object, **named: object) -> object:
            counts[name] += 1
            return real(*given, **named)

        return count

    for name in counts:
        monkeypatch.setattr(plan, name, counted(name))
    desk.line.rewind(one)
    assert counts == {"compared": compared, "arranged": 1}
    assert desk.read("a.txt") == "one"
