"""Ignore rules from outside of the workspace: what they ignored then is not a rewind's to touch."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.vault.desk import Desk, put, wipe
from tests.unit.vault.stage import Watched
from tests.unit.workspace.repository import Repository


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    found = Repository(tmp_path / "repository")
    found.git("init", "-q")
    return found


def users(home: Path, top: Path) -> Path:
    return put(home, ".config/git/ignore", "notes\n")


def repositorys(home: Path, top: Path) -> Path:
    return put(top, ".git/info/exclude", "notes\n")


def from_above(home: Path, top: Path) -> Path:
    return put(top, "deep/.gitignore", "notes\n")


@pytest.mark.parametrize(
    ("where", "make"),
    [("", users), ("", repositorys)] + [("deep/er", x) for x in (users, repositorys, from_above)],
)
def test_what_was_ignored_from_outside_stays_when_that_is_over(
    repository: Repository,
    store: Watched,
    tmp_path: Path,
    where: str,
    make: Callable[[Path, Path], Path],
) -> None:
    (repository.root / where).mkdir(parents=True, exist_ok=True)
    rules = make(tmp_path / "home", repository.root)
    desk = Desk(repository.root / where, store)
    desk.write(a="one", notes="of mine")
    one = desk.save(1)
    rules.unlink()
    desk.write(a="two")
    desk.save(2)
    desk.line.rewind(one)
    assert (desk.read("a"), desk.read("notes")) == ("one", "of mine")
    desk.line.undo()
    assert (desk.read("a"), desk.read("notes")) == ("two", "of mine")
    assert desk.vault.store.verify().faults == ()
    desk.vault.close()


def test_what_git_tracks_below_its_top_comes_back_although_rules_ignore_it(
    repository: Repository, store: Watched
) -> None:
    put(repository.root, ".gitignore", "*.log\n")
    (repository.root / "sub/sub").mkdir(parents=True)
    desk = Desk(repository.root / "sub", store)
    desk.write(x_log="one", sub__y_log="one", other_log="ignored")
    repository.git("add", "-f", "sub/x.log", "sub/sub/y.log")
    one = desk.save(1)
    desk.write(x_log="two", other_log="still ignored")
    (desk.work / "sub/y.log").unlink()
    desk.line.rewind(one)
    assert [desk.read(path) for path in ("x.log", "sub/y.log")] == ["one", "one"]
    assert desk.read("other.log") == "still ignored"
    desk.vault.close()


def test_what_git_tracked_comes_back_with_a_directory_that_was_lost(
    repository: Repository, store: Watched, tmp_path: Path
) -> None:
    """The user's own rules are left, and nothing that says what git tracked."""
    users(tmp_path / "home", repository.root)
    desk = Desk(repository.root, store)
    desk.write(a="one", notes="shared", sub__notes="shared")
    repository.git("add", "--force", "--all")
    one, before = desk.save(1), desk.seen()
    wipe(desk.work)
    desk.line.rewind(one)
    assert desk.seen() == {path: at for path, at in before.items() if b".git" not in path}
    desk.vault.close()


@pytest.mark.parametrize("git", [True, False])
def test_what_git_tracked_comes_back_after_it_was_removed_from_the_index(
    repository: Repository, store: Watched, git: bool
) -> None:
    put(repository.root, ".gitignore", "gen/\n")
    repository.commit("gen/a", "one")
    desk = Desk(repository.root, store)
    one = desk.save(1)
    repository.git("rm", "-q", "gen/a")
    put(desk.work, "gen/mine", "ignored")
    desk.line.rewind(one, git=git)
    assert (desk.read("gen/a"), desk.read("gen/mine")) == ("one", "ignored")
    assert not desk.line.rewind(one, git=git).files
    desk.vault.close()


def test_what_git_tracks_no_more_and_rules_ignore_is_saved_before_it_is_replaced(
    repository: Repository, store: Watched
) -> None:
    put(repository.root, ".gitignore", "gen/\n")
    repository.commit("gen/a", "one")
    desk = Desk(repository.root, store)
    one = desk.save(1)
    repository.git("rm", "-q", "--cached", "gen/a")
    assert not desk.line.rewind(one, dry_run=True).files
    desk.write(gen__a="mine, and nowhere else", b="b")
    for told in (desk.line.rewind(one, dry_run=True).files, desk.line.rewind(one).files):
        assert told is not None
        assert (told.changed, told.removed, told.kept) == (("gen/a",), ("b",), ())
    assert desk.read("gen/a") == "one"
    desk.line.undo()
    assert desk.read("gen/a") == "mine, and nowhere else"
    desk.vault.close()


def test_a_workspace_that_its_repository_ignores_knows_where_it_lies(
    repository: Repository, store: Watched
) -> None:
    put(repository.root, ".gitignore", "sub/\n")
    (repository.root / "sub").mkdir()
    desk = Desk(repository.root / "sub", store)
    desk.write(a="one")
    one = desk.save(1)
    desk.write(a="two")
    desk.line.rewind(one)
    assert desk.read("a") == "one"
    desk.vault.close()


def test_rules_that_say_nothing_cost_nothing(repository: Repository, store: Watched) -> None:
    put(repository.root, ".git/info/exclude", "# a comment\n\n")
    desk = Desk(repository.root, store)
    desk.write(a="one")
    saved = desk.vault.get(desk.save(1)).files
    assert saved is not None
    assert saved._read().outer_rules is None
    desk.vault.close()
