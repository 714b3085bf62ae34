"""Files of a session on the page, and what differs between two moments, in a real Chromium."""

from functools import partial
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.integration.server.browser import NEEDS_CHROMIUM, Visitor, visiting
from tests.integration.server.conftest import Start
from tests.integration.server.session_page import at
from tests.integration.server.session_story import NAME, SECOND, Story, call, say, user

pytestmark = NEEDS_CHROMIUM


def test_a_file_shows_its_content_its_changes_and_its_history(visitor: Visitor) -> None:
    visitor.go("session", timeline=NAME, at=":3", file="cart.py")
    lines = visitor.page.locator(".l")
    expect(lines.first).to_contain_text("from decimal import Decimal")
    visitor.button("Changes").click()
    expect(visitor.page.locator(".viewer")).to_contain_text("It is the same as in the step before")
    visitor.page.locator(".viewer").get_by_role("button", name="History").click()
    versions = visitor.page.locator(".version")
    expect(versions).to_have_count(2)
    versions.first.click()
    at(visitor, 2)
    expect(visitor.page.locator(".l.added")).to_have_count(4)
    expect(visitor.page.locator(".l.removed")).to_have_count(1)
    with visitor.page.expect_download() as downloading:
        visitor.page.get_by_role("link", name="Download").click()
    assert Path(downloading.value.path()).read_text() == SECOND
    assert downloading.value.suggested_filename == "cart.py"


def test_the_tree_opens_by_keyboard_and_comes_back_after_a_file(visitor: Visitor) -> None:
    visitor.go("session", timeline=NAME)
    tree, keyboard = visitor.page.get_by_role("tree"), visitor.page.keyboard
    expect(tree.get_by_role("treeitem").filter(has_text="lib")).to_be_visible()
    tree.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):  # all files, cart.py, lib
        keyboard.press(key)
    expect(tree.get_by_role("treeitem").filter(has_text="deep")).to_be_visible()
    for key in ("ArrowDown", "ArrowRight", "ArrowDown"):
        keyboard.press(key)
    expect(tree.get_by_role("treeitem").filter(has_text="rates.py")).to_be_visible()
    keyboard.press("Enter")
    expect(visitor.page.locator(".l").first).to_contain_text("RATE = 1")
    visitor.page.get_by_role("button", name="Back to all files").click()
    expect(tree).to_be_focused()
    expect(tree.get_by_role("treeitem").filter(has_text="rates.py")).to_be_visible()
    visitor.page.reload()
    expect(tree.get_by_role("treeitem").filter(has_text="rates.py")).to_be_visible()


def test_a_reload_leaves_a_person_where_they_read_a_file(chromium: Browser, start: Start) -> None:
    server = start()
    with server.vault() as vault:
        story = Story(vault, server.folder)
        for text in ("one", "two"):
            story.put("long.txt", "".join(f"{text} {number}\n" for number in range(2_000)))
            story.step(say(text))
    with visiting(chromium, server) as visitor:
        page, lines = visitor.page, visitor.page.locator("virtual-list.code")
        for view in ("", "changes"):
            visitor.go("session", timeline=NAME, file="long.txt", view=view)
            expect(page.locator(".l").first).to_be_visible()
            lines.evaluate("(list) => { list.scrollTop = 9_000; }")
            seen = lines.evaluate("(list) => list.anchor.row")
            assert seen > 0
            kept = f"history.state?.lines?.row === {seen}"
            visitor.until("it is kept", partial(page.evaluate, kept))
            page.reload()
            expect(page.locator(".l").first).to_be_visible()
            there = f"(list) => list.anchor.row === {seen}"
            visitor.until("it is back", partial(lines.evaluate, there))
        visitor.go("session", timeline=NAME, file="long.txt")  # a link leads to the beginning
        expect(page.locator(".l").first).to_contain_text("two 0")
        assert lines.evaluate("(list) => list.scrollTop") == 0


def test_a_file_that_is_no_text_is_only_downloaded(visitor: Visitor) -> None:
    visitor.go("session", timeline=NAME, file="logo.bin")
    expect(visitor.page.locator(".viewer")).to_contain_text("This is no text: 2.6 KB")


# Comparing


def test_two_moments_are_compared_and_each_with_the_disk(chromium: Browser, start: Start) -> None:
    server = start()
    with server.vault() as vault:
        story = Story(vault, server.folder).tell()
        story.put("cart.py", SECOND + "# typed by hand\n")
    with visiting(chromium, server) as visitor:
        visitor.go("session", timeline=NAME, at=":2")
        at(visitor, 2)
        visitor.page.keyboard.press("c")
        expect(visitor.page.locator(".sums")).to_contain_text("Messages: 1 → 3")
        expect(visitor.page.locator(".l.added")).to_have_count(4)
        visitor.page.keyboard.press("u")
        expect(visitor.button("Side by side")).to_have_attribute("aria-pressed", "true")
        expect(visitor.page.locator(".pair .l.removed")).to_have_count(1)
        visitor.page.get_by_label("To", exact=True).fill(":6")
        visitor.page.keyboard.press("Enter")
        expect(visitor.page.locator(".entry.file")).to_have_count(3)
        expect(visitor.page.locator(".sums")).to_contain_text("Messages: 1 → 8")
        visitor.page.go_back()
        expect(visitor.page.locator(".entry.file")).to_have_count(1)
        visitor.go("session", timeline=NAME)
        visitor.page.get_by_text("Compare", exact=True).click()
        visitor.button("with the disk").click()
        expect(visitor.page.locator(".l.added")).to_contain_text("# typed by hand")


def test_messages_and_values_that_differ_are_compared_like_files(
    chromium: Browser, start: Start
) -> None:
    server = start()
    with server.vault() as vault:
        line = vault.timeline(NAME)
        asked = [user("Add a discount"), call("c", "Edit", path="cart.py")]
        line.save({"messages": [*asked, say("Ten percent.")], "turn": 1, "plan": {"next": "test"}})
        line.save({"messages": [*asked, say("Five percent."), say("Done.")], "turn": 2})
        line.save({"messages": [*asked, *(say(f"Word {n}") for n in range(200))], "turn": 2})
    with visiting(chromium, server) as visitor:
        page = visitor.page
        visitor.go("diff", timeline=NAME, **{"from": ":1", "to": ":2"})
        gone, came = page.locator(".side.removed"), page.locator(".side.added")
        expect(gone).to_contain_text(["Ten percent."])
        expect(came).to_contain_text(["Five percent.", "Done."])
        expect(came.last.get_by_role("link")).to_have_text("+ #3")
        state = page.get_by_role("treeitem").filter(has_text="State: 2 values")
        expect(state).to_have_attribute("aria-expanded", "true")
        expect(page.locator(".l.hunk")).to_have_text(["plan", "turn"])
        expect(page.locator(".l.removed")).to_contain_text(["{", '"next": "test"', "}", "1"])
        expect(page.locator(".l.added code")).to_have_text("2")
        page.keyboard.press("u")
        pair = page.locator(".pair").filter(has_text="Ten percent.")
        expect(pair.locator(".side.added")).to_contain_text("Five percent.")
        expect(page.locator(".pair .l.removed").last).to_contain_text("1")
        page.get_by_role("tree").focus()
        page.keyboard.press("Enter")  # messages are shut
        expect(page.locator(".side")).to_have_count(0)
        kept = "history.state?.compared?.opened.join()"
        visitor.until("it is kept", lambda: page.evaluate(kept) == "state")
        page.reload()
        expect(page.locator(".l.hunk").first).to_be_visible()
        expect(page.locator(".side")).to_have_count(0)
        page.get_by_role("treeitem").filter(has_text="Messages").click()
        gone.get_by_role("link").click()
        expect(page.get_by_role("feed")).to_contain_text("Ten percent.")
        at(visitor, 1)
        visitor.go("diff", timeline=NAME, **{"from": ":2", "to": ":3"})
        page.get_by_role("treeitem").filter(has_text="Messages").click()
        expect(came.first).to_be_visible()
        assert page.locator(".row").count() <= 100
        page.get_by_role("tree").evaluate("(list) => list.end()")
        expect(page.locator(".noted")).to_contain_text("100 further messages differ")


def test_two_thousand_files_are_listed_and_opened_one_by_one(
    chromium: Browser, start: Start
) -> None:
    server = start()
    with server.vault() as vault:
        story = Story(vault, server.folder)
        for text in ("one\n", "two\n"):
            for number in range(2_000):
                story.put(f"d{number % 20}/f{number:04}.txt", text)
            story.step(say(text))
    with visiting(chromium, server) as visitor:
        visitor.go("diff", timeline=NAME, **{"from": ":1", "to": ":2"})
        expect(visitor.page.locator(".sums")).to_contain_text("2,000 files differ")
        assert visitor.page.locator(".row").count() <= 100
        visitor.page.locator(".entry.file").first.click()
        expect(visitor.page.locator(".l.added code")).to_have_text("two")
        changes = visitor.page.locator("virtual-list.changes")
        changes.evaluate("(list) => { list.scrollTop = 20_000; }")
        seen = changes.evaluate("(list) => list.anchor.row")
        kept = "history.state?.compared?.anchor.row"
        visitor.until("it is kept", lambda: visitor.page.evaluate(kept) == seen)
        visitor.page.reload()
        visitor.until("it is back", lambda: changes.evaluate("(list) => list.anchor.row") == seen)
        changes.evaluate("(list) => { list.scrollTop = 0; }")
        expect(visitor.page.locator(".l.added code")).to_have_text("two")
