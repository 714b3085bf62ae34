"""Home and search, in a real Chromium over a real server."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

import hardsave
from hardsave.vault.opening import open_project
from tests.integration.server.browser import NEEDS_CHROMIUM, Visitor, visiting
from tests.integration.server.conftest import Server, Start, environment, starting
from tests.integration.server.test_all_projects import User, user
from tests.integration.server.work_story import ASKS, fill, session, work

pytestmark = NEEDS_CHROMIUM
__all__ = ["user"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server over something of everything, for tests that only look at it."""
    with starting(tmp_path_factory.mktemp("filled")) as start:
        server = start()
        with server.vault() as vault:
            fill(vault, server.store, server.folder)
        yield server


def rows(visitor: Visitor) -> Locator:
    return visitor.page.locator(".session")


def row(visitor: Visitor, name: str) -> Locator:
    return visitor.page.locator(f'.session[data-timeline="{name}"]')


def top(element: Locator) -> float:
    box = element.bounding_box()
    assert box is not None
    return box["y"]


def test_a_session_is_told_with_all_that_is_known_of_it(chromium: Browser, filled: Server) -> None:
    with visiting(chromium, filled) as visitor:
        visitor.go("")
        one = row(visitor, "claude-1")
        for text in (
            "Fix the parser",
            "claude-1",
            "Claude Code",
            "running",
            "1 step",
            "$1.50",
        ):
            expect(one).to_contain_text(text)
        expect(row(visitor, "codex-1")).to_contain_text("failed")
        expect(row(visitor, "broken")).to_be_visible()
        expect(visitor.page.locator(".heading [role=status]")).to_have_text("6 sessions")
        one.click()
        expect(visitor.page.get_by_role("heading", level=1)).to_have_text("Fix the parser")


def test_a_session_tells_how_many_files_it_has_changed_since_it_began(
    chromium: Browser, start: Start
) -> None:
    server = start()
    place = server.folder / "place"
    place.mkdir()
    (place / "goes").touch()
    with server.vault() as vault, visiting(chromium, server) as visitor:
        line = vault.timeline("main")
        line.save({"turn": 1}, workspace=place)
        vault.timeline("without").save({})
        visitor.go("")
        expect(row(visitor, "main")).to_contain_text("1 step")
        (place / "goes").unlink()
        for turn in (2, 3):
            (place / f"new {turn}").touch()
            line.save({"turn": turn}, workspace=place)
        tally = row(visitor, "main").locator(".tally")
        expect(tally).to_have_text("+2 added \N{MINUS SIGN}1 removed")
        line.save({"turn": 4}, workspace=place)  # the last step changes none
        expect(row(visitor, "main")).to_contain_text("4 steps")
        expect(tally).to_have_text("+2 added \N{MINUS SIGN}1 removed")
        expect(row(visitor, "without").locator(".tally")).to_have_text("")
        row(visitor, "main").get_by_role("link").focus()
        (place / "more").touch()
        line.save({"turn": 5}, workspace=place)
        expect(tally).to_have_text("+3 added \N{MINUS SIGN}1 removed")
        expect(row(visitor, "main").get_by_role("link")).to_be_focused()


def test_filters_stand_in_the_address_and_hold_over_a_reload(
    chromium: Browser, filled: Server
) -> None:
    with visiting(chromium, filled) as visitor:
        page = visitor.page
        visitor.go("")
        page.get_by_label("failed only").check()
        expect(rows(visitor)).to_have_count(2)
        page.get_by_label("Agent").select_option("Codex")
        expect(rows(visitor)).to_have_count(1)
        expect(page).to_have_url(re.compile("status=failed&prefix=codex-"))
        page.reload()
        expect(rows(visitor)).to_have_count(1)
        expect(page.get_by_label("failed only")).to_be_checked()
        expect(page.get_by_label("Agent")).to_have_value("codex-")
        page.get_by_label("Filter by title or name").fill("nosuch")
        expect(page.get_by_text("No session is like that.")).to_be_visible()
        visitor.button("Show all").click()
        expect(rows(visitor)).to_have_count(6)
        page.get_by_label("Filter by title or name").fill("docs")
        expect(rows(visitor)).to_have_count(1)
        page.go_back()  # each letter is no step of its own
        expect(page).not_to_have_url(re.compile("text=doc$"))


def test_what_is_old_is_left_out_by_the_filter_of_time(chromium: Browser, start: Start) -> None:
    server = start()
    now = datetime.now(UTC)

    def saved(name: str, ago: timedelta) -> None:
        moment = int((now - ago).timestamp() * 1e6)
        with hardsave.open(server.store) as opened:
            store = opened._context.store
            hardsave.Vault(store, clock=lambda: moment).timeline(name).save({})

    for name, ago in (
        ("old", timedelta(days=20)),
        ("late", timedelta(days=3)),
        ("new", timedelta()),
    ):
        saved(name, ago)
    with visiting(chromium, server) as visitor:
        visitor.go("", days="7")
        expect(rows(visitor)).to_have_count(2)
        visitor.page.get_by_label("Time").select_option("Last day")
        expect(rows(visitor)).to_have_count(1)
        visitor.page.get_by_label("Time").select_option("Last month")
        expect(rows(visitor)).to_have_count(3)


def test_what_needs_a_person_comes_first_and_leads_there(
    chromium: Browser, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start()
    with server.vault() as vault:
        fill(vault, server.store, server.folder)
    missed = tmp_path / "data" / "hardsave" / "hooks" / "any"
    missed.mkdir(parents=True)
    (missed / "1.json").write_text(json.dumps({"hook": "Stop", "why": "the disk was full"}))
    with visiting(chromium, server) as visitor:
        visitor.go("")
        needs = visitor.see(".needs")
        expect(needs.locator("h2")).to_have_text("Needs you 7")
        needs.get_by_role("button", name="2 more").click()
        for label, text in (
            ("unknown step", "push: step 'push#1' was begun"),
            ("asks", f"careful: {ASKS}"),
            ("asks", "deploy: Deploy to production now?"),
            ("missed", "1 save of hooks missed"),
            ("job failed", "broken: OSError: the model is gone"),
            ("task failed", "mail: "),
            ("failed", "Build is slow"),
        ):
            found = needs.locator(".need", has_text=text)
            expect(found.locator(".state")).to_have_text(label)
        needs.get_by_role("button", name="Put away: mail").click()
        expect(needs.locator("h2")).to_have_text("Needs you 6")
        visitor.page.reload()
        expect(visitor.page.locator(".needs h2")).to_have_text("Needs you 6")
        with server.vault() as vault:
            vault.jobs.approve("careful")
        expect(visitor.page.locator(".needs h2")).to_have_text("Needs you 5")
        visitor.page.get_by_role("link", name=re.compile("broken: ")).click()
        expect(visitor.page.get_by_role("heading", level=1)).to_have_text("broken")


def test_what_is_saved_is_shown_as_it_happens(chromium: Browser, start: Start) -> None:
    server = start()
    with visiting(chromium, server) as visitor, server.vault() as vault:
        visitor.go("")
        expect(visitor.page.get_by_text("Nothing was saved in this project yet.")).to_be_visible()
        expect(visitor.page.locator(".empty code").first).to_have_text("hardsave init")
        visitor.see(".connected[title^='What happens']")
        session(vault, "claude-1", "The first")
        expect(rows(visitor)).to_have_count(1)
        session(vault, "claude-2", "The second")
        session(vault, "claude-1", "The first", status="failed")
        expect(rows(visitor).first).to_have_attribute("data-timeline", "claude-1")
        expect(row(visitor, "claude-1")).to_contain_text("2 steps")
        expect(row(visitor, "claude-1")).to_contain_text("failed")
        vault.timeline("claude-2").delete()
        expect(rows(visitor)).to_have_count(1)


@pytest.mark.torture  # on a busy machine its page is drawn later than it waits for
def test_neither_a_save_nor_a_reload_moves_what_is_looked_at(
    chromium: Browser, start: Start
) -> None:
    server = start()
    with server.vault() as vault:
        for number in range(400):
            vault.timeline(f"run-{number:03}").save({})
    with visiting(chromium, server) as visitor, server.vault() as vault:
        page = visitor.page
        visitor.go("")
        visitor.see(".session")
        sessions = page.locator("virtual-list.sessions")
        assert page.locator(".session").count() < 100
        sessions.evaluate("(list) => { list.scrollTop = 7_000; }")
        some = sessions.evaluate("(list) => list.source.key(list.first + 5).split(' ')[0]")
        seen = row(visitor, some)
        expect(seen).to_be_in_viewport()
        seen.locator("a").focus()
        before = top(seen)
        for number in (3, 50, 299):
            vault.timeline(f"run-{number:03}").append({"more": 1})
        newest = "(list) => list.source.key(0).split(' ')[0]"
        visitor.until("it was drawn anew", lambda: sessions.evaluate(newest) == "run-299")
        assert abs(top(seen) - before) < 1
        expect(seen.locator("a")).to_be_focused()
        page.reload()
        expect(seen).to_be_in_viewport()
        visitor.until("it is where it was", lambda: abs(top(seen) - before) < 1)


def test_sessions_are_walked_and_opened_by_keys(chromium: Browser, filled: Server) -> None:
    with visiting(chromium, filled) as visitor:
        page = visitor.page
        visitor.go("")
        visitor.see(".session")
        names = [each.get_attribute("data-timeline") for each in rows(visitor).all()]
        for key, at in (("j", 0), ("j", 1), ("ArrowDown", 2), ("k", 1)):
            page.keyboard.press(key)
            expect(row(visitor, str(names[at])).locator("a")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(f"timeline={names[1]}"))
        page.keyboard.press("h")
        visitor.see(".session")
        page.keyboard.press("x")
        expect(rows(visitor)).to_have_count(2)
        page.keyboard.press("f")
        page.keyboard.type("build")
        expect(rows(visitor)).to_have_count(1)
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        keys = page.get_by_role("dialog", name="Keys")
        expect(keys).to_contain_text("Next session")
        page.keyboard.press("Escape")
        expect(keys).to_have_count(0)


def test_search_finds_words_names_and_says_what_to_do_else(
    chromium: Browser, filled: Server
) -> None:
    with visiting(chromium, filled) as visitor:
        page = visitor.page
        visitor.go("")
        page.keyboard.press("/")
        page.keyboard.type("parser")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(r"#/search\?text=parser"))
        expect(row(visitor, "claude-1")).to_be_visible()
        hit = visitor.see(".hit")
        expect(hit.locator("mark")).to_have_text("parser")
        page.locator("body").click(position={"x": 5, "y": 400})
        page.keyboard.press("j")
        page.keyboard.press("j")
        expect(hit.locator("a")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Fix the parser")
        page.go_back()
        expect(visitor.see(".hit")).to_be_visible()
        visitor.go("search", text="zzzz")
        expect(page.get_by_text("Fewer words find more.")).to_be_visible()


def test_projects_are_listed_and_switched(
    chromium: Browser, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(user.folder).items():
        monkeypatch.setenv(name, value)
    shop, blog = user.project("shop"), user.project("blog")
    with open_project(str(shop)) as vault:
        vault.timeline("claude-1").save({}, title="Of the shop")
    with user.serving(blog, "--all-projects") as server, visiting(chromium, server) as visitor:
        page = visitor.page
        visitor.go("")
        switch = page.get_by_label("Project", exact=True)
        expect(switch).to_have_value(user.id("blog"))  # where it was started
        expect(page).to_have_url(re.compile(f"project={user.id('blog')}"))
        expect(row(visitor, "blog")).to_be_visible()
        switch.select_option("shop")
        expect(row(visitor, "claude-1")).to_be_visible()
        expect(page).to_have_url(re.compile(f"project={user.id('shop')}"))
        page.reload()  # the address says which one
        expect(row(visitor, "claude-1")).to_be_visible()
        expect(switch).to_have_value(user.id("shop"))
        page.keyboard.press("w")
        expect(page.locator(".listed")).to_contain_text("shop")
        page.keyboard.press("p")
        listed = page.locator(".listed .name")
        expect(listed).to_have_text(["shop", "blog"])
        with open_project(str(blog)) as vault:
            vault.timeline("claude-9").save({})
        expect(listed).to_have_text(["blog", "shop"])
        expect(page.locator(".listed", has_text="blog")).to_contain_text("here")
        page.get_by_label("Filter by name or directory").fill("sho")
        expect(listed).to_have_text(["shop"])
        listed.click()
        expect(row(visitor, "claude-1")).to_be_visible()
        visitor.go("", project="nosuch")
        expect(page.get_by_role("alert").first).to_contain_text("there is no project 'nosuch'")
        visitor.complaints.clear()


def test_a_worker_that_goes_on_is_seen(chromium: Browser, start: Start) -> None:
    server = start()
    with visiting(chromium, server) as visitor, server.vault() as vault:
        visitor.go("")
        visitor.see(".connected[title^='What happens']")
        vault.jobs.add("careful", "Do it", agent="asks", max_turns=10)
        work(vault)
        expect(visitor.page.locator("#waiting")).to_have_text("1")
        vault.jobs.approve("careful")
        expect(visitor.page.locator("#waiting")).to_be_hidden()
