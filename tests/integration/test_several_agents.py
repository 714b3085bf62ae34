"""Claude Code and Codex at once in one directory: what each takes back is its own.

Each call is played as its agent plays it: hooks before and after it as processes of their own, its
line in the transcript, and files that are written in between. What both agents do is put in turns
at random, so that calls overlap in every way.
"""

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import hardsave
from hardsave.agents import install
from hardsave.agents.codex.spec import CODEX
from hardsave.errors import Conflict
from tests.integration.hooked import HOOK, PATIENT, Agent, Stage

CODEX_HOOK = PATIENT.replace(HOOK.rpartition(" ")[2], CODEX.name)
assert CODEX_HOOK.endswith(install.command(CODEX).rpartition(" ")[2])
CALLS = 4


class Wrote(NamedTuple):
    """A file that was written or removed during a call."""

    path: str
    who: str
    call: str
    is_shell: bool


class Player:
    """One agent: what it does in a call, one part after the other."""

    def __init__(self, stage: "Scene", who: str, agent: Agent, play: random.Random) -> None:
        self.who, self.timeline = who, f"{who}-{agent.session}"
        self._stage, self._agent, self._play = stage, agent, play
        self._transcript = stage.base / f"{who}.jsonl"
        self._transcript.write_text("")
        self._count = 0
        self._edits = ("", "")

    def begin(self) -> None:
        self._hook("UserPromptSubmit", prompt="work")

    def parts(self) -> Iterator[None]:
        for _ in range(CALLS):
            yield from self._call()

    def _call(self) -> Iterator[None]:
        self._count += 1
        id = f"{self.who}-{self._count}"
        is_shell = self._play.random() < 0.6
        path = self._path()
        given = {"command": f"do {id}"} if is_shell else self._edit_of(path, id)
        tool = "Bash" if is_shell else "Edit"
        self._stage.open[self.who, id] = is_shell
        self._stage.overlap()
        self._ask(id, tool, given)
        about = {"tool_name": tool, "tool_input": given, "tool_use_id": id}
        if self.who == "codex":
            self._hook("PreToolUse", **about)
        yield
        if not is_shell:
            self._edit(path, id)
            yield
        for _ in range(self._play.choice((0, 1, 2)) if is_shell else 0):
            self._write(path, id)
            path = self._path()
            yield
        self._hook("PostToolUse", **about, tool_response="ok")
        self._stage.open.pop((self.who, id))
        if self.who == "claude":
            self._hook("PostToolBatch", tool_calls=[about])
        yield

    def _path(self) -> str:
        """Mostly a file of its own; one that both use; one in a directory that is new."""
        own = [f"{self.who}{n}" for n in range(3)] + [f"new/{self.who}{n}" for n in range(2)]
        both = ["both"] if (self._stage.work / "both").exists() else []
        return self._play.choice(own + both)

    def _edit_of(self, path: str, id: str) -> dict[str, Any]:
        """Its own line in a file becomes another; or the file is new."""
        place, name = self._stage.work / path, str(self._stage.work / path)
        old, new = self._line_in(place), f"{self.who} {id}"
        self._edits = (old, new)
        if self.who == "claude" and old:
            return {"file_path": name, "old_string": old, "new_string": new}
        if self.who == "claude":
            return {"file_path": name, "content": f"{new}\n"}
        kind, changed = ("Update", f"@@\n-{old}\n+{new}") if old else ("Add", f"+{new}")
        return {"input": f"*** Begin Patch\n*** {kind} File: {path}\n{changed}\n*** End Patch"}

    def _line_in(self, place: Path) -> str:
        """The line of a file that this agent changes; none if there is no file."""
        lines = place.read_text().splitlines() if place.exists() else []
        return next((line for line in lines if line.startswith(self.who)), "")

    def _edit(self, path: str, id: str) -> None:
        """As the tool does: it fails if the line is not there any more."""
        old, new = self._edits
        place = self._stage.work / path
        if not old:
            self._put(place, f"{new}\n", id, is_shell=False)
        elif place.exists() and old in place.read_text():
            self._put(place, place.read_text().replace(old, new), id, is_shell=False)

    def _write(self, path: str, id: str) -> None:
        """What a shell does to a file."""
        place = self._stage.work / path
        old = self._line_in(place)
        if old and self._play.random() < 0.3:
            place.unlink()
            self._stage.wrote.append(Wrote(path, self.who, id, is_shell=True))
        else:
            new = f"{self.who} {id} {self._play.random()}"
            text = place.read_text().replace(old, new) if old else f"{new}\n"
            self._put(place, text, id, is_shell=True)

    def _put(self, place: Path, text: str, id: str, *, is_shell: bool) -> None:
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
        path = str(place.relative_to(self._stage.work))
        self._stage.wrote.append(Wrote(path, self.who, id, is_shell))

    def _ask(self, id: str, tool: str, given: dict[str, Any]) -> None:
        moment = datetime.fromtimestamp(time.time(), UTC).isoformat().replace("+00:00", "Z")
        if self.who == "claude":
            block = {"type": "tool_use", "id": id, "name": tool, "input": given}
            message = {"role": "assistant", "content": [block]}
            told: dict[str, Any] = {"type": "assistant", "timestamp": moment, "message": message}
        else:
            call = {"type": "function_call", "name": tool, "call_id": id}
            told = {
                "timestamp": moment,
                "type": "response_item",
                "payload": {**call, "arguments": json.dumps(given)},
            }
        with self._transcript.open("a") as file:
            file.write(json.dumps(told) + "\n")

    def _hook(self, name: str, **told: Any) -> None:
        self._agent.hook(name, transcript_path=str(self._transcript), **told)


class Scene(Stage):
    """Two agents in one directory, and the truth about what they do there."""

    def __init__(self, base: Path, seed: int) -> None:
        super().__init__(base)
        self.open: dict[tuple[str, str], bool] = {}  # the calls that run, and whether by a shell
        self.wrote: list[Wrote] = []
        self.beside: dict[str, set[str]] = {}  # by call: the shells of the other agent meanwhile
        self.play = random.Random(seed)
        for name in ("claude0", "claude1", "codex0", "codex1", "both"):
            (self.work / name).write_text("claude 0\ncodex 0\nrest\n")
        self.command = PATIENT
        claude = Player(self, "claude", self.agent("s"), self.play)
        self.command = CODEX_HOOK
        codex = Player(self, "codex", self.agent("t"), self.play)
        self.players = [claude, codex]

    def overlap(self) -> None:
        """Of the calls that run now, each runs beside the shells among the others."""
        for who, id in self.open:
            found = self.beside.setdefault(id, set())
            shells = [call for call, is_shell in self.open.items() if is_shell]
            found.update(other for whose, other in shells if whose != who)

    def run(self) -> None:
        for player in self.players:
            player.begin()
        self.daemon()
        turns = [player.parts() for player in self.players]
        while turns:
            turn = self.play.choice(turns)
            if next(turn, self) is self:
                turns.remove(turn)

    def authors(self, path: str) -> set[str]:
        return {each.who for each in self.wrote if each.path == path}

    def may_refuse(self, path: str) -> bool:
        """Whether it was changed by a shell while one of the other agent ran; or by both agents,
        one of them by a shell that ran while the other edited it."""
        found = [each for each in self.wrote if each.path == path]
        are_both = len(self.authors(path)) > 1
        return any(self.beside.get(each.call) and (each.is_shell or are_both) for each in found)

    def outcome(self, line: hardsave.Timeline, path: str) -> str:
        """What `--mine` says of one path."""
        try:
            done = line.rewind(f"{line.name}:1", paths=[path], scope="mine", dry_run=True)
        except Conflict:
            return "refused"
        assert done.files is not None
        if [each.path for each in done.files.kept] == [path]:
            return "kept"
        assert [*done.files.created, *done.files.changed, *done.files.removed] == [path]
        return "taken back"


def check(scene: Scene) -> Counter[str]:
    """Each path that differs, as each of both sees it; how often which answer was given."""
    counts: Counter[str] = Counter()
    with hardsave.open(f"sqlite:///{scene.store}") as vault:
        workspace = vault.workspace(scene.work)
        for player in scene.players:
            line = vault.timeline(player.timeline)
            files = workspace.status(f"{line.name}:1").files
            paths = {*files.added, *files.changed, *files.removed}
            for path in sorted(paths - {"new"}):
                said, who = scene.outcome(line, path), scene.authors(path)
                told = f"{player.who}: {path} by {who} is {said}; {scene.wrote}, {scene.beside}"
                right = "taken back" if who == {player.who} else "kept"
                assert said in (right, "refused"), told
                if said == "refused":
                    assert scene.may_refuse(path), told
                counts["refused" if said == "refused" else "answered"] += 1
                counts["shells at once"] += scene.may_refuse(path)
            _takes_back(scene, line, player.who)
    return counts


def _takes_back(scene: Scene, line: hardsave.Timeline, who: str) -> None:
    """All of it at once, and undone again."""
    before = _contents(scene.work)
    try:
        line.rewind(f"{line.name}:1", scope="mine")
    except Conflict:
        assert _contents(scene.work) == before
        return
    after = _contents(scene.work)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert all(scene.authors(path) == {who} for path in changed)
    line.undo()
    assert _contents(scene.work) == before


def _contents(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def played(base: Path, seed: int) -> Counter[str]:
    scene = Scene(base, seed)
    try:
        scene.run()
        return check(scene)
    finally:
        scene.end()


@pytest.mark.parametrize("seed", range(3))
def test_what_each_of_two_agents_takes_back_is_its_own(tmp_path: Path, seed: int) -> None:
    played(tmp_path, seed)


@pytest.mark.torture
def test_of_fifty_interleavings_only_shells_at_once_are_refused(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for seed in range(50):
        base = tmp_path / str(seed)
        base.mkdir()
        counts += played(base, seed)
    paths = counts["refused"] + counts["answered"]
    sys.stdout.write(
        f"{paths} answers about a path: {counts['answered']} right, {counts['refused']} refused "
        f"({counts['refused'] / paths:.0%}); {counts['shells at once']} changed by shells at once\n"
    )
