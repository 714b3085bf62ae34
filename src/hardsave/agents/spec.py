"""What is known of one agent CLI: `AgentSpec`, and the types that each agent's folder shares.

To add an agent CLI:

1. Write a subclass of `AgentSpec` in a file or a folder of its own. Its attributes say where the
   agent CLI keeps its things and which of its hooks call us, its methods where its transcripts are
   and how it goes on with a session; `lines` is a module or an object that reads and writes lines
   of its transcripts (`Lines`). Nothing about an agent CLI stands outside of its file or folder.
2. Make it known. One that comes with Hardsave is listed in `hardsave.agents.registry`. One of your
   own is a package whose name begins with `hardsave-`, installed beside Hardsave, with an entry
   point that has the name of the agent and leads to an instance of the class:

       [project.entry-points."hardsave.agents"]
       my-agent = "hardsave_my_agent:SPEC"

   A program of your own may call `registry.register(spec)` instead.
3. Then `hardsave init` installs its hooks, `hardsave-hook my-agent` is what they call,
   `hardsave run` reads its transcripts where no hook calls, and `rewind` writes a transcript that
   it can go on with. `tests/integration/agents/parrot.py` is a whole one in one file.

Formats of transcripts are private and change with every version of an agent CLI: `Unknown` says
what is not as it is known, and then nothing is written.
"""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from hardsave import config
from hardsave.agents import events
from hardsave.agents.events import Event
from hardsave.tuples import NamedTuple

if TYPE_CHECKING:  # which a hook without a daemon does without
    from hardsave.agents.tools import Work

PROJECT_SUFFIX = "_PROJECT_DIR"
"""What the variable ends with that tells a hook its project: hooks hand these on to the daemon
without loading any spec."""
_SHELLS = frozenset({"bash", "dash", "sh", "zsh"})
_LAUNCHERS = frozenset({"bash", "bun", "dash", "deno", "node", "sh", "zsh"})

Line: TypeAlias = Mapping[str, Any]  # as it was parsed

MARK = "Made by 'hardsave init', which also renews and removes it"
"""The comment by which a file is known as ours, alone on its line."""
COMMAND_MARK = f"# {MARK}"
"""The same where YAML is read."""

UNSAVED = (
    "No result: the session was taken back to a moment when this call was under way or its result "
    "was not written yet. Whether it has taken effect is unknown; look at the files before you "
    "repeat it."
)


class Unknown(Exception):
    """Something in a transcript is not as it is known."""


class Open(NamedTuple):
    """A call without a result: its id, and the line that it stands in."""

    id: str
    line: Line


class Ending(NamedTuple):
    """What a copy of a transcript needs to know to end by itself."""

    session: str  # its own
    title: str  # what the conversation is about
    origin: str  # where it comes from: "rewound to :14"
    moment: str  # as agents write it
    make_id: Callable[[], str]


class Lines(Protocol):
    """How one agent CLI writes transcripts, as JSON lines. All functions are pure."""

    def parsed(self, text: str, session: str) -> Line:
        """A line of this session; `Unknown` if it is anything else."""

    def directory(self, line: Line) -> str | None:
        """Where its session works, if this line says so."""

    def moment(self, line: bytes) -> str | None:
        """When a line was written, as ISO 8601, if it says so; None for any other bytes."""

    def calls(self, line: Line) -> Iterable[str]:
        """The tools that are called here, by the ids of the calls."""

    def results(self, line: Line) -> Iterable[str]:
        """The calls whose results stand here."""

    def ended_call(self, line: Line) -> str | None:
        """The call that had just ended when this line was written, if the agent notes that."""

    def ends_calls(self, line: Line) -> bool:
        """Whether nothing is waited for any more that was called before this line."""

    def is_from_model(self, line: Line) -> bool:
        """Whether this is part of an answer of the model."""

    def is_to_model(self, line: Line) -> bool:
        """Whether this is something that the model answers to."""

    def is_talk(self, line: Line) -> bool:
        """Whether a session that has this line is worth going on with."""

    def attached(self, heard: Line, later: Iterable[Line]) -> int:
        """How many of the lines behind a result were given to the model together with it: what the
        tool says besides, what other hooks have to say, what its user has said meanwhile."""

    def inherited(self, later: Sequence[str], session: str, moment: str) -> int:
        """How many lines were those of another session, which this one goes on from, when it was
        asked its first prompt at this moment: they are written down with it, not before."""

    def continued_from(self, known: Sequence[Line], later: Sequence[str]) -> int:
        """How many of these lines a prompt has gone on from, as later lines tell: fewer than all
        if its user had taken the agent itself back, without Hardsave."""

    def abandoned(self, known: Sequence[Line], waiting: Sequence[Open]) -> Iterable[str]:
        """Which of these calls its user has left behind since, by taking the agent itself back:
        none is waited for, and no later line speaks of them."""

    def copied(self, text: str, session: str, new: str) -> str | None:
        """A line as it stands in a copy under another id; None if it is the original's alone."""

    def moved(self, text: str, old: str, new: str) -> str:
        """A line of a copy that goes on in another directory, with the directory by which the agent
        finds it. What was said stays as it was said."""

    def closing(self, lines: Sequence[str], waiting: Sequence[Open], ending: Ending) -> list[str]:
        """The lines that a copy ends with: the truth about calls that wait, and a name."""

    def messages(self, lines: Sequence[bytes]) -> list[dict[str, Any]]:
        """What was said, for people and to tell which call has changed what: `role` is user,
        assistant or tool, `content` a text or a list of blocks. A call is a block
        `{"type": "tool_use", "id", "name", "input"}`, its result a block
        `{"type": "tool_result", "tool_use_id", "content"}`. Other lines are left out."""


class SettingsFormat(Protocol):
    """How hooks stand in a file of settings. All functions are pure; a text that is not understood
    is a `Misuse`, and stays as it is."""

    def with_hooks(self, text: str, command: str, events: Mapping[str, int]) -> str:
        """These settings with our hooks, once each, and no other byte changed; an empty text is a
        file that is not there yet. The events come with the seconds that the agent shall wait."""

    def without_hooks(self, text: str) -> str:
        """These settings without ours; the very same text if there were none."""

    def is_ours_alone(self, text: str) -> bool:
        """Whether nothing stands there but our hooks: then the file goes with them."""

    def commands(self, text: str) -> Sequence[tuple[str, str]]:
        """The events that call us, each with its command, as `settings.calls_us` knows it."""


class AgentSpec(ABC):
    """One agent CLI: where it keeps its things, its hooks, its transcripts, and how it resumes."""

    name: ClassVar[str]
    """In checkpoints, and the argument of `hardsave-hook`: small letters, digits and hyphens."""
    title: ClassVar[str]
    """For people."""
    program: ClassVar[str]
    """What is typed; also what the timelines of its sessions begin with."""
    folder_variable: ClassVar[str]
    """The environment variable that names its folder."""
    folder: ClassVar[str]
    """Where that is below a user's home if the variable is not set."""
    session_variable: ClassVar[str]
    """The environment variable that tells its tools the session."""
    server_words: ClassVar[frozenset[str]] = frozenset()
    """The commands of its program by which it works at nothing, and waits for other programs."""
    project_variable: ClassVar[str | None] = None
    """The environment variable that tells a hook the project; it ends with `PROJECT_SUFFIX`."""
    lines: ClassVar[Lines]
    """How it writes transcripts."""

    # Hooks

    settings_file: ClassVar[str]
    """The file in its folder that hooks stand in."""
    project_settings_file: ClassVar[str | None] = None
    """The same in a project, for its user alone; None if it has no such file."""
    hooks: ClassVar[Mapping[str, int]]
    """The events that call us, each with the seconds that the agent waits."""
    how_to_trust: ClassVar[str] = ""
    """What its user does about hooks that `untrusted_hooks` names."""
    late_seconds: ClassVar[float] = 0.0
    """How long after it was said an answer may be missing from the transcript, at most."""
    has_transcripts_of_subagents: ClassVar[bool] = False
    """Whether hooks of a subagent are told its own transcript, and not that of the session."""

    def home(self, environment: Mapping[str, str]) -> Path:
        """Where it keeps what belongs to a user."""
        given = environment.get(self.folder_variable)
        return Path(given) if given else config.home() / self.folder

    def event(self, data: bytes) -> Event:
        """What one of its hooks was told on its standard input; `ValueError` if it is anything
        else. An agent CLI with other words translates them into those of `agents.events`."""
        return events.parse(data)

    def is_step(self, event: Event) -> bool:
        """Whether a call of a hook is worth a checkpoint: an agent CLI may call one of ours also
        when nothing has happened that the others did not tell."""
        return True

    def warning(self, text: str) -> bytes:
        """What one of its hooks prints so that its user reads this, and the model does not."""
        told = json.dumps({"systemMessage": text}, ensure_ascii=False)
        return told.encode(errors="replace") if text else b""

    def settings_format(self) -> SettingsFormat:
        """How hooks stand in its settings: as with Claude Code, if nothing else is said."""
        from hardsave.agents import settings  # which no hook needs

        return settings

    def why_hooks_off(self, folder: Path, project: Path, here: Path) -> str:
        """The file that keeps it from running any hook in a project when it is started `here`, and
        how; empty if there is none."""
        return ""

    def untrusted_hooks(self, settings_file: Path) -> list[str]:
        """The events of our hooks in a file that it leaves out until its user trusts them."""
        return []

    # A command of ours inside of it

    command_file: ClassVar[str | None] = None
    """The file in its folder by which its user types a command of ours; None if it has none."""
    command_typed: ClassVar[str] = ""
    """What is typed for that: `/hardsave-rewind`."""

    def command_text(self, rewind: str) -> str:
        """What stands in that file, with a line that is `COMMAND_MARK`; `rewind` is the command
        that takes a shell back."""
        return ""

    skills_folder: ClassVar[str | None] = None
    """The folder in its own that it reads skills from; None if it reads none."""

    # Calls of its tools

    runs_in_order: ClassVar[bool] = False
    """Whether a call that edits or runs a command begins only when all that the model has asked for
    before have ended: the transcript has those of one answer together."""

    def work(self, given: Any) -> "Work":
        """What a call is to do, by its input: by names that most tools have in common."""
        from hardsave.agents import tools  # which a hook without a daemon does without

        return tools.by_keys(given)

    def makes(self, given: Any, path: str, before: str | None, after: str | None) -> bool:
        """Whether a call with this input, which edits a file that it names like this, makes one
        content out of another, and nothing else has to have changed the file. None is a file that
        is not there. False if the input does not say it."""
        from hardsave.agents import tools  # which a hook without a daemon does without

        return tools.makes(given, before, after)

    def tool_command(self, words: Sequence[str]) -> str:
        """The command that a tool was given, out of the process that runs it; empty if that is no
        process of a tool: by a shell, which most agents start for it."""
        is_shell = len(words) == 3 and os.path.basename(words[0]) in _SHELLS
        return words[2] if is_shell and words[1] in ("-c", "-lc") else ""

    def left_running(self, line: bytes) -> Iterable[tuple[str, bool]]:
        """The calls of which this line of a transcript says that their commands go on in the
        background (True), or that these have ended there (False)."""
        return ()

    # Transcripts

    prefills: ClassVar[bool] = False
    """Whether the prompt of `resume_words` waits in its input until its user has edited and sent
    it; else it is sent at once."""
    carried_options: ClassVar[Mapping[str, int]] = {}
    """The options that a session which goes on is started with again, each with how many words
    follow it; -1: all up to the next option."""

    @abstractmethod
    def resume_words(self, session: str | None, prompt: str = "") -> list[str]:
        """The command that goes on with a session, or begins one, with a prompt or without."""

    def resume_command(self, session: str | None) -> str:
        """What is typed for that."""
        import shlex  # which no hook needs

        return shlex.join(self.resume_words(session))

    def started_as(
        self, command: Sequence[str], session: str | None, prompt: str = ""
    ) -> list[str]:
        """The same with the program and the options of a command by which it was started before."""
        program, *words = self.resume_words(session, prompt)
        if not command or os.path.basename(command[0]) != self.program:
            return [program, *words]
        return [command[0], *options_of(command[1:], self.carried_options), *words]

    @abstractmethod
    def transcripts(self, folder: Path, directory: str) -> Iterable[tuple[str, Path]]:
        """Those that may be of a directory, by the ids of their sessions."""

    @abstractmethod
    def original(self, path: str, session: str, folder: Path) -> Path:
        """The transcript that a checkpoint names, without links. `Unknown` if that is not where
        this agent CLI keeps transcripts: a checkpoint may come from a stranger."""

    @abstractmethod
    def copy_path(
        self, original: Path, session: str, folder: Path, moment: datetime, directory: str | None
    ) -> Path:
        """Where the transcript of another session belongs, made at this moment out of this one. It
        goes on in a directory; None: in that of the original."""

    def is_gone_on_with(self, original: Path, session: str) -> bool:
        """Whether the agent goes on with this very file when it is told to resume a session."""
        return original.exists()

    def moved_to(self, original: Path, folder: Path) -> Path:
        """Where that transcript is by now: an agent may have moved it since."""
        return original

    def missing_base(self, first: str, folder: Path) -> str | None:
        """The session that this one goes on from, as its first line tells, if that is gone: then
        the agent could not go on with a copy either."""
        return None

    def session_folders(self, folder: Path, session: str) -> Iterable[Path]:
        """The folders, named by a session, that belong to it besides its transcript: a copy gets
        its own."""
        return ()


def options_of(words: Sequence[str], known: Mapping[str, int]) -> list[str]:
    """Those of these options that are known, with what follows them."""
    found: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            break
        name, given, _ = word.partition("=")
        count = known.get(name)
        if count is None:
            continue
        found.append(word)
        while count and not given and left and (count > 0 or not left[0].startswith("-")):
            found.append(left.pop(0))
            count -= 1
    return found


def is_called(words: Sequence[str], program: str) -> bool:
    """Whether a command is a program by this name, or a script of this name."""
    names = [os.path.basename(word) for word in words[:2]]
    is_script = len(names) == 2 and (names[0] in _LAUNCHERS or names[0].startswith("python"))
    return program in names[:1] or (is_script and names[1] in (program, f"{program}.js"))
