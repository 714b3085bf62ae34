import math

import pytest

from hardsave.errors import LeaseLost, Misuse, StepUnknown
from hardsave.tasks.retry import (
    LONGEST_SECONDS,
    Retry,
    is_worth_it,
    longest_seconds,
    wait_seconds,
)


def waits(policy: Retry, random: float = 0.0) -> list[float]:
    return [wait_seconds(policy, failures, lambda: random) for failures in range(1, 7)]


def test_waits_grow_up_to_the_longest() -> None:
    assert waits(Retry(first_seconds=1, factor=3, max_seconds=20)) == [1, 3, 9, 20, 20, 20]


def test_chance_makes_waits_shorter_by_at_most_the_jitter() -> None:
    policy = Retry(first_seconds=10, factor=1, jitter=0.5)
    assert waits(policy, random=0.0)[0] == 10
    assert waits(policy, random=0.999)[0] == pytest.approx(5, abs=0.01)


def test_after_very_many_failures_it_is_the_longest_wait() -> None:
    assert wait_seconds(Retry(max_seconds=7, jitter=0), 10_000, lambda: 0.0) == 7


def test_a_wait_without_a_limit_is_still_a_time() -> None:
    policy = Retry(first_seconds=math.inf, max_seconds=math.inf, jitter=0)
    assert wait_seconds(policy, 1, lambda: 0.0) == longest_seconds(policy) == LONGEST_SECONDS


def test_only_named_errors_are_tried_again() -> None:
    policy = Retry(on=(OSError,), never=(FileNotFoundError,))
    assert is_worth_it(policy, TimeoutError())
    assert not is_worth_it(policy, FileNotFoundError())
    assert not is_worth_it(policy, ValueError())
    assert not is_worth_it(policy, KeyboardInterrupt())


@pytest.mark.parametrize("error", [LeaseLost("x"), Misuse("x"), StepUnknown("x")])
def test_what_cannot_pass_by_itself_is_never_tried_again(error: Exception) -> None:
    assert not is_worth_it(Retry(), error)


@pytest.mark.parametrize(
    "wrong",
    [
        {"attempts": 0},
        {"first_seconds": -1},
        {"first_seconds": math.nan},
        {"factor": 0.5},
        {"factor": math.inf},
        {"jitter": 2},
        {"max_seconds": -1},
        {"max_seconds": math.nan},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(Misuse):
        Retry(**wrong)  # type: ignore[arg-type] # that is the point
