"""What may go, and what has to stay: the rules that `timeline.retention` follows.

Every rule is optional. In the order in which they are asked, with what each one wants gone:

    deleted    what was deleted longer ago than the undo window
    ttl        all of a timeline on which nothing was saved for so long
    age        what is older
    kind       of a timeline's checkpoints of one kind all but the newest so many
    thin       of a long timeline all but the first, the last ones and the latest of each name, of
               all and of those between the first and the last ones
    timeline   of a timeline all but the newest so many
    user       of everything all but the newest so many
    store      past the size of this user's part of the store: automatic ones older than a day,
               all but the first, the last, the latest of each name and the latest of each hour

A rule sees what the rules before it have left. In any case heads stay, and so does
what can still be undone. Permanent kinds go only after they were deleted, and no
quota counts them. The age of a checkpoint is counted from when it was stored: one that was
imported, or saved while the clock was behind, is no older than what was there before it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import Literal

from hardsave.defaults import RETENTION_BYTES, RETENTION_DAYS, UNDO_DAYS
from hardsave.errors import Misuse

RetentionRule = Literal["deleted", "ttl", "age", "kind", "thin", "timeline", "user", "store"]

DAY = timedelta(days=1)
MICROSECOND = timedelta(microseconds=1)  # what stores count in


@dataclass(frozen=True, slots=True, kw_only=True)
class Thin:
    """A timeline with more than `above` keeps its first, its last ones, the latest per name, and
    the latest per name of those between the first and the last ones.

    Where `above` leaves no room for so many, `keep_last` gives way, and those between are not kept
    beside a later one of their name.
    """

    above: int = 50
    keep_first: bool = True
    keep_last: int = 20

    def __post_init__(self) -> None:
        _check_count("thin.above", self.above)
        _check_count("thin.keep_last", self.keep_last)

    @property
    def last(self) -> int:
        """How many of the last are kept."""
        return max(1, min(self.keep_last, self.above - self.keep_first))


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Which checkpoints of a user may go. `Policy()` lets only deleted ones go."""

    timelines: Collection[str] | None = None
    """Only these are looked at and counted; None: all."""
    permanent: Collection[str] = frozenset({"manual", "feature"})
    """Kinds that stay until they are deleted."""
    undo_window: timedelta = UNDO_DAYS * DAY
    """For how long operations can be undone: what they lead back to stays."""
    ttl: timedelta | None = None
    """Counted from a timeline's latest save: each save renews it."""
    max_age: timedelta | None = None
    per_kind: Mapping[str, int] = field(default_factory=dict, hash=False)
    thin: Thin | None = None
    max_per_timeline: int | None = None
    max_per_user: int | None = None
    max_store_bytes: int | None = None

    def __post_init__(self) -> None:
        self._check()
        object.__setattr__(self, "permanent", frozenset(self.permanent))
        if self.timelines is not None:
            object.__setattr__(self, "timelines", frozenset(self.timelines))
        self._check_kinds()  # afterwards: a question would use up what can be read only once
        object.__setattr__(self, "per_kind", MappingProxyType(dict(self.per_kind)))

    def _check(self) -> None:
        _check_names("timelines", self.timelines)
        _check_names("permanent", self.permanent)
        _check_span("undo_window", self.undo_window)
        for name in ("ttl", "max_age"):
            if (span := getattr(self, name)) is not None:
                _check_span(name, span)
        for name in ("max_per_timeline", "max_per_user", "max_store_bytes"):
            if (count := getattr(self, name)) is not None:
                _check_count(name, count)
        if self.thin is not None and not isinstance(self.thin, Thin):
            raise Misuse(f"thin is a Thin, not {self.thin!r}")

    def _check_kinds(self) -> None:
        if not isinstance(self.per_kind, Mapping):
            raise Misuse(f"per_kind is a dict of kinds and counts, not {self.per_kind!r}")
        for kind, count in self.per_kind.items():
            _check_count(f"per_kind[{kind!r}]", count)
            if kind in self.permanent:
                raise Misuse(
                    f"{kind!r} is permanent and has a quota; name the kinds that are permanent "
                    "with permanent=, without this one"
                )


def _check_names(what: str, given: object) -> None:
    if isinstance(given, str):  # it would be taken as a collection of its letters
        raise Misuse(f"{what} is a collection of names, not the text {given!r}")


def _check_span(what: str, span: object) -> None:
    if not isinstance(span, timedelta) or span < timedelta(0):
        raise Misuse(f"{what} is a timedelta from 0 on, not {span!r}")


def _check_count(what: str, count: object) -> None:
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise Misuse(f"{what} is a number from 0 on, not {count!r}")


DEFAULT = Policy(max_age=RETENTION_DAYS * DAY, max_store_bytes=RETENTION_BYTES)
