"""Which projects a server has, and which one a request is about."""

import logging
import os
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

import hardsave
from hardsave import config
from hardsave.errors import Misuse, NotFound
from hardsave.server.caller import Caller
from hardsave.server.projects import Catalogue, Project, chosen, stamp, updated_at
from hardsave.server.tokens import canonical
from hardsave.vault.opening import open_project
from hardsave.vault.workspaces import projects as records

ANY = Caller("any", None, "read")


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("HARDSAVE_STORE", raising=False)
    return os.environ


def made(folder: Path) -> Path:
    """A project with something saved."""
    folder.mkdir(parents=True)
    with open_project(str(folder)) as vault:
        vault.timeline("main").save({"name": folder.name})
    return folder


@pytest.fixture
def shop(tmp_path: Path, environment: Mapping[str, str]) -> Path:
    return made(tmp_path / "shop")


@pytest.fixture
def blog(tmp_path: Path, environment: Mapping[str, str]) -> Path:
    return made(tmp_path / "blog")


@pytest.fixture
def nowhere(tmp_path: Path) -> Path:
    """A directory of which nothing was saved."""
    (tmp_path / "nowhere").mkdir()
    return tmp_path / "nowhere"


def names(catalogue: Catalogue) -> list[str]:
    return [each.name for each in catalogue.projects()]


def test_all_projects_of_the_user_are_found_also_later_ones(
    environment: Mapping[str, str], shop: Path, nowhere: Path, tmp_path: Path
) -> None:
    catalogue = Catalogue.all(environment, nowhere)
    assert names(catalogue) == ["shop"]
    made(tmp_path / "blog")
    blog, found = catalogue.projects()
    assert (blog.name, found.name) == ("blog", "shop")
    assert found.id.startswith("shop-")
    assert found.directory == str(shop)
    assert catalogue.get(found.id) == found
    assert catalogue.of_store(canonical(found.store_url)) == found
    assert not found.is_here
    assert catalogue.default is None


def test_the_project_that_the_server_was_started_in_is_the_default_once_it_has_a_store(
    environment: Mapping[str, str], shop: Path, nowhere: Path
) -> None:
    def default(catalogue: Catalogue) -> tuple[str, bool] | None:
        found = catalogue.default
        return None if found is None else (found.name, found.is_here)

    assert default(Catalogue.all(environment, shop / ".")) == ("shop", True)
    later = Catalogue.all(environment, nowhere)
    assert default(later) is None
    with open_project(str(nowhere)) as vault:
        vault.timeline("main").save({})
    assert default(later) == ("nowhere", True)


def test_a_project_whose_directory_is_gone_is_still_listed(
    environment: Mapping[str, str], shop: Path, blog: Path
) -> None:
    shutil.rmtree(shop)
    assert names(Catalogue.all(environment, blog)) == ["blog", "shop"]


def test_a_fork_that_goes_on_with_a_projects_store_is_no_project_of_its_own(
    environment: Mapping[str, str], shop: Path, nowhere: Path
) -> None:
    (project,) = Catalogue.all(environment, shop).projects()
    assert records.adopt(environment, nowhere, project.store_url)
    started_in_fork = Catalogue.all(environment, nowhere)
    assert names(started_in_fork) == ["shop"]
    assert started_in_fork.default is not None
    assert (started_in_fork.default.id, started_in_fork.default.is_here) == (project.id, True)
    fork = config.folder_of(environment, nowhere.resolve(), sys.platform)
    assert (fork / records.RECORD).exists()
    assert started_in_fork.get(fork.name) is None


def test_a_folder_without_a_record_is_left_out_and_that_is_said_once(
    environment: Mapping[str, str], shop: Path, blog: Path, caplog: pytest.LogCaptureFixture
) -> None:
    catalogue = Catalogue.all(environment, blog)
    found = next(each for each in catalogue.projects() if each.name == "shop")
    record = Path(found.store_url.removeprefix("sqlite:///")).with_name(records.RECORD)
    with caplog.at_level(logging.WARNING):
        for spoil in (lambda: record.write_text("{"), record.unlink):
            spoil()
            assert names(catalogue) == ["blog"]
            assert catalogue.get(found.id) is None
    assert caplog.text.count("is left out") == 1
    assert found.id in caplog.text
    made_again = open_project(str(shop))
    made_again.close()
    assert names(catalogue) == ["blog", "shop"]


@pytest.mark.parametrize(
    "id", ["", ".", "..", "../projects", "a/b", "/", "nul\0", "x" * 5_000, "nosuch", "é"]
)
def test_what_is_no_id_of_a_project_leads_nowhere(
    environment: Mapping[str, str], shop: Path, id: str
) -> None:
    assert Catalogue.all(environment, shop).get(id) is None


def test_a_path_that_leads_to_a_project_is_not_its_id(
    environment: Mapping[str, str], shop: Path
) -> None:
    catalogue = Catalogue.all(environment, shop)
    (project,) = catalogue.projects()
    for id in (f"{project.id}/", f"./{project.id}", f"x/../{project.id}"):
        assert catalogue.get(id) is None


def test_a_store_that_was_named_is_one_more_project(
    environment: Mapping[str, str], shop: Path, nowhere: Path, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/central.db"
    named = {**environment, "HARDSAVE_STORE": url}
    catalogue = Catalogue.all(named, nowhere)
    assert names(catalogue) == ["shop"]
    hardsave.open(url).close()
    assert names(catalogue) == ["central", "shop"]
    assert catalogue.default is not None
    assert catalogue.default.store_url == url
    assert catalogue.get(catalogue.default.id) == catalogue.default
    assert catalogue.of_store(canonical(url)) == catalogue.default
    assert catalogue.of_store("sqlite:////elsewhere.db") is None


def test_a_store_on_a_server_is_called_like_the_directory(
    environment: Mapping[str, str], nowhere: Path
) -> None:
    urls = [f"postgresql://agent:{word}@db/saves" for word in ("one", "two")]
    found = [Catalogue.one(url, nowhere).default for url in (*urls, "redis://db:6379/1")]
    assert [project and project.name for project in found] == [nowhere.name] * 3
    ids = [project and project.id for project in found]
    assert ids[0] == ids[1] != ids[2]  # a password is no part of it
    (among_all,) = Catalogue.all({**environment, "HARDSAVE_STORE": urls[0]}, nowhere).projects()
    assert among_all == found[0]


def test_one_store_has_the_id_that_it_has_among_all(
    environment: Mapping[str, str], shop: Path
) -> None:
    (among_all,) = Catalogue.all(environment, shop).projects()
    one = Catalogue.one(among_all.store_url, shop)
    assert one.projects() == (among_all,) == (one.default,)
    assert one.get(among_all.id) == among_all
    assert one.get("other") is None
    assert one.of_store(canonical(among_all.store_url)) == among_all
    assert one.of_store("*") is None


def test_nothing_is_read_or_made_by_looking(
    environment: Mapping[str, str], shop: Path, tmp_path: Path
) -> None:
    def files() -> list[tuple[str, int]]:
        return [(str(each), each.stat().st_mtime_ns) for each in sorted(tmp_path.rglob("*"))]

    before = files()
    catalogue = Catalogue.all(environment, tmp_path)
    catalogue.stamps()
    assert names(catalogue) == ["shop"]
    assert files() == before


def test_a_stamp_changes_with_each_write_of_its_project_alone(
    environment: Mapping[str, str], shop: Path, blog: Path
) -> None:
    catalogue = Catalogue.all(environment, shop)
    of_blog, of_shop = catalogue.projects()
    time.sleep(0.06)  # until a later write leaves another time, whatever the file system
    before = catalogue.stamps()
    assert before == catalogue.stamps()
    with open_project(str(shop)) as vault:
        vault.timeline("main").save({"more": 1})
        after = catalogue.stamps()
    assert after[of_shop.id] != before[of_shop.id]
    assert after[of_blog.id] == before[of_blog.id] == stamp(of_blog)
    newer, older = updated_at(of_shop), updated_at(of_blog)
    assert newer is not None
    assert older is not None
    assert newer > older


def test_a_store_that_is_in_no_file_has_no_stamp() -> None:
    assert stamp(Project("memory", "memory", "", "memory://", is_here=True)) is None
    assert updated_at(Project("gone", "gone", "", "sqlite:////no/such.db", is_here=True)) is None


def test_a_request_names_its_project_or_is_about_the_default(
    environment: Mapping[str, str], shop: Path, blog: Path, nowhere: Path
) -> None:
    catalogue = Catalogue.all(environment, shop)
    of_blog, of_shop = catalogue.projects()
    assert chosen(catalogue, ANY, {"project": of_blog.id}) == of_blog
    assert chosen(catalogue, ANY, {}) == of_shop
    with pytest.raises(NotFound, match="/api/v1/projects"):
        chosen(catalogue, ANY, {"project": "nosuch"})
    without = Catalogue.all(environment, nowhere)
    with pytest.raises(Misuse, match=r"\?project="):
        chosen(without, ANY, {})


def test_a_project_that_a_caller_may_not_see_is_answered_like_one_that_is_not_there(
    environment: Mapping[str, str], shop: Path, blog: Path
) -> None:
    catalogue = Catalogue.all(environment, shop)
    of_blog, of_shop = catalogue.projects()
    limited = ANY._replace(projects=frozenset({of_blog.id}))
    assert chosen(catalogue, limited, {}) == of_blog
    assert chosen(catalogue, limited, {"project": of_blog.id}) == of_blog
    told = []
    for id in (of_shop.id, "nosuch-1"):
        with pytest.raises(NotFound) as caught:
            chosen(catalogue, limited, {"project": id})
        told.append(str(caught.value).replace(id, "ID"))
    assert told[0] == told[1]
    both = ANY._replace(projects=frozenset({of_blog.id, "gone"}))
    with pytest.raises(Misuse):  # the default is none of them
        chosen(catalogue, both, {})
