"""Work in a real Chromium: jobs and tasks as they stand, and what is on disk after each act."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

import hardsave
from hardsave.runtime.jobs.worker import Worker
from tests.integration.server.browser import NEEDS_CHROMIUM, Visitor, visiting
from tests.integration.server.conftest import Server, Start
from tests.integration.server.session_story import user as said
from tests.integration.server.work_story import AGENTS, add_jobs, fill, leave_step, work
from tests.unit.cli.jobs_project import agent

pytestmark = NEEDS_CHROMIUM


@pytest.fixture
def worked(chromium: Browser, start: Start) -> Iterator[tuple[Visitor, hardsave.Vault]]:
    """A tab at a server over something of everything, and its store."""
    server = start()
    with server.vault() as vault:
        fill(vault, server.store, server.folder)
        with visiting(chromium, server) as visitor:
            yield visitor, vault


def row(visitor: Visitor, id: str) -> Locator:
    name = visitor.page.get_by_role("link", name=id, exact=True)
    return visitor.page.locator(".listed.work").filter(has=name)


def notice(visitor: Visitor, text: str) -> Locator:
    found = visitor.page.locator(".notice").filter(has_text=text)
    expect(found).to_be_visible()
    return found


def test_jobs_and_tasks_are_told_by_state_and_kept_so_by_the_address(
    worked: tuple[Visitor, hardsave.Vault],
) -> None:
    visitor, vault = worked
    page = visitor.page
    visitor.go("work")
    for id, *told in (
        ("careful", "waiting", "turn 1 of 10", "may it call note("),
        ("broken", "failed", "OSError: the model is gone", "Resume…"),
        ("well", "succeeded", "turn 2 of 10"),
        ("queued", "queued", "it waits for a worker that has agent 'nobody'", "Cancel"),
    ):
        for text in told:
            expect(row(visitor, id)).to_contain_text(text)
    page.get_by_role("button", name="failed 1").click()
    expect(page.locator(".listed")).to_have_count(1)
    page.keyboard.press("t")
    expect(row(visitor, "mail")).to_contain_text("OSError: the disk is full")
    expect(row(visitor, "mail")).to_contain_text("1 attempt of 1")
    page.get_by_role("button", name=re.compile("^pending")).click()
    expect(row(visitor, "push")).to_contain_text("retry, skip or fail?")
    page.reload()
    expect(page).to_have_url(re.compile("what=tasks&state=pending"))
    expect(page.get_by_role("button", name=re.compile("^pending"))).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(row(visitor, "mail")).to_have_count(0)
    visitor.go("work", state="forgotten")
    expect(page.locator(".empty")).to_contain_text("hardsave jobs submit NAME")
    visitor.go("work")
    visitor.see(".connected[title^='What happens']")
    vault.jobs.approve("careful")
    expect(row(visitor, "careful")).to_contain_text("queued")
    work(vault)
    expect(row(visitor, "careful")).to_contain_text("succeeded")


def test_a_reload_and_a_way_back_leave_a_person_where_they_looked(
    chromium: Browser, server: Server
) -> None:
    with server.vault() as vault, visiting(chromium, server) as visitor:
        page = visitor.page
        for number in range(120):
            vault.tasks.add(f"task-{number:03}")
        vault.timeline("main").append({"messages": [said("word")] * 120})
        main = page.locator("#main")
        for screen, params, entries in (
            ("work", {"what": "tasks"}, page.locator(".listed")),
            ("search", {"text": "word"}, page.locator(".hit")),
        ):
            visitor.go(screen, **params)
            expect(entries).to_have_count(50)
            visitor.button("More").click()
            expect(entries).to_have_count(100)
            last = entries.nth(90).locator("a.name")
            last.scroll_into_view_if_needed()
            scrolled = main.evaluate("(main) => main.scrollTop")
            assert scrolled > 1000
            kept = f"history.state?.scrolled === {scrolled}"
            visitor.until("it is kept", partial(page.evaluate, kept))
            there = f"(main) => Math.abs(main.scrollTop - {scrolled}) < 2"
            page.reload()
            expect(entries).to_have_count(100)
            visitor.until("it is back", partial(main.evaluate, there))
            last.click()
            expect(entries).to_have_count(0)
            page.go_back()
            expect(entries).to_have_count(100)
            visitor.until("it is back", partial(main.evaluate, there))


def test_one_job_is_told_with_its_steps_and_all_that_happened(
    worked: tuple[Visitor, hardsave.Vault],
) -> None:
    visitor, _ = worked
    page = visitor.page
    visitor.go("job", id="broken")
    for text in ("Do broken", "OSError: the model is gone", "1 of 10, 10 %", "breaks, scripted"):
        expect(page.locator("main")).to_contain_text(text)
    expect(page.locator(".steps li")).to_contain_text(["note"])
    expect(page.locator(".steps li")).to_contain_text(["noted hello"])
    expect(page.locator(".happened li")).to_contain_text(["failed", "", "claimed", "added"])
    page.get_by_text("Traceback", exact=True).click()
    expect(page.locator(".happened pre")).to_contain_text("jobs_project.py")
    page.get_by_role("link", name="broken, at its last save").click()
    expect(page).to_have_url(re.compile(r"#/session\?timeline=broken&at=chk_"))
    visitor.go("job", id="push", task="1")
    unknown = page.locator(".steps li.unknown")
    expect(unknown).to_contain_text("push#1")
    expect(unknown).to_contain_text("end not known")
    expect(page.locator(".steps li").first).to_contain_text("shop-1.2.tar")


def test_a_job_is_resumed_from_an_earlier_checkpoint_with_the_files_of_then(
    chromium: Browser, start: Start, tmp_path: Path
) -> None:
    server, place = start(), tmp_path / "work"
    place.mkdir()
    notes = place / "notes.txt"
    with server.vault() as vault, visiting(chromium, server) as visitor:
        page = visitor.page
        vault.jobs.add("fix", "Fix it", agent="a", workspace=place, max_turns=10)
        Worker(vault, {"a": agent(notes=notes, breaks=True)}).run(until_idle=True)
        assert notes.read_text() == "hello"
        *_, early = saved = [
            each
            for each in vault.timeline("fix").checkpoints()
            if each.description != "the files that the job begins with"
        ]
        visitor.go("job", id="fix")
        notes.write_text("spoiled")
        visitor.button("Resume…").click()
        dialog = page.get_by_role("dialog", name="Resume fix")
        expect(dialog.get_by_label("From")).to_be_focused()
        expect(dialog.locator("option")).to_have_count(len(saved) + 1)
        dialog.get_by_label("From").select_option(early.id)
        dialog.get_by_label("Turns").fill("7")
        visitor.button("Resume").click()
        notice(visitor, "It goes on when a worker takes it up")
        expect(page).to_have_url(re.compile(r"id=fix%7E2"))
        resumed = vault.jobs.get("fix")
        assert (resumed.state, resumed.max_turns) == ("queued", 7)
        Worker(vault, {"a": agent(notes=notes)}).run(until_idle=True)
        # As it was then, and written once since; where hosts share the store, an attempt has a
        # directory of its own, and what lies here is left alone by a resumption.
        is_shared = server.store.startswith("postgresql")
        assert notes.read_text() == ("spoiledhello" if is_shared else "hello")
        assert vault.jobs.get("fix").state == "succeeded"
        expect(page.locator(".heading .state")).to_have_text("succeeded")
        expect(page.locator("main")).to_contain_text("all done")


def test_a_job_is_resumed_from_an_earlier_checkpoint_by_keys_alone(
    worked: tuple[Visitor, hardsave.Vault],
) -> None:
    visitor, vault = worked
    page, keys = visitor.page, visitor.page.keyboard
    visitor.go("work", state="failed")
    expect(page.locator(".listed")).to_have_count(1)
    keys.press("j")
    keys.press("r")
    chosen = page.get_by_label("From")
    expect(chosen).to_be_focused()
    expect(chosen.locator("option")).not_to_have_count(1)
    keys.press("End")  # the first checkpoint
    expect(chosen).to_have_value(vault.timeline("broken").get(":1").id)
    keys.press("Tab")
    keys.type("7")
    keys.press("Enter")
    notice(visitor, "It goes on when a worker takes it up")
    resumed = vault.jobs.get("broken")
    assert (resumed.state, resumed.max_turns) == ("queued", 7)


def test_a_task_is_retried_with_a_word_about_steps_whose_end_is_not_known(
    chromium: Browser, server: Server
) -> None:
    leave_step(server.store, "push", asks=False)
    with server.vault() as vault, visiting(chromium, server) as visitor:
        vault.tasks.cancel("push")
        visitor.go("job", id="push", task="1")
        visitor.see("[data-act=retry]")
        visitor.page.keyboard.press("r")
        dialog = visitor.page.get_by_role("dialog", name="Retry push")
        expect(dialog).to_contain_text("1 step began, and the end is not known: push#1")
        dialog.get_by_label("What becomes of them").select_option("skip")
        visitor.button("Retry").click()
        notice(visitor, "push is back at work")
        assert vault.tasks.get("push").state == "pending"
        ran: list[object] = []
        with vault.tasks.attempt("push") as attempt:
            attempt.step("build", lambda: ran.append("built"))
            attempt.step("push", ran.append, 9, unknown="ask")
        assert ran == []
        expect(visitor.page.locator(".heading .state")).to_have_text("completed")


def test_jobs_are_cancelled_deleted_brought_back_and_purged_by_keys_alone(
    worked: tuple[Visitor, hardsave.Vault],
) -> None:
    visitor, vault = worked
    page = visitor.page
    visitor.go("work")
    visitor.see(".listed")
    for id in ("queued", "well", "careful"):
        page.keyboard.press("j")
        expect(row(visitor, id).locator("a.name")).to_be_focused()
    page.keyboard.press("c")
    notice(visitor, "careful is cancelled")
    assert vault.jobs.get("careful").error == "cancelled"
    expect(row(visitor, "careful")).to_contain_text("failed")
    expect(row(visitor, "careful").locator("a.name")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("careful")
    visitor.see("[data-act=delete]")
    page.keyboard.press("Delete")
    expect(visitor.button("Not now")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert vault.jobs.get("careful").can_resume
    page.keyboard.press("Delete")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    said = notice(visitor, "careful is deleted")
    assert not vault.jobs.get("careful").can_resume
    assert [each.name for each in vault.timelines() if each.name == "careful"] == []
    said.get_by_role("button", name="Undo").press("Enter")
    notice(visitor, "What careful saved is back")
    assert vault.jobs.get("careful").can_resume
    visitor.see("[data-act=purge]").press("Enter")
    typed = page.get_by_label("Type careful to confirm")
    expect(typed).to_be_focused()
    page.keyboard.type("care")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("This cannot be undone")
    assert vault.timeline("careful").head is not None
    page.keyboard.type("ful")
    page.keyboard.press("Enter")
    notice(visitor, "careful is purged")
    expect(page).to_have_url(re.compile("#/work"))
    expect(row(visitor, "careful")).to_have_count(0)
    assert vault.timeline("careful").head is None
    with pytest.raises(hardsave.NotFound):
        vault.timeline("careful").undo()


def test_what_may_not_be_done_is_not_offered_and_what_is_refused_says_why(
    chromium: Browser, start: Start
) -> None:
    server = start()
    with server.vault() as vault:
        add_jobs(vault, broken="breaks")
        with visiting(chromium, server) as visitor:
            visitor.go("job", id="broken")
            visitor.button("Resume…").click()
            vault.jobs.resume("broken")  # another person was faster
            Worker(vault, AGENTS).run(until_idle=True)
            vault.jobs.resume("broken")
            visitor.button("Resume").click()
            notice(visitor, "cannot be resumed")
            visitor.complaints.clear()
            assert vault.jobs.get("broken").state == "queued"
            visitor.go("job", id="nosuch")
            expect(visitor.page.get_by_role("alert")).to_contain_text("there is no job 'nosuch'")
            visitor.complaints.clear()
