"""The examples of frameworks do what they say, crashes included."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import hardsave
from tests.docs.pages import ROOT

EXAMPLES = ROOT / "examples" / "frameworks"
NOTES = {note: note for note in ("one", "two", "three")}


def run(
    example: str, *arguments: object, home: Path | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / f"{example}.py"), *map(str, arguments)]
    process = subprocess.Popen(
        command,
        env={**os.environ, **({"HOME": str(home), "TMPDIR": str(home)} if home else {})},
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    try:
        said, _ = process.communicate(timeout=120)
    finally:  # Claude Code outlives its SDK for a while
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(command, process.returncode, said)


def kept(store: str) -> list[str]:
    """The files at the head of the only timeline."""
    with hardsave.open(store) as vault:
        (line,) = vault.timelines()
        assert line.head is not None
        assert line.head.files is not None
        return sorted(each.path for each in line.head.files.list())


def texts(folder: Path) -> dict[str, str]:
    return {each.name: each.read_text() for each in folder.iterdir()}


def test_the_agent_of_the_openai_sdk_goes_on_with_what_its_tools_had_done(tmp_path: Path) -> None:
    store, folder = f"sqlite:///{tmp_path}/notes.db", tmp_path / "notes"
    first = run("openai_agents", store, folder)
    assert first.returncode == -signal.SIGKILL
    assert sorted(first.stdout.splitlines()) == ["wrote one", "wrote two"]
    second = run("openai_agents", store, folder)
    assert (second.returncode, second.stdout) == (0, "wrote three\nAll written.\n")


def test_the_deep_agent_goes_on_with_its_conversation_and_files(tmp_path: Path) -> None:
    store, folder = f"sqlite:///{tmp_path}/notes.db", tmp_path / "notes"
    first = run("deep_agent", store, folder)
    assert first.returncode == -signal.SIGKILL
    assert first.stdout.splitlines() == ["asks for one", "asks for two"]
    second = run("deep_agent", store, folder)
    assert (second.returncode, second.stdout) == (0, "asks for three\nAll written.\n")
    assert texts(folder) == NOTES


def test_the_agent_of_google_adk_goes_on_with_its_session_and_files(tmp_path: Path) -> None:
    store, folder = f"sqlite:///{tmp_path}/notes.db", tmp_path / "notes"
    first = run("google_adk", store, folder)
    assert first.returncode == -signal.SIGKILL
    assert first.stdout.splitlines() == ["wrote one", "wrote two"]
    second = run("google_adk", store, folder)
    assert (second.returncode, second.stdout) == (0, "wrote three\nAll written.\n")
    assert texts(folder) == NOTES


def test_the_agent_of_pydantic_ai_goes_on_with_its_steps_and_files(tmp_path: Path) -> None:
    store, folder = f"sqlite:///{tmp_path}/notes.db", tmp_path / "notes"
    first = run("pydantic_agent", store, folder)
    assert first.returncode == -signal.SIGKILL
    assert first.stdout.splitlines() == ["wrote one", "wrote two"]
    assert kept(store) == ["one", "two"]
    second = run("pydantic_agent", store, folder)
    unknown = "not known to have ended: write three"
    assert (second.returncode, second.stdout) == (0, f"{unknown}\nwrote three\nAll written.\n")
    assert texts(folder) == NOTES


def test_the_workflow_of_agent_framework_goes_on_with_its_files(tmp_path: Path) -> None:
    store, folder = f"sqlite:///{tmp_path}/notes.db", tmp_path / "notes"
    first = run("agent_workflow", store, folder)
    assert first.returncode == -signal.SIGKILL
    done = [f"{did} {note}" for note in ("one", "two") for did in ("asks for", "wrote")]
    assert first.stdout.splitlines() == [*done, "asks for three"]
    assert kept(store) == ["one", "two"]
    second = run("agent_workflow", store, folder)
    assert (second.returncode, second.stdout) == (0, "wrote three\nAll written.\n")
    assert texts(folder) == NOTES


def test_claude_code_under_its_sdk_goes_on_with_its_session_and_files(tmp_path: Path) -> None:
    store, folder = f"sqlite:///{tmp_path}/notes.db", tmp_path / "notes"
    first = run("claude_sdk", store, folder, home=tmp_path)
    assert first.returncode == -signal.SIGKILL
    assert first.stdout.splitlines() == ["wrote one", "wrote two"]
    assert kept(store) == ["one", "two"]
    second = run("claude_sdk", store, folder, home=tmp_path)
    assert (second.returncode, second.stdout) == (0, "wrote three\nAll written.\n")
    assert texts(folder) == NOTES
