"""A session on the page, in a real Chromium over a real server: time, and the conversation."""

import re
from functools import partial

from playwright.sync_api import APIResponse, Browser, Locator, Route, expect

from tests.integration.server.browser import NEEDS_CHROMIUM, Visitor, visiting
from tests.integration.server.conftest import Start
from tests.integration.server.session_page import at, go_to, moment, offset, said
from tests.integration.server.session_story import NAME, PROMPTS, long_talk, say, user

pytestmark = NEEDS_CHROMIUM


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
    expect(moment(visitor, 5).locator(".tally")).to_have_text("+1 added \N{MINUS SIGN}1 removed")
    expect(moment(visitor, 3).locator(".facts")).to_have_text(re.compile(r":3.*\+1 msgwaiting$"))
    expect(moment(visitor, 3).locator(".tally")).to_have_count(0)
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
    for part in ("at=chk_", "file=discount.py&view=changes", "fold=prompts"):
        expect(visitor.page).to_have_url(re.compile(part))
    visitor.page.reload()
    at(visitor, 5)
    expect(visitor.page.locator(".l.added")).to_have_count(1)
    expect(visitor.page.locator(".message.shut")).to_have_count(2)


def test_a_reload_leaves_a_person_where_they_read(visitor: Visitor) -> None:
    visitor.go("session", timeline="long")
    page, feed = visitor.page, visitor.page.get_by_role("feed")
    expect(said(visitor).last).to_contain_text("Message 9999.")
    feed.evaluate("(list) => { list.scrollTop = 200_000; }")
    first = "(list) => list.source && list.source.length && `${list.anchor.row}`"
    seen = feed.evaluate(first)
    visitor.until("it is kept", lambda: page.evaluate("history.state?.talk?.number"))
    page.reload()
    visitor.until("it is back", lambda: feed.evaluate(first) == seen)
    expect(said(visitor).first.locator(".text")).to_be_attached()
    page.get_by_role("link", name="Sessions").click()
    visitor.see(".session")
    page.go_back()
    visitor.until("it is back", lambda: feed.evaluate(first) == seen)
    visitor.go("session", timeline="long")  # a link from elsewhere leads to the end
    expect(said(visitor).last).to_contain_text("Message 9999.")


def test_two_moments_are_compared_by_a_click_with_shift(visitor: Visitor) -> None:
    visitor.go("session", timeline=NAME)
    at(visitor, 7)
    moment(visitor, 2).click(modifiers=["Shift"])
    expect(visitor.page.get_by_label("From")).to_have_value(":2")
    expect(visitor.page.get_by_label("To")).to_have_value(":7")
    visitor.page.go_back()
    visitor.page.locator("summary", has_text="Compare").click()
    visitor.button("with another moment…").click()
    visitor.page.get_by_role("textbox", name="Where").fill("5")
    visitor.page.keyboard.press("Enter")
    expect(visitor.page.get_by_label("From")).to_have_value(":5")
    expect(visitor.page.get_by_label("To")).to_have_value(":7")


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
    for number, begins in ((17, "Message 17."), (5_050, "Message 5050."), (9_000, "Prompt 90")):
        page.get_by_role("spinbutton", name="Go to message number").fill(str(number))
        page.keyboard.press("Enter")
        there = page.locator(f'.message[data-number="{number}"]')
        expect(there.locator(".text")).to_contain_text(begins)
        visitor.until("it settles at the top", partial(_is_at_top, there))
        assert page.locator(".row").count() <= 100


def _is_at_top(message: Locator) -> bool:
    return abs(offset(message)) <= 2


def test_a_jump_stays_where_it_is_while_rows_around_it_are_measured(visitor: Visitor) -> None:
    visitor.go("session", timeline="long", message="9000")
    there = visitor.page.locator('.message[data-number="9000"]')
    expect(there.locator(".text")).to_contain_text("Prompt 90")
    above = visitor.page.locator('.message[data-number="8998"]')
    expect(above.locator(".text")).to_contain_text("Message 8998.")
    for _ in range(5):
        assert abs(offset(there)) <= 2
        above.evaluate("(one) => { one.style.paddingBottom = `${Math.random() * 200}px`; }")
        visitor.page.evaluate(
            "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
        )


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


def test_what_is_saved_before_the_page_listens_is_shown(chromium: Browser, start: Start) -> None:
    """The history was read before that save, and it comes after the page has begun to listen."""
    server = start()
    with server.vault() as vault:
        line = vault.timeline("busy")
        line.append({"messages": [user("Go on")]})
        with visiting(chromium, server) as visitor:
            page = visitor.page
            read: list[tuple[Route, APIResponse]] = []
            page.route("**/api/v1/graph*", lambda asked: read.append((asked, asked.fetch())))
            listening: list[Route] = []
            page.route("**/api/v1/events*", lambda asked: listening.append(asked))  # noqa: PLW0108 # Playwright marks it
            visitor.go("session", timeline="busy")
            visitor.until("both are on their way", lambda: read and listening)
            line.append({"messages": [say("Meanwhile")]})
            page.unroute("**/api/v1/graph*")
            expect(page.get_by_role("heading", level=1)).to_have_text("busy")
            expect(page.locator(".live")).to_have_count(0)  # it does not listen yet
            listening[0].continue_()
            expect(page.locator(".live")).to_have_text("live")
            route, answer = read[0]
            route.fulfill(response=answer)
            at(visitor, 2)
            expect(said(visitor).last).to_contain_text("Meanwhile")


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


def test_what_is_not_there_is_said_with_a_way_on(visitor: Visitor) -> None:
    visitor.go("session", timeline="no-such")
    told = visitor.page.locator(".empty[role=alert]")
    expect(told).to_contain_text("'no-such'; 'hardsave timelines' lists them")
    told.get_by_role("button", name="All sessions").click()
    expect(visitor.page.locator(".session .name").first).to_be_visible()
    visitor.complaints.clear()  # a browser reports each 404


def test_the_link_past_the_header_leads_to_the_screen_that_is_shown(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go("session", timeline=NAME)
    at(visitor, 7)
    address = page.url
    page.get_by_role("link", name="Skip to content").press("Enter")
    expect(page.locator("#main")).to_be_focused()
    expect(page.get_by_role("heading", level=1)).to_have_text("Fix the total")
    assert page.url == address


def test_a_screen_that_cannot_be_loaded_says_so_and_comes_when_it_can(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go("session", timeline=NAME)
    at(visitor, 7)
    page.route("**/assets/**/health.js", lambda asked: asked.abort())
    page.keyboard.press("H")
    expect(page.get_by_role("alert")).to_contain_text("the server does not answer")
    page.route("**/api/v1", lambda asked: asked.abort())
    visitor.button("Try again").click()  # the server is still away: the page stays
    expect(page.locator(".notice.problem")).to_contain_text("the server does not answer")
    page.unroute("**/api/v1")
    page.unroute("**/assets/**/health.js")
    visitor.button("Try again").click()
    expect(page.get_by_role("heading", name="Health")).to_be_visible()
    page.route("**/api/v1/**", lambda asked: asked.abort())
    page.go_back()
    expect(page.locator(".empty[role=alert]")).to_contain_text("the server does not answer")
    uncaught = [each for each in visitor.complaints if not each.startswith("Failed to load")]
    assert uncaught == []
    visitor.complaints.clear()
