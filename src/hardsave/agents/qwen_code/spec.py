"""Qwen Code: where it keeps things, which hooks call us, and how it goes on with a session."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from hardsave.agents import events
from hardsave.agents.events import Event
from hardsave.agents.qwen_code import lines
from hardsave.agents.spec import AgentSpec, Lines, Unknown
from hardsave.defaults import HOOK_SECONDS
from hardsave.errors import HardsaveError
from hardsave.objects import depth

_SESSION = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"  # hooks need not compile it
MACHINE = Path("/etc/qwen-code/settings.json")


class QwenCode(AgentSpec):
    """It keeps a transcript as `projects/DIRECTORY/chats/SESSION.jsonl`."""

    name = "qwen-code"
    title = "Qwen Code"
    program = "qwen"
    server_words = frozenset({"channel", "mcp", "serve"})
    folder_variable = "QWEN_HOME"
    folder = ".qwen"
    session_variable = "QWEN_CODE_SESSION_ID"
    project_variable = "QWEN_PROJECT_DIR"
    lines: ClassVar[Lines] = lines
    settings_file = "settings.json"
    project_settings_file = None  # .qwen/settings.json is shared by all users of a project
    hooks = dict.fromkeys(("UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"), HOOK_SECONDS)
    runs_in_order = True
    late_seconds = 2.0  # it writes behind what it does: on a busy machine by over half a second
    skills_folder = "skills"
    carried_options: ClassVar[Mapping[str, int]] = {
        **dict.fromkeys(("-y", "--yolo", "-s", "--sandbox"), 0),
        **dict.fromkeys(
            ("-m", "--model", "--approval-mode", "--append-system-prompt", "--auth-type"), 1
        ),
        **dict.fromkeys(("--add-dir", "--include-directories", "--allowed-tools"), -1),
    }

    def event(self, data: bytes) -> Event:
        """It tells the id that the transcript has of a call beside one that stands nowhere else."""
        found = events.parse(data)
        told = depth.loads(data)
        id = told.get("tool_call_id") if isinstance(told, dict) else None
        return found._replace(tool_use_id=id) if isinstance(id, str) and id else found

    def is_step(self, event: Event) -> bool:
        """It calls the hook of a prompt each time that it sends results of tools, without one."""
        return event.name != "UserPromptSubmit" or bool(event.prompt)

    def why_hooks_off(self, folder: Path, project: Path, here: Path) -> str:
        from hardsave.agents import settings  # only `init`, `doctor` and `run` ask

        for path in (MACHINE, project / ".qwen/settings.json", folder / self.settings_file):
            with suppress(OSError, UnicodeError, HardsaveError):  # what has comments says nothing
                found = settings.switch(path.read_text(encoding="utf-8"), "disableAllHooks")
                if found is not None:
                    return f"{path} has disableAllHooks" if found else ""
        return ""

    def resume_words(self, session: str | None, prompt: str = "") -> list[str]:
        resumed = [] if session is None else ["--resume", session]
        return [self.program, *resumed, *([f"--prompt-interactive={prompt}"] if prompt else [])]

    def transcripts(self, folder: Path, directory: str) -> Iterator[tuple[str, Path]]:
        for path in (folder / "projects" / _folder_name(directory) / "chats").glob("*.jsonl"):
            if re.fullmatch(_SESSION, path.stem):
                yield path.stem, path

    def original(self, path: str, session: str, folder: Path) -> Path:
        home = Path(os.path.realpath(folder / "projects"))
        real = Path(os.path.realpath(path))
        is_chat = real.parent.name == "chats" and real.name == f"{session}.jsonl"
        if not is_chat or home not in real.parents[2:3]:
            raise Unknown(f"{path!r} is not where Qwen Code keeps its transcripts")
        return real

    def copy_path(
        self, original: Path, session: str, folder: Path, moment: datetime, directory: str | None
    ) -> Path:
        place = original.parent
        if directory is not None:
            place = folder / "projects" / _folder_name(directory) / "chats"
        return place / f"{session}.jsonl"


def _folder_name(directory: str) -> str:
    """As JavaScript counts characters: one beyond the first 65,536 is two."""
    return re.sub("[^A-Za-z0-9]", lambda found: "--"[: 1 + (found[0] > "\uffff")], directory)


QWEN_CODE = QwenCode()
