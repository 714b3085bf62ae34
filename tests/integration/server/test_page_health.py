"""Health in a real Chromium: what is said of the store, and what verify and retention do to it."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.integration.server.browser import NEEDS_CHROMIUM, Visitor, visiting
from tests.integration.server.conftest import Start
from tests.integration.server.work_story import add_jobs

pytestmark = NEEDS_CHROMIUM


def fact(visitor: Visitor, name: str) -> str:
    return (
        visitor.page.locator(".facts-list > div").filter(has_text=name).locator("dd").inner_text()
    )


def test_the_store_its_backup_its_disk_its_hooks_and_missed_saves_are_told(
    chromium: Browser, start: Start, tmp_path: Path
) -> None:
    server = start()
    with server.vault() as vault:
        add_jobs(vault, broken="breaks")
        vault.jobs.add("queued", "Do it", agent="nobody")
        vault.timeline("main").save({})
    missed = tmp_path / "data" / "hardsave" / "hooks" / "any"
    missed.mkdir(parents=True)
    (missed / "1.json").write_text(json.dumps({"hook": "Stop", "why": "the disk was full"}))
    with visiting(chromium, server) as visitor:
        page = visitor.page
        visitor.go("")
        page.get_by_role("link", name="1 save of hooks missed: see why").click()
        expect(page).to_have_url(re.compile("#/health"))
        visitor.see(".findings li")
        assert fact(visitor, "Usable") == "yes"
        assert fact(visitor, "Checkpoints").endswith("in 2 timelines")
        assert fact(visitor, "Saves that hooks missed") == "1, in all projects"
        assert fact(visitor, "Queued without a worker") == "1: hardsave worker runs them"
        of_files = ("backup", "disk") if server.store.startswith("sqlite:") else ()
        for what in (*of_files, "missed saves", "Claude Code", "Codex"):
            expect(page.locator(".findings li").filter(has_text=what)).to_have_count(1)
        (missed / "1.json").unlink()
        page.keyboard.press("l")
        expect(page.locator(".facts-list").first).to_contain_text("Saves that hooks missed")
        visitor.until(
            "it was looked at again", lambda: fact(visitor, "Saves that hooks missed") == "none"
        )


def test_retention_shows_what_would_go_and_lets_go_only_what_was_seen(
    chromium: Browser, start: Start
) -> None:
    server = start()
    with server.vault() as vault, visiting(chromium, server) as visitor:
        page, line = visitor.page, vault.timeline("main")
        for number in range(5):
            line.save({"n": number}, name="kept" if number == 0 else None)

        def kept() -> list[int]:
            return sorted(each.seq for each in line.checkpoints())

        visitor.go("health")
        said = page.locator("#would-go")
        expect(said).to_have_text("Nothing would go of 5 checkpoints.")
        page.keyboard.press("r")
        expect(page.get_by_label("Keep for days")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.type("2")
        page.keyboard.press("Enter")
        expect(said).to_contain_text("of 5 would go")
        expect(page).to_have_url(re.compile("max_per_timeline=2"))
        page.get_by_text("Which").click()
        planned = page.locator("details li")
        expect(planned.first).to_contain_text("more than a session keeps")
        expected = {int(each.split(":")[1].split()[0]) for each in planned.all_inner_texts()}
        assert kept() == [1, 2, 3, 4, 5]  # nothing goes by looking
        visitor.button("Let them go…").click()
        expect(visitor.button("Keep them")).to_be_focused()
        line.save({"n": 5})  # meanwhile: another plan holds now
        page.get_by_role("dialog").get_by_role("button", name="Let them go", exact=True).click()
        expect(page.locator(".notice.problem")).to_contain_text("another plan holds by now")
        visitor.complaints.clear()
        assert kept() == [1, 2, 3, 4, 5, 6]
        expect(said).to_contain_text("of 6 would go")
        visitor.button("Let them go…").click()
        page.keyboard.press("Enter")
        assert kept() == [1, 2, 3, 4, 5, 6]
        expect(visitor.button("Let them go…")).to_be_focused()
        page.keyboard.press("Enter")
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Enter")
        dropped = page.locator(".notice").filter(has_text="dropped")
        expect(dropped).to_be_visible()
        assert expected < {1, 2, 3, 4, 5, 6} - {*kept()}
        assert 6 in kept()
        dropped.get_by_role("button", name="Collect it now").click()
        expect(page.locator(".notice").filter(has_text="freed")).to_be_visible()
        assert vault.store.verify().ok


def test_verify_says_that_all_is_sound_and_what_is_not(chromium: Browser, start: Start) -> None:
    server = start()
    with server.vault() as vault:
        vault.timeline("main").save({"text": "some words " * 1000})
    with visiting(chromium, server) as visitor:
        page = visitor.page
        visitor.go("health")
        visitor.see("#verify").focus()
        page.keyboard.press("v")
        said = page.get_by_role("region", name="Soundness").get_by_role("status")
        expect(said).to_contain_text("1 checkpoint and")
        expect(said).to_contain_text("are sound")
        expect(page.locator("#verify")).to_be_focused()
        if not server.store.startswith("sqlite:"):
            return  # there is no file to damage
        spoil(server.store.removeprefix("sqlite:///"))
        page.locator("#verify").click()
        expect(said).to_contain_text("hardsave store repair saves what can be read")
        expect(page.locator(".broke li").first).to_be_visible()


def spoil(path: str) -> None:
    """Bytes of what is stored change, as on a disk that decays."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE packs SET body = zeroblob(length(body))")
