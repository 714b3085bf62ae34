"""What tests look at on the screen of a session."""

from playwright.sync_api import Locator, expect

from tests.integration.server.browser import Visitor


def moment(visitor: Visitor, number: int) -> Locator:
    """The row of a checkpoint in the rail."""
    return visitor.page.locator(".moment", has=visitor.page.get_by_text(f":{number}", exact=True))


def at(visitor: Visitor, number: int) -> None:
    """All panes are at a checkpoint."""
    expect(visitor.page.locator(".moment-label b")).to_have_text(f":{number}")
    expect(moment(visitor, number)).to_have_attribute("aria-selected", "true")


def go_to(visitor: Visitor, where: str) -> None:
    visitor.page.keyboard.press("g")
    visitor.page.get_by_role("textbox", name="Where").fill(where)
    visitor.page.keyboard.press("Enter")


def said(visitor: Visitor) -> Locator:
    return visitor.page.locator(".conversation .message")


def offset(message: Locator) -> float:
    """How many pixels below the top of its list a message begins."""
    return float(
        message.evaluate("""(one) => {
          const top = (element) => element.getBoundingClientRect().top;
          return top(one) - top(one.closest("virtual-list"));
        }""")
    )
