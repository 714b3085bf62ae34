"""A task whose process dies inside a step: whether that was done is not known."""

import subprocess
import sys

import hardsave

_DIES = """
import os, sys, hardsave
vault = hardsave.open(sys.argv[1])
with vault.tasks.attempt(sys.argv[2]) as attempt:
    attempt.step("build", lambda: "shop-1.2.tar")
    attempt.step("push", os._exit, 9, unknown="ask")
"""


def leave(store: str, id: str) -> None:
    """Add a task, let its process die inside of a step, and let the next attempt ask about it."""
    with hardsave.open(store) as vault:
        vault.tasks.add(id, f"Run {id}", max_attempts=3)
        died = subprocess.run([sys.executable, "-c", _DIES, store, id], check=False, timeout=60)
        assert died.returncode == 9
        vault.tasks.recover()


def ask(vault: hardsave.Vault, id: str) -> None:
    """The next attempt, which finds the step and asks a person."""
    with vault.tasks.attempt(id) as attempt:
        attempt.step("build", lambda: "again")
        attempt.step("push", lambda _: None, 9, unknown="ask")
