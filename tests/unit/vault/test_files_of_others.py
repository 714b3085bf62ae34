"""What other tools have done to their users' files must not happen here.

Each test is called after what went wrong elsewhere.
"""

import os
import subprocess
import time
from pathlib import Path

import pytest

import hardsave
from tests.unit.vault.desk import Desk, put, refusal
from tests.unit.workspace.room import picture

IDENTITY = {
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@a", "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@a", "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
}  # fmt: skip


def git(folder: Path, *command: str, fails: bool = False) -> str:
    done = subprocess.run(
        ["git", *command],
        cwd=folder,
        check=not fails,
        capture_output=True,
        text=True,
        env={**os.environ, **IDENTITY},
    )
    return done.stdout.strip()


@pytest.fixture
def repository(desk: Desk) -> Desk:
    git(desk.work, "init", "-q", "-b", "trunk")
    desk.write(a_txt="one\n", tracked_log="kept")
    git(desk.work, "add", "-f", ".")
    git(desk.work, "commit", "-qm", "first")
    return desk


def round_trip(desk: Desk) -> None:
    """Saved, changed beyond recognition, and brought back: as it was."""
    before = outside_git(desk)
    one = desk.save(1)
    for path in list(desk.work.iterdir()):
        if path.name != ".git":
            os.system(f"rm -rf '{path}'")  # noqa: S605 # as an agent would
    put(desk.work, "rubbish", "r")
    desk.line.rewind(one, what="files")
    assert outside_git(desk) == before


def outside_git(desk: Desk) -> dict[bytes, object]:
    return {path: at for path, at in desk.seen().items() if path.split(b"/")[0] != b".git"}


def test_line_endings_were_changed_by_text_auto(repository: Desk) -> None:
    put(repository.work, ".gitattributes", "* text=auto eol=lf\n")
    put(repository.work, "dos.txt", b"one\r\ntwo\r\n\nthree\r")
    round_trip(repository)
    assert (repository.work / "dos.txt").read_bytes() == b"one\r\ntwo\r\n\nthree\r"


def test_private_files_became_readable_to_all(repository: Desk) -> None:
    for mode in (0o600, 0o640, 0o700, 0o444):
        put(repository.work, f"mode-{mode:o}", "x").chmod(mode)
    (repository.work / "private").mkdir(mode=0o700)
    round_trip(repository)


def test_hard_links_were_split(repository: Desk) -> None:
    os.link(repository.work / "a.txt", repository.work / "b.txt")
    round_trip(repository)
    assert (repository.work / "a.txt").samefile(repository.work / "b.txt")


def test_empty_directories_were_lost(repository: Desk) -> None:
    (repository.work / "empty/below").mkdir(parents=True)
    round_trip(repository)
    assert (repository.work / "empty/below").is_dir()


def test_a_nested_repositorys_work_was_lost(repository: Desk) -> None:
    nested = repository.work / "vendor/nested"
    put(nested, "file", "committed")
    git(nested, "init", "-q")
    git(nested, "add", ".")
    git(nested, "commit", "-qm", "nested")
    put(nested, "file", "dirty")
    put(nested, "untracked", "u")
    one = repository.save(1)
    put(nested, "file", "overwritten")
    (nested / "untracked").unlink()
    repository.line.rewind(one)
    assert (nested / "file").read_text() == "dirty"
    assert (nested / "untracked").read_text() == "u"
    assert git(nested, "log", "--format=%s") == "nested"


def test_what_a_submodule_tracks_was_left_out_by_rules_of_the_repository_around_it(
    repository: Desk,
) -> None:
    nested = repository.work / "vendor/nested"
    put(nested, "a.log", "one")
    put(nested, "gen/b.log", "one")
    git(nested, "init", "-q")
    git(nested, "add", ".")
    put(nested, "own.log", "not tracked")
    put(repository.work, ".gitignore", "*.log\ngen/\n")
    one = repository.save(1)
    put(nested, "a.log", "two")
    (nested / "gen/b.log").unlink()
    now = outside_git(repository)
    files = repository.line.rewind(one).files
    assert files is not None
    assert not files.kept
    assert (nested / "a.log").read_text() == "one"
    assert (nested / "gen/b.log").read_text() == "one"
    assert (nested / "own.log").read_text() == "not tracked"
    repository.line.undo()
    assert outside_git(repository) == now


def test_ignored_files_were_deleted_after_an_older_gitignore_came_back(repository: Desk) -> None:
    one = repository.save(1)
    put(repository.work, ".gitignore", "node_modules/\n.venv/\n")
    put(repository.work, "node_modules/pkg/index.js", "installed")
    put(repository.work, ".venv/bin/python", "installed")
    repository.save(2)
    repository.line.rewind(one)
    assert not (repository.work / ".gitignore").exists()
    assert repository.read("node_modules/pkg/index.js") == "installed"
    assert repository.read(".venv/bin/python") == "installed"


def test_an_edit_within_the_same_tick_was_missed(desk: Desk) -> None:
    path = put(desk.work, "racy", "aaaa")
    for text in ("bbbb", "cccc", "dddd", "eeee"):
        desk.save(1)
        stamp = path.stat()
        path.write_text(text)  # as long as before
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        saved = desk.line.save({}, workspace=desk.work)
        assert saved.files is not None
        assert saved.files.read("racy") == text.encode()


def test_nothing_could_be_saved_in_a_conflicted_merge(repository: Desk) -> None:
    work = repository.work
    git(work, "checkout", "-qb", "side")
    put(work, "a.txt", "side\n")
    git(work, "commit", "-qam", "side")
    git(work, "checkout", "-q", "trunk")
    put(work, "a.txt", "trunk\n")
    git(work, "commit", "-qam", "trunk")
    git(work, "merge", "side", fails=True)
    conflicted = repository.read("a.txt")
    assert "<<<<<<<" in conflicted
    saved = repository.line.save({}, workspace=work)
    assert saved.git is not None
    assert saved.git.in_progress == "merge"
    put(work, "a.txt", "resolved badly\n")
    repository.line.rewind(saved.id)
    assert repository.read("a.txt") == conflicted
    assert git(work, "ls-files", "-u") != ""
    assert git(work, "status", "--porcelain") == "UU a.txt"


def test_what_was_done_in_a_shell_could_not_be_rewound(repository: Desk) -> None:
    one = repository.save(1)
    before = outside_git(repository)
    os.system(  # noqa: S605 # as an agent would
        f"cd '{repository.work}' && sed -i s/one/two/ a.txt && mkdir d && mv a.txt d && rm -f *.log"
    )
    repository.line.rewind(one)
    assert outside_git(repository) == before


def test_a_restore_deleted_files_of_the_user(repository: Desk) -> None:
    one = repository.save(1)
    put(repository.work, "agent.py", "written by the agent")
    repository.save(2)
    put(repository.work, "notes.txt", "written by the user, saved by nobody")
    done = repository.line.rewind(one)
    assert done.before is not None
    assert done.before.files is not None
    assert done.before.files.read("notes.txt") == b"written by the user, saved by nobody"
    repository.line.undo()
    assert repository.read("notes.txt") == "written by the user, saved by nobody"


def test_branches_were_moved_and_commits_dropped(repository: Desk) -> None:
    work = repository.work
    one = repository.save(1)
    put(work, "b.txt", "b")
    git(work, "add", "b.txt")
    git(work, "commit", "-qm", "second")
    git(work, "checkout", "-qb", "feature")
    put(work, "c.txt", "staged")
    git(work, "add", "c.txt")
    inside = picture(work / ".git")
    repository.line.rewind(one)
    assert picture(work / ".git") == inside
    assert git(work, "log", "--format=%s", "feature") == "second\nfirst"
    assert git(work, "branch", "--show-current") == "feature"


def test_saving_again_and_again_filled_the_disk(tmp_path: Path) -> None:
    work = tmp_path / "work"
    for number in range(100):
        put(work, f"d{number % 7}/file-{number}", os.urandom(2_000))
    with hardsave.open(f"sqlite:///{tmp_path}/store/store.db") as vault:
        line = vault.timeline("main")
        line.save({"turn": 0}, workspace=work)
        objects = vault.store.stats().objects
        for turn in range(1, 40):
            put(work, "d0/file-0", os.urandom(2_000))
            line.save({"turn": turn}, workspace=work)
        grown = vault.store.stats().objects - objects
    assert grown <= 39 * 6  # a content, two directories, a snapshot, a capture, a state


def test_every_files_time_was_changed(repository: Desk) -> None:
    for number in range(20):
        os.utime(put(repository.work, f"same-{number}", "s"), ns=(5, 1_600_000_000_000_000_000))
    one = repository.save(1)
    put(repository.work, "a.txt", "two")
    repository.save(2)
    repository.line.rewind(one)
    times = {(repository.work / f"same-{n}").stat().st_mtime_ns for n in range(20)}
    assert times == {1_600_000_000_000_000_000}


def test_a_stale_lock_of_git_stopped_everything(repository: Desk) -> None:
    for lock in ("index.lock", "HEAD.lock", "config.lock"):
        put(repository.work, f".git/{lock}", "")
    one = repository.save(1)
    put(repository.work, "a.txt", "two")
    repository.save(2)
    repository.line.rewind(one)
    assert repository.read("a.txt") == "one\n"
    assert (repository.work / ".git/index.lock").exists()


def test_a_capture_that_failed_was_taken_for_an_empty_one(
    repository: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = repository.save(1)
    put(repository.work, "new", "so that there is something to look for")
    before = outside_git(repository)

    def failing(*given: object, **named: object) -> object:
        raise OSError(24, "Too many open files")

    for call in ("scandir", "listdir"):
        monkeypatch.setattr(os, call, failing)
    error = refusal(repository.line.rewind, one)
    second = refusal(repository.save, 2)
    monkeypatch.undo()
    assert "Too many open files" in str(error)
    assert "Too many open files" in str(second)
    assert outside_git(repository) == before
    assert (repository.log(), len(repository.line)) == ([], 1)


def test_what_could_not_be_captured_was_taken_for_absent_and_deleted(desk: Desk) -> None:
    desk.write(a_txt="one", large="l" * 1_000, _env="TOKEN=1", d__x="x")
    capped = desk.vault.workspace(desk.work, max_file_bytes=100)
    one = desk.line.save({"turn": 1}, workspace=capped).id
    open_handed = desk.vault.workspace(desk.work, include=[".env"])
    desk.write(a_txt="two")
    saved = desk.line.save({"turn": 2}, workspace=open_handed)
    assert saved.files is not None
    assert ".env" in saved.files
    desk.line.rewind(one)
    assert desk.read("a.txt") == "one"
    assert desk.read("large") == "l" * 1_000
    assert desk.read(".env") == "TOKEN=1"


def test_the_programs_that_a_repository_names_were_run(repository: Desk, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    work = repository.work
    script = put(tmp_path, "script", f"#!/bin/sh\ntouch '{canary}'\ncat\n")
    script.chmod(0o755)
    for key in (
        *("core.fsmonitor", "core.sshCommand", "core.editor", "core.pager", "diff.external"),
        *("filter.x.clean", "filter.x.smudge", "filter.x.process", "diff.x.textconv"),
        *("merge.x.driver", "credential.helper", "uploadpack.packObjectsHook"),
    ):
        git(work, "config", key, str(script))
    git(work, "config", "core.hooksPath", str(tmp_path / "hooks"))
    for hook in ("post-checkout", "pre-commit", "post-index-change", "reference-transaction"):
        put(tmp_path, f"hooks/{hook}", f"#!/bin/sh\ntouch '{canary}'\n").chmod(0o755)
    put(work, ".gitattributes", "* filter=x diff=x merge=x\n")
    one = repository.save(1)
    put(work, "a.txt", "two")
    repository.save(2)
    workspace = repository.vault.workspace(work)
    workspace.status()
    repository.line.rewind(one)
    repository.line.undo()
    workspace.fork(one, tmp_path / "fork")
    repository.vault.diff(one, "main:2")
    assert not canary.exists()


def test_a_tracked_file_that_is_ignored_was_left_behind(repository: Desk) -> None:
    put(repository.work, ".gitignore", "*.log\n")
    one = repository.save(1)
    put(repository.work, "tracked.log", "changed")
    put(repository.work, "other.log", "untracked")
    repository.save(2)
    repository.line.rewind(one)
    assert repository.read("tracked.log") == "kept"
    assert repository.read("other.log") == "untracked"


def test_a_file_that_keeps_changing_was_saved_half_old_half_new(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hardsave.workspace.snapshot import content

    size = 4 * content.PART_BYTES
    restless = put(desk.work, "restless", b"0" * size)
    put(desk.work, "calm", "calm")
    real = content.parts
    count = [0]

    def changing(file: int, size: int):  # type: ignore[no-untyped-def]
        for part in real(file, size):
            count[0] += 1
            restless.write_bytes(b"%d" % (count[0] % 10) * size)
            yield part

    monkeypatch.setattr(content, "parts", changing)
    saved = desk.line.save({}, workspace=desk.work)
    assert [each.path for each in saved.not_captured] == ["restless"]
    assert saved.files is not None
    assert saved.files.read("calm") == b"calm"
    assert "restless" not in saved.files
    monkeypatch.undo()
    time.sleep(0.03)
    second = desk.line.save({}, workspace=desk.work)
    assert second.files is not None
    assert len({*second.files.read("restless")}) == 1
    desk.line.rewind(saved.id)
    assert restless.exists()  # what it held then is not known: it is left alone


def test_a_symlink_that_was_swapped_in_led_a_restore_outside(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hardsave.workspace.restore import steps

    outside = tmp_path / "outside"
    put(outside, "file", "outside")
    put(outside, "gone", "outside")
    desk.write(d__file="one", d__sub__x="x")
    one = desk.save(1)
    desk.write(d__file="two", d__gone="g")
    desk.save(2)
    before = picture(outside)
    for moment in ("prepare", "take"):
        real = getattr(steps.Steps, moment)

        def swapping(self: steps.Steps, real: object = real) -> object:
            if not (desk.work / "d").is_symlink():
                (desk.work / "d").rename(desk.work / "moved")
                (desk.work / "d").symlink_to(outside)
            return real(self)  # type: ignore[operator] # the method that it replaces

        monkeypatch.setattr(steps.Steps, moment, swapping)
        done = desk.line.rewind(one)
        monkeypatch.undo()
        assert picture(outside) == before
        assert done.files is not None
        assert "d/file" in {each.path for each in done.files.kept}
        (desk.work / "d").unlink()
        (desk.work / "moved").rename(desk.work / "d")
        for left in (desk.work / "d").glob(".hardsave-tmp-*"):
            left.unlink()
        desk.line.undo()
