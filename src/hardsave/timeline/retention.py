"""Which checkpoints go, and by which rule. Decides over plain rows; reads and writes nothing.

    plan = choose(history, policy, now)
    print(plan)

`timeline.policy` says what the rules are. The same engine serves all that has an age, a
kind and an order.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import groupby

from hardsave.objects.records import Id
from hardsave.record import Record
from hardsave.timeline.policy import DAY, MICROSECOND, Policy, RetentionRule, Thin
from hardsave.timeline.refs import to_text
from hardsave.tuples import NamedTuple

AUTOMATIC = "automatic"
SHOWN = 20  # of the checkpoints that go, when a plan is printed

_HOUR = timedelta(hours=1) // MICROSECOND


class RetentionRow(Record):
    """What a decision needs to know of a checkpoint. Times are microseconds since 1970."""

    id: Id
    timeline: str
    seq: int
    created_at: int
    name: str | None = None
    kind: str = AUTOMATIC
    status: str = "running"
    is_head: bool = False
    is_hidden: bool = False
    hidden_at: int = 0
    protected: bool = False  # an operation that can still be undone leads back to it
    size: int | None = None  # what its going would free; None: not known
    stored_at: int = 0  # not before this: its clock was wrong, or it was imported

    @property
    def since(self) -> int:
        """What its age is counted from."""
        return max(self.created_at, self.stored_at)

    @property
    def held_by(self) -> str | None:
        """Why it stays, although a rule wants it gone."""
        if self.is_head:
            return "head of a timeline"
        return "can be undone" if self.protected else None


class RetentionChoice(Record):
    """A checkpoint that a rule wants gone."""

    row: RetentionRow
    rule: RetentionRule

    def __str__(self) -> str:
        name = f" {self.row.name!r}" if self.row.name else ""
        return f"{to_text(self.row.id)} {self.row.timeline}:{self.row.seq}{name} ({self.rule})"


class RetentionPlan(Record):
    """What goes and why. Nothing has happened yet."""

    policy: Policy
    now: int
    drops: tuple[RetentionChoice, ...]
    """Oldest first."""
    kept: tuple[RetentionChoice, ...]
    """What a rule wanted gone, and something else holds."""
    considered: int
    over_bytes: int = 0
    """How far the store is past its size, as far as the sizes are known."""

    @property
    def totals(self) -> dict[RetentionRule, int]:
        """How many go by each rule."""
        return dict(Counter(choice.rule for choice in self.drops))

    @property
    def freed_bytes(self) -> int:
        """As far as the sizes are known."""
        return sum(choice.row.size or 0 for choice in self.drops)

    def __bool__(self) -> bool:
        """Whether anything goes."""
        return bool(self.drops)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def choose(
    history: Iterable[RetentionRow], policy: Policy, now: int, *, store_bytes: int | None = None
) -> RetentionPlan:
    """What goes of a user's history; the order of the rows does not matter.

    The rules are asked again until none wants more: what one takes may end what another
    counted on. So a plan that was carried out leaves nothing for the same policy to do.
    """
    rows = sorted((row for row in history if _is_in_scope(row, policy)), key=_place)
    drops: dict[Id, RetentionChoice] = {}
    kept: dict[Id, RetentionChoice] = {}
    before = -1
    while before < len(drops):
        before = len(drops)
        for rule, wanted in RULES:
            left = [row for row in rows if row.id not in drops]
            for row in wanted(_Scene(left, policy, now, _over(policy, store_bytes, drops))):
                (kept if row.held_by else drops).setdefault(row.id, RetentionChoice(row, rule))
    return RetentionPlan(
        policy=policy,
        now=now,
        drops=tuple(sorted(drops.values(), key=lambda choice: _age(choice.row))),
        kept=tuple(sorted(kept.values(), key=lambda choice: _age(choice.row))),
        considered=len(rows),
        over_bytes=_over(policy, store_bytes, drops),
    )


# The rules: what each one wants gone


class _Scene(NamedTuple):
    """What a rule looks at."""

    rows: list[RetentionRow]  # by timeline and number
    policy: Policy
    now: int
    over_bytes: int

    def governed(self) -> list[RetentionRow]:
        """Those that rules may want and quotas count: what is deleted or permanent is not."""
        permanent = self.policy.permanent
        return [row for row in self.rows if not row.is_hidden and row.kind not in permanent]

    def before(self, span: timedelta) -> int:
        return self.now - span // MICROSECOND


def _deleted(scene: _Scene) -> Iterable[RetentionRow]:
    limit = scene.before(scene.policy.undo_window)
    return [row for row in scene.rows if row.is_hidden and row.hidden_at <= limit]


def _expired(scene: _Scene) -> Iterable[RetentionRow]:
    if scene.policy.ttl is None:
        return []
    limit = scene.before(scene.policy.ttl)
    visible = (row for row in scene.rows if not row.is_hidden)
    ended = {
        timeline
        for timeline, rows in _by_timeline(visible)
        if max(row.since for row in rows) < limit
    }
    return [row for row in scene.governed() if row.timeline in ended]


def _old(scene: _Scene) -> Iterable[RetentionRow]:
    if scene.policy.max_age is None:
        return []
    limit = scene.before(scene.policy.max_age)
    return [row for row in scene.governed() if row.since < limit]


def _many_of_a_kind(scene: _Scene) -> Iterable[RetentionRow]:
    for kind, count in scene.policy.per_kind.items():
        of_it = [row for row in scene.governed() if row.kind == kind]
        for _, rows in _by_timeline(of_it):
            yield from _all_but_last(rows, count)


def _dense(scene: _Scene) -> Iterable[RetentionRow]:
    thin = scene.policy.thin
    if thin is None:
        return
    for _, rows in _by_timeline(scene.governed()):
        if len(rows) > thin.above:
            stays = _thinned(rows, thin)
            yield from (row for row in rows if row not in stays)


def _thinned(rows: list[RetentionRow], thin: Thin) -> set[RetentionRow]:
    """What stays. The latest of a name among the older ones stays beside a newer one of that name,
    so that history does not end where the last ones begin; but only where there is room for it."""
    stays = _latest_by(rows, lambda row: row.name) | set(rows[-thin.last :])
    stays |= set(rows[:1]) if thin.keep_first else set()
    older = _latest_by(rows[thin.keep_first : -thin.last], lambda row: row.name) - stays
    room = max(0, thin.above - len(stays))
    return stays | set(sorted(older, key=_place, reverse=True)[:room])


def _many_on_a_timeline(scene: _Scene) -> Iterable[RetentionRow]:
    count = scene.policy.max_per_timeline
    for _, rows in _by_timeline(scene.governed()):
        yield from [] if count is None else _all_but_last(rows, count)


def _many_in_all(scene: _Scene) -> Iterable[RetentionRow]:
    count = scene.policy.max_per_user
    return [] if count is None else _all_but_last(sorted(scene.governed(), key=_age), count)


def _past_the_size(scene: _Scene) -> Iterable[RetentionRow]:
    over = scene.over_bytes
    limit = scene.before(DAY)
    automatic = [row for row in scene.governed() if row.kind == AUTOMATIC]
    for row in sorted(_between_the_hours(automatic), key=_age):
        if over <= 0:
            return
        if row.since < limit:
            over -= 0 if row.held_by else row.size or 0
            yield row


def _between_the_hours(rows: Iterable[RetentionRow]) -> Iterator[RetentionRow]:
    for _, line in _by_timeline(rows):
        stays = _latest_by(line, lambda row: row.name)
        stays |= _latest_by(line, lambda row: row.created_at // _HOUR)
        yield from (row for row in line[1:-1] if row not in stays)


RULES: tuple[tuple[RetentionRule, Callable[[_Scene], Iterable[RetentionRow]]], ...] = (
    ("deleted", _deleted),
    ("ttl", _expired),
    ("age", _old),
    ("kind", _many_of_a_kind),
    ("thin", _dense),
    ("timeline", _many_on_a_timeline),
    ("user", _many_in_all),
    ("store", _past_the_size),
)


def _is_in_scope(row: RetentionRow, policy: Policy) -> bool:
    return policy.timelines is None or row.timeline in policy.timelines


def _place(row: RetentionRow) -> tuple[str, int, Id]:
    return row.timeline, row.seq, row.id


def _age(row: RetentionRow) -> tuple[int, bool, int, str, int, Id]:
    """A checkpoint whose time says that it is older than what was stored before it comes after
    that."""
    return row.since, row.created_at < row.since, row.created_at, *_place(row)


def _by_timeline(rows: Iterable[RetentionRow]) -> Iterator[tuple[str, list[RetentionRow]]]:
    """Rows that lie in the order of `_place`, timeline by timeline."""
    for timeline, line in groupby(rows, key=lambda row: row.timeline):
        yield timeline, list(line)


def _all_but_last(rows: list[RetentionRow], count: int) -> list[RetentionRow]:
    return rows[: max(0, len(rows) - count)]


def _latest_by(
    rows: list[RetentionRow], key: Callable[[RetentionRow], str | int | None]
) -> set[RetentionRow]:
    """The last row for each key. What has no name is no group of its own."""
    latest = {key(row): row for row in rows}
    latest.pop(None, None)
    return set(latest.values())


def _over(policy: Policy, store_bytes: int | None, drops: Mapping[Id, RetentionChoice]) -> int:
    """By how many bytes the store is past its size without these."""
    if store_bytes is None or policy.max_store_bytes is None:
        return 0
    freed = sum(choice.row.size or 0 for choice in drops.values())
    return max(0, store_bytes - freed - policy.max_store_bytes)


# For people


def _lines(plan: RetentionPlan) -> Iterator[str]:
    yield f"{len(plan.drops)} of {plan.considered} checkpoints go{_endings(plan)}"
    for rule, count in sorted(plan.totals.items(), key=lambda item: _ORDER[item[0]]):
        yield f"  {rule:<9}{count:>7}"
    yield from _some("they are", plan.drops, str)
    yield from _some(
        "kept, although a rule wanted them gone",
        plan.kept,
        lambda choice: f"{choice}: {choice.row.held_by}",
    )
    if plan.over_bytes:
        yield (
            f"still {plan.over_bytes:,} bytes past the store's size, as far as is known before "
            "gc; saving goes on"
        )


def _endings(plan: RetentionPlan) -> str:
    return "; this cannot be undone" if plan.drops else ""


def _some(
    title: str, choices: Sequence[RetentionChoice], show: Callable[[RetentionChoice], str]
) -> Iterator[str]:
    if choices:
        yield f"{title}:"
        yield from (f"  {show(choice)}" for choice in choices[:SHOWN])
        if len(choices) > SHOWN:
            yield f"  and {len(choices) - SHOWN} more"


_ORDER = {rule: place for place, (rule, _) in enumerate(RULES)}
