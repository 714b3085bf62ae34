"""A second process on a store: does what it is told, one JSON line at a time.

Told  {"open": path} or {"line": name, "do": method, "with": {…}}
Says  {"said": what the method returned, if that is plain, else null}
      or {"raised": the name of the error's class}
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from hardsave.errors import HardsaveError
from hardsave.stores.sqlite import SqliteStore
from hardsave.vault.save.request import ANY_HEAD
from hardsave.vault.vault import Vault


class Raised(Exception):
    """What was raised over there: the name of its class."""


class SecondProcess:
    """The other end of the pipe."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        )

    def open(self, path: Path) -> None:
        self._ask({"open": str(path)})

    def do(self, line: str | None, method: str, **arguments: Any) -> Any:
        return self._ask({"line": line, "do": method, "with": arguments})

    def close(self) -> None:
        self._process.communicate()

    def _ask(self, told: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "raised" in answer:
            raise Raised(answer["raised"])
        return answer["said"]


def perform(vault: Vault, line: str | None, method: str, arguments: dict[str, Any]) -> Any:
    """Do something to a timeline, or to the vault, on top of whatever is there."""
    target: Any = vault if line is None else vault.timeline(line)
    if method in ("save", "append"):
        arguments = {**arguments, "expect": ANY_HEAD}
    said = getattr(target, method)(**arguments)
    return said if isinstance(said, int | str | None) else None


def main() -> None:
    vault: Vault | None = None
    for row in sys.stdin:
        told = json.loads(row)
        answer: dict[str, Any] = {"said": None}
        try:
            if "open" in told:
                if vault is not None:
                    vault.close()
                vault = Vault(SqliteStore(told["open"]))
            elif vault is not None:
                answer["said"] = perform(vault, told["line"], told["do"], told["with"])
        except HardsaveError as error:
            answer = {"raised": type(error).__name__}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
