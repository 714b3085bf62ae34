"""What a person waits for on the dashboard: a real Chromium, a real server.

Times are taken in the browser, from the request for the page to the frame in which what was asked
for stands there. It needs a Chromium that is installed.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, sync_playwright

import hardsave
from bench import report, server_store
from bench.machine import check
from bench.report import Row, at_most
from bench.served import serving
from bench.server_store import TALK
from bench.setting import Setting
from bench.stopwatch import median
from bench.store_file import url

ROUNDS = 3  # of which the best counts
FILES = "files"
_OPTIONS = ["--no-sandbox", "--disable-background-networking", "--no-first-run"]
_NOTE = (
    f"from the request for the page to the frame that shows it, all in a new tab; best of {ROUNDS}"
)

# Gives the milliseconds until `is_so(given)` holds in two frames, one after the other.
_UNTIL = """(given) => new Promise((resolve) => {
  const began = %s;
  let held = 0;
  const look = () => {
    held = (%s)(given) ? held + 1 : 0;
    if (held === 2) resolve(performance.now() - began);
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""
_SINCE_REQUEST = "0"
_SINCE_NOW = "(location.hash = given.address, performance.now())"

_HAS_TEXT = """({ selector, text }) =>
  [...document.querySelectorAll(selector)].some((one) => one.textContent.includes(text))"""
_IS_AT_TOP = """({ number }) => {
  const there = document.querySelector(`.message[data-number="${number}"]`);
  if (!there?.querySelector(".text")) return false;
  const top = (element) => element.getBoundingClientRect().top;
  return Math.abs(top(there) - top(there.closest("virtual-list"))) <= 2;
}"""
_HAS_ALL_MOMENTS = """({ last }) =>
  document.querySelector(".track input")?.max === String(last) &&
  document.querySelectorAll(".moment").length > 10"""

# Scrolls by so many pixels a frame, and gives the longest time between two frames.
_SCROLLED = """({ frames, pixels }) => new Promise((resolve) => {
  const list = document.querySelector("virtual-list.conversation");
  let worst = 0;
  let before = performance.now();
  const step = (left) => requestAnimationFrame(() => {
    const now = performance.now();
    worst = Math.max(worst, now - before);
    before = now;
    list.scrollTop -= pixels;
    if (left) step(left - 1);
    else resolve(worst);
  });
  step(frames);
})"""


class Sizes(NamedTuple):
    """How much there is to show."""

    timelines: int
    checkpoints: int  # of the conversation, two messages each
    files: int

    @property
    def messages(self) -> int:
        return 2 * self.checkpoints


class Visit:
    """A browser that has logged in at a server."""

    def __init__(self, browser: Browser, address: str, token: str) -> None:
        self.address = address
        self.context = browser.new_context(viewport={"width": 1400, "height": 900})
        entered = self.context.request.post(
            f"{address}/login", form={"token": token}, headers={"Origin": address}
        )
        check(entered.ok, f"the login was answered with {entered.status}")

    @contextmanager
    def tab(self, screen: str, **params: str) -> Iterator[Page]:
        page = self.context.new_page()
        page.goto(f"{self.address}/#/{screen}?{urlencode(params)}", wait_until="commit")
        yield page
        page.close()

    def shown(self, is_so: str, given: dict[str, object], screen: str, **params: str) -> float:
        """Milliseconds from the request for a screen until something is so."""
        with self.tab(screen, **params) as page:
            return float(page.evaluate(_UNTIL % (_SINCE_REQUEST, is_so), given))


def page(setting: Setting) -> list[Row]:
    sizes = Sizes(200, 500, 200) if setting.quick else Sizes(2_000, 5_000, 2_000)
    store = setting.place / "dashboard.db"
    server_store.build(store, sizes.timelines - 1, sizes.checkpoints)
    _change_files(store, setting.place / "changed", sizes.files)
    with serving(store) as server, _chromium() as browser:
        visit = Visit(browser, f"http://127.0.0.1:{server.port}", server.token)
        return [*_talk(visit, sizes), *_lists(visit, sizes)]


@contextmanager
def _chromium() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    check(found is not None, "the dashboard is measured in Chromium; install it, as by apt-get")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=_OPTIONS)
        yield browser
        browser.close()


def _change_files(store: Path, folder: Path, count: int) -> None:
    """Two checkpoints between which all of so many files were changed."""
    with hardsave.open(url(store)) as vault:
        for text in ("one\n", "two\n"):
            for at in range(count):
                place = folder / f"d{at % 20:02}"
                place.mkdir(parents=True, exist_ok=True)
                (place / f"f{at:04}.txt").write_text(text)
            vault.timeline(FILES).append({"messages": []}, workspace=folder)


# What is measured


def _talk(visit: Visit, sizes: Sizes) -> list[Row]:
    """A long conversation: its first message, a jump, and scrolling through it."""
    first: dict[str, object] = {"selector": ".conversation .message .text", "text": ""}
    far = sizes.messages * 9 // 10
    return [
        _row(
            f"first of {sizes.messages:,} messages",
            lambda: visit.shown(_HAS_TEXT, first, "session", timeline=TALK, message="0"),
            1_600,
            _NOTE,
        ),
        _row(
            f"jump to message #{far:,}",
            lambda: _jump(visit, far),
            160,
            f"from the change of the address until it stands still, within 2 pixels of the top; "
            f"best of {ROUNDS}",
        ),
        _row(
            "worst frame while scrolling",
            lambda: _worst_frame(visit),
            200,
            f"300 frames, 400 pixels each, through messages that are read as they come; the "
            f"longest time between two frames; best of {ROUNDS}",
        ),
    ]


def _jump(visit: Visit, number: int) -> float:
    with visit.tab("session", timeline=TALK, message="0") as page:
        page.locator(".conversation .message .text").first.wait_for()
        page.locator(".live").wait_for()
        address = f"#/session?{urlencode({'timeline': TALK, 'message': str(number)})}"
        given = {"address": address, "number": number}
        return float(page.evaluate(_UNTIL % (_SINCE_NOW, _IS_AT_TOP), given))


def _worst_frame(visit: Visit) -> float:
    with visit.tab("session", timeline=TALK) as page:
        page.locator(".conversation .message .text").first.wait_for()
        return float(page.evaluate(_SCROLLED, {"frames": 300, "pixels": 400}))


def _lists(visit: Visit, sizes: Sizes) -> list[Row]:
    differ: dict[str, object] = {"selector": ".sums", "text": f"{sizes.files:,} files differ"}
    session: dict[str, object] = {"selector": ".session .name", "text": ""}
    ends = {"from": ":1", "to": ":2"}
    return [
        _row(
            f"{sizes.checkpoints:,} checkpoints in the rail",
            lambda: visit.shown(
                _HAS_ALL_MOMENTS, {"last": sizes.checkpoints - 1}, "session", timeline=TALK
            ),
            1_500,
            f"{_NOTE}; all are read and under the slider",
        ),
        _row(
            f"comparison of {sizes.files:,} changed files",
            lambda: visit.shown(_HAS_TEXT, differ, "diff", timeline=FILES, **ends),
            1_600,
            _NOTE,
        ),
        _row(
            f"{sizes.timelines:,} sessions",
            lambda: visit.shown(_HAS_TEXT, session, ""),
            1_000,
            _NOTE,
        ),
    ]


def _row(figure: str, measure: Callable[[], float], most: float, note: str) -> Row:
    times = [measure() for _ in range(ROUNDS)]
    return Row(
        f"dashboard: {figure}",
        ours=f"median {report.duration(median(times) / 1_000)}",
        value=min(times),
        unit="ms",
        target=at_most(most),
        note=note,
    )
