"""The files of a checkpoint, as people look at them."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

import hardsave
from hardsave.errors import Misuse, NotFound
from hardsave.vault.files import Files, Held, compared, difference, unified
from tests.unit.vault.desk import Desk, put, refusal
from tests.unit.vault.stage import Watched


def captured(desk: Desk) -> Files:
    found = desk.line.save({}, workspace=desk.work).files
    assert found is not None
    return found


def test_everything_is_listed_directories_before_their_files(desk: Desk) -> None:
    desk.write(b__c="c", b__a__x="x", a_txt="one")
    (desk.work / "link").symlink_to("b/c")
    (desk.work / "b/c").chmod(0o640)
    files = list(captured(desk).list())
    assert [(file.path, file.kind) for file in files] == [
        ("a.txt", "file"), ("b", "directory"), ("b/a", "directory"), ("b/a/x", "file"),
        ("b/c", "file"), ("link", "symlink"),
    ]  # fmt: skip
    assert (files[4].mode, files[4].size) == (0o640, 1)
    assert files[5].target == "b/c"


def test_a_part_can_be_listed_and_read(desk: Desk) -> None:
    desk.write(b__c="c", b__a__x="x", a_txt="one")
    found = captured(desk)
    assert [file.path for file in found.list("b")] == ["b", "b/a", "b/a/x", "b/c"]
    assert [file.path for file in found.list("b/c")] == ["b/c"]
    assert found.read("b/a/x") == b"x"
    assert "b/a" in found
    for missing in ("nope", "b/c/deeper", "../a.txt", "b/../a.txt"):
        assert missing not in found
        assert isinstance(refusal(found.read, missing), NotFound)
    assert isinstance(refusal(found.read, "b"), Misuse)


def test_the_same_files_are_equal_wherever_they_are(desk: Desk, tmp_path: Path) -> None:
    desk.write(a_txt="one")
    put(tmp_path, "other/a.txt", "one")
    one = captured(desk)
    two = desk.vault.timeline("other").save({}, workspace=tmp_path / "other").files
    assert one == two
    assert hash(one) == hash(two)
    assert two is not None
    assert one.workspace != two.workspace
    desk.write(a_txt="two")
    assert one != captured(desk)


def test_a_change_is_shown_as_diff_would(desk: Desk) -> None:
    desk.write(a_txt="one\ntwo\x0c and \u2028 more\nthree")
    before = captured(desk)
    desk.write(a_txt="one\n2\x0c and \u2028 more\nthree\n", new="n\n")
    after = captured(desk)
    assert unified(before, after, "a.txt") == (
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n"
        "-two\x0c and \u2028 more\n-three\n\\ No newline at end of file\n"
        "+2\x0c and \u2028 more\n+three\n"
    )
    assert unified(before, after, "new") == "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n"
    assert unified(after, before, "new") == "--- a/new\n+++ /dev/null\n@@ -1 +0,0 @@\n-n\n"
    assert unified(None, None, "new") == ""


def test_what_lines_do_not_tell_is_told_above_them(desk: Desk) -> None:
    desk.write(tool="#!/bin/sh\n", plain="x\n", link="text\n")
    for name in ("tool", "plain"):
        (desk.work / name).chmod(0o644)
    before = captured(desk)
    (desk.work / "plain").chmod(0o755)
    desk.write(tool="#!/bin/bash\n", new="#!/bin/sh\n")
    for name in ("tool", "new"):
        (desk.work / name).chmod(0o755)
    (desk.work / "link").unlink()
    (desk.work / "link").symlink_to("plain")
    after = captured(desk)
    can_run = "old mode 100644\nnew mode 100755\n"
    above = "plain: mode 0644 before, 0755 now\ndiff --git a/plain b/plain\n"
    assert unified(before, after, "plain") == above + can_run
    above = "tool: mode 0644 before, 0755 now\ndiff --git a/tool b/tool\n"
    assert unified(before, after, "tool").startswith(f"{above}{can_run}--- a/tool\n")
    above = "new: mode 0755\ndiff --git a/new b/new\nnew file mode 100755\n--- /dev/null\n"
    assert unified(before, after, "new").startswith(above)
    assert unified(before, after, "link") == (
        "link: was a file, is a symlink now\n--- a/link\n+++ /dev/null\n@@ -1 +0,0 @@\n-text\n"
        "diff --git a/link b/link\nnew file mode 120000\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n"
        "+plain\n\\ No newline at end of file\n"
    )
    (desk.work / "link").unlink()
    (desk.work / "link").symlink_to("tool")
    assert unified(after, captured(desk), "link").startswith("link: a symlink\n--- a/link\n")


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
def test_a_diff_of_all_files_can_be_applied_by_git(desk: Desk, tmp_path: Path) -> None:
    desk.write(tool="x\n", text="t\n", gone="", same="s\n")
    (desk.work / "link").symlink_to("tool")
    (desk.work / "away").symlink_to("tool")
    before, old = captured(desk), shutil.copytree(desk.work, tmp_path / "old", symlinks=True)
    (desk.work / "tool").chmod(0o755)
    for name in ("text", "link", "away", "gone"):
        (desk.work / name).unlink()
    desk.write(link="a file now\n", empty="", **{"an odd\n\u202ename": "o\n"})
    desk.write(**dict.fromkeys(("@@ -1 +1 @@", "diff --git a", "--- a", "+++ b"), ""))
    (desk.work / "text").symlink_to("nowhere")
    after = captured(desk)
    changed = difference(before, after)
    paths = (*changed.added, *changed.changed, *changed.removed)
    patch = "\n".join(unified(before, after, path) for path in paths)  # as the command prints it
    subprocess.run(["git", "apply"], cwd=old, input=patch.encode(), check=True)
    assert described(old) == described(desk.work)


def described(folder: Path) -> dict[str, tuple[str, bool]]:
    return {
        path.name: (os.readlink(path), False)
        if path.is_symlink()
        else (path.read_text(), os.access(path, os.X_OK) and bool(path.stat().st_mode & 0o100))
        for path in folder.iterdir()
    }


def test_no_name_begins_a_line_of_a_diff(tmp_path: Path) -> None:
    name = 'x\n+++ b/other\n@@ -1 +1 @@\n-a\t"\\\x1b'
    found = compared(name, Held(b"one\n"), Held(b"two\n"))
    spelt = 'x\\n+++ b/other\\n@@ -1 +1 @@\\n-a\\t\\"\\\\\\033'
    assert found == f'--- "a/{spelt}"\n+++ "b/{spelt}"\n@@ -1 +1 @@\n-one\n+two\n'
    assert compared(name, None, Held(b"\0")).count("\n") == 1
    odd = os.fsdecode(b"\xff\xe2\x80\xaeb\xc3\xbc")  # no UTF-8, a mark that turns text around, ü
    assert compared(odd, None, Held(b"n\n")).splitlines()[1] == '+++ "b/\\377\\342\\200\\256bü"'
    (tmp_path / "x\ty").write_text("one\n")
    patch = compared("x\ty", Held(b"one\n"), Held(b"two\n"))
    if shutil.which("patch"):
        subprocess.run(["patch", "-p1"], cwd=tmp_path, input=patch.encode(), check=True)
        assert (tmp_path / "x\ty").read_text() == "two\n"


@pytest.mark.parametrize(
    ("data", "word"), [(b"a\0b", "not a text"), (b"x" * 5_000_000, "too long")]
)
def test_what_cannot_be_shown_by_lines_says_so(desk: Desk, data: bytes, word: str) -> None:
    put(desk.work, "file", data)
    assert word in unified(None, captured(desk), "file")


def test_a_damaged_capture_from_before_does_not_stop_the_next_save(tmp_path: Path) -> None:
    work, path = tmp_path / "work", tmp_path / "store.db"
    put(work, "a.txt", "one")
    store = Watched()
    with hardsave.Vault(store) as vault:
        saved = vault.timeline("main").save({}, workspace=work)
        place = vault._context.places.at(work)
        place.last = None  # as in a process that has just begun
        assert saved._record.snapshot is not None
        store.objects[saved._record.snapshot] = b"rubbish"
        put(work, "b.txt", "two")
        again = vault.timeline("main").save({}, workspace=work)
        assert again.files is not None
        assert again.files.read("b.txt") == b"two"
    assert not path.exists()


def numbered(numbers: Iterable[int]) -> bytes:
    return b"".join(b"line %d\n" % number for number in numbers)


def test_a_file_with_every_other_line_changed_is_not_compared_for_hours() -> None:
    before = numbered(range(60_000))
    after = numbered(number if number % 2 else -1 - number for number in range(60_000))
    began = time.process_time()
    assert compared("a.txt", Held(before), Held(after)) == (
        "a.txt: too much of it has changed to compare by lines\n"
    )
    assert time.process_time() - began < 5


def test_a_file_that_has_grown_much_or_changed_here_and_there_is_compared() -> None:
    before = numbered(range(20_000))
    grown = compared("a.txt", Held(before), Held(numbered(range(40_000))))
    assert grown.count("\n+line") == 20_000
    here = numbered(number if number % 1000 else -1 - number for number in range(20_000))
    assert compared("a.txt", Held(before), Held(here)).count("\n+line") == 20
