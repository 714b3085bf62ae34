"""Timing: medians, and rivals that take turns so that the noise of the machine hits all."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

Result = TypeVar("Result")

median = statistics.median


def timed(call: Callable[[], Result]) -> tuple[float, Result]:
    """How many seconds a call took, and what it returned."""
    begin = time.perf_counter()
    result = call()
    return time.perf_counter() - begin, result


def in_turns(rounds: int, *rivals: Callable[[], float]) -> list[list[float]]:
    """What each rival measured, round by round; who begins changes every round."""
    found: list[list[float]] = [[] for _ in rivals]
    for number in range(rounds):
        for at in range(len(rivals)):
            chosen = (number + at) % len(rivals)
            found[chosen].append(rivals[chosen]())
    return found


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of all values do not exceed."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, max(0, -int(-share * len(ranked) // 1) - 1))]
