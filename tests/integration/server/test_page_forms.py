"""Forms of the page, as a program sends them: no browser is needed to be refused."""

import re

from hardsave.runtime.jobs.worker import Worker
from tests.integration.server.conftest import Server
from tests.unit.cli.jobs_project import agent


def test_what_the_page_is_not_asked_for_by_its_own_form_is_refused(server: Server) -> None:
    """With the cookie alone, as a page of another site would send it."""
    with server.vault() as vault:
        vault.jobs.add("fix", "Fix it", max_turns=10)
        Worker(vault, {"default": agent(breaks=True)}).run(until_idle=True)
    login = server.call(
        "POST",
        "/login",
        headers={"Origin": server.url, "Content-Type": "application/x-www-form-urlencoded"},
        content=f"key={server.link.partition('key=')[2]}",
    )
    cookie = login.headers["set-cookie"].partition(";")[0]
    page = server.call("GET", "/", headers={"Cookie": cookie}).text
    token = re.findall(r'name="form_token" value="([^"]+)"', page)[0]
    seen = re.findall(r'name="id" value="fix">\s*<input[^>]*name="seen" value="([^"]+)"', page)[0]
    form = f"id=fix&seen={seen}"
    headers = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
    for origin, content in (
        (server.url, form),
        (server.url, f"{form}&form_token=wrong"),
        ("http://evil.example", f"{form}&form_token={token}"),
        ("null", f"{form}&form_token={token}"),
    ):
        answer = server.call(
            "POST", "/resume", headers={**headers, "Origin": origin}, content=content
        )
        assert answer.status_code == 403
    with server.vault() as vault:
        assert vault.jobs.get("fix").id == "fix"
    answer = server.call(
        "POST",
        "/resume",
        headers={**headers, "Origin": server.url},
        content=f"{form}&form_token={token}",
    )
    assert answer.status_code == 303
    with server.vault() as vault:
        assert vault.jobs.get("fix").id == "fix~2"
