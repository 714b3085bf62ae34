"""A session on the page, in a real Chromium over a real server: what is looked at."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

import hardsave
from tests.integration.server import browser as browsers
from tests.integration.server.browser import CONTRAST, NEEDS_CHROMIUM, Visitor, visiting
from tests.integration.server.conftest import Server, Start, starting
from tests.integration.server.session_story import (
    NAME,
    PROMPTS,
    SECOND,
    Story,
    call,
    long_talk,
    result,
    say,
    user,
)

pytestmark = NEEDS_CHROMIUM
HOSTILE = (
    "<script>document.title='taken'</script>\"><img src=x onerror=\"document.title='taken'\">"
    "' onmouseover='x {{ 7*7 }} javascript:alert(1) \u202eevil\u202c \x1b[31mred\x1b[0m "
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browsers.launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server over a story and a long talk, which these tests only look at."""
    with starting(tmp_path_factory.mktemp("looked-at")) as start:
        server = start()
        with server.vault() as vault:
            Story(vault, server.folder).tell()
            long_talk(vault)
            vault.timeline(NAME).fork(":2", name="elsewhere").append({"messages": [say("aside")]})
        yield server


@pytest.fixture
def visitor(chromium: Browser, served: Server) -> Iterator[Visitor]:
    with visiting(chromium, served) as found:
        yield found


def moment(visitor: Visitor, number: int) -> Locator:
    """The row of a checkpoint in the rail."""
    return visitor.page.locator(".moment", has=visitor.page.get_by_text(f":{number}", exact=True))


def at(visitor: Visitor, number: int) -> None:
    """All panes are at a checkpoint."""
    expect(visitor.page.locator(".moment-label b")).to_have_text(f":{number}")
    expect(moment(visitor, number)).to_have_attribute("aria-selected", "true")


def go_to(visitor: Visitor, where: str) -> None:
    visitor.page.keyboard.press("g")
    visitor.page.get_by_role("textbox", name="Where").fill(where)
    visitor.page.keyboard.press("Enter")


def said(visitor: Visitor) -> Locator:
    return visitor.page.locator(".conversation .message")


def test_a_session_shows_its_head_with_conversation_and_files(visitor: Visitor) -> None:
    visitor.go("session", timeline=NAME)
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text("Fix the total")
    at(visitor, 7)
    expect(visitor.page.locator(".pane.past header")).to_contain_text("7 checkpoints")
    expect(visitor.page.locator(".pane.talk header").first).to_contain_text("5 messages")
    expect(said(visitor).last).to_contain_text(PROMPTS[2])
    files = visitor.page.get_by_role("treeitem")
    expect(files.filter(has_text="notes.md")).to_be_visible()
    expect(files.filter(has_text="discount.py")).to_have_count(0)


def test_arrows_go_along_parents_not_along_numbers(visitor: Visitor) -> None:
    visitor.go("session", timeline=NAME)
    at(visitor, 7)
    keyboard = visitor.page.keyboard
    for key, number in (("ArrowLeft", 3), ("j", 2), ("ArrowRight", 3), ("k", 7), ("Home", 1)):
        keyboard.press(key)
        at(visitor, number)
    keyboard.press("End")
    at(visitor, 7)
    moment(visitor, 6).click()
    for number in (5, 4, 3):  # the branch that was left
        keyboard.press("ArrowLeft")
        at(visitor, number)
    keyboard.press("ArrowRight")
    at(visitor, 4)


def test_what_was_left_behind_is_dimmed_and_the_head_is_marked(visitor: Visitor) -> None:
    visitor.go("session", timeline=NAME)
    at(visitor, 7)
    for number in (4, 5, 6):
        expect(moment(visitor, number)).to_have_class(re.compile(r"\bleft\b"))
    expect(moment(visitor, 3)).not_to_have_class(re.compile(r"\bleft\b"))
    expect(moment(visitor, 7).locator(".tag.head")).to_have_text("head")
    expect(moment(visitor, 1).locator(".tag")).to_have_text("start")
    expect(moment(visitor, 5)).to_contain_text("outside")
    visitor.page.get_by_role("option", name="forked: elsewhere").click()
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text("elsewhere")
    visitor.page.get_by_role("option", name="where this timeline was forked").click()
    at(visitor, 2)


def test_the_slider_moves_rail_conversation_and_files_together(visitor: Visitor) -> None:
    visitor.go("session", timeline=NAME, at=":6")
    at(visitor, 6)
    slider = visitor.page.get_by_role("slider", name="Moment")
    expect(slider).to_have_attribute("max", "5")
    slider.fill("1")
    at(visitor, 2)
    expect(said(visitor)).to_have_count(3)
    changed = visitor.page.get_by_role("treeitem").filter(has_text="cart.py").first
    expect(changed.locator(".mark")).to_have_attribute("title", "changed")
    slider.fill("4")
    at(visitor, 5)
    marks = visitor.page.locator(".entry .mark")
    expect(marks).to_have_count(3)  # two changes, and the new one among all files
    expect(said(visitor).last).to_contain_text("pushed")


def test_an_address_leads_to_the_same_state_again(visitor: Visitor) -> None:
    visitor.go("session", timeline=NAME)
    at(visitor, 7)
    moment(visitor, 5).click()
    entries = visitor.page.get_by_role("treeitem")
    entries.filter(has_text="discount.py").first.click()
    expect(visitor.page.locator(".l.added")).to_have_count(1)
    visitor.button("Prompts only").click()
    expect(visitor.page.locator(".message.shut")).to_have_count(2)
    expect(visitor.page).to_have_url(re.compile("at=chk_.*file=discount.py&view=changes&fold="))
    visitor.page.reload()
    at(visitor, 5)
    expect(visitor.page.locator(".l.added")).to_have_count(1)
    expect(visitor.page.locator(".message.shut")).to_have_count(2)


def test_g_goes_to_a_number_a_name_and_a_message(visitor: Visitor) -> None:
    visitor.go("session", timeline=NAME)
    at(visitor, 7)
    for typed, number in (("3", 3), ("start", 1), (":6", 6)):
        go_to(visitor, typed)
        at(visitor, number)
    go_to(visitor, "#1")
    expect(visitor.page).to_have_url(re.compile("message=1"))


# The conversation


def test_ten_thousand_messages_make_no_more_than_a_hundred_rows(visitor: Visitor) -> None:
    visitor.go("session", timeline="long")
    page = visitor.page
    expect(page.locator(".pane.talk header").first).to_contain_text("10,000 messages")
    expect(said(visitor).last).to_contain_text("Message 9999.")
    assert page.locator(".row").count() <= 100
    for number in (9_000, 17, 5_050):
        page.get_by_role("spinbutton", name="Go to message number").fill(str(number))
        page.keyboard.press("Enter")
        there = page.locator(f'.message[data-number="{number}"]')
        prompt = f"Prompt {number // 100}" if number % 100 == 0 else f"Message {number}."
        expect(there.locator(".text")).to_contain_text(prompt)
        visitor.until("it settles at the top", lambda at=there: abs(offset(at)) <= 2)
        assert page.locator(".row").count() <= 100
    assert abs(offset(there)) <= 2


def offset(message: Locator) -> float:
    """How many pixels below the top of its list a message begins."""
    script = "(one) => one.getBoundingClientRect().top - one.closest('virtual-list').getBoundingClientRect().top"
    return float(message.evaluate(script))


def test_a_jump_stays_where_it_is_while_rows_around_it_are_measured(visitor: Visitor) -> None:
    visitor.go("session", timeline="long", message="9000")
    there = visitor.page.locator('.message[data-number="9000"]')
    expect(there.locator(".text")).to_contain_text("Prompt 90")
    above = visitor.page.locator('.message[data-number="8998"]')
    expect(above.locator(".text")).to_contain_text("Message 8998.")
    for _ in range(5):
        assert abs(offset(there)) <= 2
        above.evaluate("(one) => { one.style.paddingBottom = `${Math.random() * 200}px`; }")
        visitor.page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


def test_prompts_only_shows_one_row_a_prompt_and_opens_each(visitor: Visitor) -> None:
    visitor.go("session", timeline="long", fold="prompts")
    visitor.see(".message.shut")
    visitor.page.get_by_role("feed").focus()
    visitor.page.keyboard.press("Home")
    expect(said(visitor).first).to_contain_text("Prompt 0")
    expect(said(visitor).nth(1)).to_have_attribute("data-number", "100")
    said(visitor).nth(1).get_by_role("button").click()
    expect(visitor.page.locator('.message[data-number="101"]')).to_contain_text("Message 101.")
    visitor.page.keyboard.press("p")
    expect(visitor.page.locator(".message.shut")).to_have_count(0)


def test_calls_and_results_open_and_stay_open(visitor: Visitor) -> None:
    visitor.go("session", timeline=NAME, at=":2")
    edit = visitor.page.locator("details", has_text="Edit cart.py")
    edit.locator("summary").click()
    expect(edit.locator("pre")).to_have_text("path: cart.py")
    visitor.page.keyboard.press("ArrowRight")
    at(visitor, 3)
    expect(visitor.page.locator("details", has_text="Edit cart.py").locator("pre")).to_be_visible()


def test_a_state_without_messages_is_shown_as_it_is(chromium: Browser, start: Start) -> None:
    server = start()
    with server.vault() as vault:
        vault.timeline("plain").save({"step": 7, "about": "a graph"})
    with visiting(chromium, server) as visitor:
        visitor.go("session", timeline="plain")
        visitor.button("Show its state").click()
        expect(visitor.page.locator(".nothing pre")).to_contain_text('"about": "a graph"')
        expect(visitor.page.locator(".pane.tree")).to_contain_text("was saved without files")


# Files


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


def test_a_file_that_is_no_text_is_only_downloaded(visitor: Visitor) -> None:
    visitor.go("session", timeline=NAME, file="logo.bin")
    expect(visitor.page.locator(".viewer")).to_contain_text("This is no text: 2.6 KB")


# Comparing


def test_two_moments_are_compared_and_each_with_the_disk(
    chromium: Browser, start: Start
) -> None:
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
        visitor.button("Side by side").click()
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


# Live


def test_six_hundred_saves_in_a_row_are_all_counted(chromium: Browser, start: Start) -> None:
    server = start()
    with server.vault() as vault:
        line = vault.timeline("busy")
        line.append({"messages": [user("Go on")]})
        with visiting(chromium, server) as visitor:
            visitor.go("session", timeline="busy")
            expect(visitor.page.locator(".live")).to_have_text("live")
            at(visitor, 1)
            for number in range(600):
                line.append({"messages": [say(f"Step {number}")]})
            expect(visitor.page.locator(".pane.past header")).to_contain_text("601 checkpoints")
            expect(visitor.page.locator(".pane.talk header").first).to_contain_text("601 messages")
            at(visitor, 601)
            expect(said(visitor).last).to_contain_text("Step 599")


def test_what_is_saved_elsewhere_does_not_move_what_is_looked_at(
    chromium: Browser, start: Start
) -> None:
    server = start()
    with server.vault() as vault:
        line = long_talk(vault, 1_000)
        with visiting(chromium, server) as visitor:
            visitor.go("session", timeline="long", message="500")
            there = visitor.page.locator('.message[data-number="500"]')
            expect(there.locator(".text")).to_contain_text("Prompt 5")
            for number in range(30):
                line.append({"messages": [say(f"Step {number}")]})
            expect(visitor.page.locator(".fresh")).to_have_text("30 new messages ↓")
            assert abs(offset(there)) <= 2
            visitor.page.locator(".fresh").click()
            expect(said(visitor).last).to_contain_text("Step 29")
            go_to(visitor, ":3")
            at(visitor, 3)
            line.append({"messages": [say("Further")]})
            expect(visitor.page.locator(".pane.past header")).to_contain_text("41 checkpoints")
            at(visitor, 3)
            line.rewind(":5")
            expect(moment(visitor, 6)).to_have_class(re.compile(r"\bleft\b"))
            at(visitor, 3)


# What it withstands


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


def test_on_a_phone_the_panes_are_tabs(chromium: Browser, served: Server) -> None:
    with visiting(chromium, served, viewport={"width": 390, "height": 844}) as visitor:
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


def test_what_is_not_there_is_said_with_a_way_on(visitor: Visitor) -> None:
    visitor.go("session", timeline="no-such")
    expect(visitor.page.get_by_role("alert")).to_contain_text("no-such")
    visitor.complaints.clear()  # a browser reports each 404


def test_a_vault_is_read_by_the_page_alone(served: Server) -> None:
    with hardsave.open(served.store) as vault:
        assert len(vault.timeline(NAME)) == 7
