"""A project with sessions, jobs and questions, as the pictures of the dashboard show it.

What agents said and did is saved through the public API, as hooks would; the clock says when. Jobs
are run by a worker, with a model that says what it was told to.
"""

from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import hardsave
from hardsave.runtime.jobs.worker import Worker
from hardsave.stores import registry
from hardsave.vault.vault import Vault
from tests.docs.day import MINUTE, Session

CART = '''"""The cart of a customer."""


class Cart:
    def __init__(self, items):
        self.items = items

    def total(self):
        return sum(item.price * item.number for item in self.items)
'''
EXACT = CART.replace("\n\n\nclass", "\n\nfrom decimal import Decimal\n\n\nclass", 1).replace(
    "return sum(item.price * item.number for item in self.items)",
    "prices = (Decimal(item.price) * item.number for item in self.items)\n"
    '        return sum(prices, Decimal(0)).quantize(Decimal("0.01"))',
)
MEMBERS = (
    EXACT.replace("    def total(self):", "    def total(self, member=False):")
    .replace(
        'return sum(prices, Decimal(0)).quantize(Decimal("0.01"))',
        "total = sum(prices, Decimal(0)) * (rate() if member else 1)\n"
        '        return total.quantize(Decimal("0.01"))',
    )
    .replace(
        "from decimal import Decimal\n",
        "from decimal import Decimal\n\nfrom shop.discount import rate\n",
    )
)
DISCOUNT = '''"""What members pay less."""

from decimal import Decimal


def rate():
    return Decimal("0.95")
'''
TEST = """from shop.cart import Cart


def test_a_total_is_exact(items):
    assert str(Cart(items).total()) == "0.30"
"""
FILES = {
    "shop/cart.py": CART,
    "shop/__init__.py": "",
    "shop/stock.py": "STOCK = {}\n",
    "tests/test_cart.py": "from shop.cart import Cart\n",
    "tests/test_stock.py": "from shop.stock import STOCK\n",
    "notes.md": "# Notes\n\nPrices are strings.\n",
    "README.md": "# Shop\n",
}
FIXED = "fixed"


class Shop:
    """The project, its sessions and its jobs, in a store."""

    def __init__(self, project: Path, store: str, now: int) -> None:
        self.project = project
        self.write(FILES)
        self._now = now - 26 * 60 * MINUTE
        with Vault(registry.open_store(store), clock=self._clock) as vault:
            self._days_before(vault)
            self._now = now - 55 * MINUTE
            cart = Session(self, vault, "7d63e7b0-f288-46b6-abcd-2f90475a4877")
            self._total(cart)
            self._astray(cart)
            cart.line.rewind(FIXED)
            self._members(cart)
            cart.line.fork(FIXED, name="other-rounding")
        (project / "notes.md").unlink()  # by hand, after all that was saved
        with hardsave.open(store) as vault:
            self._jobs(vault)

    @property
    def session(self) -> str:
        return "claude-7d63e7b0-f288-46b6-abcd-2f90475a4877"

    def write(self, files: dict[str, str]) -> None:
        for path, text in files.items():
            (self.project / path).parent.mkdir(parents=True, exist_ok=True)
            (self.project / path).write_text(text)

    def _clock(self) -> int:
        self._now += MINUTE // 2
        return self._now

    def _days_before(self, vault: Vault) -> None:
        stock = Session(self, vault, "0b6e41a7-0e9f-4d0c-9d4e-51a1b0a2d6c3")
        stock.prompt("Count what is in stock, by article")
        stock.call("Edit", "shop/stock.py", {"shop/stock.py": "def count(articles): ...\n"})
        stock.call("Bash", "pytest -q", printed="2 passed in 0.11s")
        stock.answer("Each article is counted now.")
        self._now += 20 * 60 * MINUTE
        readme = Session(self, vault, "c1f0a9d2-54be-4f07-a8a5-0d9e3c1b7742")
        readme.prompt("Say in the README how to start the shop")
        readme.call("Edit", "README.md", {"README.md": "# Shop\n\n`python -m shop` starts it.\n"})
        readme.answer("The README has it, with one command.", status="completed")
        codex = vault.timeline("codex-019a2f33-7a40-7c11-9c55-d2b1f0e6a1c8")
        codex.append(
            {"messages": [{"role": "user", "content": "Why does the build take so long?"}]},
            workspace=self.project,
            title="Why does the build take so long?",
            status="failed",
            step=hardsave.StepSummary(prompt="Why does the build take so long?"),
        )

    def _total(self, cart: Session) -> None:
        cart.prompt("The total of a cart is a cent off sometimes. Find out why, and fix it")
        cart.answer("I look at how the total is made.")
        cart.call("Read", "shop/cart.py", printed=CART)
        cart.call("Edit", "shop/cart.py", {"shop/cart.py": EXACT}, printed="The file was updated.")
        cart.call("Write", "tests/test_cart.py", {"tests/test_cart.py": TEST})
        cart.call("Bash", "pytest -q", printed="...                      [100%]\n3 passed in 0.12s")
        cart.answer(
            "Prices were added as floats, and 0.1 + 0.2 is a little more than 0.3.\n\n"
            "They are decimals now, rounded once, at the end. A test has the sum that was wrong.",
            name=FIXED,
        )

    def _astray(self, cart: Session) -> None:
        cart.prompt("Members get 5 % less. Add that, and push it")
        cart.call("Write", "shop/discount.py", {"shop/discount.py": DISCOUNT})
        cart.call(
            "Bash", "git push origin main", printed="To github.com:you/shop.git\n   1f3a..9c2e"
        )
        gone = ("tests/test_cart.py", "tests/test_stock.py", "notes.md")
        cart.call("Bash", "rm -rf tests notes.md", removes=gone, printed="")
        cart.answer("The discount is in and pushed. I removed the tests, since they were slow.")

    def _members(self, cart: Session) -> None:
        self.write({path: text for path, text in FILES.items() if path == "tests/test_stock.py"})
        cart.prompt("Members get 5 % less. Add only that, and leave the tests alone")
        cart.call("Write", "shop/discount.py", {"shop/discount.py": DISCOUNT})
        cart.call("Edit", "shop/cart.py", {"shop/cart.py": MEMBERS})
        cart.call("Bash", "pytest -q", printed="...                      [100%]\n3 passed in 0.14s")
        cart.call("Bash", "git push origin discount", printed="* [new branch]  discount")
        cart.answer("Members pay 95 % of the total. The discount is in a file of its own.")

    def _jobs(self, vault: hardsave.Vault) -> None:
        for id, task in (
            ("release", "Release version 1.3 of the shop"),
            ("changelog", "Write the changelog of version 1.3"),
            ("prices", "Ask the supplier for the prices of next month"),
        ):
            vault.jobs.add(id, task, agent=id, max_turns=10)
        agents = {
            "release": _agent("The release is out."),
            "changelog": _agent("It lists six changes.", "write", {"path": "CHANGELOG.md"}),
            "prices": _agent(None, "write", {"path": "prices.csv"}),
        }
        Worker(vault, agents).run(until_idle=True)
        vault.jobs.add("nightly", "Look for slow tests", agent="nightly")
        vault.tasks.add("newsletter", "Send the newsletter of November")
        with vault.tasks.attempt("newsletter") as attempt:
            attempt.step("write", lambda: "newsletter.html")
            attempt.ask("Send it to all 1,204 customers, or to the ten who test it?")


def _agent(
    says: str | None, tool: str = "publish", given: dict[str, str] | None = None
) -> Agent[None, str]:
    """Calls one tool, and says something; without words it breaks instead."""
    given = given or {"version": "1.3", "registry": "packages.example.com"}

    def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart(tool, given, tool_call_id="id-1")])
        if says is None:
            raise OSError("the model does not answer: connection refused")
        return ModelResponse(parts=[TextPart(says)])

    made: Agent[None, str] = Agent(FunctionModel(say, model_name="scripted"))

    @made.tool_plain(requires_approval=True)
    def publish(version: str, registry: str) -> str:
        """Publish a version."""
        return f"published {version} at {registry}"

    @made.tool_plain
    def write(path: str) -> str:
        """Write a file."""
        return f"wrote {path}"

    return made
