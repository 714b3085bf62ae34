"""Where a repository stands, by its files, is where git says that it stands."""

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from hardsave.objects.hashing import digest
from hardsave.workspace.git.position import GitPosition, position
from hardsave.workspace.snapshot import capture
from tests.unit.workspace import pieces
from tests.unit.workspace.pieces import info_exclude, tracked
from tests.unit.workspace.repository import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "work").init()
    made.commit("a", "1")
    return made


def stands(repository: Repository) -> GitPosition:
    """The position, compared with what git says."""
    found = position(repository.root)
    assert found is not None
    assert found.not_captured == ()
    assert found.commit == (asked(repository, "rev-parse", "--verify", "-q", "HEAD") or None)
    assert found.ref == (asked(repository, "symbolic-ref", "-q", "HEAD") or None)
    assert found.branch == (asked(repository, "symbolic-ref", "-q", "--short", "HEAD") or None)
    where = repository.root / repository.line("rev-parse", "--git-path", "index")
    assert found.own_index == (where.read_bytes() if where.exists() else None)
    assert found.index_hash == (digest(found.own_index) if found.own_index is not None else b"")
    same_paths(repository)
    return found


def asked(repository: Repository, *arguments: str) -> str:
    return repository.git(*arguments, codes=(0, 1)).decode().strip()


def same_paths(repository: Repository) -> None:
    listed = repository.git("ls-files", "-z").split(b"\0")[:-1]
    assert tracked(repository.root) == frozenset(listed)


def names(found: GitPosition) -> set[str]:
    return {file.path for file in found.files}


# Heads and refs


def test_a_branch_with_a_commit(repository: Repository) -> None:
    found = stands(repository)
    assert (found.branch, found.head) == ("main", b"ref: refs/heads/main\n")


def test_a_branch_without_a_commit(tmp_path: Path) -> None:
    found = stands(Repository(tmp_path / "new").init())
    assert (found.branch, found.commit, found.own_index) == ("main", None, None)
    assert tracked(tmp_path / "new") == frozenset()


def test_a_detached_head(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "--detach")
    assert stands(repository).branch is None


def test_a_branch_whose_name_has_slashes_and_letters_of_any_script(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "-b", "feature/ä/x.y")
    assert stands(repository).branch == "feature/ä/x.y"


def test_packed_refs(repository: Repository) -> None:
    repository.git("branch", "ain")  # the name of one is the end of the other's
    repository.git("branch", "x/main")
    repository.git("tag", "--annotate", "--message", "t", "v1")
    repository.git("pack-refs", "--all")
    assert not (repository.root / ".git/refs/heads/main").exists()
    packed = stands(repository).commit
    repository.commit("a", "2")
    assert stands(repository).commit != packed  # a loose ref counts before a packed one


def test_a_branch_that_was_packed_beside_a_directory_of_its_name(repository: Repository) -> None:
    repository.git("pack-refs", "--all")
    (repository.root / ".git/refs/heads/main").mkdir()
    stands(repository)


def test_a_ref_that_names_a_ref(repository: Repository) -> None:
    repository.git("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    repository.git("symbolic-ref", "HEAD", "refs/heads/alias")
    found = position(repository.root)
    assert found is not None
    assert found.ref == "refs/heads/alias"
    assert found.commit == repository.line("rev-parse", "HEAD")


def test_a_repository_of_sha256(tmp_path: Path) -> None:
    made = Repository(tmp_path / "work").init("--object-format=sha256")
    made.commit("a", "1")
    found = stands(made)
    assert found.hash_name == "sha256"
    assert len(found.commit or "") == 64
    made.git("pack-refs", "--all")
    stands(made)


def test_a_linked_worktree_has_a_head_and_an_index_of_its_own(repository: Repository) -> None:
    repository.git("worktree", "add", "-q", "-b", "other", "../other")
    linked = Repository(repository.root.parent / "other")
    linked.commit("b", "1")
    found = stands(linked)
    assert found.branch == "other"
    assert found.gitfile.startswith(b"gitdir: ")
    assert stands(repository).branch == "main"
    repository.git("pack-refs", "--all")
    stands(linked)
    (repository.root / ".git/info/exclude").write_text("x\n")
    assert info_exclude(linked.root) == info_exclude(repository.root) == b"x\n"


def test_a_submodule_is_a_repository_of_its_own(repository: Repository) -> None:
    library = Repository(repository.root.parent / "library").init()
    library.commit("l", "1")
    repository.git("submodule", "--quiet", "add", "../library", "lib")
    inner = Repository(repository.root / "lib")
    assert stands(inner).commit == library.line("rev-parse", "HEAD")
    assert b"lib" in (tracked(repository.root) or ())
    stands(repository)


# Unfinished work


@pytest.fixture
def conflict(repository: Repository) -> Repository:
    """Two branches that changed the same line."""
    repository.git("checkout", "--quiet", "-b", "side")
    repository.commit("a", "side")
    repository.commit("b", "side too")
    repository.git("checkout", "--quiet", "main")
    repository.commit("a", "main")
    return repository


UNFINISHED: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "merge": (("merge", "side"), {"MERGE_HEAD", "MERGE_MSG", "MERGE_MODE"}),
    "rebase": (("rebase", "side"), {"REBASE_HEAD", "ORIG_HEAD", "rebase-merge/git-rebase-todo"}),
    "am": (("rebase", "--apply", "side"), {"rebase-apply/next", "rebase-apply/onto"}),
    "cherry-pick": (("cherry-pick", "side~1", "side"), {"CHERRY_PICK_HEAD", "sequencer/todo"}),
    "revert": (("revert", "--no-edit", "HEAD~1"), {"REVERT_HEAD", "MERGE_MSG"}),
}


@pytest.mark.parametrize("name", UNFINISHED)
def test_unfinished_work_is_kept(conflict: Repository, name: str) -> None:
    command, expected = UNFINISHED[name]
    conflict.git(*command, codes=(1, 128))
    assert conflict.git("ls-files", "--unmerged") != b""
    found = stands(conflict)
    assert expected <= names(found)
    for file in found.files:
        assert (conflict.root / ".git" / file.path).read_bytes() == file.data


def test_a_bisection_is_kept_with_its_refs(conflict: Repository) -> None:
    conflict.git("bisect", "start", "HEAD", "HEAD~1")
    assert {"BISECT_LOG", "BISECT_TERMS", "refs/bisect/bad"} <= names(stands(conflict))


@pytest.mark.parametrize("backend", ["--merge", "--apply"])
def test_the_branch_that_a_rebase_will_move_is_kept(conflict: Repository, backend: str) -> None:
    commit = conflict.line("rev-parse", "main")
    conflict.git("rebase", backend, "side", codes=(1,))
    assert stands(conflict).refs == (("refs/heads/main", commit),)


def test_other_branches_are_kept_if_asked_for(repository: Repository) -> None:
    repository.git("branch", "other")
    commit = repository.line("rev-parse", "other")
    found = position(repository.root, also=["refs/heads/other", "refs/heads/no", "refs/heads/main"])
    assert found is not None
    assert found.refs == (("refs/heads/no", None), ("refs/heads/other", commit))


def test_the_labels_of_a_rebase_with_merges_are_kept(conflict: Repository) -> None:
    conflict.git("checkout", "--quiet", "side")
    conflict.git("merge", "--quiet", "--no-edit", "--strategy=ours", "main")
    conflict.git("rebase", "--rebase-merges", "--exec=false", "main~1", codes=(1,))
    assert "refs/rewritten/onto" in names(stands(conflict))


def test_a_linked_worktree_keeps_its_own_unfinished_work(conflict: Repository) -> None:
    conflict.git("worktree", "add", "-q", "--detach", "../other")
    linked = Repository(conflict.root.parent / "other")
    linked.git("merge", "side", codes=(1,))
    assert "MERGE_HEAD" in names(stands(linked))
    assert "MERGE_HEAD" not in names(stands(conflict))


def test_nothing_unfinished_leaves_nothing(repository: Repository) -> None:
    assert stands(repository).files == ()


# The record


def test_a_position_does_not_change_by_looking(repository: Repository) -> None:
    before = sorted(path.stat().st_mtime_ns for path in repository.root.rglob("*"))
    assert position(repository.root) == position(repository.root)
    assert sorted(path.stat().st_mtime_ns for path in repository.root.rglob("*")) == before


def test_nothing_that_the_repository_names_is_run(conflict: Repository, tmp_path: Path) -> None:
    canary, sign = tmp_path / "canary", tmp_path / "it ran"
    canary.write_text(f"#!/bin/sh\necho >> '{sign}'\ncat\n")
    canary.chmod(0o755)
    conflict.git("merge", "side", codes=(1,))
    plant_canary(conflict, canary)
    conflict.git("status", codes=(0, 1, 128))
    assert sign.exists()  # git itself runs it
    sign.unlink()
    found = position(conflict.root)
    assert found is not None
    assert found.commit
    assert tracked(conflict.root)
    assert info_exclude(conflict.root)
    assert not sign.exists()


def plant_canary(repository: Repository, canary: Path) -> None:
    for key in (
        *("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass"),
        *("filter.f.clean", "filter.f.smudge", "filter.f.process", "diff.d.textconv"),
        *("diff.external", "gpg.program", "credential.helper", "alias.status", "merge.m.driver"),
    ):
        repository.git("config", key, str(canary))
    repository.git("config", "core.hooksPath", str(repository.root / "hooks"))
    repository.write(".gitattributes", "* filter=f diff=d merge=m\n")
    for hook in ("post-index-change", "reference-transaction", "post-checkout", "pre-commit"):
        repository.write(f"hooks/{hook}", canary.read_text())
        (repository.root / "hooks" / hook).chmod(0o755)


def test_a_position_is_kept_whole_by_a_capture(conflict: Repository) -> None:
    conflict.git("rebase", "side", codes=(1,))
    found = position(conflict.root, also=["refs/heads/none"])
    objects: dict[bytes, bytes] = {}
    address = pieces.written(digest(b"a snapshot"), (), found, objects.__setitem__)

    def fetch(wanted: Collection[bytes]) -> Mapping[bytes, bytes]:
        return {one: objects[one] for one in wanted}

    kept = capture.read(address, fetch).git
    assert kept is not None
    assert kept.refs == (
        ("refs/heads/main", conflict.line("rev-parse", "main")),
        ("refs/heads/none", None),
    )
    assert capture.position(kept, fetch) == found


def test_a_branch_whose_name_is_no_text_is_kept_by_a_capture(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "-b", "caf\udce9")
    found = position(repository.root, also=["refs/heads/\udcff"])
    objects: dict[bytes, bytes] = {}
    address = pieces.written(digest(b"a snapshot"), (), found, objects.__setitem__)

    def fetch(wanted: Collection[bytes]) -> Mapping[bytes, bytes]:
        return {one: objects[one] for one in wanted}

    kept = capture.read(address, fetch).git
    assert kept is not None
    assert kept.branch == "caf\udce9"
    assert capture.position(kept, fetch) == found
