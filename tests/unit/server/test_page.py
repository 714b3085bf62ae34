"""The page without a browser: what its handlers answer, and what they refuse to do."""

import itertools
import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from typing import Any

import pytest

import hardsave
from hardsave import Job
from hardsave.errors import Misuse, NotFound
from hardsave.runtime.jobs.worker import Worker
from hardsave.server.caller import Caller, Scope
from hardsave.server.errors import answer, refusal
from hardsave.server.page import render, routes, views
from hardsave.server.page.render import Links
from hardsave.server.projects import Catalogue, Project
from hardsave.server.public import public_of
from hardsave.server.route import HTML, Allowed, Answer, Call
from hardsave.server.table import find
from tests.unit.cli.jobs_project import agent

HOSTILE = (
    '<script>document.title="taken"</script>"><img src=x onerror=alert(1)>'
    "' onmouseover='alert(1) {{ 7*7 }} javascript:alert(1) \u202eevil\u202c \x1b[31mred\x1b[0m "
)


class Reader(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [about for name, about in self.tags if name == tag]


class Browser:
    """Calls the handlers of the page, as the frame does."""

    def __init__(self, vault: hardsave.Vault) -> None:
        self.vault = vault
        self.scope: Scope = "act"

    def call(self, query: Mapping[str, str], body: dict[str, Any] | None) -> Call:
        caller = Caller("link", None, self.scope, form_token="f0rm")  # noqa: S106 # no secret
        return Call(
            vault=self.vault,
            path={},
            query=query,
            body=body,
            caller=caller,
            request_id="1",
            allowed=Allowed(),
            logins=None,  # type: ignore[arg-type] # the page never asks for it
        )

    def get(self, path: str, **query: str) -> Reader:
        found = find("GET", path)
        assert found.route is not None
        answer = found.route.handler(self.call(query, None)._replace(path=found.path))
        assert answer.status == 200
        return Reader(answer.body)

    def post(self, path: str, job: Job, **more: str) -> Answer:
        found = find("POST", path)
        assert found.route is not None
        body = {"id": job.id, "seen": views.stamp(job), **more}
        return found.route.handler(self.call({}, body))


@pytest.fixture(scope="module")
def worked() -> Iterator[hardsave.Vault]:
    """Jobs in most states, which a test leaves as they are."""
    with hardsave.open("memory://") as vault:
        fill(vault)
        yield vault


@pytest.fixture
def vault() -> Iterator[hardsave.Vault]:
    with hardsave.open("memory://") as vault:
        fill(vault)
        yield vault


def fill(vault: hardsave.Vault) -> None:
    for name in ("fix", "asks", "done"):
        vault.jobs.add(name, f"Do {name}", agent=name, max_turns=10)
    agents = {"fix": agent(breaks=True), "asks": agent(careful=True), "done": agent()}
    Worker(vault, agents).run(until_idle=True)
    vault.jobs.add("new", "Do new")


def test_the_list_shows_every_job_and_first_those_that_need_an_answer(
    worked: hardsave.Vault,
) -> None:
    page = Browser(worked).get("/")
    order = [page.text.index(each) for each in ("Needs an answer", "asks", "All others", "fix")]
    assert order == sorted(order)
    for text in ("turn 1 of 10", "10 %", "100 %", "Do new", "the model is gone", "may it call"):
        assert text in page.text
    assert {about["value"] for about in page.of("progress")} == {"0", "10", "100"}
    assert page.text.count("Needs an answer") == 1
    assert len(page.of("article")) == 4  # each job once
    assert page.of("time")


def test_the_list_is_filtered_by_state(worked: hardsave.Vault) -> None:
    page = Browser(worked).get("/", state="failed")
    assert len(page.of("article")) == 1
    assert "Do fix" in page.text
    current = [about["href"] for about in page.of("a") if "aria-current" in about]
    assert current == ["/?state=failed"]
    with pytest.raises(Misuse, match="a state is one of"):
        Browser(worked).get("/", state="<b>")


def test_the_list_has_pages(vault: hardsave.Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "_JOBS", 2)
    seen: list[str] = []
    query: dict[str, str] = {"state": "queued"}
    for name in ("a", "b", "c", "d"):
        vault.jobs.add(name, "x")
    while True:
        page = Browser(vault).get("/", **query)
        seen += re.findall(r"\b(new|[abcd])\b(?=\s+x|\s+Do)", page.text)
        following = [about["href"] for about in page.of("a") if about.get("rel") == "next"]
        if not following:
            break
        query = dict(re.findall(r"[?&](\w+)=([^&]*)", following[0] or ""))
        query["after"] = query["after"].replace("+", " ")
    assert sorted(seen) == ["a", "b", "c", "d", "new"]


def test_a_job_is_shown_with_all_that_is_known_of_it(worked: hardsave.Vault) -> None:
    page = Browser(worked).get("/jobs", id="done")
    for text in ("4 messages: 2 user, 2 assistant", "Tool calls: 1 note", "all done", "scripted"):
        assert text in page.text
    assert "cannot be resumed: it has succeeded" in page.text
    assert "can be resumed" in Browser(worked).get("/jobs/fix").text
    with pytest.raises(NotFound):
        Browser(worked).get("/jobs", id="other")


def test_hints_are_commands_that_can_be_typed(vault: hardsave.Vault) -> None:
    vault.tasks.cancel("new")
    shown = Browser(vault).get("/jobs", id="new").text
    assert "'hardsave tasks retry' lets it run again from the beginning" in shown
    with pytest.raises(NotFound) as caught:
        Browser(vault).get("/jobs", id="other")
    refused = answer(refusal(caught.value), None, "1", as_page=True)
    assert (refused.status, refused.media_type) == (404, HTML)
    assert "'hardsave jobs list --all' lists them" in Reader(refused.body).text


def test_messages_come_in_pages_and_long_ones_whole_on_their_own(
    vault: hardsave.Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "MESSAGES", 3)
    page = Browser(vault).get("/jobs", id="done")
    assert len(page.of("article")) == 3
    (earlier,) = {about["href"] for about in page.of("a") if "messages=" in (about["href"] or "")}
    assert earlier == "/jobs?id=done&messages=1#conversation"
    first = Browser(vault).get("/jobs", id="done", messages="1")
    assert len(first.of("article")) == 1
    assert "messages=4" in str(first.of("a"))
    monkeypatch.setattr(render, "CUT", 3)
    cut = Browser(vault).get("/jobs", id="done")
    assert "Show all of it (8 characters)" in cut.text
    assert {"href": "/message?id=done&number=4"} in cut.of("a")
    assert "all done" in Browser(vault).get("/message", id="done", number="4").text
    for number in ("0", "5", "-1", "x", "9" * 30):
        with pytest.raises((NotFound, Misuse)):
            Browser(vault).get("/message", id="done", number=number)


def test_what_agents_and_callers_wrote_is_text(vault: hardsave.Vault) -> None:
    id = "<script>alert(1)</script>"
    vault.jobs.add(id, HOSTILE * 700, about={"note": HOSTILE})
    vault.jobs.add("short", HOSTILE)
    plain, browser = Browser(vault).get("/", state="queued"), Browser(vault)
    for page in (
        plain,
        browser.get("/jobs", id="short"),
        browser.get("/jobs", id=id),
        browser.get("/jobs", id=id, full="1"),
        browser.get("/delete", id=id),
    ):
        assert {"script", "img", "iframe", "style"} & {tag for tag, _ in page.tags} == set()
        names = {name for _, about in page.tags for name in about}
        assert not any(name.startswith("on") or name == "style" for name in names)
        links = [about["href"] or "" for about in page.of("a")]
        assert all(href.startswith(("/", "#")) and not href.startswith("//") for href in links)
        assert "\u202e" not in page.text
        assert "\x1b" not in page.text
        assert "49" not in page.text.replace("{{ 7*7 }}", "")
    whole = browser.get("/jobs", id=id, full="1").text
    assert whole.count("\\u202eevil\\u202c \\x1b[31mred") >= 700
    assert len(browser.get("/jobs", id=id).text) < 10_000


@pytest.mark.parametrize("id", ["..", ".", "a/b?c#d&e=f", "fix%2e", "x y"])
def test_an_id_of_any_kind_is_reached_by_the_links_of_the_list(
    vault: hardsave.Vault, id: str
) -> None:
    vault.jobs.add(id, "strange")
    links = [about["href"] for about in Browser(vault).get("/", state="queued").of("a")]
    assert Links()("/jobs", id=id) in links
    assert "strange" in Browser(vault).get("/jobs", id=id).text


def test_acts_are_done_on_the_job_and_answered_with_a_redirect(vault: hardsave.Vault) -> None:
    browser, jobs = Browser(vault), vault.jobs
    done = browser.post("/resume", jobs.get("fix"))
    assert (done.status, done.headers) == (303, (("Location", "/jobs?id=fix~2&done=resumed"),))
    assert (jobs.get("fix").id, jobs.get("fix").state) == ("fix~2", "queued")
    asked = jobs.get("asks")
    done = browser.post("/deny", asked, reason=" too dear ", back="list")
    assert (done.status, done.headers) == (303, (("Location", "/?done=denied"),))
    assert jobs.get("asks").question is None
    assert vault.tasks.history("asks")[-1].kind == "answered"
    done = browser.post("/delete", jobs.get("done"))
    assert (done.status, done.headers) == (303, (("Location", "/?done=deleted"),))
    assert jobs.get("done").checkpoint is None
    assert "Deleted." in browser.get("/", done="deleted").text
    assert "<b>" not in browser.get("/", done="<b>").text


def test_a_queued_job_that_has_saved_nothing_is_taken_out_of_the_queue(
    vault: hardsave.Vault,
) -> None:
    browser, jobs = Browser(vault), vault.jobs
    jobs.add("just-queued", "Fix it")
    assert "Delete…" in browser.get("/jobs", id="just-queued").text
    assert "nothing is saved of it yet" in browser.get("/delete", id="just-queued").text
    done = browser.post("/delete", jobs.get("just-queued"))
    assert (done.status, done.headers) == (303, (("Location", "/?done=cancelled"),))
    assert "Taken out of the queue." in browser.get("/", done="cancelled").text
    assert vault.tasks.get("just-queued").state == "failed"


def test_an_act_on_a_job_that_has_moved_on_is_not_done(vault: hardsave.Vault) -> None:
    browser, jobs = Browser(vault), vault.jobs
    failed, asked = jobs.get("fix"), jobs.get("asks")
    jobs.resume("fix")
    jobs.approve("asks")
    before = vault.tasks.happened()
    for path, job in (
        ("/resume", failed),
        ("/delete", failed),
        ("/approve", asked),
        ("/deny", asked),
        ("/delete", asked),
    ):
        answer = browser.post(path, job)
        assert answer.status == 409
        assert "has moved on since" in Reader(answer.body).text
    assert vault.tasks.happened() == before
    assert jobs.get("fix").id == "fix~2"


@pytest.mark.parametrize(
    "change",
    [
        {"id": "asks~2"},
        {"state": "active"},
        {"attempts": 7},
        {"checkpoint": "chk_other"},
        {"question": "may it call rm?"},
        {"question": None},
    ],
    ids=str,
)
def test_all_that_decides_over_an_act_is_in_the_stamp(
    worked: hardsave.Vault, change: dict[str, Any]
) -> None:
    job = worked.jobs.get("asks")
    assert views.stamp(job) == views.stamp(worked.jobs.get("asks"))
    assert views.stamp(job.replace(**change)) != views.stamp(job)


def test_a_form_without_what_was_seen_does_nothing(vault: hardsave.Vault) -> None:
    answer = Browser(vault).post("/delete", vault.jobs.get("fix"), seen="")
    assert answer.status == 409
    assert vault.jobs.can_resume("fix")
    with pytest.raises(Misuse, match="2,000 characters"):
        Browser(vault).post("/deny", vault.jobs.get("asks"), reason="x" * 2_001)


def test_a_caller_that_may_only_look_sees_no_buttons(worked: hardsave.Vault) -> None:
    browser = Browser(worked)
    assert browser.get("/").of("form")
    browser.scope = "read"
    for page in (browser.get("/"), browser.get("/jobs", id="asks")):
        assert page.of("form") == page.of("button") == []
        assert "may look, not act" in page.text
    acting = {route.path for route in routes.ROUTES if route.scope == "act"}
    assert acting == {"/delete", "/resume", "/approve", "/deny"}


def test_an_answer_to_another_question_is_refused_by_the_job_itself(
    vault: hardsave.Vault,
) -> None:
    for act in (vault.jobs.approve, vault.jobs.deny):
        with pytest.raises(hardsave.errors.Conflict, match="asks something else"):
            act("asks", question="may it call rm?")
    assert vault.jobs.get("asks").question is not None


@pytest.mark.parametrize("path", ["/", "/jobs", "/delete", "/message"])
def test_every_page_can_be_used_without_seeing_it(worked: hardsave.Vault, path: str) -> None:
    query = {} if path == "/" else {"id": "asks", "number": "1"}
    page = Browser(worked).get(path, **query)
    names = [tag for tag, _ in page.tags]
    assert {"html", "main", "header", "h1", "title"} <= {*names}
    assert names.count("h1") == names.count("main") == 1
    assert page.of("html")[0]["lang"] == "en"
    levels = [int(name[1]) for name in names if re.fullmatch("h[1-6]", name)]
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    skip = page.of("a")[0]
    assert skip["href"] == "#main"
    for about in page.of("button"):
        _, job = (about["aria-label"] or "").split(" ")  # a list has many buttons of one name
        assert job in ("asks", "fix")
    ids = [about["id"] for _, about in page.tags if "id" in about]
    assert len(ids) == len({*ids})
    seen = len([about for about in page.of("input") if about.get("type") != "hidden"])
    assert seen == names.count("label")


def test_pages_load_nothing_from_elsewhere(worked: hardsave.Vault) -> None:
    page = Browser(worked).get("/")
    assert {about["href"] for about in page.of("link")} == {"/style.css", "/icon.svg"}
    for path, kind in (("/style.css", "text/css"), ("/icon.svg", "image/svg+xml")):
        found = find("GET", path)
        assert found.route is not None
        answer = found.route.handler(Browser(worked).call({}, None))
        assert answer.media_type.startswith(kind)
        assert b"url(" not in answer.body
        assert b"@import" not in answer.body


class Shelf(Catalogue):
    """Two projects, of which one was written last and in the other one the server was started."""

    is_all = True

    def projects(self) -> tuple[Project, ...]:
        return (
            Project("a-1", HOSTILE, "/srv/a", "memory://", is_here=False),
            Project("b-2", "b", "/srv/b", "memory://", is_here=True),
        )


def test_where_there_are_several_projects_they_are_listed_and_links_name_theirs(
    worked: hardsave.Vault,
) -> None:
    browser = Browser(worked)
    call = browser.call({}, None)._replace(
        catalogue=Shelf(), public=public_of("https://tools.example.com/hardsave")
    )
    page = Reader(routes.top(call).body)
    links = [about["href"] for about in page.of("a")]
    assert links[-2:] == ["/hardsave/?project=b-2", "/hardsave/?project=a-1"]
    assert not page.of("script")
    limited = call._replace(caller=call.caller._replace(projects=frozenset({"a-1"})))
    assert "/srv/b" not in routes.top(limited).body
    here = call._replace(project=call.catalogue.projects()[1], query={"project": "b-2"})
    jobs = Reader(routes.top(here).body)
    assert "Jobs of b" in jobs.text
    every = [about["href"] or "" for about in jobs.of("a")]
    every += [about["action"] or "" for about in jobs.of("form")]
    inside = [each for each in every if each not in ("#main", "/hardsave/")]
    assert inside
    assert [each for each in inside if "project=b-2" not in each] == []


def test_behind_a_proxy_every_link_has_its_prefix(vault: hardsave.Vault) -> None:
    browser = Browser(vault)
    public = public_of("https://tools.example.com/hardsave")
    job = vault.jobs.get("fix")
    seen: list[str] = []
    for path, query in (
        ("/", {}),
        ("/jobs", {"id": "done"}),
        ("/message", {"id": "done", "number": "1"}),
        ("/delete", {"id": "fix"}),
        ("/login", {}),
    ):
        found = find("GET", path)
        assert found.route is not None
        page = Reader(found.route.handler(browser.call(query, None)._replace(public=public)).body)
        seen += [about["href"] or "" for tag in ("a", "link") for about in page.of(tag)]
        seen += [about["action"] or "" for about in page.of("form")]
    refused = answer(refusal(NotFound("gone")), None, "1", as_page=True, prefix=public.prefix)
    seen += [about["href"] or "" for tag in ("a", "link") for about in Reader(refused.body).of(tag)]
    assert len(seen) > 20
    assert [each for each in seen if not each.startswith(("/hardsave/", "#"))] == []
    body = {"id": job.id, "seen": views.stamp(job), "back": "list"}
    acted = routes.resume(browser.call({}, body)._replace(public=public))
    assert dict(acted.headers)["Location"] == "/hardsave/?done=resumed"
