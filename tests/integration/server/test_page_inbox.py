"""The inbox in a real Chromium: answers by mouse, by keys and on a phone, and what is on disk."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Route, expect

import hardsave
from tests.integration.server.browser import NEEDS_CHROMIUM, Visitor, visiting
from tests.integration.server.conftest import Start
from tests.integration.server.work_story import add_jobs, ask, leave_step, work

pytestmark = NEEDS_CHROMIUM
CALLS = ("one", "two", "three", "four")


@pytest.fixture
def asked(chromium: Browser, start: Start) -> Iterator[tuple[Visitor, hardsave.Vault]]:
    """A tab at a server over four calls, a step and two questions in words, and its store."""
    server = start()
    with server.vault() as vault:
        for id in ("deploy", "when"):
            ask(vault, id, f"{id} to production?")
        leave_step(server.store, "push", asks=True)
        add_jobs(vault, **dict.fromkeys(reversed(CALLS), "asks"))
        with visiting(chromium, server) as visitor:
            yield visitor, vault


def entry(visitor: Visitor, id: str) -> Locator:
    return visitor.page.locator(".asking li").filter(has=visitor.page.get_by_text(id, exact=True))


def left(visitor: Visitor, number: int) -> None:
    expect(visitor.page.locator(".asking li")).to_have_count(number)


def shown(visitor: Visitor, id: str) -> Locator:
    """The question that is shown, once it is this one."""
    one = visitor.page.locator(".asked-one")
    expect(one.locator("h2 a")).to_have_text(id)
    return one


def told(vault: hardsave.Vault, task: str) -> Any:
    """What a task gets for an answer when it goes on."""
    with vault.tasks.attempt(task) as attempt:
        return attempt.ask(f"{task} to production?")


def taken(vault: hardsave.Vault) -> list[object]:
    """What the task goes on with whose step has no known end: its steps that are taken."""
    ran: list[object] = []
    with vault.tasks.attempt("push") as attempt:
        attempt.step("build", lambda: ran.append("build"))
        attempt.step("push", ran.append, 9, unknown="ask")
    return ran


def heard(vault: hardsave.Vault, job: str) -> str:
    """What the agent of a job was told, once it went on."""
    work(vault)
    assert vault.jobs.get(job).state == "succeeded"
    return str(vault.timeline(job).load()["messages"])


def test_questions_are_answered_with_a_mouse(
    asked: tuple[Visitor, hardsave.Vault],
) -> None:
    visitor, vault = asked
    page = visitor.page
    visitor.go("inbox")
    left(visitor, 7)
    one = shown(visitor, "one")
    expect(one).to_contain_text("May it call note with")
    expect(one.locator(".arguments dd")).to_have_text("hello")
    expect(one.locator(".messages")).to_contain_text("Do one")
    visitor.button("Approve").click()
    shown(visitor, "two")  # the next one
    assert vault.jobs.get("one").state == "queued"
    visitor.button("Edit…").click()
    page.get_by_label("text", exact=True).fill("changed")
    visitor.button("Approve with changes").click()
    shown(visitor, "three")
    page.get_by_label("Reason, told the agent").fill("not on a Friday")
    visitor.button("Deny").click()
    left(visitor, 4)
    expect(page.locator("#waiting")).to_have_text("4")
    for id, said in (
        ("one", "noted hello"),
        ("two", "noted changed"),
        ("three", "not on a Friday"),
    ):
        assert said in heard(vault, id)
    entry(visitor, "push").locator("a").click()
    expect(shown(visitor, "push").locator(".steps")).to_contain_text("shop-1.2.tar")
    expect(page.locator(".asked-one")).to_contain_text("what it did outside may be done twice")
    visitor.button("Skip").click()
    left(visitor, 3)
    assert taken(vault) == []
    entry(visitor, "deploy").locator("a").click()
    shown(visitor, "deploy")
    page.get_by_label("Answer", exact=True).fill('{"to": [1, 2]}')
    visitor.button("Answer").click()
    left(visitor, 2)
    assert told(vault, "deploy") == {"to": [1, 2]}


def test_questions_are_answered_by_keys_alone(
    asked: tuple[Visitor, hardsave.Vault],
) -> None:
    visitor, vault = asked
    page, keys = visitor.page, visitor.page.keyboard
    visitor.go("")
    visitor.see(".needs")
    keys.press("i")
    left(visitor, 7)
    shown(visitor, "one")
    keys.press("?")
    for key in ("Approve", "Deny, with a reason", "Write an answer", "Next question"):
        expect(page.get_by_role("dialog", name="Keys")).to_contain_text(key)
    keys.press("Escape")
    keys.press("a")
    shown(visitor, "two")
    expect(page.locator(".asking [aria-current]")).to_be_focused()
    keys.press("e")
    expect(page.get_by_label("text", exact=True)).to_be_focused()
    keys.press("ControlOrMeta+a")
    keys.type("changed")
    keys.press("Tab")
    keys.press("Enter")
    shown(visitor, "three")
    keys.press("d")
    keys.type("not now")
    keys.press("Enter")
    shown(visitor, "four")
    keys.press("j")
    shown(visitor, "push")
    keys.press("2")  # skip
    shown(visitor, "when")
    keys.press("r")
    keys.type("tomorrow")
    keys.press("Control+Enter")
    left(visitor, 2)
    assert (taken(vault), told(vault, "when")) == ([], "tomorrow")
    for id, said in (("one", "noted hello"), ("two", "noted changed"), ("three", "not now")):
        assert said in heard(vault, id)
    keys.press("Escape")
    expect(page).to_have_url(re.compile("#/inbox$"))


def test_several_questions_are_answered_at_once(
    asked: tuple[Visitor, hardsave.Vault],
) -> None:
    visitor, vault = asked
    page, keys = visitor.page, visitor.page.keyboard
    visitor.go("inbox")
    left(visitor, 7)
    for _ in range(2):
        keys.press("x")
        keys.press("j")
    expect(visitor.button("Approve 2")).to_be_visible()
    keys.press("A")
    left(visitor, 5)
    expect(page.locator(".notice")).to_contain_text("Approved: 2 of 2 questions")
    assert [vault.jobs.get(id).state for id in CALLS] == ["queued", "queued", "waiting", "waiting"]
    page.get_by_label("Tick all").check()
    visitor.button("Deny 2…").click()
    page.get_by_label("Reason, told the agents").fill("none of these")
    visitor.button("Deny").last.click()
    left(visitor, 3)
    visitor.button("Answer 2…").click()
    page.get_by_role("dialog").get_by_label("Answer: a text, or JSON").fill("42")
    page.get_by_role("dialog").get_by_role("button", name="Answer", exact=True).click()
    left(visitor, 1)
    visitor.button("Retry 1").click()
    expect(page.locator(".empty")).to_contain_text("Nothing waits for you.")
    expect(page.locator("#waiting")).to_be_hidden()
    assert [told(vault, id) for id in ("deploy", "when")] == [42, 42]
    assert taken(vault) == [9]
    assert "none of these" in heard(vault, "three")


def test_questions_are_answered_on_a_phone(
    chromium: Browser, asked: tuple[Visitor, hardsave.Vault]
) -> None:
    visitor, vault = asked
    page = visitor.page
    page.set_viewport_size({"width": 360, "height": 780})
    visitor.go("inbox")
    left(visitor, 7)
    expect(page.locator("#waiting")).to_have_text("7")
    for link in page.locator("nav.screens a").all():
        assert float(link.evaluate("(a) => a.offsetHeight")) < 40, "its name is on one line"
    expect(page.locator(".asked-one")).to_be_hidden()
    entry(visitor, "one").locator("a").click()
    shown(visitor, "one")
    expect(page.locator(".asking")).to_be_hidden()
    for name in ("Approve", "Edit…", "Deny"):
        box = visitor.button(name).bounding_box()
        assert box is not None
        assert box["height"] >= 44, name
    assert visitor.overflow <= 0
    visitor.button("Approve").click()
    shown(visitor, "two")
    assert vault.jobs.get("one").state == "queued"
    page.get_by_role("link", name="All questions").click()
    left(visitor, 6)
    for id in ("two", "three"):
        page.get_by_label(f"Tick {id}").check()
    visitor.button("Approve 2").click()
    left(visitor, 4)
    assert visitor.overflow <= 0
    assert [vault.jobs.get(id).state for id in ("two", "three")] == ["queued", "queued"]


def test_no_other_question_takes_the_place_of_the_one_that_is_read(
    asked: tuple[Visitor, hardsave.Vault],
) -> None:
    visitor, vault = asked
    page = visitor.page
    visitor.go("inbox")
    left(visitor, 7)
    shown(visitor, "one")
    visitor.see(".connected[title^='What happens']")
    reason = page.get_by_label("Reason, told the agent")
    reason.fill("half a sent")
    add_jobs(vault, newer="asks")
    expect(page.locator(".asking li").first).to_contain_text("newer")
    shown(visitor, "one")
    expect(reason).to_have_value("half a sent")
    expect(reason).to_be_focused()
    vault.jobs.approve("one")  # another person was faster
    expect(page.locator(".asked-one")).to_contain_text("one does not ask any more")
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    left(visitor, 7)
    assert vault.jobs.get("newer").state == "waiting"


def test_an_answer_to_a_question_that_is_not_asked_any_more_is_refused(
    asked: tuple[Visitor, hardsave.Vault],
) -> None:
    visitor, vault = asked
    visitor.go("inbox", id="when")
    shown(visitor, "when")

    def faster(route: Route) -> None:
        """Before the answer comes, another person answers, and the task asks something else."""
        vault.tasks.answer("when", "noon")
        with vault.tasks.attempt("when") as attempt:
            attempt.ask("when to production?")
            attempt.ask("And now?")
        route.continue_()

    visitor.page.route("**/api/v1/tasks/answer", faster)
    visitor.button("yes").click()
    expect(visitor.page.locator(".notice.problem")).to_contain_text("asks something else by now")
    assert vault.tasks.get("when").question == "And now?"
    expect(visitor.page.locator(".asked-one .asked")).to_have_text("And now?")
    visitor.complaints.clear()
