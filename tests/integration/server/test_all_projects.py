"""`hardsave serve --all-projects` from outside: several stores behind one server."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from hardsave.runtime.jobs.worker import Worker
from hardsave.server.tokens import TokenFile
from hardsave.vault.opening import open_project
from tests.integration.server.conftest import HARDSAVE, LIMIT, Server, environment
from tests.unit.cli.jobs_project import agent


class User:
    """A user with projects below `folder`, each with a job of the project's name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, where: Path, *typed: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            typed,
            cwd=where,
            env=environment(self.folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )

    def project(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir()
        with open_project(str(folder)) as vault:
            vault.jobs.add(name, "Do it", agent="fails")
            Worker(vault, {"fails": agent(breaks=True)}).run(until_idle=True)
        return folder

    def id(self, name: str) -> str:
        every = self.folder / "data" / "hardsave" / "projects"
        return next(each.name for each in every.iterdir() if each.name.startswith(f"{name}-"))

    def token(self, where: Path, *typed: str) -> dict[str, str]:
        made = self.run(where, *HARDSAVE, "token", "add", *typed, "--json")
        assert made.returncode == 0, made.stderr
        return {"Authorization": f"Bearer {json.loads(made.stdout)['token']}"}

    @contextmanager
    def serving(self, where: Path, *typed: str) -> Iterator[Server]:
        with (
            open(self.folder / "stderr", "w") as errors,
            subprocess.Popen(
                [*HARDSAVE, "serve", "--json", "--port", "0", *typed],
                cwd=where,
                env=environment(self.folder),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            ) as process,
        ):
            try:
                yield Server(process, where, "")
            finally:
                process.kill()


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> User:
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("HARDSAVE_STORE", raising=False)
    return User(tmp_path)


def jobs(server: Server, query: str = "", **more: dict[str, str]) -> list[str] | int:
    answer = server.call("GET", f"/checkpoints{query}", **more)
    if answer.status_code != 200:
        return answer.status_code
    return [each["jobId"] for each in answer.json()["checkpoints"]]


def test_a_request_names_one_of_all_projects(user: User) -> None:
    shop, nowhere = user.project("shop"), user.folder / "nowhere"
    nowhere.mkdir()
    with user.serving(nowhere, "--all-projects") as server:
        assert jobs(server, f"?project={user.id('shop')}") == ["shop"]
        unnamed = server.call("GET", "/checkpoints")
        assert (unnamed.status_code, "?project=" in unnamed.json()["message"]) == (400, True)
        user.project("blog")
        assert jobs(server, f"?project={user.id('blog')}") == ["blog"]
        assert jobs(server, "?project=nosuch") == 404
        for query in ("", f"?project={user.id('shop')}", "?project=nosuch"):  # to a stranger alike
            assert server.call("GET", f"/readyz{query}", headers={}).status_code == 200
    assert list((user.folder / "data" / "hardsave" / "projects").glob("nowhere*")) == []
    with user.serving(shop, "--all-projects") as server:  # the default is where it was started
        assert jobs(server) == ["shop"]
        assert jobs(server, f"?project={user.id('blog')}") == ["blog"]


def test_a_token_of_one_store_shows_that_project_alone(user: User) -> None:
    shop, blog = user.project("shop"), user.project("blog")
    of_blog, of_all = user.token(blog, "ci"), user.token(shop, "ops", "--all-projects")
    with user.serving(shop, "--all-projects") as server:
        assert jobs(server, headers=of_blog) == ["blog"]
        assert jobs(server, f"?project={user.id('blog')}", headers=of_blog) == ["blog"]
        about = server.call("GET", "/api/v1", headers=of_blog).json()
        assert about["project"] == user.id("blog")  # of which a request is that names none
        theirs = server.call("GET", f"/checkpoints?project={user.id('shop')}", headers=of_blog)
        nothing = server.call("GET", "/checkpoints?project=nosuch", headers=of_blog)
        assert theirs.status_code == nothing.status_code == 404
        assert theirs.text.replace(user.id("shop"), "nosuch") == nothing.text
        assert jobs(server, headers=of_all) == ["shop"]
        assert jobs(server, f"?project={user.id('blog')}", headers=of_all) == ["blog"]
    with user.serving(shop) as server:  # of one store
        assert jobs(server, headers=of_blog) == 401
        assert jobs(server, headers=of_all) == ["shop"]
        assert jobs(server, f"?project={user.id('shop')}") == ["shop"]
        assert jobs(server, f"?project={user.id('blog')}") == 404


def test_a_browser_chooses_a_project_and_acts_on_its_jobs(user: User) -> None:
    shop = user.project("shop")
    user.project("blog")
    with (
        user.serving(shop, "--all-projects") as server,
        httpx2.Client(base_url=server.url, timeout=LIMIT) as browser,
    ):
        own = {"Origin": server.url}
        key = server.link.partition("key=")[2]
        browser.post("/login", data={"key": key}, headers=own)
        listed = browser.get("/api/v1/projects").json()["items"]
        assert [each["id"] for each in listed] == [user.id("blog"), user.id("shop")]
        own["X-Hardsave-Form"] = browser.get("/api/v1").json()["form_token"]
        act = "/api/v1/jobs/resume"
        done = browser.post(f"{act}?project={user.id('blog')}", json={"id": "blog"}, headers=own)
        assert (done.status_code, done.json()["id"]) == (200, "blog~2")
        other = browser.post(f"{act}?project={user.id('shop')}", json={"id": "blog"}, headers=own)
        assert other.status_code == 404


def test_a_store_that_is_damaged_takes_no_other_project_along(user: User) -> None:
    shop, _ = user.project("shop"), user.project("blog")
    for file in (user.folder / "data/hardsave/projects" / user.id("blog")).glob("store.db*"):
        file.write_bytes(b"no store" * 1_000)
    with user.serving(shop, "--all-projects") as server:
        broken = server.call("GET", f"/checkpoints?project={user.id('blog')}")
        assert broken.status_code in (500, 503)
        assert jobs(server) == ["shop"]
        assert server.call("GET", "/healthz", headers={}).status_code == 200


def test_tokens_for_all_projects_are_listed_and_revoked_anywhere(user: User) -> None:
    shop, blog = user.project("shop"), user.project("blog")
    user.token(shop, "ops", "--all-projects")
    user.token(shop, "ci")
    listed = user.run(blog, *HARDSAVE, "token", "list")
    assert "ops" in listed.stdout
    assert "all projects" in listed.stdout
    assert "ci" not in listed.stdout
    data = json.loads(user.run(shop, *HARDSAVE, "token", "list", "--json").stdout)
    assert [(each["name"], each["all_projects"]) for each in data] == [("ops", True), ("ci", False)]
    assert user.run(blog, *HARDSAVE, "token", "revoke", "ops").returncode == 0
    kept = TokenFile(user.folder / "data" / "hardsave" / "tokens.json").every()
    assert [each.name for each in kept] == ["ci"]
    both = user.run(shop, *HARDSAVE, "token", "add", "x", "--all-projects", "--store", "x.db")
    assert (both.returncode, "leave one out" in both.stderr) == (2, True)


def test_past_this_machine_all_projects_need_a_token_that_counts(user: User) -> None:
    shop = user.project("shop")
    typed = [*HARDSAVE, "serve", "--port", "0", "--all-projects", "--host", "0.0.0.0"]  # noqa: S104
    refused = user.run(shop, *typed)
    assert (refused.returncode, "token add NAME --all-projects" in refused.stderr) == (2, True)
    both = user.run(shop, *HARDSAVE, "serve", "--all-projects", "--store", "x.db")
    assert (both.returncode, "leave one out" in both.stderr) == (2, True)
