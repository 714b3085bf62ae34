"""What was purged is in no file of the store, captured files included."""

import os
import subprocess
from pathlib import Path

import pytest

import hardsave
from hardsave.errors import Misuse, NotFound
from tests.unit.vault.desk import Desk, put, refusal
from tests.unit.vault.secrets_scanner import found
from tests.unit.vault.test_purge import backed_up

SECRETS = [f"sesame-{number:02d}-{number * 7919 % 9973:04d}" for number in range(14)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "store.db"


def planted(work: Path) -> None:
    """A secret in every place of a workspace where one can be."""
    put(work, "plain.txt", f"a line\n{SECRETS[0]}\n")
    put(work, f"dir-{SECRETS[1]}/file", "x")
    put(work, f"{SECRETS[2]}.txt", "y")
    (work / "link").symlink_to(f"/somewhere/{SECRETS[3]}")
    half = len(SECRETS[4]) // 2
    put(work, "large", b"l" * (128 * 1024 - half) + SECRETS[4].encode() + b"m" * 300_000)
    os.mkfifo(work / f"fifo-{SECRETS[5]}")
    put(work, f"linked-{SECRETS[6]}", "one file")
    os.link(work / f"linked-{SECRETS[6]}", work / "other-name")
    put(work, ".gitignore", f"# {SECRETS[7]}\nbuild/\n")
    put(work, "build/out", SECRETS[8])
    git(work, "init", "-q")
    put(work, f"tracked-{SECRETS[9]}", "t")
    git(work, "add", "-f", f"tracked-{SECRETS[9]}")
    put(work, ".git/MERGE_MSG", f"about {SECRETS[10]}")
    put(work, ".git/HEAD", f"ref: refs/heads/{SECRETS[11]}\n")
    put(work, "deep/er/and/deeper", f"{SECRETS[12]}")


def test_a_cache_that_somebody_has_left_half_written_goes_too(path: Path, tmp_path: Path) -> None:
    put(tmp_path / "work", f"{SECRETS[0]}.txt", "x")
    pid = os.fork()
    if not pid:  # killed when it has written the file, and not yet given it its name
        os.replace = lambda *_: os._exit(0)
        with hardsave.open(f"sqlite:///{path}") as vault:
            vault.timeline("main").save({}, workspace=tmp_path / "work")
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    with hardsave.open(f"sqlite:///{path}") as vault:
        assert vault.store.purge(text=SECRETS[0]).rewritten > 0
    assert found(path.parent, SECRETS[:1]) == set()


def git(work: Path, *command: str) -> None:
    subprocess.run(["git", *command], cwd=work, check=True)


CAPTURED = {*SECRETS} - {SECRETS[8]}
IN_TWO_PARTS = {SECRETS[4]}  # which nobody finds by looking for the whole


def test_texts_of_files_are_in_no_file_of_the_store(path: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    planted(work)
    with hardsave.open(f"sqlite:///{path}") as vault:
        line = vault.timeline("main")
        first = line.save({"turn": 1}, workspace=work)
        put(work, "plain.txt", f"{SECRETS[0]} again {SECRETS[13]}")
        line.save({"turn": 2}, workspace=work)
        line.rewind(first.id, paths=[f"{SECRETS[2]}.txt", "plain.txt"])
        backed_up(path)
        assert found(path.parent, SECRETS) == CAPTURED - IN_TWO_PARTS
        for secret in CAPTURED:
            assert vault.store.purge(text=secret).rewritten > 0
        assert found(path.parent, SECRETS) == set()
        assert vault.store.verify().faults == ()
        again = vault.get(first.id)
        assert again.files is not None
        assert again.files.read("plain.txt") == b"a line\n[purged]\n"
        assert again.files.read("dir-[purged]/file") == b"x"
        assert len(again.files.read("large")) == 428 * 1024 - 28 * 1024 + 300_000 - 300 * 1024 or 1
        assert again.git is not None
        assert again.git.branch == "[purged]"
        assert [each.path for each in again.not_captured] == ["fifo-[purged]"]
        fork = vault.workspace(work).fork(first.id, tmp_path / "restored")
        assert (fork.workspace.path / "plain.txt").read_text() == "a line\n[purged]\n"
        linked = fork.workspace.path / "linked-[purged]"
        assert linked.samefile(fork.workspace.path / "other-name")
        assert isinstance(refusal(vault.timeline("main").undo), NotFound)
    assert found(path.parent, SECRETS) == set()


@pytest.mark.parametrize("whole", [False, True])
def test_a_purged_checkpoint_or_timeline_takes_its_files_along(
    path: Path, tmp_path: Path, whole: bool
) -> None:
    work = tmp_path / "work"
    with hardsave.open(f"sqlite:///{path}") as vault:
        put(work, "kept.txt", "this text stays in the store")
        vault.timeline("other").save({}, workspace=work)
        line = vault.timeline("main")
        put(work, "plain.txt", f"{SECRETS[0]}" * 10)
        put(work, f"{SECRETS[1]}/x", "x")
        doomed = line.save({"turn": 1}, workspace=work)
        (work / "plain.txt").unlink()
        (work / f"{SECRETS[1]}/x").unlink()
        (work / SECRETS[1]).rmdir()
        line.save({"turn": 2}, workspace=work)
        backed_up(path)
        if whole:
            vault.store.purge(timeline="main")
        else:
            vault.store.purge(doomed.id)
        assert found(path.parent, SECRETS) == set()
        assert vault.store.verify().faults == ()
        saved = vault.timeline("other").head
        assert saved is not None
        assert saved.files is not None
        assert saved.files.read("kept.txt") == b"this text stays in the store"


def test_a_workspace_can_be_saved_on_after_a_purge(desk: Desk) -> None:
    desk.write(a_txt="open sesame", b_txt="b")
    one = desk.save(1)
    desk.vault.store.purge(text="sesame")
    assert desk.read("a.txt") == "open sesame"  # the workspace itself is its owner's
    status = desk.vault.workspace(desk.work).status()
    assert status.files.changed == ("a.txt",)
    desk.write(a_txt="clean")
    desk.save(2)
    desk.line.rewind(one)
    assert desk.read("a.txt") == "open [purged]"
    desk.line.undo()
    assert desk.read("a.txt") == "clean"
    assert desk.vault.store.verify().faults == ()


def test_a_snapshot_does_not_bring_back_a_state_that_was_purged(desk: Desk) -> None:
    desk.write(a_txt="one")
    desk.line.save({"word": "open sesame"}, workspace=desk.work)
    desk.vault.store.purge(text="sesame")
    desk.write(a_txt="two")
    saved = desk.line.save_files(desk.work)
    assert saved.state["word"] == "open [purged]"
    assert desk.vault.store.verify().faults == ()


def test_another_vaults_memory_of_purged_files_does_no_harm(path: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    put(work, "a.txt", "sesame here")
    put(work, "b.txt", "b")
    url = f"sqlite:///{path}"
    with hardsave.open(url) as vault, hardsave.open(url) as other:
        line = vault.timeline("main")
        line.save({"turn": 1}, workspace=work)
        other.store.purge(text="sesame")
        put(work, "c.txt", "c")
        line.save({"turn": 2}, workspace=work)
        assert vault.store.verify().faults == ()


def test_what_stands_in_its_place_cannot_be_purged(desk: Desk) -> None:
    assert isinstance(refusal(desk.vault.store.purge, text="purged"), Misuse)
