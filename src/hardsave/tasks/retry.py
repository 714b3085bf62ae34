"""Whether to try again, and after how long. Pure: randomness is passed in."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from hardsave.defaults import RETRY_ATTEMPTS, RETRY_FIRST_SECONDS, RETRY_MAX_SECONDS
from hardsave.errors import LeaseLost, Misuse, StepUnknown


@dataclass(frozen=True, kw_only=True)
class Retry:
    """How something that failed is tried again.

    The first wait is `first_seconds`; each further one is `factor` times as long, up to
    `max_seconds` (`math.inf`: without a limit), and up to `jitter` of it shorter, by chance, so
    that many do not come back at once. `attempts` is the limit for a step; a task has its own,
    `max_attempts`.
    """

    attempts: int = RETRY_ATTEMPTS
    first_seconds: float = RETRY_FIRST_SECONDS
    factor: float = 2.0
    max_seconds: float = RETRY_MAX_SECONDS
    jitter: float = 0.1
    on: tuple[type[BaseException], ...] = (Exception,)
    never: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise Misuse(f"attempts is at least 1, not {self.attempts}")
        is_meant = self.first_seconds >= 0 and self.max_seconds >= 0  # neither of which NaN is
        if not is_meant or not 1 <= self.factor < math.inf:
            raise Misuse("waits are not negative, and factor is at least 1")
        if not 0 <= self.jitter <= 1:
            raise Misuse(f"jitter is between 0 and 1, not {self.jitter}")


DEFAULT = Retry()
LONGEST_SECONDS = 315_360_000.0  # ten years: longer is of no use, and it is a time like others
ALWAYS_FINAL = (LeaseLost, Misuse, StepUnknown)  # the same call would fail in the same way


def is_worth_it(policy: Retry, error: BaseException) -> bool:
    """Whether an error may pass by itself."""
    if isinstance(error, ALWAYS_FINAL + policy.never):
        return False
    return isinstance(error, policy.on)


def wait_seconds(policy: Retry, failures: int, random: Callable[[], float]) -> float:
    """How long to wait after so many failures; `random` gives numbers from 0 to below 1."""
    try:
        grown = policy.first_seconds * policy.factor ** (failures - 1)
    except OverflowError:
        grown = policy.max_seconds
    return float(min(grown, longest_seconds(policy)) * (1 - policy.jitter * random()))


def longest_seconds(policy: Retry) -> float:
    """What no wait is longer than."""
    return min(policy.max_seconds, LONGEST_SECONDS)
