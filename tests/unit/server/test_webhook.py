"""`POST /webhook`: what may be queued, and that nothing in a body leads elsewhere."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.server.route import Allowed
from tests.unit.server.job_server import Client, serving


class Site:
    """A server that allows one agent and one directory."""

    def __init__(self, folder: Path, url: str, call: Client) -> None:
        self.folder, self.url, self.call = folder, url, call
        self.shop = folder / "shop"

    def submit(self, **changes: Any) -> tuple[int, Any]:
        asked = {"task": "Fix it", "agent": "coder", "workspace": str(self.shop), **changes}
        body = {name: value for name, value in asked.items() if value is not ...}
        return self.call("POST", "webhook", body=body)

    @property
    def jobs(self) -> list[hardsave.Job]:
        with hardsave.open(self.url) as vault:
            return [*vault.jobs.find()]


def allowed(folder: Path) -> Allowed:
    return Allowed(("coder",), ((folder / "shop").resolve(),))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    (tmp_path / "shop").mkdir()
    url = f"sqlite:///{tmp_path}/store.db"
    hardsave.open(url).close()
    with serving(url, tmp_path, allowed=allowed(tmp_path)) as call:
        yield Site(tmp_path, url, call)


def test_a_job_is_queued_for_an_agent_and_a_workspace_of_the_list(site: Site) -> None:
    url = "https://example.com/done"
    status, told = site.submit(callback={"url": url})
    assert (status, told.keys()) == (202, {"jobId", "status", "message"})
    assert told["status"] == "waiting"
    [job] = site.jobs
    assert (job.id, job.state, job.text) == (told["jobId"], "queued", "Fix it")
    assert (job.spec.agent, job.spec.workspace) == ("coder", str(site.shop))
    assert (job.spec.callback, job.spec.model) == (url, None)


def test_each_call_queues_a_job_of_its_own(site: Site) -> None:
    ids = {site.submit()[1]["jobId"] for _ in range(3)}
    assert ids == {job.id for job in site.jobs}
    assert len(ids) == 3


def test_another_spelling_of_a_workspace_is_stored_as_the_servers_own(site: Site) -> None:
    link = site.folder / "link"
    link.symlink_to(site.shop)
    shop = str(site.shop)
    for spelling in (f"{shop}/", f"{shop}/../shop", f"{shop}/./", f"/{shop}", str(link)):
        assert site.submit(workspace=spelling)[0] == 202
    assert {job.spec.workspace for job in site.jobs} == {shop}


def test_nothing_leads_out_of_the_list(site: Site) -> None:
    (site.folder / "secret").mkdir()
    (site.shop / "out").symlink_to(site.folder / "secret")
    (site.shop / "src").mkdir()
    (site.folder / "loop").symlink_to(site.folder / "loop")
    elsewhere = [
        f"{site.shop}/..",
        f"{site.shop}/out",
        f"{site.shop}/src",
        f"{site.shop}/../secret",
    ]
    odd = [".", "shop", "~/shop", "//", "/", f"{site.folder}/loop", "/a\0b", f"{site.shop}\0"]
    odd += ["x" * 5000, "/" + "x" * 5000, "file://" + str(site.shop), os.path.relpath(site.shop)]
    for place in elsewhere + odd:
        status, told = site.submit(workspace=place)
        assert (status, told.keys()) == (403, {"error", "message"}), place
        assert str(site.shop) in told["message"]
        assert "secret" not in told["message"]
    assert site.jobs == []


def test_a_workspace_that_now_leads_elsewhere_is_refused(site: Site) -> None:
    (site.folder / "secret").mkdir()
    site.shop.rmdir()
    site.shop.symlink_to(site.folder / "secret")
    assert site.submit()[0] == 403
    assert site.jobs == []


REFUSED: list[tuple[dict[str, Any], int]] = [
    ({"agent": "other"}, 403),
    ({"agent": "coder "}, 403),
    ({"agent": "os:system"}, 403),
    *(({name: ...}, 400) for name in ("task", "agent", "workspace")),
    *(({name: 7}, 400) for name in ("task", "agent", "workspace", "callback")),
    *(({name: "x"}, 400) for name in ("model", "max_turns", "id", "on_success", "about")),
    ({"callback": {"url": "file:///etc/passwd"}}, 400),
    ({"callback": {"url": "http://"}}, 400),
    ({"task": " \n"}, 400),
]


def test_what_is_refused_queues_nothing(site: Site) -> None:
    for changes, status in REFUSED:
        known, told = site.submit(**changes)
        assert (known, told.keys()) == (status, {"error", "message"}), changes
    assert site.jobs == []


def test_an_empty_body_is_refused(site: Site) -> None:
    assert site.call("POST", "webhook")[0] == 400
    assert site.call("POST", "webhook", body={})[0] == 400


def test_the_list_is_not_told_to_a_caller_without_a_token(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    url = f"sqlite:///{tmp_path}/store.db"
    hardsave.open(url).close()
    options: dict[str, Any] = {"allowed": allowed(tmp_path), "open_loopback": True, "token": None}
    with serving(url, tmp_path, **options) as call:
        site = Site(tmp_path, url, call)
        status, told = site.submit(workspace="/")
        assert status == 403
        assert str(tmp_path) not in told["message"]
        assert "coder" not in site.submit(agent="other")[1]["message"]
        assert site.submit()[0] == 202
