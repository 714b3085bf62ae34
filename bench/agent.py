"""What saving costs an agent, early and late in a long conversation on a workspace of many files.

Two agents, each in a process and with a store of its own: one has just begun, the other has
talked for long. They take turns, so that both have the same disk and the same processor.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import report
from bench.companion import Companion, companion
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

    def __init__(self, process: Companion) -> None:
        self._process = process

    def turn(self) -> float:
        """Seconds that the saves of one more turn took."""
        return float(self._process.answer("\n"))


@contextmanager
def _talker(folder: Path, before: int) -> Iterator[_Talker]:
    """An agent that has talked for so many turns."""
    options = ("--files", str(FILES), "--before", str(before))
    with companion("bench.talker", str(folder), *options) as process:
        yield _Talker(process)
