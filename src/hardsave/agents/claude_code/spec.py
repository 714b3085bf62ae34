"""Claude Code: where it keeps things, which hooks call us, and how it goes on with a session."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from hardsave.agents.claude_code import lines
from hardsave.agents.spec import COMMAND_MARK, AgentSpec, Lines, Unknown
from hardsave.defaults import HOOK_SECONDS

_LONGEST = 200  # of a folder's name; a longer one ends with a number
_SESSION = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"  # hooks need not compile it


class ClaudeCode(AgentSpec):
    """It keeps a transcript as `projects/DIRECTORY/SESSION.jsonl`."""

    name = "claude-code"
    title = "Claude Code"
    program = "claude"
    server_words = frozenset({"daemon", "mcp"})
    folder_variable = "CLAUDE_CONFIG_DIR"
    folder = ".claude"
    session_variable = "CLAUDE_CODE_SESSION_ID"
    project_variable = "CLAUDE_PROJECT_DIR"
    lines: ClassVar[Lines] = lines
    settings_file = "settings.json"
    project_settings_file = ".claude/settings.local.json"
    hooks = dict.fromkeys(
        ("UserPromptSubmit", "PostToolUse", "PostToolBatch", "Stop", "SessionEnd"), HOOK_SECONDS
    )
    runs_in_order = True
    prefills = True
    carried_options: ClassVar[Mapping[str, int]] = {
        **dict.fromkeys(("--dangerously-skip-permissions", "--ide", "--verbose", "--chrome"), 0),
        **dict.fromkeys(
            (
                "--model",
                "--permission-mode",
                "--settings",
                "--setting-sources",
                "--agent",
                "--append-system-prompt",
                "--effort",
                "--fallback-model",
            ),
            1,
        ),
        **dict.fromkeys(
            (
                "--add-dir",
                "--allowedTools",
                "--allowed-tools",
                "--disallowedTools",
                "--disallowed-tools",
                "--mcp-config",
                "--plugin-dir",
            ),
            -1,
        ),
    }
    late_seconds = 0.5  # it writes every tenth of a second

    def tool_command(self, words: Sequence[str]) -> str:
        """It sets a shell up first, and asks it afterwards where it stands."""
        given = super().tool_command(words)
        found = re.search(r" && eval ('.*') (?:\\?< /dev/null )?&& pwd -P >", given, re.DOTALL)
        if found is None:
            return ""
        import shlex  # which no hook needs

        try:
            return " ".join(shlex.split(found[1]))
        except ValueError:
            return ""

    def left_running(self, line: bytes) -> Iterator[tuple[str, bool]]:
        return lines.left_running(line)

    command_file = "commands/hardsave-rewind.md"
    command_typed = "/hardsave-rewind"
    skills_folder = "skills"

    def command_text(self, rewind: str) -> str:
        """A shell runs the command before the model is asked: no model decides anything."""
        return (
            f"---\n{COMMAND_MARK}\n"
            "description: Take files and conversation back to a checkpoint, and go on from there\n"
            'argument-hint: "[REF]"\n'
            "disable-model-invocation: true\n"
            f"allowed-tools: Bash({rewind}:*)\n"
            "---\n"
            "Show the user the following as it is, and do nothing else:\n\n"
            f"!`{rewind} --yes $ARGUMENTS`\n"
        )

    def why_hooks_off(self, folder: Path, project: Path, here: Path) -> str:
        from hardsave.agents.claude_code import hooks  # only `init`, `doctor` and `run` ask

        return hooks.why_off(folder, project)

    def resume_words(self, session: str | None, prompt: str = "") -> list[str]:
        resumed = [] if session is None else ["--resume", session]
        return [self.program, *resumed, *([f"--prefill={prompt}"] if prompt else [])]

    def transcripts(self, folder: Path, directory: str) -> Iterator[tuple[str, Path]]:
        name = _folder_name(directory)
        is_cut = len(name) > _LONGEST
        for place in (folder / "projects").glob(f"{name[:_LONGEST]}-*" if is_cut else name):
            for path in place.glob("*.jsonl"):
                if re.fullmatch(_SESSION, path.stem):  # and not one of a subagent
                    yield path.stem, path

    def original(self, path: str, session: str, folder: Path) -> Path:
        home = Path(os.path.realpath(folder / "projects"))
        real = Path(os.path.realpath(path))
        if real.parent.parent != home or real.name != f"{session}.jsonl":
            raise Unknown(f"{path!r} is not where Claude Code keeps its transcripts")
        return real

    def copy_path(
        self, original: Path, session: str, folder: Path, moment: datetime, directory: str | None
    ) -> Path:
        place = original.parent
        if directory is not None:
            name = _folder_name(directory)
            if len(name) > _LONGEST:
                raise Unknown(f"Claude Code shortens {directory!r} in a way that is not known")
            place = folder / "projects" / name
        return place / f"{session}.jsonl"

    def moved_to(self, original: Path, folder: Path) -> Path:
        """In the folder of the directory that its session works in. When Claude Code enters a
        worktree in the midst of a session, that is another one, and it takes the transcript
        along."""
        if original.exists():
            return original
        found = list(original.parent.parent.glob(f"*/{original.name}"))
        return found[0] if len(found) == 1 else original

    def session_folders(self, folder: Path, session: str) -> list[Path]:
        """What Claude Code keeps for its own undo."""
        return [folder / "file-history" / session]


def _folder_name(directory: str) -> str:
    return re.sub("[^A-Za-z0-9]", lambda found: "--"[: 1 + (found[0] > "\uffff")], directory)


CLAUDE_CODE = ClaudeCode()
