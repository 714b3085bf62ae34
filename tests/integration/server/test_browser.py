"""The page in a real Chromium, over a real server: from the click to the store.

It needs a Chromium that is installed; Playwright brings none along.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Response, sync_playwright

import hardsave
from hardsave.runtime.jobs.worker import Worker
from tests.integration.server.conftest import Server, Start
from tests.unit.cli.jobs_project import agent

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
OPTIONS = [
    "--no-sandbox",  # as root it does not start with one
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]
HOSTILE = (
    "<script>document.title='taken'</script>\"><img src=x onerror=\"document.title='taken'\">"
    "' onmouseover='x {{ 7*7 }} javascript:alert(1) \u202eevil\u202c \x1b[31mred\x1b[0m "
)
AGENTS = {"fix": agent(breaks=True), "asks": agent(careful=True), "done": agent()}

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="NOT TRIED: the page in a browser. It takes Chromium, apt-get has it"
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()


class Visitor:
    """A browser that has logged in, and what it saw."""

    def __init__(self, context: BrowserContext, server: Server) -> None:
        self.server = server
        self.page: Page = context.new_page()
        self.page.set_default_timeout(20_000)
        self.complaints: list[str] = []
        self.elsewhere: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append("a dialog"))
        self.page.on("request", lambda request: self._note(request.url))

    def _note(self, url: str) -> None:
        if not url.startswith(self.server.url + "/"):
            self.elsewhere.append(url)

    def log_in(self) -> None:
        self.page.goto(self.server.link)
        self.click("Log in")
        assert self.page.url == self.server.url + "/"

    def go(self, path: str) -> Response:
        found = self.page.goto(self.server.url + path)
        assert found is not None
        return found

    def click(self, name: str, role: str = "button") -> None:
        found = self.page.get_by_role("link" if role == "link" else "button", name=name, exact=True)
        with self.page.expect_navigation():
            found.click()

    @property
    def status(self) -> str:
        return self.page.get_by_role("status").inner_text()


@contextmanager
def visiting(chromium: Browser, server: Server, *, script: bool) -> Iterator[Visitor]:
    context = chromium.new_context(java_script_enabled=script)
    try:
        visitor = Visitor(context, server)
        visitor.log_in()
        yield visitor
        assert visitor.complaints == []
        assert visitor.elsewhere == []
    finally:
        context.close()


def work(vault: hardsave.Vault) -> None:
    Worker(vault, AGENTS).run(until_idle=True)


@pytest.fixture
def served(start: Start) -> Server:
    """A server over jobs in most states."""
    server = start()
    with server.vault() as vault:
        for name in AGENTS:
            vault.jobs.add(name, f"Do {name}", agent=name, max_turns=10)
        work(vault)
        vault.jobs.add("new", "Do new")
    return server


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_a_click_reaches_the_store(chromium: Browser, served: Server, script: bool) -> None:
    with visiting(chromium, served, script=script) as visitor, served.vault() as vault:
        visitor.click("fix", "link")
        visitor.click("Resume fix")
        assert visitor.status.startswith("Resumed.")
        assert (vault.jobs.get("fix").id, vault.jobs.get("fix").state) == ("fix~2", "queued")

        visitor.go("/")
        visitor.click("Approve asks")
        assert visitor.status.startswith("Approved.")
        work(vault)
        assert vault.jobs.get("asks").state == "succeeded"

        visitor.go("/")
        visitor.click("Delete done", "link")
        visitor.click("Keep it", "link")
        assert vault.jobs.get("done").checkpoint is not None
        visitor.click("Delete done", "link")
        visitor.click("Delete done")
        assert visitor.status.startswith("Deleted.")
        assert vault.jobs.get("done").checkpoint is None


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_a_denial_is_told_the_agent_with_its_reason(
    chromium: Browser, served: Server, script: bool
) -> None:
    with visiting(chromium, served, script=script) as visitor, served.vault() as vault:
        visitor.page.get_by_label("Reason, told to the agent").fill("too <b>dear</b>")
        visitor.click("Deny asks")
        assert visitor.status.startswith("Denied.")
        work(vault)
        visitor.click("asks", "link")
        assert "too <b>dear</b>" in visitor.page.get_by_role("main").inner_text()


def test_a_page_that_is_out_of_date_does_no_wrong_act(chromium: Browser, served: Server) -> None:
    with visiting(chromium, served, script=False) as visitor, served.vault() as vault:
        vault.jobs.deny("asks", "not so")  # meanwhile, at another place
        happened = vault.tasks.happened()
        visitor.click("Approve asks")
        assert visitor.page.get_by_role("heading", level=1).inner_text() == "Nothing was done"
        (conflict,) = visitor.complaints
        assert "409" in conflict
        visitor.complaints.clear()
        assert vault.tasks.happened() == happened


def test_the_page_can_be_used_with_the_keyboard_alone(chromium: Browser, served: Server) -> None:
    with visiting(chromium, served, script=True) as visitor, served.vault() as vault:
        page = visitor.page
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to content"
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.ariaLabel") == "Approve asks":
                break
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        page.keyboard.press("Enter")
        page.wait_for_url("**done=approved")
        assert vault.jobs.get("asks").question is None


def test_hostile_texts_are_shown_and_do_nothing(chromium: Browser, served: Server) -> None:
    with served.vault() as vault:
        vault.jobs.add("<script>alert(1)</script>", HOSTILE * 700)
        vault.jobs.add("..", HOSTILE)
        vault.jobs.add("loud", HOSTILE, agent="loud")
        Worker(vault, {"loud": agent()}).run(until_idle=True)
    with visiting(chromium, served, script=True) as visitor:
        for name in ("<script>alert(1)</script>", "..", "loud"):
            visitor.go("/")
            visitor.click(name, "link")
            assert name in visitor.page.title()
            assert visitor.page.get_by_role("heading", level=1).inner_text() == name
            assert visitor.page.locator("main img, main script").count() == 0
            shown = visitor.page.get_by_role("main").inner_text()
            assert "\\u202eevil\\u202c \\x1b[31mred" in shown
        visitor.go("/")
        assert visitor.page.title() == "Jobs · Hardsave"


def test_the_page_fits_and_can_be_read(chromium: Browser, served: Server) -> None:
    with served.vault() as vault:
        vault.jobs.add("long-" + "x" * 150, "y" * 3_000)
    context = chromium.new_context()
    try:
        visitor = Visitor(context, served)
        visitor.log_in()
        for path in ("/", "/login", "/jobs?id=asks", "/jobs?id=done", "/delete?id=fix"):
            visitor.go(path)
            for width in (420, 1400):
                visitor.page.set_viewport_size({"width": width, "height": 900})
                assert visitor.page.evaluate("document.documentElement.scrollWidth") <= width
            for scheme in ("light", "dark"):
                visitor.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
                assert visitor.page.evaluate(CONTRAST) == []
        assert visitor.complaints == []
    finally:
        context.close()


# Texts whose contrast with what is behind them is below 4.5, as WCAG computes it.
CONTRAST = """() => {
  const parts = (color) => color.match(/[0-9.]+/g).map(Number);
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
    if (!own || element.matches(".skip, progress")) continue;
    const [one, two] = [light(parts(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    if (ratio < 4.5) bad.push(`${element.className} ${element.textContent} ${ratio.toFixed(1)}`);
  }
  return bad;
}"""


def test_a_browser_that_has_not_logged_in_is_told_how(chromium: Browser, served: Server) -> None:
    context = chromium.new_context()
    try:
        visitor = Visitor(context, served)
        for path in ("/", "/jobs?id=fix", "/delete?id=fix"):
            assert visitor.go(path).status == 401
            shown = visitor.page.get_by_role("main").inner_text()
            assert "Run hardsave serve and open the link that it prints" in shown
            assert "fix" not in shown
        assert visitor.go("/login?key=wrong").status == 200
        visitor.click("Log in")
        assert "this link was used" in visitor.page.get_by_role("main").inner_text()
    finally:
        context.close()
