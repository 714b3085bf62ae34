"""Snapshots of a workspace, beside a shadow git repository: first, unchanged, changed, restored.

A shadow git is what most rivals use: a repository elsewhere with the workspace as its work
tree, and `add -A`, `write-tree`, `commit-tree` for every snapshot. Both sides do all of their
work: ours reads git's position, ignore rules, secrets and caps, and syncs. One such rival,
stepback, and restic, if it is installed, stand beside them.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import hardsave
from bench import report
from bench.machine import ROOT, check
from bench.report import Row, at_least, at_most
from bench.rivals import Restic, Rival, Shadow, Stepback, has_restic
from bench.setting import Setting
from bench.stopwatch import timed
from bench.trees import Tree, allocated

ROUNDS = 3
EDITED = 10
STEPS = 200
LIMITS = {  # resident, new process; no change and 10 changed
    "small": {"still": (0.7, 1.1), "edited": (0.6, 1.0)},
    "large": {"still": (1.1, 1.3), "edited": (0.85, 1.0)},
}


def small(setting: Setting) -> list[Row]:
    return _measured(setting, setting.choose(7_000, 1_000), "small")


def large(setting: Setting) -> list[Row]:
    return _measured(setting, setting.choose(60_000, 3_000), "large")


class Ours:
    """A store beside the workspace, in this process."""

    def __init__(self, place: Path, work: Path) -> None:
        self.path = place
        self.url = f"sqlite:///{place}/store.db"
        self._work = work
        place.mkdir()
        self._open()

    def _open(self) -> None:
        self.vault = hardsave.open(self.url)
        self.line = self.vault.timeline("bench")
        self.workspace = self.vault.workspace(self._work)

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Nobody has the store open, and its WAL is in its main file."""
        self.vault.close()
        yield
        self._open()

    def snapshot(self) -> str:
        return self.line.save_files(self.workspace).id

    def restore(self, ref: str) -> None:
        done = self.line.rewind(ref)
        check(bool(done.files), "there was nothing to restore")

    def in_new_process(self) -> float:
        """Seconds of a whole process that opens the store, saves and ends."""
        script = "import sys, hardsave\nwith hardsave.open(sys.argv[1]) as v:\n"
        script += "    v.timeline('bench').save_files(sys.argv[2])\n"
        command = [sys.executable, "-I", "-c", script, self.url, str(self._work)]
        with self.closed():
            seconds, done = timed(lambda: subprocess.run(command, check=False, cwd=ROOT))
        check(done.returncode == 0, "the new process failed")
        return seconds


def _measured(setting: Setting, count: int, size: str) -> list[Row]:
    place = setting.place / size
    tree = Tree(place / "work", count, setting.tree)
    time.sleep(0.1)  # stamps of this very moment prove nothing
    label = f"{tree.count:,} files"
    rows = _first(place, tree, label)
    ours, shadow = Ours(place / "ours", tree.root), Shadow(place / "shadow", tree.root)
    ours.snapshot()
    shadow.snapshot()
    rows += _disk(place, ours, shadow, label)
    rows += _again(ours, shadow, tree, label, LIMITS[size])
    rows += _watched(ours, shadow, tree, label)
    rows += _restored(ours, shadow, tree, label)
    if size == "small":
        rows += _steps(setting, ours, tree, label)
        rows += _beside_others(place, ours, tree, label)
    ours.vault.close()
    shutil.rmtree(place)
    return rows


def _first(place: Path, tree: Tree, label: str) -> list[Row]:
    """Best of three each, from nothing."""
    found: dict[str, list[float]] = {"ours": [], "git": []}
    for number in range(ROUNDS):
        ours = Ours(place / f"first{number}", tree.root)
        found["ours"].append(timed(ours.snapshot)[0])
        ours.vault.close()
        shadow = Shadow(place / f"git{number}", tree.root)
        found["git"].append(timed(shadow.snapshot)[0])
        shutil.rmtree(ours.path)
        shutil.rmtree(shadow.path)
    ours_best, git_best = min(found["ours"]), min(found["git"])
    return [report.ratio(f"first snapshot, {label}", ours_best, git_best, at_least(5), note=_BEST)]


_BEST = "best of three, in turns"
_BEST_OF_TEN = "best of ten, in turns"


def _disk(place: Path, ours: Ours, shadow: Shadow, label: str) -> list[Row]:
    with ours.closed():
        mine = allocated(place / "ours" / "store.db")
    theirs = allocated(shadow.path)
    note = "allocated blocks after one snapshot; without the backup, which is as large again"
    sizes = (report.size(mine), report.size(theirs))
    return [Row(f"disk, {label}", *sizes, mine / theirs, "×", at_most(0.4), note)]


def _again(ours: Ours, shadow: Shadow, tree: Tree, label: str, limits: Any) -> list[Row]:
    rows: list[Row] = []
    for name, edits in (("still", 0), ("edited", EDITED)):
        resident, fresh = limits[name]
        said = "no change" if not edits else f"{edits} changed"
        change = partial(_edit, tree, edits)
        mine, theirs = _in_turns(ours, shadow, change)
        new: list[float] = []
        for _ in range(ROUNDS):
            change()
            new.append(ours.in_new_process())
        shadow.snapshot()
        rows.append(_share(f"{said}, {label}, long-lived process", mine, theirs, resident))
        rows.append(_share(f"{said}, {label}, new process", min(new), theirs, fresh))
    return rows


def _edit(tree: Tree, edits: int) -> None:
    if edits:
        tree.edit(edits)
        time.sleep(0.03)  # stamps of this very moment prove nothing


def _in_turns(
    ours: Ours, rival: Rival, change: Callable[[], object], rounds: int = ROUNDS
) -> tuple[float, float]:
    """The best of some rounds each. Before its turn, everybody knows all but its own change."""
    found: dict[int, list[float]] = {0: [], 1: []}
    sides: list[Rival] = [ours, rival]
    for side in sides:
        side.snapshot()
    for _ in range(rounds):
        for number, side in enumerate(sides):
            change()
            found[number].append(timed(side.snapshot)[0])
            sides[1 - number].snapshot()
    return min(found[0]), min(found[1])


def _share(figure: str, mine: float, theirs: float, limit: float) -> Row:
    times = (report.duration(mine), report.duration(theirs))
    return Row(f"{figure} / shadow git", *times, mine / theirs, "×", at_most(limit), _BEST)


def _watched(ours: Ours, shadow: Shadow, tree: Tree, label: str) -> list[Row]:
    with ours.workspace.watch():
        ours.snapshot()
        still = _in_turns(ours, shadow, partial(_edit, tree, 0), 10)
        some = _in_turns(ours, shadow, partial(_edit, tree, EDITED))
    return [
        report.ratio(f"no change, {label}, watched", *still, at_least(50), note=_BEST_OF_TEN),
        report.ratio(f"10 changed, {label}, watched", *some, at_least(15), note=_BEST),
    ]


def _beside_others(place: Path, ours: Ours, tree: Tree, label: str) -> list[Row]:
    """No targets: what others of the trade need for the same."""
    rivals: dict[str, Callable[[], Rival]] = {"stepback": partial(Stepback, tree.root)}
    if has_restic():
        rivals["restic"] = partial(Restic, place / "restic", tree.root)
    rows: list[Row] = []
    for name, make in rivals.items():
        rival = make()
        first, _ = timed(rival.snapshot)
        rows.append(Row(f"first snapshot, {label}, {name}", "", report.duration(first)))
        for edits, said in ((0, "no change"), (EDITED, "10 changed")):
            times = _in_turns(ours, rival, partial(_edit, tree, edits))
            rows.append(report.ratio(f"{said}, {label}, {name}", *times, note=_BEST))
    return rows


def _restored(ours: Ours, shadow: Shadow, tree: Tree, label: str) -> list[Row]:
    mine: list[float] = []
    theirs: list[float] = []
    for _ in range(ROUNDS):
        ref, commit = ours.snapshot(), shadow.snapshot()
        tree.edit(EDITED)
        time.sleep(0.03)
        mine.append(timed(partial(ours.restore, ref))[0])
        ours.snapshot()
        shadow.snapshot()
        tree.edit(EDITED)
        theirs.append(timed(partial(shadow.restore, commit))[0])
    times = (report.duration(min(mine)), report.duration(min(theirs)))
    note = "what is there is saved first, and everything is synced; " + _BEST
    share = min(mine) / min(theirs)
    return [
        Row(f"restore of 10 files, {label} / shadow git", *times, share, "×", at_most(0.5), note)
    ]


def _steps(setting: Setting, ours: Ours, tree: Tree, label: str) -> list[Row]:
    count = setting.choose(STEPS, 20)
    before = _main_bytes(ours)
    for _ in range(count):
        tree.edit(EDITED)
        ours.snapshot()
    each = (_main_bytes(ours) - before) / count
    note = f"{count} steps, growth of the main file after a WAL checkpoint, contents included"
    return [
        Row(f"a step of 10 files, {label}", report.size(int(each)), "", each / 1_000, "KB",
            at_most(60), note)
    ]  # fmt: skip


def _main_bytes(ours: Ours) -> int:
    with ours.closed():
        return (ours.path / "store.db").stat().st_size
