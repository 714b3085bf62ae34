"""The examples of frameworks do what they say, crashes included."""

import signal
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT

EXAMPLES = ROOT / "examples" / "frameworks"


def run(example: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, EXAMPLES / f"{example}.py", *map(str, arguments)],
        check=False,
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
    )


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
    assert {each.name: each.read_text() for each in folder.iterdir()} == {
        note: note for note in ("one", "two", "three")
    }


def test_the_agent_of_google_adk_goes_on_with_its_session_and_files(tmp_path: Path) -> None:
    store, folder = f"sqlite:///{tmp_path}/notes.db", tmp_path / "notes"
    first = run("google_adk", store, folder)
    assert first.returncode == -signal.SIGKILL
    assert first.stdout.splitlines() == ["wrote one", "wrote two"]
    second = run("google_adk", store, folder)
    assert (second.returncode, second.stdout) == (0, "wrote three\nAll written.\n")
    assert {each.name: each.read_text() for each in folder.iterdir()} == {
        note: note for note in ("one", "two", "three")
    }
