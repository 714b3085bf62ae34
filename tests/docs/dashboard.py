"""Pictures of the dashboard: a real server over a project with sessions and jobs, in Chromium.

`python -m tests.docs.dashboard` draws them anew, in a folder of its own.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.docs.pages import DOCS
from tests.docs.png import small
from tests.docs.shop import Shop
from tests.integration.server.browser import Visitor, launched, visiting
from tests.integration.server.conftest import Server, starting

PICTURES = DOCS / "pictures"
BETWEEN = {"from": ":4", "to": ":8", "mode": "split"}
WIDE = {"width": 1280, "height": 800}
NARROW = {"width": 390, "height": 780}


class Look(NamedTuple):
    """How a picture is taken; its name ends with that of the look."""

    name: str
    window: dict[str, int]
    colours: str


LOOKS = (
    Look("light", WIDE, "light"),
    Look("dark", WIDE, "dark"),
    Look("390", NARROW, "light"),
)


class View(NamedTuple):
    """A screen, what is seen once it is there, and what is done on it before."""

    name: str
    screen: str
    params: dict[str, str]
    shows: str
    keys: str = ""
    then: str = ""


def views(session: str) -> tuple[View, ...]:
    def at(name: str, shows: str, *, keys: str = "", then: str = "", **params: str) -> View:
        return View(name, "session", {"timeline": session, **params}, shows, keys, then)

    return (
        View("home", "", {}, ".session"),
        at("session", "text=Members pay 95 %"),
        at("file", ".l.added", at=":24", file="shop/cart.py", view="changes"),
        at("rewind", ".moment-label b:text-is(':4')", at=":4", keys="r", then=".said-first"),
        View("compare", "diff", {"timeline": session, **BETWEEN}, ".l.added"),
        View("work", "work", {}, ".listed"),
        View("inbox", "inbox", {"id": "release"}, "[aria-label='The question'] >> text=1.3"),
        View("health", "health", {}, ".card"),
    )


@contextmanager
def scene(folder: Path) -> Iterator[tuple[Server, Shop]]:
    """A server over the project."""
    with starting(folder) as start:
        server = start()
        yield server, Shop(server.folder, server.store, time.time_ns() // 1_000)


def show(visitor: Visitor, view: View) -> None:
    """Open a screen as a link does, and wait until all of it is there."""
    visitor.go(view.screen, **view.params)
    seen(visitor.page, view.shows)
    if view.then:
        visitor.page.keyboard.press(view.keys)
        seen(visitor.page, view.then)
    expect(visitor.page.locator(".loading")).to_have_count(0)


def seen(page: Page, selector: str) -> Locator:
    """It is on the page; on a narrow one another part may be shown."""
    found = page.locator(selector).first
    expect(found).to_be_attached()
    return found


def rename(visitor: Visitor, server: Server) -> None:
    """Have the page told of a directory that is the same each time."""
    names = {str(server.folder): "/home/you/shop", str(server.folder.parent): "/home/you"}

    def told(route: Route) -> None:
        answer = route.fetch()
        text = answer.text()
        for here, name in names.items():
            text = text.replace(here, name)
        route.fulfill(response=answer, body=text)

    for each in ("rewind/preview", "diff*", "graph*", "checkpoint*", "timeline*", "health*"):
        visitor.page.route(f"**/api/v1/{each}", told)


def draw(browser: Browser, server: Server, session: str) -> None:
    plain = browser.new_page()
    for look in LOOKS:
        about = {"viewport": look.window, "color_scheme": look.colours, "reduced_motion": "reduce"}
        with visiting(browser, server, **about) as visitor:
            rename(visitor, server)
            for view in views(session):
                show(visitor, view)
                taken = visitor.page.screenshot(animations="disabled", caret="hide")
                where = PICTURES / f"dashboard-{view.name}-{look.name}.png"
                where.write_bytes(small(taken, plain))


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory() as folder,
        scene(Path(folder).resolve()) as (server, shop),
        launched() as browser,
    ):
        draw(browser, server, shop.session)
