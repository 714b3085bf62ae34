"""Garbage in the place of a repository is read or listed, never followed, never fatal."""

import os
import shutil
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.workspace.git import unfinished
from hardsave.workspace.git.position import GitPosition, position
from tests.unit.objects.strategies import examples
from tests.unit.workspace.pieces import info_exclude, tracked, tracked_or_why
from tests.unit.workspace.repository import Repository

COMMIT = "1" * 40


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """What git itself takes for a repository, with a commit that is only a name."""
    for directory in ("objects", "refs/heads", "info"):
        (tmp_path / "work/.git" / directory).mkdir(parents=True)
    (tmp_path / "work/.git/HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "work/.git/refs/heads/main").write_text(COMMIT + "\n")
    Repository(tmp_path / "work").git("rev-parse", "--git-dir")
    assert whole(tmp_path / "work").commit == COMMIT
    return tmp_path / "work"


def whole(root: Path) -> GitPosition:
    found = position(root)
    assert found is not None
    assert found.not_captured == ()
    return found


def missed(root: Path) -> dict[str, str]:
    found = position(root)
    assert found is not None
    return {each.path: each.reason for each in found.not_captured}


# No repository, or none that could be read


def test_no_repository_at_all(tmp_path: Path) -> None:
    for nowhere in (tmp_path, tmp_path / "missing", tmp_path / "missing" / "deeper"):
        assert position(nowhere) is None
        assert tracked(nowhere) is None
        assert tracked_or_why(nowhere) is None
        assert info_exclude(nowhere) == b""


def test_a_linked_git_directory_is_not_followed(root: Path) -> None:
    (root / ".git").rename(root / "elsewhere")
    (root / ".git").symlink_to("elsewhere")
    assert "symbolic link" in missed(root)[".git"]
    assert tracked(root) is None
    found = tracked_or_why(root)
    assert found is not None
    assert "symbolic link" in found.problem
    (root / ".git").unlink()
    (root / ".git").symlink_to("nowhere")
    assert "symbolic link" in missed(root)[".git"]


@pytest.mark.parametrize("name", ["HEAD", "objects", "refs"])
def test_a_directory_that_is_no_repository_is_said_to_be_none(root: Path, name: str) -> None:
    target = root / ".git" / name
    shutil.rmtree(target) if target.is_dir() else target.unlink()
    assert f"there is no {name}" in missed(root)[".git"]
    assert tracked(root) is None


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"gitdir:", b"gitdir: ", b"gitdir: \n", b"gitdir: nowhere", b"\0", b"gitdir: a\0b"),
        *(b"gitdir: " + b"x" * 5000, b"gitdir: " + b"x" * 4000, b"gitdir: .", b"gitdir: file\n"),
    ],
)
def test_a_git_file_that_leads_nowhere(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").touch()
    (tmp_path / ".git").write_bytes(content)
    assert missed(tmp_path).keys() == {".git"}
    assert tracked(tmp_path) is None


def test_a_pipe_or_a_socket_in_its_place_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".git")
    assert missed(tmp_path) == {".git": "it is not a file"}
    (tmp_path / ".git").unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / ".git"))
        assert missed(tmp_path) == {".git": "it is not a file"}


@pytest.mark.parametrize("content", [b"", b"\n", b"nowhere\n", b"HEAD", b"\0", b"x" * 5000])
def test_a_common_directory_that_is_none(root: Path, content: bytes) -> None:
    (root / ".git/commondir").write_bytes(content)
    assert "commondir" in missed(root)[".git"]


# Heads and refs


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"\n", b"garbage", b"ref:", b"ref: ", b"1" * 39, b"1" * 41, b"g" * 40, b"\0" * 40),
        *(b"ref: ../../../etc/passwd", b"ref: refs/../../x", b"ref: refs/heads/../../config"),
        *(
            b"ref: refs/heads/a b",
            b"ref: refs//x",
            b"ref: refs/heads/x.lock",
            b"ref: refs/heads/.x",
        ),
        *(b"ref: refs/heads/x/", b"ref: refs/\0", b"ref: HEAD", b"ref: /etc/passwd", b"ref: refs"),
        *(
            b"ref: refs/heads/a..b",
            b"ref: refs/heads/a@{1}",
            b"ref: refs/heads/a.",
            b"ref: refs/./x",
        ),
    ],
)
def test_a_head_that_says_nothing_is_listed_and_kept(root: Path, content: bytes) -> None:
    (root / ".git/HEAD").write_bytes(content)
    assert missed(root).keys() == {"HEAD"}
    found = position(root)
    assert found is not None
    assert (found.head, found.ref, found.commit) == (content, None, None)


@pytest.mark.parametrize("content", [b"", b"garbage", b"ref: refs/heads/../x", b"2" * 39])
def test_a_ref_that_says_nothing_is_not_taken_for_a_branch_without_commits(
    root: Path, content: bytes
) -> None:
    (root / ".git/refs/heads/main").write_bytes(content)
    assert missed(root).keys() == {"refs/heads/main"}
    found = position(root)
    assert found is not None
    assert (found.branch, found.commit) == ("main", None)


def test_refs_in_a_circle_come_to_an_end(root: Path) -> None:
    (root / ".git/refs/heads/main").write_text("ref: refs/heads/other\n")
    (root / ".git/refs/heads/other").write_text("ref: refs/heads/main\n")
    assert "circle" in missed(root)["refs/heads/main"]


@pytest.mark.parametrize("name", ["refs/heads/main", "refs/heads", "refs", "packed-refs", "HEAD"])
def test_no_link_inside_is_followed(root: Path, name: str) -> None:
    outside = root.parent / "outside"
    target = root / ".git" / name
    if name == "packed-refs":
        (root / ".git/refs/heads/main").unlink()
        target.write_text(f"{COMMIT} refs/heads/main\n")
        assert whole(root).commit == COMMIT
    target.rename(outside)
    target.symlink_to(outside)
    assert any("symbolic link" in reason for reason in missed(root).values())
    found = position(root)
    assert found is not None
    assert found.commit is None


@pytest.mark.parametrize(
    "content",
    [
        *(
            b"",
            b"\n\n",
            b"# pack-refs with: peeled\n^" + b"1" * 40,
            b"refs/heads/main\n",
            b"\0" * 99,
        ),
        *(b"1" * 39 + b" refs/heads/main\n", b"x" * 40 + b" refs/heads/main\n"),
        *(
            b" refs/heads/main\n",
            b"1" * 40 + b" refs/heads/main2\n",
            b"1" * 40 + b" refs/heads/mai\nn",
        ),
    ],
)
def test_packed_refs_without_the_branch_know_no_commit(root: Path, content: bytes) -> None:
    (root / ".git/refs/heads/main").unlink()
    (root / ".git/packed-refs").write_bytes(content)
    assert whole(root).commit is None


def test_a_reftable_is_refused_with_a_clear_word(root: Path) -> None:
    (root / ".git/config").write_text("[extensions]\nrefStorage = reftable\n")
    (root / ".git/HEAD").write_text("ref: refs/heads/.invalid\n")
    (root / ".git/index").write_bytes(b"kept")
    found = position(root)
    assert found is not None
    assert "reftable" in missed(root)["refs"]
    assert (found.ref, found.commit, found.own_index) == (None, None, b"kept")


# Large things, and many of them


def test_what_is_too_large_is_listed_and_not_read(root: Path) -> None:
    for name in ("HEAD", "index", "MERGE_MSG", "refs/heads/main"):
        with open(root / ".git" / name, "wb") as file:
            file.truncate(1 << 40)  # sparse
    assert missed(root).keys() == {"HEAD", "index", "MERGE_MSG"}
    assert all("more than" in reason for reason in missed(root).values())
    found = tracked_or_why(root)
    assert found is not None
    assert "more than" in found.problem


def test_all_notes_together_are_bounded(root: Path) -> None:
    (root / ".git/rebase-apply").mkdir()
    for number in range(20):
        (root / f".git/rebase-apply/{number:02}").write_bytes(bytes(1 << 20))
    found = position(root)
    assert found is not None
    assert len(found.files) == 16
    assert missed(root).keys() == {f"rebase-apply/{number}" for number in range(16, 20)}


def test_very_many_notes_are_cut_off_and_said_to_be(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished, "_MOST_FILES", 5)
    (root / ".git/sequencer/deep").mkdir(parents=True)
    for number in range(9):
        (root / f".git/sequencer/deep/{number}").touch()
    found = position(root)
    assert found is not None
    assert len(found.files) == 4
    assert "more than 5" in missed(root)["sequencer/deep"]


def test_links_and_pipes_among_the_notes_are_listed(root: Path) -> None:
    (root / "secret").write_text("secret")
    (root / ".git/MERGE_MSG").symlink_to("../secret")
    (root / ".git/sequencer").mkdir()
    os.mkfifo(root / ".git/sequencer/todo")
    (root / ".git/sequencer/loop").symlink_to(".")
    (root / ".git/rebase-merge").symlink_to("..")
    (root / ".git/BISECT_LOG").mkdir()
    assert missed(root).keys() == {
        *("MERGE_MSG", "sequencer/todo", "sequencer/loop", "rebase-merge")
    }


def test_an_index_that_is_a_link_or_garbage_is_not_taken_for_an_empty_one(root: Path) -> None:
    (root / ".git/index").write_bytes(b"DIRC, or so")
    assert tracked(root) is None
    (root / ".git/index").unlink()
    (root / ".git/index").symlink_to("/dev/zero")
    assert tracked(root) is None
    assert missed(root).keys() == {"index"}


# Anything


@examples(150)
@given(
    st.dictionaries(
        st.sampled_from(
            [
                *("HEAD", "config", "commondir", "packed-refs", "refs/heads/main", "index"),
                *("MERGE_HEAD", "sharedindex.", "info/exclude", "gitdir"),
            ]
        ),
        st.binary(max_size=80)
        | st.sampled_from([b"ref: refs/heads/main", b"../.git\n", b"[a]\nb"]),
        max_size=6,
    )
)
def test_no_content_of_any_file_stops_a_snapshot(
    tmp_path_factory: pytest.TempPathFactory, contents: dict[str, bytes]
) -> None:
    root = tmp_path_factory.mktemp("garbage")
    for directory in ("objects", "refs/heads", "info"):
        (root / ".git" / directory).mkdir(parents=True)
    (root / ".git/HEAD").write_text("ref: refs/heads/main\n")
    for name, content in contents.items():
        (root / ".git" / name).write_bytes(content)
    descriptors = len(os.listdir("/dev/fd"))
    assert position(root) is not None
    assert tracked_or_why(root) is not None
    info_exclude(root)
    assert len(os.listdir("/dev/fd")) == descriptors
