"""The real Claude Code under its SDK, killed at random: it goes on from the vault alone.

Each start has an empty home, so what it knows of the session comes from the store.
"""

import os
import random
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.runtime.scripted import Call, Reply, ScriptedModel
from tests.docs.pages import DOCS, blocks
from tests.frameworks.claude_sdk import survivor
from tests.frameworks.killing import start

_STEPS = 8
_LATER = 40  # answers after the last step, one for each start that asks once more


def _script() -> list[Reply]:
    """Each turn writes a file. The turn is read from the request: how many answers it holds."""
    steps = [
        Reply(
            f"Step {n}.",
            (Call("Bash", {"command": f"echo {n} > {n}.txt", "description": "write"}, id=f"t{n}"),),
        )
        for n in range(_STEPS)
    ]
    return [*steps, *([Reply("Done.")] * _LATER)]


def _results(entries: Iterable[Mapping[str, Any]]) -> set[str]:
    """The calls whose results a transcript holds."""
    results = [block for block in _blocks(entries) if block["type"] == "tool_result"]
    return {block["tool_use_id"] for block in results if not block.get("is_error")}


def _blocks(entries: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    contents = [entry.get("message", {}).get("content") for entry in entries]
    return [block for content in contents if isinstance(content, list) for block in content]


def _calls(entries: Iterable[Mapping[str, Any]]) -> set[str]:
    return {block["id"] for block in _blocks(entries) if block["type"] == "tool_use"}


def _wrote(calls: Iterable[str]) -> set[str]:
    return {f"{id[1:]}.txt" for id in calls}


def _check(store: str, told: Path) -> set[str]:
    """Nothing that was acknowledged is lost, and each checkpoint has the files that its results
    speak of, and none of which its calls know nothing; the calls with results."""
    with hardsave.open(store) as vault:
        (session,) = vault.sessions()
        line = vault.timeline(session.timeline)
        entries = line.load()["messages"]
        acknowledged = set(told.read_text().split())
        assert acknowledged
        assert acknowledged <= {each.get("uuid") for each in entries}
        for each in line.checkpoints(limit=1_000):
            assert each.files is not None
            messages, files = line.load(each)["messages"], {one.path for one in each.files.list()}
            assert _wrote(_results(messages)) <= files <= _wrote(_calls(messages))
        return _results(entries)


@pytest.mark.parametrize(
    "seed",
    [*range(3), *(pytest.param(n, marks=pytest.mark.torture) for n in range(3, 50))],
)
def test_killed_at_random_it_goes_on_in_an_empty_home(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    store, told = f"sqlite:///{tmp_path}/s.db", tmp_path / "told"
    with ScriptedModel(_script()) as model:
        program = (survivor.__file__, store, tmp_path, model.anthropic_url)
        home = {"HOME": str(tmp_path)}
        before: set[str] = set()
        for _ in range(2):
            start(*program, told=told, kill=rng.random() * 0.8, environment=home)
            now = _check(store, told)
            assert before <= now
            before = now
        assert start(*program, told=told, kill=None, environment=home)
        assert before <= _check(store, told)
        last = [each.body for each in model.requests if each.body.get("tools")][-1]
        assert before <= _results([{"message": message} for message in last["messages"]])


def test_the_program_of_the_page_saves_a_session_with_its_files(tmp_path: Path) -> None:
    (program,) = blocks(DOCS / "howto" / "claude-agent-sdk.md", "python")
    work = tmp_path / "work"
    work.mkdir()
    write = Call("Write", {"file_path": str(work / "hello.txt"), "content": "hello"}, id="t1")
    with ScriptedModel([Reply("I write.", (write,)), Reply("Written.")]) as model:
        ended = subprocess.run(
            [sys.executable, "-c", program],
            cwd=work,
            check=False,
            env={
                **os.environ,
                **survivor.environment(tmp_path, model.anthropic_url),
                "HOME": str(tmp_path),
                "HARDSAVE_STORE": str(tmp_path / "store.db"),
            },
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert ended.returncode == 0, ended.stderr
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        (session,) = vault.sessions()
        assert session.title == "Write hello.txt"
        head = vault.timeline(session.timeline).head
        assert head is not None
        assert head.files is not None
        assert head.files.read("hello.txt") == b"hello"
