"""`hardsave ui` from outside: it serves, opens a browser, and finds a server that runs."""

import json
import os
import re
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.integration.server.conftest import HARDSAVE, LIMIT
from tests.integration.server.test_all_projects import User, user

__all__ = ["user"]


@pytest.fixture
def opened(user: User, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a browser was opened with, a line each."""
    program, found = user.folder / "browser", user.folder / "opened"
    program.write_text(f'#!/bin/sh\necho "$1" >> {found}\n')
    program.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{program} %s")
    found.touch()
    return found


@contextmanager
def ui(user: User, where: Path, *typed: str) -> Iterator[str]:
    """A `hardsave ui` that serves; the link that it prints."""
    with subprocess.Popen(
        [*HARDSAVE, "ui", *typed],
        cwd=where,
        env=os.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait(LIMIT)


def lets_in(link: str) -> bool:
    """Whether a browser gets in by a link, as its form sends it."""
    url, _, key = link.partition("#")[0].partition("/login?key=")
    answer = httpx2.post(f"{url}/login", data={"key": key}, headers={"Origin": url}, timeout=LIMIT)
    return answer.status_code == 303


def again(user: User, where: Path, *typed: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*HARDSAVE, "ui", *typed],
        cwd=where,
        env=os.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def test_it_opens_a_browser_at_this_directorys_project(user: User, opened: Path) -> None:
    shop, _ = user.project("shop"), user.project("blog")
    with ui(user, shop, "--port", "0") as link:
        assert re.fullmatch(
            rf"http://127.0.0.1:\d+/login\?key=hs_\S+#/\?project={user.id('shop')}", link
        )
        assert opened.read_text() == f"{link}\n"
        assert lets_in(link)
        assert not lets_in(link)


def test_a_second_one_opens_the_server_that_runs_with_its_own_project_first(
    user: User, opened: Path
) -> None:
    shop, blog, nowhere = user.project("shop"), user.project("blog"), user.folder / "nowhere"
    nowhere.mkdir()
    with ui(user, shop, "--port", "0") as first:
        second = again(user, blog)
        assert second.returncode == 0
        link = second.stdout.strip()
        assert link.partition("/login")[0] == first.partition("/login")[0]
        assert link.endswith(f"#/?project={user.id('blog')}")
        assert "runs at" in second.stderr
        assert opened.read_text().splitlines() == [first, link]
        assert lets_in(first)
        assert lets_in(link)
        assert again(user, nowhere, "--no-open").stdout.strip().endswith("#/projects")
        assert len(opened.read_text().splitlines()) == 2
        told = json.loads(again(user, blog, "--json").stdout)
        assert lets_in(told["link"])


def test_a_server_of_one_store_is_opened_for_that_store_alone(user: User, opened: Path) -> None:
    shop, blog = user.project("shop"), user.project("blog")
    with user.serving(shop) as server:
        found = again(user, shop).stdout.strip()
        assert found.startswith(server.url)
        assert found.endswith("#/")
        with ui(user, blog, "--port", "0") as link:
            assert not link.startswith(server.url)


def test_what_a_process_left_that_was_killed_is_passed_by(user: User, opened: Path) -> None:
    shop = user.project("shop")
    kept = user.folder / "data" / "hardsave" / "servers.json"
    with user.serving(shop, "--all-projects"):  # is killed at the end
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        (entry,) = json.loads(kept.read_text())["servers"]
        assert entry["store"] is None
    assert json.loads(kept.read_text())["servers"] == [entry]
    with ui(user, shop, "--port", "0") as link:
        assert not link.startswith(entry["url"])
        assert len(json.loads(kept.read_text())["servers"]) == 1
    assert json.loads(kept.read_text())["servers"] == []


def test_another_link_is_for_callers_that_may_do_everything(user: User) -> None:
    shop = user.project("shop")
    of_store = user.token(shop, "admin", "--scope", "admin")
    of_all = user.token(shop, "ops", "--scope", "admin", "--all-projects")
    of_user = user.token(shop, "ada", "--scope", "admin", "--all-projects", "--user", "ada")
    acting = user.token(shop, "act", "--scope", "act", "--all-projects")
    with user.serving(shop, "--all-projects") as server:
        for headers, status in (
            (of_all, 200),
            (server.bearer, 200),
            (of_store, 403),
            (of_user, 403),
            (acting, 403),
            ({}, 401),
        ):
            answer = server.call("POST", "/link", headers=headers, json={})
            assert answer.status_code == status
        made = server.call("POST", "/link", json={}).json()["key"]
        assert lets_in(f"{server.url}/login?key={made}")
