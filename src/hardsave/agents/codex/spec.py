"""Codex: where it keeps things, which hooks call us, and how it goes on with a session."""

import glob
import os
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hardsave.agents.codex import lines
from hardsave.agents.spec import COMMAND_MARK, AgentSpec, Lines, Unknown
from hardsave.agents.transcripts import beginning_lines
from hardsave.defaults import HOOK_SECONDS

if TYPE_CHECKING:
    from hardsave.agents.tools import Work

_ID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_SESSION = f"{_ID}(?:_{_ID})?$"  # hooks need not compile it
_HEAD_BYTES = 1 << 20  # in which there is a first line
_ARCHIVE = "archived_sessions"


class Codex(AgentSpec):
    """It keeps a transcript as `sessions/YEAR/MONTH/DAY/rollout-MOMENT-ID.jsonl`, and finds a
    session by the id at the end of the name. A session that its user has taken back by Codex itself
    goes on in another file, `rollout-MOMENT-ID_OTHER.jsonl`, whose first line says how much of the
    one before still counts. Its databases are derived from these files and left alone."""

    name = "codex"
    title = "Codex"
    program = "codex"
    server_words = frozenset({"app-server", "daemon", "mcp", "mcp-server"})
    folder_variable = "CODEX_HOME"
    folder = ".codex"
    session_variable = "CODEX_THREAD_ID"
    lines: ClassVar[Lines] = lines
    settings_file = "hooks.json"
    project_settings_file = None  # .codex/hooks.json is shared by all users of a project
    hooks: ClassVar[Mapping[str, int]] = {
        **dict.fromkeys(("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"), HOOK_SECONDS),
        "SessionEnd": 3,  # it allows no more
    }
    how_to_trust = "start codex, choose 'Trust all and continue', or see /hooks there"
    has_transcripts_of_subagents = True
    carried_options: ClassVar[Mapping[str, int]] = {
        **dict.fromkeys(
            ("--dangerously-bypass-approvals-and-sandbox", "--full-auto", "--oss", "--search"), 0
        ),
        **dict.fromkeys(
            (
                "-c",
                "--config",
                "-m",
                "--model",
                "-p",
                "--profile",
                "-s",
                "--sandbox",
                "-a",
                "--ask-for-approval",
                "--add-dir",
                "--enable",
                "--disable",
                "--local-provider",
            ),
            1,
        ),
    }

    command_file = "skills/hardsave-rewind/SKILL.md"
    command_typed = "$hardsave-rewind"
    skills_folder = "skills"

    def command_text(self, rewind: str) -> str:
        """Codex has no commands of its user's own, but skills, which the model reads."""
        return (
            f"---\n{COMMAND_MARK}\n"
            "name: hardsave-rewind\n"
            "description: Takes files and conversation back to a checkpoint. Only where the user "
            "has named this skill.\n"
            "---\n"
            "If the user has named no checkpoint, run this, show what it prints as it is, and ask "
            f"which:\n\n    {rewind}\n\n"
            "Then run this with the checkpoint for REF, outside of the sandbox, and do nothing "
            f"else:\n\n    {rewind} --yes REF\n"
        )

    def work(self, given: Any) -> "Work":
        from hardsave.agents.codex import tools  # which a hook without a daemon does without

        return tools.work(given)

    def makes(self, given: Any, path: str, before: str | None, after: str | None) -> bool:
        from hardsave.agents.codex import tools  # as above

        return tools.makes(given, path, before, after)

    def left_running(self, line: bytes) -> Iterator[tuple[str, bool]]:
        return lines.left_running(line)

    def why_hooks_off(self, folder: Path, project: Path, here: Path) -> str:
        from hardsave.agents.codex import hooks  # only `init`, `doctor` and `run` ask

        return hooks.why_off(folder, folder / self.settings_file, project, here)

    def untrusted_hooks(self, settings_file: Path) -> list[str]:
        from hardsave.agents.codex import hooks

        return hooks.untrusted(settings_file)

    def resume_words(self, session: str | None, prompt: str = "") -> list[str]:
        """By its first id, for each of its files."""
        resumed = [] if session is None else ["resume", session.partition("_")[0]]
        return [self.program, *resumed, *(["--", prompt] if prompt else [])]

    def transcripts(self, folder: Path, directory: str) -> Iterator[tuple[str, Path]]:
        """Of any directory: only the first line of each says which. What a session goes on in
        counts as one of its own, by both ids."""
        for path in (folder / "sessions").glob("*/*/*/rollout-*.jsonl"):
            if found := re.search(_SESSION, path.stem):
                yield found[0], path

    def original(self, path: str, session: str, folder: Path) -> Path:
        home, archive = (Path(os.path.realpath(folder / name)) for name in ("sessions", _ARCHIVE))
        real = Path(os.path.realpath(path))
        is_rollout = re.fullmatch(rf"rollout-.*-{re.escape(session)}(_{_ID})?\.jsonl", real.name)
        is_there = real.parent == archive or home in real.parents[3:4]
        if not is_there or not is_rollout:
            raise Unknown(f"{path!r} is not where Codex keeps its transcripts")
        return real

    def copy_path(
        self, original: Path, session: str, folder: Path, moment: datetime, directory: str | None
    ) -> Path:
        """In the folder of the day, in local time, as Codex itself would have begun it."""
        local = moment.astimezone()
        name = f"rollout-{local:%Y-%m-%dT%H-%M-%S}-{session}.jsonl"
        return folder / f"sessions/{local:%Y/%m/%d}/{name}"

    def is_gone_on_with(self, original: Path, session: str) -> bool:
        """Not if the session goes on in another file, or this is that."""
        if "_" in session or original.parent.name == _ARCHIVE:
            return False
        folder = original.parents[4]
        return list(_kept(folder, f"rollout-*-{glob.escape(session)}*.jsonl")) == [original]

    def moved_to(self, original: Path, folder: Path) -> Path:
        """Codex puts away what its user archives, under the same name, and takes it out again."""
        if original.exists():
            return original
        return next(_kept(folder, glob.escape(original.name)), original)

    def missing_base(self, first: str, folder: Path) -> str | None:
        """A fork, and a session that was taken back, lead to another file, and that to the next."""
        base, seen = lines.base(first), set[str]()
        while base is not None and base not in seen:
            seen.add(base)
            path = _written(folder, base)
            if path is None:
                return base
            begun = beginning_lines(path, _HEAD_BYTES) if path.suffix == ".jsonl" else []
            base = lines.base(begun[0].decode(errors="replace")) if begun else None
        return None


def _written(folder: Path, id: str) -> Path | None:
    """Where a session was written down; Codex puts some away, and compresses some."""
    if not re.fullmatch(_ID, id):
        return None
    return min(_kept(folder, f"rollout-*[-_]{id}.jsonl*"), default=None)


def _kept(folder: Path, name: str) -> Iterator[Path]:
    yield from (folder / "sessions").glob(f"*/*/*/{name}")
    yield from (folder / _ARCHIVE).glob(name)


CODEX = Codex()
