"""All that a store is used for, at once: programs that go on until they are killed.

python -m tests.crash.soaking ROLE NUMBER FOLDER

What a program was told is done, it writes into a file of its own in FOLDER, one JSON document a
line. What went wrong stands in a file that ends in `.wrong`.
"""

import hashlib
import json
import os
import random
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hardsave
from hardsave.errors import Conflict, NotFound

SECRETS = 100
_NAMES = ["a", "b", "c/x", "c/y", "d/e/f", "g"]


def url(folder: Path) -> str:
    return f"sqlite:///{folder}/store.db"


def content(tree: Path) -> dict[str, str]:
    """What a directory holds, as digests."""
    return {
        str(path.relative_to(tree)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(tree.rglob("*"))
        if path.is_file()
    }


class Program:
    """One process among others."""

    def __init__(self, role: str, number: int, folder: Path) -> None:
        self.role = role
        self.number = number
        self.folder = folder
        self.draw = random.Random(os.urandom(8))
        self._told = (folder / f"{role}-{number}.told").open("a")

    def tell(self, **facts: Any) -> None:
        self._told.write(json.dumps(facts) + "\n")
        self._told.flush()

    def run(self) -> None:
        roles: dict[str, Callable[[hardsave.Vault], None]] = {
            "agent": self.agent,
            "keeper": self.keeper,
            "server": self.server,
        }
        try:
            with hardsave.open(url(self.folder)) as vault:
                roles[self.role](vault)
        except Exception:
            wrong = self.folder / f"{self.role}-{self.number}.wrong"
            wrong.write_text(traceback.format_exc())
            raise

    # An agent: conversation and files, forth and back

    def agent(self, vault: hardsave.Vault) -> None:
        workspace = self.folder / f"workspace-{self.number}"
        workspace.mkdir(exist_ok=True)
        line = vault.timeline(f"agent-{self.number}")
        state = _state(line)
        while True:
            way = self.draw.random()
            if way < 0.7 or line.head is None:
                self._edit(workspace)
                state["messages"].append(self._message())
                del state["messages"][:-50]
                name = "kept" if self.draw.random() < 0.3 else None
                saved = line.save(state, name=name, workspace=workspace)
                self._tell_of("saved", saved, state, workspace)
                continue
            try:
                if way < 0.9:
                    line.rewind(f"@~{self.draw.randrange(1, 4)}")
                    state = _state(line)
                    self._tell_of("rewound", line.get(), state, workspace)
                else:
                    line.undo()
            except NotFound:
                pass  # not as far back as that, or nothing to undo
            state = _state(line)

    def _edit(self, workspace: Path) -> None:
        for name in self.draw.choices(_NAMES, k=3):
            path = workspace / name
            if self.draw.random() < 0.7:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self.draw.randbytes(self.draw.choice([5, 3_000])))
            else:
                path.unlink(missing_ok=True)

    def _message(self) -> str:
        secret = f"secret-{self.draw.randrange(SECRETS)}-"
        return secret + self.draw.randbytes(100).hex()

    def _tell_of(
        self, what: str, checkpoint: hardsave.Checkpoint, state: Any, workspace: Path
    ) -> None:
        self.tell(
            what=what,
            id=checkpoint.id,
            name=checkpoint.name,
            state=state,
            files=content(workspace),
        )

    # A keeper: all that is done beside

    def keeper(self, vault: hardsave.Vault) -> None:
        ways: list[Callable[[hardsave.Vault], object]] = [
            lambda vault: vault.store.gc(),
            lambda vault: vault.store.compact(),
            self._retain,
            self._purge,
            self._export,
            self._look,
            self._verify,
        ]
        while True:
            self.draw.choice(ways)(vault)

    def _retain(self, vault: hardsave.Vault) -> None:
        vault.retention.apply(vault.retention.plan(hardsave.Policy(max_per_timeline=20)))

    def _purge(self, vault: hardsave.Vault) -> None:
        text = f"secret-{self.draw.randrange(SECRETS)}-"
        self.tell(purging=text)
        vault.store.purge(text=text)

    def _export(self, vault: hardsave.Vault) -> None:
        target = self.folder / f"{self.number}.hardsave"
        try:
            vault.export_file(target)
        except Conflict:
            return  # something was dropped meanwhile
        with hardsave.open("memory://") as other:
            other.import_file(target)
            assert other.store.verify().ok

    def _look(self, vault: hardsave.Vault) -> None:
        for hit in vault.search(f"secret-{self.draw.randrange(SECRETS)}-"):
            assert hit.checkpoint.id
        for line in vault.timelines():
            line.checkpoints(limit=20)
        list(vault.operations())

    def _verify(self, vault: hardsave.Vault) -> None:
        faults = vault.store.verify().faults
        assert not faults, faults

    # A server: tasks

    def server(self, vault: hardsave.Vault) -> None:
        with vault.tasks.runner(f"server-{self.number}") as runner:
            while True:
                for _ in range(5):
                    name = f"task-{self.draw.randbytes(8).hex()}"
                    vault.tasks.add(name, max_attempts=100)
                    self.tell(added=name)
                runner.run(self._work, until_idle=True)

    def _work(self, attempt: hardsave.Attempt) -> str:
        drawn = attempt.step("draw", lambda: self.draw.randbytes(8).hex())
        self.tell(task=attempt.id, drawn=drawn)
        return drawn


def _state(line: hardsave.Timeline) -> Any:
    return line.load() if line.head is not None else {"messages": []}


if __name__ == "__main__":
    Program(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])).run()
