"""What the screen of a session withstands: hostile content, narrow windows, both color schemes."""

import itertools

from playwright.sync_api import Browser, expect

from tests.integration.server.browser import CONTRAST, NEEDS_CHROMIUM, Visitor, visiting
from tests.integration.server.conftest import Server, Start
from tests.integration.server.session_page import at, said
from tests.integration.server.session_story import NAME, Story, call, result, say, user

pytestmark = NEEDS_CHROMIUM
HOSTILE = (
    "<script>document.title='taken'</script>\"><img src=x onerror=\"document.title='taken'\">"
    "' onmouseover='x {{ 7*7 }} javascript:alert(1) \u202eevil\u202c \x1b[31mred\x1b[0m "
)


def test_hostile_content_is_shown_and_does_nothing(chromium: Browser, start: Start) -> None:
    server = start()
    name = "<img src=x onerror=alert(1)>"
    with server.vault() as vault:
        story = Story(vault, server.folder, name)
        story.put(f"{name}.txt", HOSTILE * 20)
        story.put("rtl\u202etxt.exe", "a")
        story.put("long.txt", "x" * 1_000_000)
        story.step(user(HOSTILE), name="<b>bold</b>", title=HOSTILE, prompt=HOSTILE)
        story.step(say("y" * 1_000_000), call("h", "<script>alert(1)</script>", command=HOSTILE))
        story.step(result("h", "\x1b[31m" + "z" * 50_000_000))
        story.put("wide.txt", "x" * 300_000)
        story.step(say("done"))
    with visiting(chromium, server) as visitor:
        page = visitor.page
        visitor.go("session", timeline=name)
        expect(said(visitor).last).to_contain_text("done")
        for number in (3, 1):
            visitor.button("Show all").last.click() if number == 3 else None
            expect(said(visitor).first).to_contain_text("\\u{202e}evil\\u{202c} \\u{1b}[31mred")
        results = page.locator("details", has_text="Result")
        results.locator("summary").click()
        expect(results.locator("pre")).to_contain_text("zzzz")
        expect(page.get_by_role("button", name="Show more")).to_be_visible()
        expect(page.get_by_role("treeitem").filter(has_text="rtl\\u{202e}txt.exe")).to_be_visible()
        page.get_by_role("treeitem").filter(has_text="onerror").click()
        expect(page.locator(".l").first).to_contain_text("<script>document.title")
        visitor.go("session", timeline=name, at=":4", file="wide.txt", view="changes")
        expect(page.locator(".l.added")).to_contain_text("more characters")
        visitor.go("session", timeline=name, at=":4", file="long.txt")
        page.get_by_role("button", name="Show 200 KB more").click()
        expect(page.locator(".rest")).to_contain_text("The first 400 KB of 1.0 MB")
        assert page.locator("main img, main script").count() == 0
        visitor.go("diff", timeline=name, **{"from": ":3", "to": ":4"})
        expect(page.locator(".l.added")).to_contain_text("more characters")
        visitor.go("diff", timeline=name, **{"from": ":1", "to": ":2"})
        expect(page.locator(".side.added").first).to_contain_text("yyyy")
        expect(page.locator(".side.added").last).to_contain_text("<script>alert(1)</script>")
        visitor.go("session", timeline=name, at=":1")
        at(visitor, 1)
        page.keyboard.press("r")
        going = page.get_by_role("dialog").get_by_role("listitem").filter(has_text="wide.txt")
        expect(going).to_be_visible()
        page.keyboard.press("Escape")
        visitor.go("search", text="evil")
        expect(page.locator(".hit").first).to_contain_text("\\u{202e}")
        visitor.go("")
        expect(page.locator(".session .name")).to_contain_text("<script>document.title")
        assert page.locator("main img, main script").count() == 0
        visitor.go("session", timeline=name)
        expect(page.get_by_role("heading", level=1)).to_contain_text("<script>")
        assert "taken" not in page.title().split(" · ")[1:]
        assert page.evaluate("document.title").endswith("· Hardsave")


def test_a_session_fits_and_can_be_read(visitor: Visitor) -> None:
    page = visitor.page
    for screen, more in (("session", {"at": ":5"}), ("diff", {"from": ":1", "to": ":6"})):
        visitor.go(screen, timeline=NAME, **more)
        visitor.see(".moment" if screen == "session" else ".lines")
        for width, scheme in itertools.product((360, 768, 1000, 1400), ("light", "dark")):
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            page.set_viewport_size({"width": width, "height": 800})
            assert visitor.overflow <= 0, (screen, width)
            assert page.evaluate(CONTRAST) == [], (screen, width, scheme)


def test_on_a_phone_the_panes_are_tabs(chromium: Browser, storied: Server) -> None:
    with visiting(chromium, storied, viewport={"width": 390, "height": 844}) as visitor:
        visitor.go("session", timeline=NAME)
        expect(visitor.page.locator(".pane:visible")).to_have_count(1)
        for tab, pane in (("History", ".past"), ("Files", ".tree"), ("Conversation", ".talk")):
            visitor.page.get_by_role("tab", name=tab).click()
            expect(visitor.page.locator(f".pane{pane}")).to_be_visible()
            expect(visitor.page.locator(".pane:visible")).to_have_count(1)
            expect(visitor.page.get_by_role("tab", name=tab)).to_have_attribute(
                "aria-selected", "true"
            )
            assert visitor.overflow <= 0
        visitor.go("session", timeline=NAME, file="cart.py")  # a link to a file leads to it
        expect(visitor.page.locator(".viewer")).to_be_visible()
        visitor.page.get_by_role("tab", name="Conversation").click()
        expect(visitor.page.locator(".pane.talk")).to_be_visible()


def test_eight_tabs_of_one_browser_are_all_live(chromium: Browser, start: Start) -> None:
    server = start()
    with server.vault() as vault:
        line = vault.timeline("busy")
        line.append({"messages": [user("Go on")]})
        with visiting(chromium, server) as visitor:
            streams: list[str] = []
            visitor.context.on(
                "request",
                lambda asked: streams.append(asked.url) if "/events" in asked.url else None,
            )
            tabs = [visitor.page, *(visitor.context.new_page() for _ in range(7))]
            for tab in tabs:
                tab.goto(f"{server.url}/#/session?timeline=busy")
                expect(tab.locator(".live")).to_have_text("live")
            visitor.until("one of them listens", lambda: streams)
            line.append({"messages": [say("Heard by all")]})
            for tab in tabs:
                expect(tab.locator(".moment-label b")).to_have_text(":2")
                expect(tab.locator(".conversation .message").last).to_contain_text("Heard by all")
            tabs.pop(0).close()  # the one that listened
            visitor.page = tabs[0]
            line.append({"messages": [say("Heard by the others")]})
            for tab in tabs:
                expect(tab.locator(".moment-label b")).to_have_text(":3")
            assert len(streams) == 2
