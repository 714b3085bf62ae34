"""What keeps people out of a screen, as axe finds it: nothing serious on any, light and dark."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import (  # type: ignore[import-untyped] # it has no types
    Axe,
)
from playwright.sync_api import Browser, Page

from hardsave.vault.opening import open_project
from tests.integration.server.browser import NEEDS_CHROMIUM, Visitor, visiting
from tests.integration.server.conftest import Server, environment, starting
from tests.integration.server.session_story import NAME, Story
from tests.integration.server.test_all_projects import User, user
from tests.integration.server.work_story import fill

pytestmark = NEEDS_CHROMIUM
__all__ = ["user"]

ALL: dict[str, Any] = {"resultTypes": ["violations"]}
COLORS: dict[str, Any] = {**ALL, "runOnly": ["color-contrast"]}  # nothing else differs in the dark
GRAVE = ("serious", "critical")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server over something of everything, and a session with files and a past."""
    with starting(tmp_path_factory.mktemp("axe")) as start:
        server = start()
        with server.vault() as vault:
            fill(vault, server.store, server.folder)
            Story(vault, server.folder).tell()
        yield server


def found(page: Page) -> list[str]:
    """What axe finds that is grave."""
    told = []
    for scheme, options in (("light", ALL), ("dark", COLORS)):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        for each in Axe().run(page, options=options).response["violations"]:
            if each["impact"] in GRAVE:
                where = [str(node["target"]) for node in each["nodes"][:3]]
                told.append(f"{scheme} {each['id']}: {', '.join(where)}")
    return told


# The screen, its parameters, and what is there once it is drawn
SCREENS: tuple[tuple[str, dict[str, str], str], ...] = (
    ("", {}, ".session"),
    ("", {"text": "nosuch"}, ".empty"),
    ("search", {"text": "hello"}, ".hit"),
    ("search", {"text": "zzzz"}, "text=Fewer words find more."),
    ("session", {"timeline": NAME}, ".message"),
    ("session", {"timeline": NAME, "at": ":5", "file": "discount.py"}, ".l"),
    ("session", {"timeline": NAME, "at": ":2", "file": "cart.py", "view": "changes"}, ".l"),
    ("session", {"timeline": NAME, "at": ":2", "file": "cart.py", "view": "history"}, ".version"),
    ("diff", {"timeline": NAME, "from": ":1", "to": ":6"}, ".lines"),
    ("work", {}, ".listed"),
    ("work", {"what": "tasks"}, ".listed"),
    ("work", {"state": "forgotten"}, ".empty"),
    ("job", {"id": "broken"}, ".happened li"),
    ("job", {"id": "push", "task": "1"}, ".steps .unknown"),
    ("inbox", {"id": "careful"}, ".around .message"),
    ("inbox", {"id": "push"}, ".around .steps"),
    ("inbox", {"id": "deploy"}, "#reply"),
    ("inbox", {"id": "gone"}, ".empty"),
    ("health", {"max_per_timeline": "1"}, "#retain"),
    ("nosuch", {}, ".empty"),
)


ON_A_PHONE = SCREENS[0], SCREENS[4], SCREENS[9], SCREENS[14], SCREENS[18]  # which differ there


@pytest.mark.parametrize(
    ("width", "screens"), [(1400, SCREENS), (390, ON_A_PHONE)], ids=["desk", "phone"]
)
def test_axe_finds_nothing_serious_on_any_screen(
    chromium: Browser,
    server: Server,
    width: int,
    screens: tuple[tuple[str, dict[str, str], str], ...],
) -> None:
    wrong = {}
    with visiting(chromium, server) as visitor:
        visitor.page.set_viewport_size({"width": width, "height": 844})
        for screen, params, drawn in screens:
            visitor.go(screen, **params)
            visitor.page.locator(drawn).first.wait_for(state="attached")
            wrong[f"{screen} {params}"] = found(visitor.page)
    assert {name: told for name, told in wrong.items() if told} == {}


def test_no_screen_is_wider_than_a_small_phone(chromium: Browser, server: Server) -> None:
    wide = {}
    with visiting(chromium, server, viewport={"width": 360, "height": 740}) as visitor:
        for screen, params, drawn in SCREENS:
            visitor.go(screen, **params)
            visitor.page.locator(drawn).first.wait_for(state="attached")
            wide[f"{screen} {params}"] = visitor.overflow
    assert {name: pixels for name, pixels in wide.items() if pixels > 0} == {}


def by_button(name: str) -> Callable[[Visitor], None]:
    return lambda visitor: visitor.page.get_by_role("button", name=name).first.click()


def by_keys(*keys: str) -> Callable[[Visitor], None]:
    def press(visitor: Visitor) -> None:
        for key in keys:
            visitor.page.keyboard.press(key)

    return press


def test_axe_finds_nothing_serious_in_dialogs(chromium: Browser, server: Server) -> None:
    wrong = {}
    with visiting(chromium, server) as visitor:
        for screen, params, drawn, opens in (
            ("work", {}, ".listed", by_keys("?")),
            ("job", {"id": "broken"}, "[data-act=resume]", by_button("Resume…")),
            ("job", {"id": "broken"}, "[data-act=purge]", by_button("Purge…")),
            ("job", {"id": "mail", "task": "1"}, "[data-act=retry]", by_button("Retry…")),
            ("health", {"max_per_timeline": "1"}, "#retain", by_button("Let them go…")),
            ("inbox", {"id": "careful"}, "#approve", by_keys("x", "D")),
            ("inbox", {"id": "deploy"}, "#reply", by_keys("x", "R")),
            ("job", {"id": "broken"}, "[data-act=delete]", by_button("Delete…")),
            ("session", {"timeline": NAME, "at": ":2"}, ".message", by_keys("r")),
            ("session", {"timeline": NAME, "at": ":2"}, ".message", by_keys("f")),
            ("session", {"timeline": NAME, "at": ":2"}, ".message", by_keys("g")),
        ):
            visitor.go(screen, **params)
            visitor.see(drawn)
            opens(visitor)
            wrong[visitor.see("dialog[open] h2").inner_text()] = found(visitor.page)
    assert {title: told for title, told in wrong.items() if told} == {}
    assert len(wrong) == 11


def test_axe_finds_nothing_serious_where_projects_are_chosen(
    chromium: Browser, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(user.folder).items():
        monkeypatch.setenv(name, value)
    shop = user.project("shop")
    with open_project(str(shop)) as vault:
        vault.timeline("claude-1").save({}, title="Of the shop")
    with user.serving(shop, "--all-projects") as server, visiting(chromium, server) as visitor:
        visitor.go("projects")
        visitor.see(".listed")
        assert found(visitor.page) == []


def test_axe_finds_nothing_serious_before_the_login(chromium: Browser, server: Server) -> None:
    context = chromium.new_context()
    page = context.new_page()
    for path, title in (("/login", "Log in"), ("/", "refused|Log in|token")):
        page.goto(f"{server.url}{path}")
        assert re.search(title, page.content())
        assert found(page) == []
    context.close()
