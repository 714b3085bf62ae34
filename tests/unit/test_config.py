"""Where a store lies when nobody names one."""

import os
import pwd
import sys
from pathlib import Path

import pytest

import hardsave
from hardsave import config
from hardsave.agents import sessions
from hardsave.config import trust
from hardsave.daemon import spool
from hardsave.errors import Misuse, Unavailable
from hardsave.stores.registry import file_path
from hardsave.vault.workspaces import projects
from tests.unit.repositories import begin_repository


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and nothing in the environment that names a store."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv(config.STORE_VARIABLE, raising=False)
    return home


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "my project"
    begin_repository(project)
    (project / "src" / "deep").mkdir(parents=True)
    return project


# Names of stores


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada@db.example:5432/agents?schema=team&sslmode=require",
        "postgresql://ada:s3cret@db.example:5432/agents?schema=team&sslmode=require",
        "postgres://ada:s3/@cret@db.example:5432/agents?schema=team&sslmode=require",
        "postgresql://ada@db.example:5432/agents?password=s3cret&schema=team&sslmode=require",
        "postgresql://ada@db.example:5432/agents?schema=team&sslmode=require&sslpassword=s3cret",
    ],
)
def test_a_store_has_one_name_with_and_without_a_password(url: str) -> None:
    named = "postgresql://ada@db.example:5432/agents?schema=team&sslmode=require"
    assert config.canonical(url) == named


def test_what_tells_two_stores_apart_is_in_their_names() -> None:
    urls = ["postgresql:///a", "postgresql:///a?schema=b", "postgresql://h/a", "redis://h/1"]
    assert [config.canonical(url) for url in urls] == urls
    assert config.canonical("redis://:s3cret@h/1") == "redis://h/1"
    assert config.canonical("postgresql:///a?password=s3cret") == "postgresql:///a"


# Where data lie


def test_linux_keeps_data_where_the_user_says(home: Path) -> None:
    default = home / ".local" / "share" / "hardsave"
    assert config.data_directory({}, "linux") == default
    assert config.data_directory({"XDG_DATA_HOME": ""}, "linux") == default
    assert config.data_directory({"XDG_DATA_HOME": "relative"}, "linux") == default
    assert config.data_directory({"XDG_DATA_HOME": "/data"}, "linux") == Path("/data/hardsave")


def test_other_systems_keep_data_in_their_own_places(home: Path) -> None:
    mac = home / "Library" / "Application Support" / "hardsave"
    assert config.data_directory({"XDG_DATA_HOME": "/data"}, "darwin") == mac
    assert config.data_directory({"LOCALAPPDATA": "/local"}, "win32") == Path("/local/hardsave")
    fallback = home / "AppData" / "Local" / "hardsave"
    assert config.data_directory({}, "win32") == fallback


@pytest.mark.parametrize("home", ["", "relative", None])
def test_a_home_that_makes_no_sense_is_asked_of_the_system(
    home: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if home is None:
        monkeypatch.delenv("HOME", raising=False)
    else:
        monkeypatch.setenv("HOME", home)
    assert config.home() == Path(pwd.getpwuid(os.getuid()).pw_dir)


def test_who_has_no_home_has_to_name_a_store(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)  # a user that no system knows
    with pytest.raises(Unavailable, match="set HOME, or name a store with HARDSAVE_STORE"):
        projects.store_url({}, project)
    named = {"HARDSAVE_STORE": str(tmp_path / "store.db")}
    url = projects.store_url(named, project)
    with hardsave.open(url) as vault:
        saved = vault.timeline("main").save({}, workspace=project)
    assert saved.files is not None
    assert config.files({}, project) == []
    assert config.data_directory({"XDG_DATA_HOME": "/data"}, "linux") == Path("/data/hardsave")


# Which project


def test_a_project_is_the_repository_around_a_folder(project: Path, tmp_path: Path) -> None:
    for folder in (project, project / "src", project / "src" / "deep"):
        assert config.project_root(folder) == project.resolve()
    assert config.project_root(tmp_path / "home") == (tmp_path / "home").resolve()


def test_a_worktree_is_a_project_of_its_own(project: Path) -> None:
    worktree = project / "worktree"
    worktree.mkdir()
    (worktree / ".git").write_text("gitdir: elsewhere\n")
    assert config.project_root(worktree) == worktree.resolve()


def test_what_a_sandbox_puts_in_the_place_of_a_repository_is_none(project: Path) -> None:
    """Codex makes an empty `.git` in every directory that a command may write to, for as long as it
    runs; other sandboxes put a device or an empty file there."""
    deep = project / "src" / "deep"
    (deep / ".git").mkdir()
    (project / "src" / ".git").touch()
    assert config.project_root(deep) == project.resolve()
    (deep / ".git").rmdir()
    (deep / ".git").symlink_to("/dev/null")
    assert config.project_root(deep) == project.resolve()


def test_a_link_leads_to_the_same_project(project: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(project / "src")
    assert config.project_key(link) == config.project_key(project)


def test_a_projects_key_is_readable_and_its_own(project: Path, tmp_path: Path) -> None:
    key = config.project_key(project)
    assert key.startswith("my-project-")
    twin = tmp_path / "elsewhere" / "my project"
    begin_repository(twin)
    assert config.project_key(twin) != key
    assert config.project_key(twin).startswith("my-project-")
    assert config.project_key(Path("/")).startswith("root-")


def test_a_projects_key_is_a_plain_file_name(tmp_path: Path) -> None:
    for name in ("a/b", "..", "x" * 200, "new\nline", "ünï", "\udcff", "-rf", ".hidden"):
        folder = tmp_path / name
        key = config.project_key(folder)
        assert "/" not in key
        assert "\n" not in key
        assert len(key.encode()) < 200
        assert key not in (".", "..")


# Which store


def test_a_project_has_a_store_of_its_own_outside_of_it(project: Path, home: Path) -> None:
    url = projects.store_url({}, project / "src")
    path = Path(file_path(url))
    assert (
        path == home / ".local/share/hardsave/projects" / config.project_key(project) / "store.db"
    )
    assert project not in path.parents
    assert projects.store_url({}, project) == url


def test_the_environment_names_another_store(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    variable = config.STORE_VARIABLE
    for named, url in (
        ("memory://", "memory://"),
        ("sqlite:///x.db", "sqlite:///x.db"),
        ("runs.db", f"sqlite:///{project}/runs.db"),
        ("/tmp/runs.db", "sqlite:////tmp/runs.db"),  # noqa: S108 # nothing is written there
        ("with space?#%20.db", f"sqlite:///{project}/with space?#%20.db"),
    ):
        assert projects.store_url({variable: named}, project) == url
    assert projects.store_url({variable: ""}, project) == projects.store_url({}, project)


@pytest.mark.parametrize(
    "named",
    [
        "postgresql:ada:secret@db/agents",
        "postgresql:/ada:secret@db/agents",
        "postgres//ada:secret@db/agents",
        "rediss:ada:secret@cache:6379",
    ],
)
def test_a_url_of_a_server_that_lacks_a_slash_is_no_path(project: Path, named: str) -> None:
    """What is saved would lie in a file here, with the password in its name."""
    with pytest.raises(Misuse, match="neither a URL nor a path") as caught:
        projects.store_url({config.STORE_VARIABLE: named}, project)
    assert "secret" not in str(caught.value)
    for path in (f"./{named}", "redis/runs.db", "postgres.db"):
        assert projects.store_url({config.STORE_VARIABLE: path}, project).startswith("sqlite:///")


def test_a_connection_string_of_libpq_is_no_path(project: Path) -> None:
    named = "host=db.example dbname=agents password=secret"
    with pytest.raises(Misuse, match="named by a URL") as caught:
        projects.store_url({config.STORE_VARIABLE: named}, project)
    assert "secret" not in str(caught.value)
    assert projects.store_url({config.STORE_VARIABLE: "./host=a"}, project).startswith("sqlite:///")


@pytest.mark.parametrize("name", ["plain.db", "with space.db", "a%20b.db", "q?x#y.db", "ünï.db"])
def test_a_path_survives_being_a_url(tmp_path: Path, name: str) -> None:
    assert file_path(config.file_url(tmp_path / name)) == str(tmp_path / name)


# Opened


def test_open_without_a_url_opens_the_projects_own_store(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "src")
    with hardsave.open() as vault:
        vault.timeline("main").save({"turn": 1})
    monkeypatch.chdir(project)
    with hardsave.open() as vault:
        assert vault.timeline("main").load() == {"turn": 1}
    assert set(os.listdir(project)) == {".git", "src"}
    data = home / ".local/share/hardsave"
    assert len(list((data / "projects").iterdir())) == 1
    for folder in (data, data / "projects"):
        assert folder.stat().st_mode & 0o077 == 0, folder


def test_open_follows_the_environment(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(config.STORE_VARIABLE, str(tmp_path / "named.db"))
    hardsave.open().close()
    assert (tmp_path / "named.db").is_file()
    assert list(home.iterdir()) == []


def test_an_empty_url_is_not_taken_for_none(home: Path) -> None:
    with pytest.raises(hardsave.Misuse):
        hardsave.open("")
    assert list(home.iterdir()) == []


def test_what_open_refuses_leaves_no_store_behind(tmp_path: Path, home: Path) -> None:
    url = f"sqlite:///{tmp_path / 'refused.db'}"
    with pytest.raises(hardsave.Misuse):
        hardsave.open(url, max_value_bytes=0)
    with pytest.raises(hardsave.Misuse):
        hardsave.open(url, user="two\nlines")
    with pytest.raises(hardsave.Misuse):
        hardsave.open(url, durability="x")  # type: ignore[arg-type] # wrong on purpose
    assert not (tmp_path / "refused.db").exists()


def test_whatever_the_umask_all_that_is_kept_about_a_user_is_theirs_alone(home: Path) -> None:
    (home / "hardsave.yaml").write_text(f"store: {home}/s.db\n")
    file = trust.look(home)
    assert file is not None
    before = os.umask(0)
    try:
        trust.trust(file, os.environ, sys.platform)
        note = spool.begin(spool.folder(os.environ, home), "1-Stop", {"hook": "Stop"})
        sessions.remember_timeline(os.environ, "session", "main")
    finally:
        os.umask(before)
    assert note.path.exists()
    for path in (home / ".local").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_folder_below_a_link_that_leads_nowhere_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError):
        config.make_folder(tmp_path / "link" / "a" / "b")
