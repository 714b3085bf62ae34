"""What a store needs once a day, without being asked: old checkpoints go, and room comes back.

Contract. At most once a day for each user of a store, by the process that comes first; for all
others, and if the settings say so, nothing happens. What goes is what `retain` would let go: never
heads, never what can be undone, never what has a name. It cannot be undone. Stopped half way, it
leaves a shorter history that is whole, and is begun again by the next one; if it fails, after an
hour.

What is old is said by the clock, which may be wrong for a while. So if more than a week seems to
have passed since the last time, this is noted, and nothing goes before another day has passed.

The policy is the user's, or that of a project's file once it is trusted: an agent that writes a
file into its workspace must not be able to make its own past go away. Where several projects
share a store, the file of each governs the timelines that save its files, and no others.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from hardsave import config
from hardsave.config.file import Found
from hardsave.errors import HardsaveError, Misuse, Unavailable
from hardsave.logs import log
from hardsave.objects.hashing import digest
from hardsave.record import Record
from hardsave.stores.base import Turn
from hardsave.stores.results import Collected
from hardsave.timeline.policy import DAY, DEFAULT, MICROSECOND, Policy, Thin
from hardsave.tuples import NamedTuple
from hardsave.vault.context import Context
from hardsave.vault.retention.retain import Retained
from hardsave.vault.workspaces.places import Shown

_MIB = 1 << 20
_LEAP = 7 * DAY
_PAGE = 1_000
_PAUSE = DAY / 24  # after it has failed
_UNSURE = b" unsure"
SEARCH_SECONDS = 10.0  # of the processor, for the search index; the next time goes on from there


class Terms(NamedTuple):
    """What the settings say about it."""

    policy: Policy = DEFAULT
    automatic: bool = True


class Share(NamedTuple):
    """Which terms govern which timelines; None: all of the user's."""

    terms: Terms
    timelines: frozenset[str] | None = None

    @property
    def policy(self) -> Policy:
        return replace(self.terms.policy, timelines=self.timelines)


class Upkept(Record):
    """What was done."""

    retained: Retained
    collected: Collected
    over_bytes: int
    """By how much the store is still larger than it should be: what is left is too young, or has
    to stay."""


def shares_of(context: Context, directory: str | None) -> list[Share]:
    """Which terms govern which timelines, as seen from a directory: its own come first."""
    own, ours = _own(directory)
    return divided(_homes(context), own, ours, _terms)


def policy_here(context: Context, directory: str | None) -> Policy:
    """What the settings of a directory's project say about the timelines that are its own."""
    return shares_of(context, directory)[0].policy


def kept_to_own(context: Context, directory: str | None, policy: Policy) -> Policy:
    """The same policy, about no timelines but a project's own."""
    mine = own_timelines(context, directory)
    if mine is None:
        return policy
    named = mine if policy.timelines is None else mine.intersection(policy.timelines)
    return replace(policy, timelines=named)


def own_timelines(context: Context, directory: str | None) -> frozenset[str] | None:
    """The timelines, deleted ones too, that are of a directory's project; None: all, for no other
    project has saved files here. Where one has, those that never had files are no project's."""
    own = None if directory is None else config.project_root(Path(directory))
    homes = _homes(context)
    if {*homes.values()} <= {own, None}:
        return None
    return frozenset(name for name, root in homes.items() if root == own is not None)


def _own(directory: str | None) -> tuple[Path | None, Terms]:
    """The project that a directory is in, and its terms; the user's count in any case."""
    own = None if directory is None else config.project_root(Path(directory))
    return own, combined(config.files(os.environ, own))


def _homes(context: Context) -> dict[str, Path | None]:
    """The project that each timeline is of: where it saved files last. None: it never has."""
    places: dict[str, bytes | None] = {}
    after = 0
    while rows := context.store.saved(context.user, after, _PAGE):
        places |= {row.timeline: row.workspace or places.get(row.timeline) for row in rows}
        after = rows[-1].number
    roots = {at: _root(context.places.shown(at)) for at in {*places.values()} if at}
    return {name: None if at is None else roots[at] for name, at in places.items()}


def _root(where: Shown) -> Path:
    """The project that a workspace is in. Of another host's no settings are known here: it is no
    project of this one."""
    workspace = os.fsdecode(where.path)
    if where.host:
        return Path(f"{where.host}:{workspace}")
    return config.project_root(Path(workspace))


def _terms(root: Path | None) -> Terms | None:
    """Of a project; None: its file cannot be read, and it is not known what is wanted there."""
    if root is not None and not root.is_absolute():
        return None  # of another host, which sees to it by itself
    try:
        return combined(config.files(os.environ, root))
    except Misuse as error:
        log(__name__).warning("what was saved in %s is left alone: %s", root, error)
        return None


def divided(
    homes: Mapping[str, Path | None],
    own: Path | None,
    ours: Terms,
    terms: Callable[[Path | None], Terms | None],
) -> list[Share]:
    """Timelines by the terms that govern them, `ours` first. Those of no project are under the
    user's, unless the store is one project's alone."""
    roots = {root for root in homes.values() if root is not None}
    known = {root: terms(root) for root in {*roots, None} - {own}} if roots - {own} else {}
    if set(known.values()) <= {ours}:
        return [Share(ours)]
    known[own] = ours
    names: dict[Terms, set[str]] = {ours: set()}
    for name, root in homes.items():
        if (found := known[root]) is not None:
            names.setdefault(found, set()).add(name)
    return [Share(found, frozenset(lines)) for found, lines in names.items()]


def combined(files: Iterable[Found]) -> Terms:
    """The terms of files, each more specific than those before it. But once a file says that
    nothing goes by itself, none after it says otherwise: a project's needs no trust for that."""
    terms = Terms()
    for found in files:
        said = {name: each.value for name, each in found.items()}
        if "retain_automatically" in said:
            terms = terms._replace(automatic=terms.automatic and said["retain_automatically"])
        changes: dict[str, Any] = {}
        if "retain_days" in said:
            changes["max_age"] = timedelta(days=said["retain_days"])
        if "retain_per_timeline" in said:
            changes["max_per_timeline"] = said["retain_per_timeline"]
        if "retain_mb" in said:
            changes["max_store_bytes"] = said["retain_mb"] * _MIB
        if "retain_thin" in said:
            changes["thin"] = Thin(above=said["retain_thin"])
        terms = terms._replace(policy=replace(terms.policy, **changes))
    return terms


def once_a_day(
    context: Context,
    directory: str | None,
    retain: Callable[[Policy], Retained],
    collect: Callable[[], Collected],
) -> Upkept | None:
    """Do it, unless it was done."""
    if not combined(config.files(os.environ, None)).automatic:
        return None  # the user's word is the last
    with _turn(context) as is_ours:
        shares = shares_of(context, directory) if is_ours else []
        policies = [each.policy for each in shares if each.terms.automatic]
        if not policies:
            return None
        done = _done(context, policies, retain, collect)
    if done.over_bytes:
        log(__name__).warning(
            "the store is %d MiB larger than it should be, and nothing more may go by itself; "
            "see 'hardsave store retain --dry-run'",
            done.over_bytes // _MIB + 1,
        )
    return done


def _done(
    context: Context,
    policies: Sequence[Policy],
    retain: Callable[[Policy], Retained],
    collect: Callable[[], Collected],
) -> Upkept:
    """The size comes last: nothing goes for room that is free once the rest has been collected."""
    retained = [retain(replace(policy, max_store_bytes=None)) for policy in policies]
    collected = [collect()]
    if late := [policy for policy in policies if _over(context, policy)]:
        retained += [retain(policy) for policy in late]
        collected += [collect()]
    return Upkept(
        Retained(
            sum(each.dropped for each in retained),
            sum(each.spared for each in retained),
            sum(each.forgotten for each in retained),
        ),
        Collected(
            sum(each.objects for each in collected),
            sum(each.object_bytes for each in collected),
            sum(each.freed_bytes for each in collected),
            collected[-1].left,
        ),
        max(_over(context, policy) for policy in policies),
    )


def is_due(last: int, now: int) -> bool:
    """`last` was when it was done, in microseconds. A clock that was set back is believed."""
    return abs(now - last) >= DAY // MICROSECOND


def has_leapt(last: int, now: int) -> bool:
    """Whether so much time has passed that the clock may be wrong, or else no process was here."""
    return now - last > _LEAP // MICROSECOND


def _over(context: Context, policy: Policy) -> int:
    if policy.max_store_bytes is None:
        return 0
    return max(0, context.store.stats(context.user).own_bytes - policy.max_store_bytes)


@contextmanager
def _turn(context: Context) -> Iterator[bool]:
    """Whether it is due, and no other process of any host is at it. If the block ends well, it is
    done for today; if not, for an hour: a server's next rounds do not all look through a store that
    is damaged."""
    if context.store.durability() == "nothing":  # there is no tomorrow
        yield False
        return
    with context.store.once(_name(context.user)) as turn:
        if turn is None or not _is_time(turn, context.clock()):
            yield False
            return
        try:
            yield True
        except HardsaveError:
            with suppress(Unavailable):
                _note(turn, context.clock() - (DAY - _PAUSE) // MICROSECOND)
            raise
        _note(turn, context.clock())


def _name(user: str | None) -> str:
    """Names of users are no names of files."""
    return "upkeep" if user is None else f"upkeep-{digest(user.encode()).hex()}"


def _is_time(turn: Turn, now: int) -> bool:
    last, is_sure = _last(turn)
    if not is_due(last, now):
        return False
    if last and is_sure and has_leapt(last, now):
        _note(turn, now, _UNSURE)
        return False
    return True


def _last(turn: Turn) -> tuple[int, bool]:
    """When it was done, and whether the clock was to be believed; 0 if that is not known."""
    said = turn.read().strip()
    digits = said.removesuffix(_UNSURE).strip()
    return (int(digits), digits == said) if digits.isdigit() else (0, True)


def _note(turn: Turn, now: int, doubt: bytes = b"") -> None:
    turn.write(b"%-20d%-8s\n" % (now, doubt))
