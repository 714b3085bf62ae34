"""A token of one project sees nothing of another one, by any route of the API."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from hardsave.vault.opening import open_project
from tests.integration.server.conftest import Server, environment
from tests.integration.server.site import rows
from tests.integration.server.test_all_projects import User
from tests.unit.server.api_client import ApiClient, Got
from tests.unit.server.api_samples import Sample, samples
from tests.unit.server.api_store import Things, populate

NOSUCH = "nosuch-1a2b3c4d5e6f7081"


class Two(NamedTuple):
    """A server with two projects: `shop` has something of everything, `blog` a timeline."""

    server: Server
    shop: str  # their ids
    blog: str
    things: Things  # of `shop`
    store: Path  # of `shop`
    of_blog: dict[str, str]
    of_all: dict[str, str]

    def client(self, headers: dict[str, str]) -> ApiClient:
        port = urlsplit(self.server.url).port
        assert port is not None
        return ApiClient(port, headers["Authorization"].removeprefix("Bearer "))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    folder = tmp_path_factory.mktemp("two")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(folder).items():
            patch.setenv(name, value)
        patch.delenv("HARDSAVE_STORE", raising=False)
        user = User(folder)
        for name in ("shop", "blog"):
            (folder / name).mkdir()
        logging.disable(logging.ERROR)  # some jobs have failed, and say so
        with open_project(str(folder / "shop")) as vault:
            things = populate(vault, folder / "shop")
        logging.disable(logging.NOTSET)
        with open_project(str(folder / "blog")) as vault:
            vault.timeline("posts").save({"messages": ["post"]})
        of_blog = user.token(folder / "blog", "of-blog", "--scope", "admin")
        of_all = user.token(folder / "shop", "of-all", "--all-projects", "--scope", "admin")
        shop, blog = user.id("shop"), user.id("blog")
        store = folder / "data" / "hardsave" / "projects" / shop / "store.db"
        with user.serving(folder / "shop", "--all-projects") as server:
            yield Two(server, shop, blog, things, store, of_blog, of_all)


def about(sample: Sample, project: str) -> Sample:
    return sample._replace(query={**sample.query, "project": project})


def nameless(got: Got, project: str) -> tuple[int, str]:
    text = got.content.decode().replace(project, "PROJECT")
    return got.status, re.sub(r'"request_id": "\w+"', "", text)


def test_another_project_is_answered_like_one_that_is_not_there(two: Two) -> None:
    before = rows(two.store)
    wrong = []
    with two.client(two.of_blog) as client:
        for sample in samples(two.things):
            seen = client.try_sample(about(sample, two.shop))
            unseen = client.try_sample(about(sample, NOSUCH))
            is_same = nameless(seen, two.shop) == nameless(unseen, NOSUCH)
            if not is_same or seen.status != 404:
                wrong.append((sample.route.method, sample.path, seen, unseen))
    assert wrong == []
    assert rows(two.store) == before


def test_a_token_of_one_project_is_told_of_that_one_alone(two: Two) -> None:
    with two.client(two.of_blog) as client, two.client(two.of_all) as all_of_them:
        own = [each["id"] for each in client.get("/api/v1/projects")["items"]]
        assert own == [two.blog]
        every = [each["id"] for each in all_of_them.get("/api/v1/projects")["items"]]
        assert sorted(every) == sorted([two.shop, two.blog])
        for sample in samples(two.things):
            if sample.route.method == "GET" and not sample.query:
                told = client.try_sample(sample).content.decode()
                assert two.things.word not in told, sample.path
                assert two.shop not in told, sample.path
        posts = client.get("/api/v1/timelines")["items"]
        assert [each["timeline"] for each in posts] == ["posts"]


def test_a_token_of_all_projects_does_everything_in_each(two: Two) -> None:
    wrong = []
    with two.client(two.of_all) as client:
        for sample in samples(two.things):
            assert sample.route.spec is not None
            if sample.route.path == "/api/v1/jobs" and sample.body is not None:
                continue  # this server was told to allow no agent
            got = client.try_sample(about(sample, two.shop))
            if got.status not in (sample.route.spec.status, 206):
                wrong.append((sample.route.method, sample.path, got))
    assert wrong == []
