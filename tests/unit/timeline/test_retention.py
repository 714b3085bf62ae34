"""Each rule by itself, their order, and what no rule can take."""

import weakref
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from hardsave.errors import Misuse
from hardsave.timeline.policy import DEFAULT, Policy, Thin
from hardsave.timeline.retention import RetentionRow, choose, choose_by_timeline
from tests.unit.timeline.rows import DAY, HOUR, NOW, SECOND, dropped, kept, left, line, row, seqs

DAYS = timedelta(days=1)
GIB = 1 << 30


def test_without_rules_nothing_goes() -> None:
    history = line(300, created_at=0)
    plan = choose(history, Policy(), NOW)
    assert not plan
    assert plan.considered == 300


def test_an_empty_history_has_an_empty_plan() -> None:
    plan = choose([], DEFAULT, NOW, store_bytes=11 * GIB)
    assert (plan.drops, plan.kept, plan.considered) == ((), (), 0)
    assert plan.over_bytes == GIB


class Rows(list[RetentionRow]):
    """A list that can be watched."""

    __hash__ = object.__hash__  # type: ignore[assignment] # by identity


class History:
    """Many timelines, each made when it is asked for; how often they were told, and the most that
    were in memory together."""

    def __init__(self) -> None:
        self.times = 0
        self.most = 0

    def lines(self) -> Iterator[list[RetentionRow]]:
        self.times += 1
        told: weakref.WeakSet[Rows] = weakref.WeakSet()
        for number in range(50):
            rows = Rows(line(4, f"line {number}"))
            told.add(rows)
            self.most = max(self.most, len(told))
            yield rows


def test_rules_of_a_timeline_hold_one_timeline_in_memory_and_ask_once() -> None:
    history = History()
    policy = Policy(max_age=DAYS, max_per_timeline=3, per_kind={"automatic": 2}, thin=Thin(above=1))
    plan = choose_by_timeline(history.lines, policy, NOW)
    assert (len(plan.drops), plan.considered) == (100, 200)
    assert history.times == 1
    assert history.most <= 2  # one, and the one that comes next


def test_a_quota_over_all_holds_one_timeline_in_memory() -> None:
    history = History()
    plan = choose_by_timeline(history.lines, Policy(max_per_user=60), NOW)
    assert len(plan.drops) == 140
    assert {choice.rule for choice in plan.drops} == {"user"}
    assert history.most <= 2


# What has to stay


def test_a_head_stays_whatever_the_rules_want() -> None:
    plan = choose(line(3, created_at=0), Policy(max_age=DAYS, max_per_user=0), NOW)
    assert dropped(plan) == ["main:1", "main:2"]
    assert kept(plan) == ["main:3"]
    assert plan.kept[0].row.held_by == "head of a timeline"


def test_what_can_be_undone_stays_and_is_named() -> None:
    history = [row(1, created_at=0, protected=True), *line(3)[1:]]
    plan = choose(history, Policy(max_age=DAYS), NOW)
    assert not plan
    assert [(c.row.seq, c.rule, c.row.held_by) for c in plan.kept] == [(1, "age", "can be undone")]


@pytest.mark.parametrize("kind", ["manual", "feature"])
@pytest.mark.parametrize(
    "rule",
    [
        {"ttl": DAYS},
        {"max_age": DAYS},
        {"thin": Thin(above=1)},
        {"max_per_timeline": 0},
        {"max_per_user": 0},
        {"max_store_bytes": 0},
    ],
    ids=str,
)
def test_permanent_kinds_go_by_no_rule(kind: str, rule: dict[str, Any]) -> None:
    history = [row(seq, created_at=seq, kind=kind) for seq in range(1, 40)]
    assert not choose(history, Policy(**rule), NOW, store_bytes=GIB)
    unless = Policy(permanent=(), **rule)
    assert bool(choose(history, unless, NOW, store_bytes=GIB)) == ("max_store_bytes" not in rule)


def test_a_quota_does_not_count_what_it_cannot_take() -> None:
    history = [row(seq, kind="manual") for seq in range(1, 10)] + [row(10), row(11), row(12)]
    assert dropped(choose(history, Policy(max_per_user=2), NOW)) == ["main:10"]


# Deleted


def test_what_was_deleted_goes_after_the_undo_window() -> None:
    history = [
        row(1, is_hidden=True, hidden_at=NOW - 31 * DAY),
        row(2, is_hidden=True, hidden_at=NOW - 29 * DAY),
        row(3, is_hidden=True, hidden_at=NOW - 31 * DAY, kind="feature"),
        row(4, is_hidden=True, hidden_at=NOW - 31 * DAY, protected=True),
    ]
    plan = choose(history, Policy(), NOW)
    assert dropped(plan) == ["main:1", "main:3"]
    assert plan.totals == {"deleted": 2}
    assert kept(plan) == ["main:4"]


def test_what_was_deleted_just_now_is_left_to_undo_by_every_other_rule() -> None:
    history = [row(seq, created_at=0, is_hidden=True, hidden_at=NOW - DAY) for seq in range(1, 60)]
    policy = Policy(ttl=DAYS, max_age=DAYS, thin=Thin(), max_per_user=0, max_store_bytes=0)
    assert not choose(history, policy, NOW, store_bytes=GIB)


def test_deleted_ones_take_no_place_in_a_quota() -> None:
    history = [row(1), row(2), *(row(n, is_hidden=True, hidden_at=NOW) for n in range(3, 9))]
    assert not choose(history, Policy(max_per_timeline=2), NOW)


# Time


def test_a_ttl_counts_from_the_latest_save_of_a_timeline() -> None:
    week = Policy(ttl=timedelta(days=7))
    renewed = [row(1, created_at=NOW - 90 * DAY), row(2, created_at=NOW - 7 * DAY, is_head=True)]
    assert not choose(renewed, week, NOW)
    plan = choose(renewed, week, NOW + 1)
    assert dropped(plan) == ["main:1"]
    assert kept(plan) == ["main:2"]
    assert plan.totals == {"ttl": 1}


def test_a_ttl_ends_one_timeline_and_not_its_neighbour() -> None:
    history = line(2, "idle", created_at=NOW - 9 * DAY) + line(2, "busy")
    assert dropped(choose(history, Policy(ttl=timedelta(days=7)), NOW)) == ["idle:1"]


def test_age_takes_what_is_older_and_nothing_else() -> None:
    history = [row(seq, created_at=NOW - seq * DAY) for seq in (29, 30, 31)]
    assert dropped(choose(history, Policy(max_age=timedelta(days=30)), NOW)) == ["main:31"]


# Quotas


def test_seven_automatic_ones_leave_five_and_sessions_three() -> None:
    kinds = ["automatic"] * 7 + ["manual"] * 7 + ["feature"] * 7 + ["session"] * 7
    history = [row(seq, kind=kind) for seq, kind in enumerate(kinds, 1)]
    policy = Policy(per_kind={"automatic": 5, "session": 3})
    stays = left(history, choose(history, policy, NOW))
    counts = {kind: sum(row.kind == kind for row in stays) for kind in kinds}
    assert counts == {"automatic": 5, "manual": 7, "feature": 7, "session": 3}
    assert seqs(stays)[:5] == [3, 4, 5, 6, 7]


def test_the_quota_of_a_kind_is_each_timelines_own() -> None:
    history = line(4, "a") + line(4, "b")
    assert dropped(choose(history, Policy(per_kind={"automatic": 3}), NOW)) == ["a:1", "b:1"]


def test_at_a_limit_of_three_five_saves_leave_the_newest_three() -> None:
    history = line(5)
    plan = choose(history, Policy(max_per_user=3), NOW)
    assert seqs(left(history, plan)) == [3, 4, 5]
    assert plan.totals == {"user": 2}


def test_a_users_quota_takes_the_oldest_of_all_timelines() -> None:
    history = [
        row(1, "a", created_at=5),
        row(2, "a", created_at=9),
        row(1, "b", created_at=1),
        row(2, "b", created_at=7),
    ]
    assert dropped(choose(history, Policy(max_per_user=2), NOW)) == ["b:1", "a:1"]


def test_completed_tasks_are_kept_by_the_same_engine() -> None:
    done = [row(seq, "tasks", kind="completed") for seq in range(1, 151)]
    others = [row(151, "tasks", kind="failed"), row(152, "tasks", kind="pending")]
    history = done + others
    stays = left(history, choose(history, Policy(per_kind={"completed": 50}), NOW))
    assert seqs(stays) == list(range(101, 153))


# Thinning


def named(count: int, names: int) -> list[RetentionRow]:
    return [row(seq, name=f"name {seq % names}") for seq in range(1, count + 1)]


def test_thinning_keeps_the_first_the_last_and_the_latest_of_each_name() -> None:
    history = [row(1, name="start"), *(row(n, name="step") for n in range(2, 60))]
    history[29] = row(30, name="rare")
    stays = left(history, choose(history, Policy(thin=Thin()), NOW))
    assert seqs(stays) == [1, 30, 39, *range(40, 60)]  # 39: the latest step before the last ones


def test_thinning_keeps_names_of_the_middle_only_where_there_is_room() -> None:
    history = named(51, 4)
    assert seqs(left(history, choose(history, Policy(thin=Thin()), NOW))) == [
        *(1, 28, 29, 30, 31),
        *range(32, 52),
    ]
    stays = left(history, choose(history, Policy(thin=Thin(above=23)), NOW))
    assert seqs(stays) == [1, 30, 31, *range(32, 52)]


def test_thinning_leaves_a_short_timeline_alone() -> None:
    assert not choose(named(50, 1), Policy(thin=Thin()), NOW)
    assert choose(named(51, 1), Policy(thin=Thin()), NOW)


def created_one_by_one(history: list[RetentionRow], policy: Policy) -> list[RetentionRow]:
    stays: list[RetentionRow] = []
    for new in history:
        stays = [row.replace(is_head=False) for row in stays] + [new.replace(is_head=True)]
        stays = left(stays, choose(stays, policy, NOW))
        assert len(set(stays)) == len(stays)
    return stays


def test_two_hundred_creates_of_five_names_leave_at_most_fifty() -> None:
    stays = created_one_by_one(named(200, 5), Policy(thin=Thin(above=50), max_per_timeline=100))
    assert len(stays) <= 50
    assert seqs(stays)[0] == 1
    assert seqs(stays)[-20:] == list(range(181, 201))


def test_three_hundred_names_leave_at_most_a_hundred() -> None:
    policy = Policy(thin=Thin(above=50), max_per_timeline=100)
    assert seqs(created_one_by_one(named(300, 300), policy)) == list(range(201, 301))


@pytest.mark.parametrize("above", [2, 5, 19, 20, 21])
def test_a_small_threshold_holds(above: int) -> None:
    stays = created_one_by_one(named(40, 1), Policy(thin=Thin(above=above)))
    assert len(stays) <= above
    assert seqs(stays)[-1] == 40


def test_the_latest_of_each_name_is_all_that_stays_if_so_wanted() -> None:
    history = [row(n, name=name) for n, name in enumerate("abcab", 1)]
    policy = Policy(thin=Thin(above=0, keep_first=False, keep_last=1))
    assert seqs(left(history, choose(history, policy, NOW))) == [3, 4, 5]


# The store's size


def dense(size: int | None = None) -> list[RetentionRow]:
    """Four an hour, for three hours two days ago, and an hour's worth now."""
    old = [row(seq, created_at=NOW - 2 * DAY + seq * HOUR // 4, size=size) for seq in range(12)]
    return old + [row(12 + n, created_at=NOW - SECOND * (9 - n), size=size) for n in range(4)]


def test_past_its_size_old_automatic_ones_are_thinned_to_one_an_hour() -> None:
    plan = choose(dense(), Policy(max_store_bytes=1_000), NOW, store_bytes=1_001)
    assert seqs(choice.row for choice in plan.drops) == [1, 2, 4, 5, 6, 8, 9, 10]
    assert plan.totals == {"store": 8}
    assert plan.over_bytes == 1  # nobody knows what they weigh
    assert not choose(dense(), Policy(max_store_bytes=1_000), NOW, store_bytes=1_000)


def test_thinning_for_size_goes_as_far_as_it_must_where_sizes_are_known() -> None:
    plan = choose(dense(size=100), Policy(max_store_bytes=1_000), NOW, store_bytes=1_250)
    assert seqs(choice.row for choice in plan.drops) == [1, 2, 4]
    assert (plan.freed_bytes, plan.over_bytes) == (300, 0)


def test_what_earlier_rules_free_counts_for_the_size() -> None:
    history = [*dense(size=100), row(99, created_at=NOW - 90 * DAY, size=500)]
    policy = Policy(max_age=timedelta(days=30), max_store_bytes=1_000)
    assert seqs(c.row for c in choose(history, policy, NOW, store_bytes=1_500).drops) == [99]


def test_names_and_sessions_are_not_thinned_for_size() -> None:
    history = [old.replace(kind="session") for old in dense()]
    assert not choose(history, Policy(max_store_bytes=0), NOW, store_bytes=1)
    history = [old.replace(name=f"n{old.seq}") for old in dense()]
    assert not choose(history, Policy(max_store_bytes=0), NOW, store_bytes=1)


# Order, scope, and the default


def test_the_first_rule_that_wants_a_checkpoint_is_named() -> None:
    history = [row(1, created_at=NOW - 90 * DAY), row(2), row(3), row(4)]
    policy = Policy(max_age=DAYS, per_kind={"automatic": 2}, max_per_user=1)
    found = {c.row.seq: c.rule for c in choose(history, policy, NOW).drops}
    assert found == {1: "age", 2: "kind", 3: "user"}


def test_other_timelines_are_neither_counted_nor_touched() -> None:
    history = line(5, "mine") + line(5, "theirs")
    plan = choose(history, Policy(timelines=["mine"], max_per_user=2), NOW)
    assert dropped(plan) == ["mine:1", "mine:2", "mine:3"]
    assert plan.considered == 5


def test_by_default_only_age_and_size_take_something() -> None:
    young = line(500, created_at=NOW - 29 * DAY)
    assert not choose(young, DEFAULT, NOW, store_bytes=10 * GIB)
    old = [row(1, created_at=NOW - 31 * DAY), row(2, created_at=0, kind="manual"), row(3)]
    assert dropped(choose(old, DEFAULT, NOW, store_bytes=GIB)) == ["main:1"]
    assert choose(dense(), DEFAULT, NOW, store_bytes=11 * GIB).totals == {"store": 8}


def test_rules_are_asked_again_when_one_ends_what_another_counted_on() -> None:
    """The newest goes by its kind; without it the timeline has been idle for too long."""
    history = [
        row(1, created_at=NOW - 9 * DAY, kind="session"),
        row(2, created_at=NOW - 8 * DAY, kind="session", is_head=True),
        row(3, created_at=NOW - DAY),
    ]
    policy = Policy(ttl=timedelta(days=7), per_kind={"automatic": 0})
    assert dropped(choose(history, policy, NOW)) == ["main:1", "main:3"]


# Saying so


def test_a_plan_can_be_read() -> None:
    history = [row(1, created_at=0, name="plan"), *line(4)[1:]]
    history[1] = row(2, created_at=0, protected=True)
    text = str(choose(history, Policy(max_age=DAYS, max_store_bytes=5), NOW, store_bytes=1_005))
    assert text.splitlines() == [
        "1 of 4 checkpoints go; this cannot be undone",
        "  age            1",
        "they are:",
        f"  chk_{b'main:1'.hex()} main:1 'plan' (age)",
        "kept, although a rule wanted them gone:",
        f"  chk_{b'main:2'.hex()} main:2 (age): can be undone",
        "still 1,000 bytes past the store's size, as far as is known before gc; saving goes on",
    ]


def test_a_long_plan_shows_some_and_counts_the_rest() -> None:
    text = str(choose(line(100, created_at=0), Policy(max_age=DAYS), NOW))
    assert "  and 79 more" in text
    assert len(text.splitlines()) < 30
    assert str(choose(line(3), Policy(), NOW)) == "0 of 3 checkpoints go"


# Policies that cannot be meant


def test_a_policy_stays_what_it_was_when_it_was_made() -> None:
    quotas, lines = {"auto": 3}, ["main"]
    kinds: Any = (kind for kind in ("manual", "other"))  # which a look at it would use up
    policy = Policy(permanent=kinds, per_kind=quotas, timelines=lines)
    quotas["auto"] = 0
    lines.append("side")
    assert policy.permanent == {"manual", "other"}
    assert policy.per_kind == {"auto": 3}
    assert policy.timelines == {"main"}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"max_age": 30}, "max_age is a timedelta"),
        ({"ttl": timedelta(days=-1)}, "ttl is a timedelta"),
        ({"undo_window": None}, "undo_window is a timedelta"),
        ({"max_per_user": -1}, "max_per_user is a number"),
        ({"max_per_user": True}, "max_per_user is a number"),
        ({"per_kind": {"automatic": "5"}}, "per_kind"),
        ({"per_kind": 5}, "per_kind is a dict"),
        ({"per_kind": {"manual": 5}}, "'manual' is permanent and has a quota"),
        ({"timelines": "main"}, "timelines is a collection"),
        ({"permanent": "manual"}, "permanent is a collection"),
        ({"thin": 50}, "thin is a Thin"),
    ],
    ids=str,
)
def test_a_wrong_policy_says_what_is_wrong(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(Misuse, match=says):
        Policy(**wrong)


def test_a_wrong_thinning_says_what_is_wrong() -> None:
    with pytest.raises(Misuse, match=r"thin\.above"):
        Thin(above=-1)
    with pytest.raises(Misuse, match=r"thin\.keep_last"):
        Thin(keep_last=1.5)  # type: ignore[arg-type] # that is the test
