"""A day with two sessions of Claude Code in one project, and how commands show it on a terminal.

It is saved through the public API, as hooks would; the clock says when.
"""

import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from rich.text import Text

import hardsave
from hardsave.agents import outside
from hardsave.agents.claude_code.spec import CLAUDE_CODE
from hardsave.stores import registry
from hardsave.vault.vault import Vault
from tests.integration.cli.screen import Screen

WIDTHS = (80, 200)
HEIGHT = 24
FRAME_BEGINS, FRAME_ENDS = "\x1b[H", b"\x1b[J"
LAST_KEY = "Esc leave"
MINUTE = 60_000_000  # in microseconds, as clocks count here

PARSER = "def parse(text):\n    return text\n"
SPLITS = 'def parse(text):\n    """The words of a text."""\n    return text.split()\n'
FAST = f"import sys\n\n\n{SPLITS.replace('text.split()', 'list(map(sys.intern, text.split()))')}"
TEST = (
    "from src.parser import parse\n\n\ndef test_words():\n    assert parse('a b') == ['a', 'b']\n"
)


class View(NamedTuple):
    """A command; keys that are pressed, and what is on the screen then, if it does not end."""

    name: str
    command: Sequence[str]
    keys: str = ""
    waits_for: str = ""


DOWN = "\x1b[B"
VIEWS = (
    View("log", ("log",)),
    View("picker", ("rewind",), 4 * DOWN, "+ tests/test_parser.py"),
    View("diff", ("diff", "fix:9", "now")),
    View("stat", ("diff", "fix:9", "now", "--stat")),
)


class Day:
    """A project, and what two sessions have done in it."""

    def __init__(self, home: Path) -> None:
        self.project = home / "project"
        self.environment = {"HOME": str(home), "HARDSAVE_STORE": str(home / "store.db")}
        self._now = time.time_ns() // 1_000 - 200 * MINUTE
        store = registry.open_store(f"sqlite:///{home / 'store.db'}")
        with Vault(store, clock=self._clock) as vault:
            self.write({"src/parser.py": PARSER, ".env": "TOKEN=1\n", ".gitignore": ".env\n"})
            self._morning(Session(self, vault, "7d63e7b0-f288-46b6-abcd-2f90475a4877"))
            self._now += 165 * MINUTE
            self._noon(Session(self, vault, "0b6e41a7-0e9f-4d0c-9d4e-51a1b0a2d6c3"))

    def seen(self, view: View, width: int) -> Text:
        """What a command shows on a terminal of this width, colours and all."""
        with Screen(
            (sys.executable, "-m", "hardsave", *view.command),
            cwd=self.project,
            environment=self.environment,
            width=width,
            height=HEIGHT,
        ) as screen:
            if view.waits_for:
                screen.wait_for(LAST_KEY)
                screen.type(view.keys)
                screen.wait_for(view.waits_for)
                screen.wait_until(lambda: screen.raw.endswith(FRAME_ENDS))
            else:
                assert screen.ended() == 0, screen.text
            last = screen.raw.decode().rpartition(FRAME_BEGINS)[2]
        found = Text.from_ansi(re.sub(r"\x1b\[[KJ]|\r", "", last))
        found.rstrip()
        return found

    def _clock(self) -> int:
        self._now += MINUTE // 3
        return self._now

    def _morning(self, session: "Session") -> None:
        session.prompt("Fix the parser so that it splits words, and add a test")
        session.call("Edit", "src/parser.py", {"src/parser.py": SPLITS})
        session.call("Write", "tests/test_parser.py", {"tests/test_parser.py": TEST})
        session.call("Bash", "pytest -q")
        session.answer("The parser splits words now, and a test shows it.")
        session.prompt("Push it")
        session.call("Bash", "git push origin main")
        session.answer("Pushed.")

    def _noon(self, session: "Session") -> None:
        session.prompt("Make the parser fast, and remove what is not needed any more")
        session.call("Edit", "src/parser.py", {"src/parser.py": FAST})
        session.call("Bash", "rm -rf tests .env", removes=("tests/test_parser.py", ".env"))
        session.answer("It is fast, and I removed what is not needed.")

    def write(self, files: dict[str, str]) -> None:
        for path, text in files.items():
            (self.project / path).parent.mkdir(parents=True, exist_ok=True)
            (self.project / path).write_text(text)


class Place(Protocol):
    """Where a session works."""

    project: Path

    def write(self, files: dict[str, str]) -> None: ...


class Session:
    """Says and does what it is told, with the checkpoints that hooks would make of it."""

    def __init__(self, place: Place, vault: Vault, id: str) -> None:
        self._place, self._id, self._calls = place, id, 0
        self.line = vault.timeline(f"{CLAUDE_CODE.program}-{id}")
        self._unsaved: list[dict[str, object]] = []

    def prompt(self, text: str) -> None:
        self._save(f"before: {text}", hardsave.StepSummary(prompt=text), title=text)
        self._unsaved.append({"role": "user", "content": text})

    def call(
        self,
        tool: str,
        about: str,
        files: dict[str, str] | None = None,
        removes: Sequence[str] = (),
        printed: str = "ok",
    ) -> None:
        self._calls += 1
        step = hardsave.StepSummary(
            call=f"{tool}({about})", call_id=f"toolu_{self._calls}", phase="before"
        )
        given = {"command" if tool == "Bash" else "file_path": about}
        call = {"type": "tool_use", "id": step.call_id, "name": tool, "input": given}
        self._unsaved.append({"role": "assistant", "content": [call]})
        self._save(f"before {tool}: {about}", step)
        self._place.write(files or {})
        for path in removes:
            (self._place.project / path).unlink()
        after = step.replace(phase="after", outside=outside.reached(tool, given))
        self._save(f"after {tool}: {about}", after)
        result = {"type": "tool_result", "tool_use_id": step.call_id, "content": printed}
        self._unsaved.append({"role": "user", "content": [result]})

    def answer(self, text: str, **about: Any) -> None:
        self._unsaved.append({"role": "assistant", "content": text})
        self._save("answered", hardsave.StepSummary(), **about)

    def _save(self, description: str, step: hardsave.StepSummary, **about: Any) -> None:
        transcript = {"agent": CLAUDE_CODE.name, "session": self._id, "path": "", "offset": 0}
        self.line.append(
            {"transcript": transcript, "messages": self._unsaved, "lines": []},
            description=description,
            metadata={"agent": CLAUDE_CODE.name, "session": self._id},
            workspace=self._place.project,
            step=step,
            **about,
        )
        self._unsaved = []
