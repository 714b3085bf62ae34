"""Random work in a workspace, saved, rewound, undone and forked, against plain copies."""

import os
import random
import shutil
from collections.abc import Collection
from pathlib import Path

import pytest

from hardsave.errors import NotFound
from hardsave.objects.records import ID_BYTES
from hardsave.stores.memory.store import MemoryStore
from hardsave.vault.vault import Vault
from tests.unit.vault.desk import Picture, wipe
from tests.unit.workspace.room import leftovers, picture

NAMES = ("a", "b", "c", "d", "e")
IGNORED = ("x.log", "y.log", "build")
RULES = ("", "*.log\n", "build/\n", "*.log\nbuild/\n", "build/\n!c\n", "d/\n*.log\n")


class Play:
    """One random session. What ignore rules cover is kept track of apart."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        ids = random.Random(seed)
        self.vault = Vault(MemoryStore(), new_id=lambda: ids.randbytes(ID_BYTES))
        self.line = self.vault.timeline("main")
        self.copies: dict[str, tuple[Picture, int]] = {}
        self.turn = 0
        self.seed = seed
        self.steps: list[str] = []

    # Edits

    def place(self) -> Path:
        """Somewhere in the workspace, in a directory that is there."""
        at = self.work
        while self.random.random() < 0.5:
            below = [
                each for each in sorted(at.iterdir()) if each.is_dir() and not each.is_symlink()
            ]
            if not below:
                break
            at = self.random.choice(below)
        return at / self.random.choice(NAMES)

    def edit(self) -> None:
        verbs = (self.write, self.write, self.write, self.chmod, self.symlink, self.link)
        self.random.choice(
            (*verbs, self.mkdir, self.remove, self.rename, self.rules, self.output)
        )()

    def write(self) -> None:
        path = self.place()
        if path.is_symlink():
            path.unlink()
        if not path.is_dir():
            size = self.random.choice((0, 3, 50, 200_000))
            path.write_bytes(self.random.randbytes(8) * (size // 8 + 1))

    def chmod(self) -> None:
        path = self.place()
        if path.exists() and not path.is_symlink():
            choices = (0o700, 0o755) if path.is_dir() else (0o600, 0o644, 0o755)
            path.chmod(self.random.choice(choices))

    def symlink(self) -> None:
        path = self.place()
        if not os.path.lexists(path):
            path.symlink_to(self.random.choice(("a", "../b", "/nowhere", "c/d")))

    def link(self) -> None:
        source, path = self.place(), self.place()
        if source.is_file() and not source.is_symlink() and not os.path.lexists(path):
            path.hardlink_to(source)

    def mkdir(self) -> None:
        path = self.place()
        if not os.path.lexists(path):
            path.mkdir()

    def remove(self) -> None:
        path = self.place()
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif os.path.lexists(path):
            path.unlink()

    def rename(self) -> None:
        source, path = self.place(), self.place()
        is_possible = os.path.lexists(source) and not os.path.lexists(path)
        if is_possible and source not in (path, *path.parents):
            source.rename(path)

    def rules(self) -> None:
        (self.work / ".gitignore").write_text(self.random.choice(RULES))

    def output(self) -> None:
        """What builds leave behind; ignored at times, and at times not."""
        name = self.random.choice(IGNORED)
        path = self.work / name
        if name == "build":
            path.mkdir(exist_ok=True)
            path = path / self.random.choice(NAMES)
        if not path.is_dir() and not path.is_symlink():
            path.write_text(f"output {self.random.random()}")

    # What is known

    def captured(self) -> Picture:
        """What a snapshot has to have: all that is not ignored, links among these only."""
        lines = self.rules_now()
        return relinked(
            {
                path: seen
                for path, seen in picture(self.work).items()
                if not ignored(path, seen, lines)
            }
        )

    def rules_now(self) -> list[str]:
        file = self.work / ".gitignore"
        return file.read_text().split() if file.exists() else []

    def ignored_now(self) -> Picture:
        lines = self.rules_now()
        return {
            path: bare(seen)
            for path, seen in picture(self.work).items()
            if ignored(path, seen, lines) and isinstance(seen, tuple) and seen[0] == "file"
        }

    # Steps

    def step(self) -> None:
        weights = {"edit": 8, "save": 3, "rewind": 3, "undo": 2, "redo": 1, "paths": 1, "fork": 1}
        name = self.random.choices(list(weights), list(weights.values()))[0]
        self.steps.append(name)
        getattr(self, f"do_{name}")()
        assert leftovers(self.work) == []

    def do_edit(self) -> None:
        for _ in range(self.random.randrange(1, 5)):
            self.edit()

    def do_save(self) -> None:
        self.turn += 1
        saved = self.line.save({"turn": self.turn}, workspace=self.work)
        self.copies[saved.id] = (self.captured(), self.turn)

    def do_rewind(self) -> None:
        if not self.copies:
            return
        target = self.random.choice(sorted(self.copies))
        before, captured = picture(self.work), self.captured()
        kept = self.ignored_now()
        told = self.line.rewind(target, dry_run=True)
        assert picture(self.work) == before
        done = self.line.rewind(target)
        assert told.files is not None
        assert done.files is not None
        assert told.files == done.files, (self.seed, self.steps)
        assert self.line.load() == {"turn": self.copies[target][1]}
        self.check_target(target, before)
        self.check_kept(kept)
        if self.random.random() < 0.7:
            self.check_turned(target, before, captured, is_done=done.moved or bool(done.files))

    def check_turned(
        self, target: str, before: Picture, captured: Picture, *, is_done: bool
    ) -> None:
        """Undone at once, everything is as it was; only links to what is ignored, by the rules of
        either side, may be parted."""
        if not is_done:
            return
        self.line.undo()
        now = picture(self.work)
        assert {path: bare(at) for path, at in now.items()} == {
            path: bare(at) for path, at in before.items()
        }, (self.seed, self.steps)
        lines = rules_in(self.copies[target][0].get(b".gitignore"))
        both = [
            relinked({path: at for path, at in each.items() if not ignored(path, at, lines)})
            for each in (self.captured(), captured)
        ]
        assert both[0] == both[1], (self.seed, self.steps)
        if self.random.random() < 0.5:
            self.line.redo()
            self.check_target(target, before)

    def do_undo(self) -> None:
        kept = self.ignored_now()
        try:
            self.line.undo()
        except NotFound:
            return
        self.check_kept(kept, self.stored())

    def do_redo(self) -> None:
        try:
            self.line.redo()
        except NotFound:
            return

    def do_paths(self) -> None:
        if not self.copies:
            return
        target = self.random.choice(sorted(self.copies))
        wanted = self.copies[target][0]
        lines = self.rules_now()
        names = sorted({p.split(b"/")[0] for p, at in wanted.items() if not ignored(p, at, lines)})
        names = [name for name in names if name not in (b".gitignore", b"build")]
        if not names:
            return
        name = self.random.choice(names)
        before = picture(self.work)
        self.line.rewind(target, paths=[os.fsdecode(name)])
        after = picture(self.work)
        for path in before.keys() | after.keys():
            if path != name and not path.startswith(name + b"/"):
                assert bare(before.get(path)) == bare(after.get(path)), path

    def do_fork(self) -> None:
        if not self.copies:
            return
        target = self.random.choice(sorted(self.copies))
        place = self.folder / "fork"
        self.vault.workspace(self.work).fork(target, place, name=f"fork-{len(self.steps)}")
        assert relinked(picture(place)) == self.copies[target][0]
        wipe(place)
        place.rmdir()

    def check_target(self, target: str, before: Picture) -> None:
        """Everything that no rule of either side ignores is as it was when it was saved."""
        wanted, now = self.copies[target][0], picture(self.work)
        sides = [rules_in(each.get(b".gitignore")) for each in (wanted, before)]

        def is_ignored(path: bytes) -> bool:
            seen = [each[path] for each in (wanted, now, before) if path in each]
            return any(ignored(path, each, side) for each in seen for side in sides)

        left = {path for path in now if is_ignored(path)}
        for path in wanted.keys() | now.keys():
            is_kept = path in left or is_ignored(path)
            holds = any(each.startswith(path + b"/") for each in left)
            stands_on = any(path.startswith(each + b"/") for each in left)
            if not (is_kept or holds or stands_on):
                assert bare(now.get(path)) == bare(wanted.get(path)), (self.seed, path, self.steps)

    def stored(self) -> set[tuple[bytes, object]]:
        """All files that any checkpoint has."""
        found: set[tuple[bytes, object]] = set()
        for checkpoint in self.line.checkpoints(limit=1_000):
            if (snapshot := checkpoint.files) is not None:
                files = [each for each in snapshot.list() if each.kind == "file"]
                found.update(
                    (os.fsencode(each.path), ("file", each.mode, snapshot.read(each.path)))
                    for each in files
                )
        return found

    def check_kept(
        self, kept: Picture, stored: Collection[tuple[bytes, object]] = frozenset()
    ) -> None:
        """What is ignored is as it was. An undo takes back what its operation has changed, also if
        it has come to be ignored since; but only what is stored."""
        now = picture(self.work)
        for path, seen in kept.items():
            if (path, seen) in stored:
                continue
            found = now.get(path)
            assert isinstance(found, tuple), (self.seed, path, self.steps)
            assert found[:3] == seen, (self.seed, path, self.steps)


def is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def rules_in(seen: object) -> list[str]:
    if not isinstance(seen, tuple) or seen[0] != "file":
        return []
    content: bytes = seen[2]
    return content.decode("latin-1").split()


def ignored(path: bytes, seen: object, lines: list[str]) -> bool:
    """As git means the few rules above."""
    names = path.split(b"/")
    for at, name in enumerate(names):
        is_last = at == len(names) - 1
        is_dir = not is_last or (isinstance(seen, tuple) and seen[0] == "directory")
        if "*.log" in lines and name.endswith(b".log"):
            return True
        if is_dir and any(each == name.decode("latin-1") + "/" for each in lines):
            return True
    return False


def bare(seen: object) -> object:
    return seen[:3] if isinstance(seen, tuple) else seen


def relinked(seen: Picture) -> Picture:
    """Groups of hard links count among what is there."""
    firsts: dict[object, bytes] = {}
    out: Picture = {}
    for path, each in sorted(seen.items()):
        if isinstance(each, tuple) and each[0] == "file":
            each = (*each[:3], firsts.setdefault(each[3], path))
        out[path] = each
    return out


def session(folder: Path, seed: int, steps: int) -> None:
    play = Play(folder, seed)
    try:
        for _ in range(steps):
            play.step()
        assert play.vault.store.verify().faults == ()
    finally:
        play.vault.close()


def sessions(folder: Path, seeds: range, steps: int) -> None:
    for seed in seeds:
        place = folder / str(seed)
        place.mkdir()
        session(place, seed, steps)
        wipe(place)


def test_some_random_sessions_agree_with_plain_copies(tmp_path: Path) -> None:
    sessions(tmp_path, range(6), 25)


@pytest.mark.torture
@pytest.mark.parametrize("block", range(20))
def test_many_random_sessions_agree_with_plain_copies(tmp_path: Path, block: int) -> None:
    sessions(tmp_path, range(100 + block * 25, 125 + block * 25), 40)
