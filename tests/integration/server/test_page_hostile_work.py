"""Work and inbox over hostile content and values of any size: nothing runs, and nothing freezes."""

from playwright.sync_api import Browser, expect
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import hardsave
from hardsave.runtime.jobs.worker import Worker
from tests.integration.server.browser import NEEDS_CHROMIUM, Visitor, visiting
from tests.integration.server.conftest import Start
from tests.integration.server.test_page_limits import HOSTILE

pytestmark = NEEDS_CHROMIUM
ID = "<img src=x onerror=alert(1)>"
LINE = "y" * 1_000_000
HUGE = 50_000_000
LAID_OUT = 400_000  # characters that a screen may hold


def writer() -> Agent[None, str]:
    """Wants to write a long and hostile text, and is careful about it."""

    def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart("all done")])
        args = {"path": f"a\u202e{HOSTILE}", "text": HOSTILE + LINE}
        return ModelResponse(parts=[ToolCallPart("write", args, tool_call_id="id-1")])

    made: Agent[None, str] = Agent(FunctionModel(say, model_name="scripted"))

    @made.tool_plain(requires_approval=True)
    def write(path: str, text: str) -> str:
        """Write a file."""
        return f"{HOSTILE}: {len(text)}"

    return made


def harmless(visitor: Visitor) -> None:
    """Nothing of what is shown ran, and no more of it is laid out than a browser bears."""
    page = visitor.page
    assert "taken" not in page.title().split(" · ")[1:]
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("document.body.textContent.length") < LAID_OUT
    assert "\u202e" not in page.locator("main").inner_text()
    assert visitor.overflow <= 0


def test_a_long_hostile_call_is_read_edited_and_approved(chromium: Browser, start: Start) -> None:
    server = start()
    with server.vault() as vault:
        vault.jobs.add(ID, f"{HOSTILE} {LINE[:400_000]}", agent="a", max_turns=10)
        Worker(vault, {"a": writer()}).run(until_idle=True)
        assert len(vault.jobs.get(ID).question or "") > 1_000_000
        with visiting(chromium, server) as visitor:
            page = visitor.page
            visitor.go("")
            expect(visitor.see(".need")).to_contain_text("may it call write(")
            harmless(visitor)
            for screen in ("work", "job"):
                visitor.go(screen, **({"id": ID} if screen == "job" else {}))
                expect(visitor.see(".asked")).to_contain_text("<script>document.title")
                harmless(visitor)
            visitor.go("inbox")
            asked = visitor.see(".asked.call")
            expect(asked).to_contain_text("\\u{202e}evil\\u{202c} \\u{1b}[31mred")
            visitor.button("Show more").click()
            harmless(visitor)
            visitor.button("Edit…").click()
            page.locator("#argument-1").fill("short")
            visitor.button("Approve with changes").click()
            expect(page.locator(".empty")).to_contain_text("Nothing waits for you.")
            Worker(vault, {"a": writer()}).run(until_idle=True)
            assert "[0m : 5" in str(vault.timeline(ID).load()["messages"])
            visitor.go("job", id=ID)
            expect(page.locator(".heading .state")).to_have_text("succeeded")
            expect(page.locator(".steps")).to_contain_text("<script>document.title")
            harmless(visitor)


def fill(vault: hardsave.Vault) -> None:
    """A task whose steps, result and question are hostile, and larger than a screen."""
    vault.tasks.add(ID, HOSTILE)
    with vault.tasks.attempt(ID) as attempt:
        attempt.step(HOSTILE[:80], lambda: "\x1b[31m" + "z" * HUGE)
        attempt.complete({"text": "z" * HUGE, HOSTILE: HOSTILE})
    vault.tasks.add("failed", LINE, max_attempts=1)
    vault.tasks.claim("failed").fail(OSError(HOSTILE + LINE))
    vault.tasks.add("asks", f"{HOSTILE} asks")
    with vault.tasks.attempt("asks") as attempt:
        attempt.ask(f"{HOSTILE} {LINE}")


def test_results_questions_and_errors_of_any_size_are_told_by_their_beginning(
    chromium: Browser, start: Start
) -> None:
    server = start()
    with server.vault() as vault:
        fill(vault)
        with visiting(chromium, server) as visitor:
            page = visitor.page
            visitor.go("work", what="tasks")
            visitor.see(".listed")
            expect(page.locator(".listed")).to_have_count(3)
            harmless(visitor)
            for id in (ID, "failed"):
                visitor.go("job", id=id, task="1")
                visitor.see(".happened li")
                harmless(visitor)
            assert len(server.call("GET", "/api/v1/tasks?brief=true").content) < LAID_OUT
            visitor.go("inbox", id="asks")
            expect(visitor.see(".asked")).to_contain_text("\\u{202e}evil")
            harmless(visitor)
            visitor.button("yes").click()
            expect(page.locator(".empty")).to_contain_text("Nothing waits for you.")
            assert vault.tasks.get("asks").question is None
