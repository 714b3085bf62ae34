"""Which step broke it: a command run over the checkpoints of a timeline, in a directory of ours.

The path from the bad checkpoint back to the good one is cut in half again and again, so a
command runs about log2(n) times, each time with nothing but the checkpoint's files. Exit
code 0 means good, 125 that it cannot be told, 126 and above that the command did not run,
anything else bad. The two ends are tried first: a command that needs something that is not
saved (an ignored folder of dependencies) fails everywhere, and would accuse the wrong step.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from hardsave.errors import Misuse, NotFound
from hardsave.logs import log
from hardsave.objects.records import CheckpointRecord
from hardsave.record import Record
from hardsave.timeline.diff import FileDiff
from hardsave.timeline.refs import to_text
from hardsave.vault.checkpoint import Checkpoint, record_of
from hardsave.vault.context import Context
from hardsave.vault.files import difference
from hardsave.vault.restore import copy_into as copying

Verdict = Literal["good", "bad", "skip"]
CANNOT_TELL = 125
TOO_LONG = 124  # the exit code of timeout(1)


class BisectTry(Record):
    """One run of the command."""

    checkpoint: Checkpoint
    verdict: Verdict
    code: int


class Bisected(Record):
    """What a bisection found."""

    first_bad: Checkpoint
    last_good: Checkpoint
    skipped: tuple[Checkpoint, ...]
    """Between the two, and could not be told: any of them may be the first bad one."""
    tries: tuple[BisectTry, ...]
    files: FileDiff
    """What changed from the last good to the first bad one."""


def midpoint(skipped: frozenset[int], low: int, high: int) -> int | None:
    """The next to look at, strictly between a good and a bad one; None if nothing is left.

    Of those that were not skipped, the one nearest to the middle.
    """
    left = [at for at in range(low + 1, high) if at not in skipped]
    middle = (low + high) / 2
    return min(left, key=lambda at: (abs(at - middle), at)) if left else None


def check_good(one: BisectTry) -> None:
    """`Misuse` if the good end is not good to the command."""
    if one.verdict != "good":
        raise Misuse(
            f"the command {_ended(one)} at {_named(one)} already, which is said to be "
            "good; name an earlier one, or see whether it needs what is not saved (ignored files "
            "are not in the scratch directory)"
        )


def _ended(one: BisectTry) -> str:
    return "takes too long" if one.code == TOO_LONG else f"ends with {one.code}"


def check_bad(one: BisectTry) -> None:
    """`Misuse` if the bad end is not bad to the command."""
    if one.verdict != "bad":
        raise Misuse(
            f"the command {_ended(one)} at {_named(one)}, which is said to be bad; name a "
            "later one, or another command"
        )


def _named(one: BisectTry) -> str:
    return _called(record_of(one.checkpoint))


def bisect(
    context: Context,
    path: Sequence[CheckpointRecord],
    command: Sequence[str],
    *,
    timeout: float | None,
    told: Callable[[BisectTry], object] | None,
) -> Bisected:
    """`path` leads from the good checkpoint to the bad one; all of it has files."""
    if not command:
        raise Misuse("there is no command to try; name one that ends with 0 where all is well")
    tries: list[BisectTry] = []
    skipped: set[int] = set()
    low, high = 0, len(path) - 1
    with _Scratch(context) as scratch:

        def tried(at: int) -> BisectTry:
            code = _run(command, scratch.go_to(path[at]), timeout)
            one = BisectTry(context.checkpoint(path[at]), verdict(code), code)
            tries.append(one)
            if told is not None:
                told(one)
            return one

        check_good(tried(low))
        check_bad(tried(high))
        while (at := midpoint(frozenset(skipped), low, high)) is not None:
            one = tried(at)
            if one.verdict == "skip":
                skipped.add(at)
            elif one.verdict == "good":
                low = at
            else:
                high = at
    good, bad = context.checkpoint(path[low]), context.checkpoint(path[high])
    between = tuple(context.checkpoint(path[at]) for at in range(low + 1, high))
    return Bisected(bad, good, between, tuple(tries), difference(good.files, bad.files))


def verdict(code: int) -> Verdict:
    """What an exit code says. `Misuse` if it says that the command did not run."""
    if code == 0:
        return "good"
    if code == CANNOT_TELL:
        return "skip"
    if code < 0 or code >= 126:
        raise Misuse(f"the command ended with {code}: it was killed, or could not be run")
    return "bad"


def path_between(
    context: Context, good: CheckpointRecord, bad: CheckpointRecord
) -> list[CheckpointRecord]:
    """From the good checkpoint to the bad one, those that have files."""
    if good.id == bad.id:
        raise Misuse(f"{_called(good)} cannot be good and bad; name an earlier one as good")
    found = [bad]
    for record in context.history.ancestors(bad):
        found.append(record)
        if record.id == good.id:
            break
    else:
        raise Misuse(
            f"{_called(good)} is not in the history of {_called(bad)}; name one as good that "
            "is on the way to the bad one"
        )
    for end in (good, bad):
        if end.snapshot is None:
            raise NotFound(
                f"checkpoint {to_text(end.id)} was saved without files; "
                "choose one that has a snapshot"
            )
    return [record for record in reversed(found) if record.snapshot is not None]


class _Scratch:
    """A directory that holds one checkpoint after the other, at the same place as long as that is
    there."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._bases: list[Path] = []
        self._tries = 0
        self._begin()

    def _begin(self) -> None:
        self._base = Path(tempfile.mkdtemp(prefix="hardsave-bisect-")).resolve()
        self._root = self._base / "workspace"
        self._bases.append(self._base)

    def __enter__(self) -> "_Scratch":
        return self

    def __exit__(self, *_: object) -> None:
        for base in self._bases:
            _remove(base)
            if base.exists():
                log(__name__).warning("what a command has left in %s could not be removed", base)

    def go_to(self, record: CheckpointRecord) -> Path:
        """A command may have left anything, and be at work there still: each run begins in a
        directory with nothing but the checkpoint."""
        try:
            self._clear()
        except OSError:  # what all of it stands on is gone, or shut: then on other ground
            self._begin()
            self._clear()
        id = self._context.new_id()
        journal = self._base / f"journal-{id.hex()}"
        copying.write_out(self._context, record, bytes(self._root), journal, id)
        return self._root

    def _clear(self) -> None:
        if os.path.lexists(self._root):
            self._tries += 1
            left = self._root.rename(self._base / f"left-{self._tries}")
            _remove(left)
        self._root.mkdir()


def _remove(root: Path) -> None:
    """As far as it lets us: what is in a directory without the right to write could not go."""
    for folder, below, _ in os.walk(root):
        for path in [os.path.join(folder, name) for name in below]:
            with suppress(OSError):
                if not os.path.islink(path):
                    os.chmod(path, 0o700)
    shutil.rmtree(root, ignore_errors=True)


def _run(command: Sequence[str], directory: Path, timeout: float | None) -> int:
    """The exit code of the caller's own command. Nothing that it has started stays, as far as
    that is in its session; a command that takes too long is bad."""
    try:
        process = subprocess.Popen(command, cwd=directory, start_new_session=True)
    except (OSError, ValueError) as error:
        raise Misuse(f"the command {command[0]!r} cannot be run: {error}") from error
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return TOO_LONG
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _called(record: CheckpointRecord) -> str:
    """As people call it."""
    return f"{record.timeline}:{record.seq}"
