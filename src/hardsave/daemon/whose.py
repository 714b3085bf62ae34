"""Which transcript is an agent's own, decided over what was seen. Pure.

All agents of a kind write into one folder, and no transcript says which process writes it. But one
that grows while no other agent of the kind works in the same directory can only be ours. What
grows in company proves nothing: then only what was proven before counts, or else nothing.
"""

from collections.abc import Sequence
from enum import Enum, auto

from hardsave.tuples import NamedTuple


class Company(Enum):
    """Whether another agent of the same kind works in the same directory."""

    NONE = auto()
    SOME = auto()
    UNKNOWN = auto()  # this system does not tell


class Grown(NamedTuple):
    """A session of this directory whose transcript has grown since somebody looked last."""

    session: str
    written: int  # when, as the file system tells it


class Choice(NamedTuple):
    """What is known so far."""

    session: str | None = None  # the agent's own, with which it is at the moment
    strange: frozenset[str] = frozenset()
    """Those that have grown in company, and may be the other's."""
    before: frozenset[str] = frozenset()
    """Those that the agent's own was before, where company cannot be told."""
    is_mixed: bool = False
    """Whether several grow in turns there: then nobody will ever know."""

    @property
    def why_none(self) -> str:
        """Why nothing is taken although something grows; empty if there is no reason."""
        if self.session is None and (self.strange or self.is_mixed):
            return "several agents work here, and nobody can tell which conversation is whose"
        return ""


def after(choice: Choice, grown: Sequence[Grown], company: Company) -> Choice:
    """What is known now that these have grown."""
    names = frozenset(each.session for each in grown)
    if not names:
        return choice
    match company:
        case Company.SOME:
            return choice._replace(strange=choice.strange | (names - {choice.session}))
        case Company.NONE:
            return _alone(choice, grown)
        case Company.UNKNOWN:
            return _by_turns(choice, names)


def _alone(choice: Choice, grown: Sequence[Grown]) -> Choice:
    """The newest: it may have gone over to another session. The last words of another agent may be
    found only when it is gone, so what has grown in company has to grow once more."""
    strange = choice.strange - {each.session for each in grown}
    own = [each for each in grown if each.session not in choice.strange]
    if not own:
        return choice._replace(strange=strange)
    return Choice(max(own, key=lambda each: each.written).session, strange)


def _by_turns(choice: Choice, names: frozenset[str]) -> Choice:
    """An agent goes over to another session, and two agents write in turns."""
    if choice.is_mixed or len(names) > 1 or names & choice.before:
        return Choice(is_mixed=True)
    (now,) = names
    left = frozenset() if choice.session in (None, now) else frozenset({choice.session})
    return Choice(now, before=choice.before | left)
