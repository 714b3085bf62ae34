"""What holds for every history and every policy."""

from datetime import timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardsave.timeline.policy import Policy, Thin
from hardsave.timeline.retention import RetentionPlan, RetentionRow, choose
from tests.unit.timeline.rows import DAY, NOW, left

KINDS = ("automatic", "manual", "feature", "session")

spans = st.none() | st.integers(0, 60).map(lambda days: timedelta(days=days))
few = settings(max_examples=100, deadline=None)
counts = st.none() | st.integers(0, 12)


def histories() -> st.SearchStrategy[list[RetentionRow]]:
    """One number for each row: hypothesis takes its time over every single field."""
    return st.lists(st.integers(0, 1 << 48), max_size=24).map(
        lambda numbers: [a_row(seq, number) for seq, number in enumerate(numbers, 1)]
    )


def a_row(seq: int, number: int) -> RetentionRow:
    def pick(count: int) -> int:
        nonlocal number
        number, picked = divmod(number, count)
        return picked

    timeline = "abc"[pick(3)]
    return RetentionRow(
        id=f"{timeline}:{seq}".encode(),
        timeline=timeline,
        seq=seq,
        created_at=NOW + (2 - pick(70 * 24)) * DAY // 24,
        name=(None, "x", "y", "z")[pick(4)],
        kind=KINDS[pick(4)],
        is_head=pick(6) == 5,
        is_hidden=pick(5) == 4,
        hidden_at=NOW - pick(60) * DAY,
        protected=pick(6) == 5,
        size=(None, 0, 100, 500)[pick(4)],
    )


policies = st.builds(
    Policy,
    timelines=st.none() | st.sets(st.sampled_from(["a", "b", "c"])),
    permanent=st.sets(st.sampled_from(["manual", "feature"])),
    undo_window=st.integers(0, 60).map(lambda days: timedelta(days=days)),
    ttl=spans,
    max_age=spans,
    per_kind=st.dictionaries(st.sampled_from(["automatic", "session"]), st.integers(0, 5)),
    thin=st.none()
    | st.builds(
        Thin, above=st.integers(0, 8), keep_first=st.booleans(), keep_last=st.integers(0, 5)
    ),
    max_per_timeline=counts,
    max_per_user=counts,
    max_store_bytes=st.none() | st.integers(0, 5_000),
)
sizes = st.none() | st.integers(0, 10_000)


@few
@given(histories(), policies, sizes)
def test_heads_and_what_can_be_undone_never_go(
    history: list[RetentionRow], policy: Policy, size: int | None
) -> None:
    plan = choose(history, policy, NOW, store_bytes=size)
    assert not any(choice.row.is_head or choice.row.protected for choice in plan.drops)
    assert all(choice.row.is_head or choice.row.protected for choice in plan.kept)


@few
@given(histories(), policies, sizes)
def test_what_goes_was_there_and_goes_once(
    history: list[RetentionRow], policy: Policy, size: int | None
) -> None:
    plan = choose(history, policy, NOW, store_bytes=size)
    gone = [choice.row for choice in plan.drops]
    assert len(set(gone)) == len(gone)
    assert set(gone) <= set(history)
    assert sum(plan.totals.values()) == len(gone)


@few
@given(histories(), policies, sizes)
def test_permanent_kinds_and_other_timelines_are_never_touched(
    history: list[RetentionRow], policy: Policy, size: int | None
) -> None:
    for choice in choose(history, policy, NOW, store_bytes=size).drops:
        assert choice.rule == "deleted" or choice.row.kind not in policy.permanent
        assert policy.timelines is None or choice.row.timeline in policy.timelines


@few
@given(histories(), policies, sizes)
def test_once_carried_out_a_plan_leaves_nothing_to_do(
    history: list[RetentionRow], policy: Policy, size: int | None
) -> None:
    plan = choose(history, policy, NOW, store_bytes=size)
    smaller = None if size is None else size - plan.freed_bytes
    assert not choose(left(history, plan), policy, NOW, store_bytes=smaller)


@few
@given(histories(), policies, sizes, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(
    history: list[RetentionRow], policy: Policy, size: int | None, random: Random
) -> None:
    shuffled = list(history)
    random.shuffle(shuffled)
    assert choose(shuffled, policy, NOW, store_bytes=size) == choose(
        history, policy, NOW, store_bytes=size
    )


@few
@given(histories(), policies)
def test_quotas_are_kept_but_for_what_is_held(history: list[RetentionRow], policy: Policy) -> None:
    stays = left(history, choose(history, policy, NOW))
    free = [
        row
        for row in stays
        if not (row.is_hidden or row.held_by or row.kind in policy.permanent)
        and (policy.timelines is None or row.timeline in policy.timelines)
    ]
    if policy.max_per_user is not None:
        assert len(free) <= policy.max_per_user
    for timeline in {row.timeline for row in free}:
        if policy.max_per_timeline is not None:
            assert sum(row.timeline == timeline for row in free) <= policy.max_per_timeline


def gone(plan: RetentionPlan) -> set[bytes]:
    return {choice.row.id for choice in plan.drops}


@pytest.mark.parametrize("name", ["ttl", "max_age", "undo_window"])
@few
@given(history=histories(), days=st.integers(0, 60), more=st.integers(0, 30))
def test_a_longer_time_takes_no_more(
    name: str, history: list[RetentionRow], days: int, more: int
) -> None:
    short = Policy(**{name: timedelta(days=days)})  # type: ignore[arg-type] # each takes a span
    long = Policy(**{name: timedelta(days=days + more)})  # type: ignore[arg-type] # as above
    assert gone(choose(history, long, NOW)) <= gone(choose(history, short, NOW))
    assert gone(choose(history, short, NOW)) <= gone(choose(history, short, NOW + more * DAY))


@pytest.mark.parametrize("name", ["max_per_timeline", "max_per_user"])
@few
@given(history=histories(), count=st.integers(0, 12), more=st.integers(0, 5))
def test_a_larger_quota_takes_no_more(
    name: str, history: list[RetentionRow], count: int, more: int
) -> None:
    small = Policy(**{name: count})  # type: ignore[arg-type] # each takes a number
    large = Policy(**{name: count + more})  # type: ignore[arg-type] # as above
    assert gone(choose(history, large, NOW)) <= gone(choose(history, small, NOW))


@few
@given(histories(), policies, sizes)
def test_a_plan_can_always_be_printed(
    history: list[RetentionRow], policy: Policy, size: int | None
) -> None:
    plan = choose(history, policy, NOW, store_bytes=size)
    assert str(plan).startswith(f"{len(plan.drops)} of {plan.considered} checkpoints go")
