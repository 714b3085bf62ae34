"""What saving costs an agent, early and late in a long conversation on a workspace of many files.

Two agents, each in a process and with a store of its own: one has just begun, the other has
talked for long. They take turns, so that both have the same disk and the same processor.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import report
from bench.machine import ROOT, check
from bench.report import Row, at_most
from bench.setting import Setting
from bench.stopwatch import in_turns, median
from bench.talker import SAVES

FILES = 1_000
EARLY = 20
SPAN = 40  # turns that are compared, around each of the two


def turns(setting: Setting) -> list[Row]:
    count = setting.choose(2_000, 200)
    with ExitStack() as stack:
        last, first = [
            stack.enter_context(_talker(setting.place / f"agent-{before}", before))
            for before in (count - SPAN, EARLY - SPAN // 2)
        ]
        late, early = (
            median([cost / len(SAVES) for cost in costs])
            for costs in in_turns(SPAN, last.turn, first.turn)
        )
    return [
        report.growth(
            f"a save of an agent, turn {count:,} / turn {EARLY}, {FILES:,} files",
            late,
            early,
            at_most(1.3),
            names=(f"turn {count:,}", f"turn {EARLY}"),
            note=f"medians of {SPAN} turns, three saves each: a response of 500 characters, the "
            "start of a tool, its end with one file changed; watched, synced; two agents in turns",
        ),
        Row(
            f"a save of an agent at turn {count:,}",
            ours=report.duration(late),
            value=late * 1_000,
            unit="ms",
            target=at_most(10),
        ),
    ]


class _Talker:
    """An agent that waits to be told to go on."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def turn(self) -> float:
        """Seconds that the saves of one more turn took."""
        return float(self.answer("\n"))

    def answer(self, word: str = "") -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(word)
        self._process.stdin.flush()
        said = self._process.stdout.readline().strip()
        check(bool(said), "an agent has ended")
        return said


@contextmanager
def _talker(folder: Path, before: int) -> Iterator[_Talker]:
    """An agent that has talked for so many turns."""
    command = [sys.executable, "-m", "bench.talker", str(folder)]
    command += ["--files", str(FILES), "--before", str(before)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            talker = _Talker(process)
            check(talker.answer() == "ready", "an agent did not begin")
            yield talker
        except BaseException:
            process.kill()
            raise
        assert process.stdin is not None
        process.stdin.close()
        check(process.wait() == 0, "an agent failed")
