"""What the live backup costs whoever appends without a pause, and how far it is behind meanwhile.

Two processes append in turns, each to a store of its own: one with a backup, one without. A thread
of this process looks on from outside: at the mark, where the store's last commit stands, and into
the backup.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import apsw

from bench import report
from bench.companion import Companion, companion
from bench.machine import check
from bench.report import Row, at_most
from bench.setting import Setting
from bench.stopwatch import in_turns, median
from hardsave.stores.sqlite.backup import backup_file
from hardsave.stores.sqlite.open.commit_mark import CommitMark

WARM_SECONDS = 1.0  # two passes of the backup: from then on it costs the same all the time
LOOK_SECONDS = 0.01
CACHES_MB = 4
LOAD = (
    "two messages of 1,024 characters each, without a pause; median of rounds of {0:g} s in turns, "
    "each after a second that does not count; there is no switch for users, the other store was "
    "made with backup=False"
)


def cost(setting: Setting) -> list[Row]:
    seconds = setting.choose(3, 1)
    paths = [setting.place / f"{name}-backup_file.db" for name in ("with", "without")]
    with ExitStack() as stack:
        watch = stack.enter_context(_watched(paths[0]))
        fed = stack.enter_context(_appender(paths[0]))
        bare = stack.enter_context(_appender(paths[1], "--no-backup"))
        fed.append(WARM_SECONDS)
        bare.append(WARM_SECONDS)
        with_it, without = in_turns(
            setting.choose(5, 1), lambda: fed.rate(seconds), lambda: bare.rate(seconds)
        )
    _check_copied(paths[0])
    check(not Path(backup_file.path_of(str(paths[1]))).exists(), "there is a second backup")
    return [
        _rates(with_it, without, LOAD.format(seconds)),
        report.growth(
            "processor time of an append, with the backup / without",
            median(fed.spent),
            median(bare.spent),
            names=("with", "without"),
            note="of all threads, user and system, in the same run",
        ),
        _lag(watch),
        _memory(fed.resident, bare.resident),
    ]


def _rates(fed: list[float], bare: list[float], note: str) -> Row:
    shares = [one / other for one, other in zip(fed, bare, strict=True)]
    return Row(
        "appends a second, lost to the backup",
        ours=f"{report.number(median(fed))}/s with",
        other=f"{report.number(median(bare))}/s without",
        value=100 * (1 - median(shares)),
        unit="%",
        target=at_most(10),
        note=note,
    )


def _lag(watch: "Watch") -> Row:
    return Row(
        "the backup behind its store, at worst",
        ours=f"median {report.duration(median(watch.lags))}",
        value=max(watch.lags),
        unit="s",
        target=at_most(1),
        note="how old the oldest commit was that it did not hold, while appends went on; looked at "
        f"every {report.duration(LOOK_SECONDS)} by another process",
    )


def _memory(fed: list[int], bare: list[int]) -> Row:
    """What has come since the first second; the index of recent saves grows in both for a while."""
    grown = [resident[-1] - resident[0] for resident in (fed, bare)]
    with_it, without = (
        f"{report.size(resident[0])} to {report.size(resident[-1])}" for resident in (fed, bare)
    )
    return Row(
        "resident memory, grown by the backup since the first second",
        ours=f"{with_it} with",
        other=f"{without} without",
        value=(grown[0] - grown[1]) / 1e6 if fed[0] else None,
        unit="MB",
        target=at_most(CACHES_MB),
        note="of the appending process; SQLite may cache 2 MB of the store and 2 MB of the backup",
    )


def _check_copied(path: Path) -> None:
    mark, copied = CommitMark(f"{path}-mark").read(), backup_file.peek(str(path))
    check(mark is not None and copied is not None, "there is no backup")
    assert mark is not None
    assert copied is not None
    check(mark.number == copied.number, "the backup does not hold all")


class Appender:
    """A process that waits to be told to append, and what it has said so far."""

    def __init__(self, process: Companion) -> None:
        self._process = process
        self.resident: list[int] = []
        self.spent: list[float] = []  # on one append

    def rate(self, seconds: float) -> float:
        """Appends a second."""
        self.append(WARM_SECONDS)
        said = self.append(seconds)
        self.spent.append(said["spent"] / said["appends"])
        return said["appends"] / said["seconds"]

    def append(self, seconds: float) -> dict[str, float]:
        said: dict[str, float] = json.loads(self._process.answer(f"{seconds}\n"))
        self.resident.append(int(said["resident"]))
        return said


@contextmanager
def _appender(path: Path, *options: str) -> Iterator[Appender]:
    with companion("bench.appender", str(path), *options) as process:
        yield Appender(process)


class Watch:
    """How old the oldest commit is that the backup does not hold, look by look."""

    def __init__(self, path: Path) -> None:
        self.lags: list[float] = []  # while the store is ahead
        self._store = str(path)
        self._mark = CommitMark(f"{path}-mark")
        self._connection: apsw.Connection | None = None
        self._inode = 0
        self._looked_at = time.monotonic()
        self._ahead: deque[tuple[float, int]] = deque()  # after which moment, up to which commit

    def look(self) -> None:
        held, mark, now = self._held(), self._mark.read(), time.monotonic()
        if mark is not None and (not self._ahead or mark.number > self._ahead[-1][1]):
            self._ahead.append((self._looked_at, mark.number))
        while self._ahead and self._ahead[0][1] <= held:
            self._ahead.popleft()
        if self._ahead:
            self.lags.append(now - self._ahead[0][0])
        self._looked_at = now

    def _held(self) -> int:
        """The last commit that the backup holds; a backup may be replaced by another file."""
        try:
            inode = Path(backup_file.path_of(self._store)).stat().st_ino
        except FileNotFoundError:
            return 0
        if self._connection is None or inode != self._inode:
            self.close()
            self._connection, self._inode = backup_file.look(self._store), inode
        return 0 if self._connection is None else backup_file.copied(self._connection).number

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@contextmanager
def _watched(path: Path) -> Iterator[Watch]:
    watch, over = Watch(path), threading.Event()

    def look() -> None:
        while not over.wait(LOOK_SECONDS):
            watch.look()
        watch.close()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield watch
    finally:
        over.set()
        thread.join()
    check(bool(watch.lags), "nobody has seen the store ahead of its backup")
