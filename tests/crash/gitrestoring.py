"""A restore of a git position that is struck: two positions, and the processes that go between."""

from pathlib import Path
from typing import Any

from hardsave.errors import HardsaveError
from hardsave.objects.codec import Codec
from hardsave.workspace.git.position import GitPosition, position
from hardsave.workspace.git.unfinished import GitFile, NotCaptured
from hardsave.workspace.git_restore import plan
from hardsave.workspace.git_restore.execution import restore_git
from tests.crash.restoring import Watch
from tests.unit.workspace.git_room import SECONDS, built, present
from tests.unit.workspace.repository import Repository

ID = "chk_struck"


def prepare(folder: str, scenario: str) -> None:
    """A repository in its present, and both positions beside it."""
    repository = _SCENARIOS[scenario](Path(folder, "work"))
    target = position(repository.root)
    assert target is not None
    _AWAY[scenario](repository)
    before = present(repository.root, target)
    assert before is not None
    for name, each in (("target", target), ("before", before)):
        Path(folder, name).write_bytes(Codec().encode(_plain(each)))


def _rebasing(root: Path) -> Repository:
    repository = built(root)
    repository.git("rebase", "side", codes=(1,))
    return repository


def _merging_elsewhere(repository: Repository) -> None:
    """The branch moved, packed and deleted; another one with a merge under way."""
    repository.git("add", "-A")
    repository.git("rebase", "--continue")
    repository.git("checkout", "-q", "-b", "other/branch", "side~1")
    repository.git("pack-refs", "--all")
    repository.git("branch", "-D", "main")
    repository.commit("a", "elsewhere\n")
    repository.git("merge", "-q", "HEAD~1^", codes=(0, 1))
    repository.write("staged", "only in the index\n")
    repository.git("add", "staged")
    (repository.root / ".git/MERGE_HEAD").write_text(repository.line("rev-parse", "side") + "\n")


def _unborn(root: Path) -> Repository:
    repository = Repository(root).init()
    repository.write("a", "x\n")
    repository.git("add", "a")
    return repository


def _born(repository: Repository) -> None:
    repository.git("commit", "-qm", "first")
    repository.git("tag", "-am", "t", "t")
    repository.git("pack-refs", "--all")
    repository.commit("b", "x\n")


_SCENARIOS = {"rebase": _rebasing, "no commits": _unborn}
_AWAY = {"rebase": _merging_elsewhere, "no commits": _born}


def _plain(each: GitPosition) -> dict[str, Any]:
    shared = each.shared_index
    lists: dict[str, Any] = {
        "shared_index": None if shared is None else list(shared),
        "files": [list(file) for file in each.files],
        "not_captured": [list(left) for left in each.not_captured],
    }
    return {**each._asdict(), **lists}


def _position(plain: dict[str, Any]) -> GitPosition:
    shared = plain["shared_index"]
    return GitPosition(**plain)._replace(
        shared_index=None if shared is None else GitFile(*shared),
        files=tuple(GitFile(*file) for file in plain["files"]),
        not_captured=tuple(NotCaptured(*left) for left in plain["not_captured"]),
    )


def positions(folder: Path) -> tuple[GitPosition, GitPosition]:
    before, target = (Codec().decode((folder / name).read_bytes()) for name in ("before", "target"))
    return _position(before), _position(target)


def run(folder: str, at: int | None = None, how: str = "before") -> dict[str, Any]:
    """Restore, struck at one call. The same call recovers."""
    before, target = positions(Path(folder))
    watched = Watch(at, how)
    watched.start()
    error = ""
    try:
        restore_git(Path(folder, "work"), before, target, id=ID, seconds=SECONDS, attempts=1)
    except HardsaveError as failure:
        error = f"{type(failure).__name__}: {failure}"
    return {"calls": watched.calls, "error": error}


def strangers(folder: Path) -> list[str]:
    """What is neither old nor new."""
    before, target = positions(folder)
    now = present(folder / "work", target)
    assert now is not None
    return plan.changed_by_others(now, before, target)
