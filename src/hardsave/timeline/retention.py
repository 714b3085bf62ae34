"""Which checkpoints go, and by which rule. Decides over plain rows; reads and writes nothing.

    plan = choose(history, policy, now)
    print(plan)

`timeline.policy` says what the rules are. The same engine serves all that has an age, a
kind and an order.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
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


Lines = Callable[[], Iterable[list[RetentionRow]]]
"""A user's history, told anew by each call: the rows of one timeline after the other, each in the
order of numbers."""


def choose(
    history: Iterable[RetentionRow], policy: Policy, now: int, *, store_bytes: int | None = None
) -> RetentionPlan:
    """What goes of a user's history; the order of the rows does not matter."""
    lines = [list(line) for _, line in groupby(sorted(history, key=_place), key=_timeline)]
    return choose_by_timeline(lambda: lines, policy, now, store_bytes=store_bytes)


def choose_by_timeline(
    lines: Lines, policy: Policy, now: int, *, store_bytes: int | None = None
) -> RetentionPlan:
    """The same, with one timeline in memory at a time, and what goes.

    The rules are asked again until none wants more: what one takes may end what another
    counted on. So a plan that was carried out leaves nothing for the same policy to do.
    """
    return _Choosing(lines, policy, now, store_bytes).plan()


class _Choosing:
    """A plan in the making."""

    def __init__(self, lines: Lines, policy: Policy, now: int, store_bytes: int | None) -> None:
        self._lines = lines
        self._policy = policy
        self._now = now
        self._store_bytes = store_bytes
        self._drops: dict[Id, RetentionChoice] = {}
        self._kept: dict[Id, RetentionChoice] = {}

    def plan(self) -> RetentionPlan:
        considered = self._by_timeline()
        while self._by_quota():
            self._by_timeline()
        return RetentionPlan(
            policy=self._policy,
            now=self._now,
            drops=tuple(_oldest_first(self._drops.values())),
            kept=tuple(_oldest_first(self._kept.values())),
            considered=considered,
            over_bytes=self._over(),
        )

    def _by_timeline(self) -> int:
        """Ask the rules that look at one timeline, until they want no more of it; of how many
        checkpoints."""
        considered = 0
        for rows in self._in_scope():
            considered += len(rows)
            is_new = True
            while is_new:
                is_new = False
                for rule, wanted in RULES:
                    is_new |= self._take(rule, wanted(self._scene(rows)))
        return considered

    def _by_quota(self) -> bool:
        """Ask the rules that look at all of a user's; whether they took something."""
        is_new = False
        for rule, wanted in QUOTAS:
            is_new |= self._take(rule, wanted(self._scenes, self._policy, self._over()))
        return is_new

    def _scenes(self) -> Iterator["_Scene"]:
        return (self._scene(rows) for rows in self._in_scope())

    def _in_scope(self) -> Iterator[list[RetentionRow]]:
        only = self._policy.timelines
        for rows in self._lines():
            if rows and (only is None or rows[0].timeline in only):
                yield rows

    def _scene(self, rows: list[RetentionRow]) -> "_Scene":
        left = [row for row in rows if row.id not in self._drops]
        return _Scene(left, self._policy, self._now)

    def _take(self, rule: RetentionRule, wanted: Iterable[RetentionRow]) -> bool:
        """Note what a rule wants gone; whether anything goes that did not before."""
        before = len(self._drops)
        for row in wanted:
            into = self._kept if row.held_by else self._drops
            into.setdefault(row.id, RetentionChoice(row, rule))
        return len(self._drops) > before

    def _over(self) -> int:
        """By how many bytes the store is past its size without what goes."""
        if self._store_bytes is None or self._policy.max_store_bytes is None:
            return 0
        freed = sum(choice.row.size or 0 for choice in self._drops.values())
        return max(0, self._store_bytes - freed - self._policy.max_store_bytes)


# The rules: what each one wants gone


class _Scene(NamedTuple):
    """What a rule looks at: what is left of one timeline."""

    rows: list[RetentionRow]  # by number
    policy: Policy
    now: int

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
    latest = max((row.since for row in scene.rows if not row.is_hidden), default=limit)
    return scene.governed() if latest < limit else []


def _old(scene: _Scene) -> Iterable[RetentionRow]:
    if scene.policy.max_age is None:
        return []
    limit = scene.before(scene.policy.max_age)
    return [row for row in scene.governed() if row.since < limit]


def _many_of_a_kind(scene: _Scene) -> Iterable[RetentionRow]:
    for kind, count in scene.policy.per_kind.items():
        yield from _all_but_last([row for row in scene.governed() if row.kind == kind], count)


def _dense(scene: _Scene) -> Iterable[RetentionRow]:
    thin = scene.policy.thin
    if thin is None:
        return []
    rows = scene.governed()
    if len(rows) <= thin.above:
        return []
    stays = _thinned(rows, thin)
    return [row for row in rows if row not in stays]


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
    return [] if count is None else _all_but_last(scene.governed(), count)


RULES: tuple[tuple[RetentionRule, Callable[[_Scene], Iterable[RetentionRow]]], ...] = (
    ("deleted", _deleted),
    ("ttl", _expired),
    ("age", _old),
    ("kind", _many_of_a_kind),
    ("thin", _dense),
    ("timeline", _many_on_a_timeline),
)
"""Those that look at one timeline."""


Scenes = Callable[[], Iterable[_Scene]]
"""All timelines, told anew by each call."""


def _many_in_all(scenes: Scenes, policy: Policy, _: int) -> Iterable[RetentionRow]:
    """All but the youngest: of those only the ages are in memory together."""
    if policy.max_per_user is None:
        return []
    ages = sorted(row.since for scene in scenes() for row in scene.governed())
    count = len(ages) - policy.max_per_user
    if count <= 0:
        return []
    limit = ages[count - 1]
    old = [row for scene in scenes() for row in scene.governed() if row.since <= limit]
    return sorted(old, key=_age)[:count]


def _past_the_size(scenes: Scenes, _: Policy, over_bytes: int) -> Iterable[RetentionRow]:
    if over_bytes <= 0:
        return
    for row in sorted((row for scene in scenes() for row in _between_the_hours(scene)), key=_age):
        if over_bytes <= 0:
            return
        over_bytes -= 0 if row.held_by else row.size or 0
        yield row


def _between_the_hours(scene: _Scene) -> list[RetentionRow]:
    rows = [row for row in scene.governed() if row.kind == AUTOMATIC]
    stays = _latest_by(rows, lambda row: row.name)
    stays |= _latest_by(rows, lambda row: row.created_at // _HOUR)
    limit = scene.before(DAY)
    return [row for row in rows[1:-1] if row.since < limit and row not in stays]


QUOTAS: tuple[
    tuple[RetentionRule, Callable[[Scenes, Policy, int], Iterable[RetentionRow]]], ...
] = (
    ("user", _many_in_all),
    ("store", _past_the_size),
)
"""Those that look at all of a user's. The number is how many bytes the store is past its size."""


def _timeline(row: RetentionRow) -> str:
    return row.timeline


def _place(row: RetentionRow) -> tuple[str, int, Id]:
    return row.timeline, row.seq, row.id


def _age(row: RetentionRow) -> tuple[int, bool, int, str, int, Id]:
    """A checkpoint whose time says that it is older than what was stored before it comes after
    that."""
    return row.since, row.created_at < row.since, row.created_at, *_place(row)


def _oldest_first(choices: Iterable[RetentionChoice]) -> Iterator[RetentionChoice]:
    """In the order of `_age`. Whole ages are compared only where moments are the same: those of
    all would take as much memory as the choices."""
    by_moment = sorted(choices, key=lambda choice: choice.row.since)
    for _, same in groupby(by_moment, key=lambda choice: choice.row.since):
        yield from sorted(same, key=lambda choice: _age(choice.row))


def _all_but_last(rows: list[RetentionRow], count: int) -> list[RetentionRow]:
    return rows[: max(0, len(rows) - count)]


def _latest_by(
    rows: list[RetentionRow], key: Callable[[RetentionRow], str | int | None]
) -> set[RetentionRow]:
    """The last row for each key. What has no name is no group of its own."""
    latest = {key(row): row for row in rows}
    latest.pop(None, None)
    return set(latest.values())


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


_ORDER = {rule: place for place, (rule, _) in enumerate((*RULES, *QUOTAS))}
