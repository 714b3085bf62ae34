"""The page about the dashboard has its keys and its screens, as a browser shows them."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.docs.dashboard import LOOKS, PICTURES, scene, show, views
from tests.docs.pages import DOCS
from tests.integration.server.browser import NEEDS_CHROMIUM, Visitor, launched, visiting

PAGE = DOCS / "howto" / "dashboard.md"
SCREENS = {  # by the name that their keys have
    "Sessions": "home",
    "This session": "session",
    "Compare": "compare",
    "Work": "work",
    "Inbox": "inbox",
    "Health": "health",
}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@NEEDS_CHROMIUM
def test_each_screen_is_there_with_the_keys_that_the_page_lists(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with (
        scene(tmp_path_factory.mktemp("shop")) as (server, shop),
        visiting(chromium, server) as visitor,
    ):
        by_name = {view.name: view for view in views(shop.session)}
        for view in by_name.values():
            show(visitor, view)
        for title, name in SCREENS.items():
            show(visitor, by_name[name])
            assert listed(title) == pressed(visitor, title)
        assert pressed(visitor, "Everywhere") == [
            each for each in listed("Everywhere") if "server of all" not in each[1]
        ]


def test_there_is_a_picture_of_each_screen_in_each_look() -> None:
    wanted = {f"dashboard-{view.name}-{look.name}.png" for view in views("any") for look in LOOKS}
    assert wanted == {each.name for each in PICTURES.glob("dashboard-*.png")}
    assert wanted == set(re.findall(r"dashboard-[\w-]+\.png", PAGE.read_text()))


def listed(title: str) -> list[tuple[str, str]]:
    """Keys of a screen, and what they do, as the page has them."""
    part = PAGE.read_text().partition(f"\n### {title}\n")[2].partition("\n#")[0]
    rows = re.findall(r"^\| (`.*`) \| (.*) \|$", part, re.MULTILINE)
    return [(keys.replace("`", ""), about) for keys, about in rows]


def pressed(visitor: Visitor, title: str) -> list[tuple[str, str]]:
    """The same as `?` shows them."""
    visitor.page.get_by_role("button", name="Keys", exact=True).click()
    dialog = visitor.page.get_by_role("dialog", name="Keys")
    rows = dialog.locator("h3", has_text=title).locator("xpath=following-sibling::dl[1]/div")
    expect(rows.first).to_be_visible()
    found = [
        (" ".join(row.locator("kbd").all_inner_texts()), row.locator("dd").inner_text())
        for row in rows.all()
    ]
    visitor.page.keyboard.press("Escape")
    return found
