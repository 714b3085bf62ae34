"""A real Chromium for the tests of the page, logged in at a real server.

It needs a Chromium that is installed; Playwright brings none along. The page allows no `eval`, so
nothing here waits by a script that is sent as text: tests wait for what a locator sees.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright

from tests.integration.server.conftest import Server

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
OPTIONS = [
    "--no-sandbox",  # as root it does not start with one
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]
PATIENCE = 20_000  # milliseconds
expect.set_options(timeout=PATIENCE)
NEEDS_CHROMIUM = pytest.mark.skipif(
    CHROMIUM is None, reason="NOT TRIED: the page in a browser. It takes Chromium, apt-get has it"
)


@contextmanager
def launched() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()


class Visitor:
    """A tab of a browser that has logged in, and what it complained of."""

    def __init__(self, context: BrowserContext, server: Server) -> None:
        self.server = server
        self.context = context
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.complaints: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append("a dialog"))
        self.page.on("request", lambda request: self._note(request.url))

    def _note(self, url: str) -> None:
        if not url.startswith((self.server.url + "/", "blob:", "data:")):
            self.complaints.append(f"it asked {url}")

    def log_in(self) -> None:
        """By the link that the server has printed, which leads in once."""
        self.page.goto(self.server.link)
        with self.page.expect_navigation():
            self.page.get_by_role("button", name="Log in").click()
        self.page.goto("about:blank")  # the page after the login asks for nothing any more
        _logins[self.server.link] = self.context.storage_state()

    def go(self, screen: str, **params: str) -> None:
        """Open a screen anew, as a link from elsewhere does."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.server.url}/#/{screen}?{urlencode(params)}")

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def see(self, selector: str, **having: Any) -> Locator:
        """The first element that there is of a kind, once it is there."""
        found = self.page.locator(selector, **having).first
        expect(found).to_be_visible(timeout=PATIENCE)
        return found

    def until(self, what: str, is_so: Callable[[], object]) -> None:
        """Until something is so that no locator tells, as on the disk."""
        end = time.monotonic() + PATIENCE / 1000
        while not is_so():
            assert time.monotonic() < end, what
            self.page.wait_for_timeout(20)

    @property
    def overflow(self) -> int:
        """How many pixels the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))


# The cookies of a server's browser, by the link that the server has printed. Its address would not
# do: a later server may get the port of an earlier one, and knows none of its logins.
_logins: dict[str, Any] = {}


@contextmanager
def visiting(browser: Browser, server: Server, **options: Any) -> Iterator[Visitor]:
    """A browser at a server: the one that has logged in there, with all of its tabs closed."""
    known = _logins.get(server.link)
    about = {"viewport": {"width": 1400, "height": 900}, "storage_state": known, **options}
    context = browser.new_context(**about)
    try:
        visitor = Visitor(context, server)
        if known is None:
            visitor.log_in()
        yield visitor
        assert visitor.complaints == [], visitor.complaints
    finally:
        context.close()


# Texts whose contrast with what is behind them is below 4.5, as WCAG computes it.
CONTRAST = """() => {
  const parts = (color) => {
    const found = color.match(/[0-9.]+/g).map(Number);
    if (!color.startsWith("color(srgb")) return found;
    return [...found.slice(0, 3).map((v) => v * 255), ...found.slice(3)];
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => {
      v /= 255;
      return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const color = parts(getComputedStyle(element).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !element.checkVisibility() || element.matches(".skip, progress, option")) continue;
    let through = 1;
    for (let at = element; at; at = at.parentElement) through *= getComputedStyle(at).opacity;
    const back = behind(element);
    const ink = parts(getComputedStyle(element).color).slice(0, 3);
    const seen = ink.map((v, at) => v * through + back[at] * (1 - through));
    const [one, two] = [light(seen), light(back)];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    const text = element.textContent.slice(0, 60);
    if (ratio < 4.5) bad.push(`${element.className} ${text} ${ratio.toFixed(1)}`);
  }
  return bad;
}"""
