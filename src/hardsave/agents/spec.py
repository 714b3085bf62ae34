"""The agents that we know: their names, where they keep their things, which hooks call us."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from hardsave import config
from hardsave.agents import claude_lines, codex_lines
from hardsave.agents.lines import Lines
from hardsave.tuples import NamedTuple

_LAUNCHERS = frozenset({"bash", "bun", "dash", "deno", "node", "sh", "zsh"})
_PATIENCE_SECONDS = 15  # that an agent shall have with a hook; the hook itself returns after ten


class Agent(NamedTuple):
    """An agent, before anything of it is read."""

    name: str
    """In checkpoints, and what its hooks say who calls."""
    title: str
    program: str
    """What is typed; also what the timelines of its sessions begin with."""
    folder_variable: str
    """The environment variable that names its folder."""
    folder: str
    """Where that is below a user's home if nothing names it."""
    settings: str
    """The file in its folder that hooks stand in."""
    project_settings: str | None
    """The same in a project, for its user alone; None if it has no such file."""
    project_variable: str | None
    """The environment variable that tells a hook the project."""
    session_variable: str
    """The environment variable that tells its tools the session."""
    hooks: Mapping[str, int]
    """The events that call us, each with the seconds that the agent waits."""
    lines: Lines
    late_seconds: float
    """How long after it was said an answer may be missing from the transcript, at most."""
    has_transcripts_of_subagents: bool
    """Whether hooks of a subagent are told its own transcript, and not that of the session."""

    def home(self, environment: Mapping[str, str]) -> Path:
        """Where it keeps what belongs to a user."""
        given = environment.get(self.folder_variable)
        return Path(given) if given else config.home() / self.folder


CLAUDE_CODE = Agent(
    name="claude-code",
    title="Claude Code",
    program="claude",
    folder_variable="CLAUDE_CONFIG_DIR",
    folder=".claude",
    settings="settings.json",
    project_settings=".claude/settings.local.json",
    project_variable="CLAUDE_PROJECT_DIR",
    session_variable="CLAUDE_CODE_SESSION_ID",
    hooks=dict.fromkeys(
        ("UserPromptSubmit", "PostToolUse", "PostToolBatch", "Stop", "SessionEnd"),
        _PATIENCE_SECONDS,
    ),
    lines=claude_lines,
    late_seconds=0.5,  # it writes every tenth of a second
    has_transcripts_of_subagents=False,
)
CODEX = Agent(
    name="codex",
    title="Codex",
    program="codex",
    folder_variable="CODEX_HOME",
    folder=".codex",
    settings="hooks.json",
    project_settings=None,  # it reads .codex/hooks.json, but that is everybody's in a project
    project_variable=None,
    session_variable="CODEX_THREAD_ID",
    hooks={
        **dict.fromkeys(
            ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"), _PATIENCE_SECONDS
        ),
        "SessionEnd": 3,  # it allows no more
    },
    lines=codex_lines,
    late_seconds=0,
    has_transcripts_of_subagents=True,
)
AGENTS = (CLAUDE_CODE, CODEX)


def typed(program: str) -> Agent | None:
    """The agent that somebody starts by typing this."""
    return next((agent for agent in AGENTS if agent.program == Path(program).name), None)


def named(name: object) -> Agent | None:
    return next((agent for agent in AGENTS if agent.name == name), None)


def is_called(words: Sequence[str], program: str) -> bool:
    """Whether a command is a program by this name, or a script of this name."""
    names = [os.path.basename(word) for word in words[:2]]
    is_script = len(names) == 2 and names[0] in _LAUNCHERS
    return program in names[:1] or (is_script and names[1] in (program, f"{program}.js"))
