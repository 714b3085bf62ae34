"""Parrot, a made-up agent CLI, and all that Hardsave has to know of it, in one file.

`parrot [--resume TALK] PROMPT …` runs what follows `run`, and repeats all else; `recall` says all
that it was ever asked. It has a folder, variables, settings, hooks and transcripts of its own, like
no other: hooks are lines of a text, called in no directory of the project, and told in other words.
"""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from hardsave.agents import settings
from hardsave.agents.events import Event
from hardsave.agents.spec import UNSAVED, AgentSpec, Ending, Line, Lines, Open, Unknown

# What Hardsave knows of it

EVENTS = {
    "asked": "UserPromptSubmit",
    "did": "PostToolUse",
    "said": "Stop",
    "left": "SessionEnd",
}
SAID, HEARD = frozenset({"call", "answer"}), frozenset({"prompt", "result"})


class ParrotLines:
    """Lines as `{"talk": ID, "kind": KIND, "at": MOMENT, …}`; the first says where the talk is."""

    def parsed(self, text: str, session: str) -> Line:
        try:
            line = dict(json.loads(text))
        except (TypeError, ValueError) as error:
            raise Unknown(f"{text!r} is no line of a talk") from error
        if line.get("talk") != session or line.get("kind") not in SAID | HEARD | {"begin"}:
            raise Unknown(f"{text!r} is not of the talk {session!r}")
        return line

    def directory(self, line: Line) -> str | None:
        return line.get("directory")

    def moment(self, line: bytes) -> str | None:
        return str(json.loads(line)["at"])

    def calls(self, line: Line) -> list[str]:
        return [line["id"]] if line["kind"] == "call" else []

    def results(self, line: Line) -> list[str]:
        return [line["id"]] if line["kind"] == "result" else []

    def ended_call(self, line: Line) -> str | None:
        return next(iter(self.results(line)), None)

    def ends_calls(self, line: Line) -> bool:
        return False

    def is_from_model(self, line: Line) -> bool:
        return line["kind"] in SAID

    def is_to_model(self, line: Line) -> bool:
        return line["kind"] in HEARD

    def is_talk(self, line: Line) -> bool:
        return line["kind"] in SAID | HEARD

    def attached(self, heard: Line, later: Iterable[Line]) -> int:
        return 0

    def inherited(self, later: Sequence[str], session: str, moment: str) -> int:
        return 0

    def continued_from(self, known: Sequence[Line], later: Sequence[str]) -> int:
        return len(known)

    def abandoned(self, known: Sequence[Line], waiting: Sequence[Open]) -> list[str]:
        return []

    def copied(self, text: str, session: str, new: str) -> str:
        return json.dumps({**self.parsed(text, session), "talk": new})

    def moved(self, text: str, old: str, new: str) -> str:
        line = json.loads(text)
        return json.dumps({**line, "directory": new}) if "directory" in line else text

    def closing(self, lines: Sequence[str], waiting: Sequence[Open], ending: Ending) -> list[str]:
        told = {"talk": ending.session, "kind": "result", "at": ending.moment, "text": UNSAVED}
        return [json.dumps({**told, "id": call.id}) for call in waiting]

    def messages(self, lines: Sequence[bytes]) -> list[dict[str, Any]]:
        return [found for line in lines if (found := message(json.loads(line))) is not None]


def message(line: Line) -> dict[str, Any] | None:
    kind = line["kind"]
    if kind == "call":
        call = {"type": "tool_use", "id": line["id"], "name": "run", "input": line["input"]}
        return {"role": "assistant", "content": [call]}
    if kind == "result":
        result = {"type": "tool_result", "tool_use_id": line["id"], "content": line["text"]}
        return {"role": "tool", "content": [result]}
    role = {"prompt": "user", "answer": "assistant"}.get(kind)
    return None if role is None else {"role": role, "content": line["text"]}


class ParrotSettings:
    """A hook is a line, `EVENT: COMMAND`; all other lines are something else."""

    def with_hooks(self, text: str, command: str, events: Mapping[str, int]) -> str:
        return self.without_hooks(text) + "".join(f"{event}: {command}\n" for event in events)

    def without_hooks(self, text: str) -> str:
        return "".join(line for line in text.splitlines(True) if not settings.calls_us(line))

    def is_ours_alone(self, text: str) -> bool:
        return bool(text) and not self.without_hooks(text)

    def commands(self, text: str) -> list[tuple[str, str]]:
        return [hook for hook in read_hooks(text) if settings.calls_us(hook[1])]


class Parrot(AgentSpec):
    """It keeps a transcript as `talks/TALK.jsonl`."""

    name = "parrot"
    title = "Parrot"
    program = "parrot"
    folder_variable = "PARROT_NEST"
    folder = ".parrot"
    session_variable = "PARROT_TALK"
    project_variable = "PARROT_PROJECT_DIR"
    lines: ClassVar[Lines] = ParrotLines()
    settings_file = "hooks.txt"
    project_settings_file = ".parrot.txt"
    hooks = dict.fromkeys(EVENTS, 15)

    def event(self, data: bytes) -> Event:
        told = json.loads(data)
        if not isinstance(told, dict) or told.get("event") not in EVENTS or "talk" not in told:
            raise ValueError("a hook is told an event and a talk")
        return Event(
            name=EVENTS[told["event"]],
            session=told["talk"],
            transcript=told.get("transcript"),
            directory=None,
            tools=("run",) if told["event"] == "did" else (),
            tool_use_id=told.get("call"),
            prompt=told.get("prompt", ""),
            answer=told.get("answer", ""),
        )

    def warning(self, text: str) -> bytes:
        return f"squawk: {text}".encode() if text else b""

    def settings_format(self) -> ParrotSettings:
        return ParrotSettings()

    def why_hooks_off(self, folder: Path, project: Path, here: Path) -> str:
        return f"{folder / 'asleep'} is there" if (folder / "asleep").exists() else ""

    def resume_words(self, session: str | None, prompt: str = "") -> list[str]:
        resumed = [] if session is None else ["--resume", session]
        return ["parrot", *resumed, *([prompt] if prompt else [])]

    def transcripts(self, folder: Path, directory: str) -> Iterator[tuple[str, Path]]:
        return ((path.stem, path) for path in (folder / "talks").glob("*.jsonl"))

    def original(self, path: str, session: str, folder: Path) -> Path:
        real = Path(os.path.realpath(path))
        if real != Path(os.path.realpath(folder / "talks")) / f"{session}.jsonl":
            raise Unknown(f"{path!r} is no talk of Parrot's")
        return real

    def copy_path(
        self, original: Path, session: str, folder: Path, moment: datetime, directory: str | None
    ) -> Path:
        return original.with_name(f"{session}.jsonl")


SPEC = Parrot()


def read_hooks(text: str) -> list[tuple[str, str]]:
    parts = (line.partition(": ") for line in text.splitlines())
    return [(event, command) for event, _, command in parts if event in EVENTS]


# The program


class Talk:
    """One session, by its transcript."""

    def __init__(self, nest: Path, resumed: str | None) -> None:
        self.nest, self.id = nest, resumed or str(uuid.uuid4())
        self.transcript = nest / "talks" / f"{self.id}.jsonl"
        if resumed is None:
            self.transcript.parent.mkdir(parents=True, exist_ok=True)
            self.write("begin", directory=os.getcwd())

    def write(self, kind: str, **more: Any) -> None:
        head = {"talk": self.id, "kind": kind, "at": datetime.now(UTC).isoformat()}
        with self.transcript.open("a") as file:
            file.write(json.dumps({**head, **more}) + "\n")

    def hook(self, event: str, **more: str) -> None:
        """What its user has written into the settings for this event, unless it sleeps."""
        path = self.nest / "hooks.txt"
        if not path.exists() or (self.nest / "asleep").exists():
            return
        told = {"talk": self.id, "event": event, "transcript": str(self.transcript), **more}
        for command in (each for name, each in read_hooks(path.read_text()) if name == event):
            done = subprocess.run(
                ["sh", "-c", command],
                input=json.dumps(told),
                cwd="/",
                env={**os.environ, "PARROT_PROJECT_DIR": os.getcwd()},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            sys.stdout.writelines(filter(None, [done.stdout]))

    def turn(self, prompt: str) -> None:
        self.hook("asked", prompt=prompt)
        self.write("prompt", text=prompt)
        word, _, command = prompt.partition(" ")
        answer = self.recalled() if word == "recall" else prompt
        if word == "run":
            answer = self.run(command)
        self.write("answer", text=answer)
        self.hook("said", answer=answer)
        sys.stdout.write(f"{answer}\n")

    def recalled(self) -> str:
        lines = map(json.loads, self.transcript.read_text().splitlines())
        return ", ".join(line["text"] for line in lines if line["kind"] == "prompt")

    def run(self, command: str) -> str:
        call = str(uuid.uuid4())
        self.write("call", id=call, input={"command": command})
        environment = {**os.environ, "PARROT_TALK": self.id}
        done = subprocess.run(
            ["sh", "-c", command], env=environment, stdout=subprocess.PIPE, text=True, check=False
        )
        self.hook("did", call=call)
        self.write("result", id=call, text=done.stdout)
        return done.stdout


def main() -> None:
    words = sys.argv[1:]
    resumed = words[1] if words[:1] == ["--resume"] else None
    nest = Path(os.environ.get("PARROT_NEST") or Path.home() / ".parrot")
    talk = Talk(nest, resumed)
    for prompt in words[2:] if resumed else words:
        talk.turn(prompt)
    talk.hook("left")
