"""`hardsave store retain`: a policy, what it would let go, and letting it go."""

from typing import TYPE_CHECKING, Any

import click

from hardsave import Policy
from hardsave.cli import moments, words
from hardsave.cli.command import ON_A_TIMELINE, YES, command
from hardsave.cli.errors import Exit
from hardsave.cli.session import Session
from hardsave.errors import Misuse
from hardsave.timeline.policy import DEFAULT
from hardsave.timeline.refs import to_text

if TYPE_CHECKING:
    from hardsave.timeline.retention import RetentionChoice, RetentionPlan


@command(
    "retain",
    examples="""
        hardsave store retain --dry-run
        hardsave store retain --max-age 14d --yes
        hardsave store retain --keep 100 --timeline session-1
    """,
    takes=ON_A_TIMELINE,
)
@click.option("--max-age", metavar="SPAN", help="Older ones go: 12h, 30d, 8w.  [default: 30d]")
@click.option("--keep", type=click.IntRange(0), metavar="N", help="Of each timeline the newest N.")
@click.option("--all", "everything", is_flag=True, help="All timelines of the store.")
@click.option("--dry-run", is_flag=True, help="Show what would go, and stop.")
@YES
def retain(
    session: Session,
    max_age: str | None,
    keep: int | None,
    everything: bool,
    dry_run: bool,
    yes: bool,
) -> Exit | None:
    """Let old checkpoints go, for good.

    Named checkpoints stay until they are deleted, heads and what can still be undone in any case.
    Where several projects share a store, it is about the timelines of this one, unless --timeline
    or --all says otherwise. Cannot be undone; 'hardsave store gc' then gives the room back.
    """
    given = session.timeline_given
    if everything and given is not None:
        raise Misuse("say one of --all and --timeline")
    policy = _policy(given, max_age, keep, everything=everything)
    plan = session.vault.retention.plan(policy, own=given is None and not everything)
    left = _left_alone(session, plan)
    if left:
        count = words.count(len(left), "timeline")
        session.out.say(f"{count} of other projects or of none left alone; --all means them, too")
    if dry_run or not plan:
        session.out.result(lambda: _data(plan, 0, left), lambda: [str(plan)])
        return None
    if session.out.can_ask and not yes:
        session.out.say(str(plan))
    question = f"let {words.count(len(plan.drops), 'checkpoint')} go for good?"
    if not session.out.confirm(question, yes=yes, what="retain"):
        session.out.say("nothing was done")
        return Exit.FAILED
    with session.out.busy("letting go"):
        done = session.vault.retention.apply(plan)
    session.out.result(lambda: _data(plan, done.dropped, left), lambda: [str(done)])
    return None


def _policy(
    given: str | None, max_age: str | None, keep: int | None, *, everything: bool
) -> Policy | None:
    if max_age is None and keep is None and given is None and not everything:
        return None
    age = DEFAULT.max_age if keep is None else None
    return Policy(
        max_age=age if max_age is None else moments.span(max_age),
        max_per_timeline=keep,
        timelines=None if given is None else [given],
    )


def _left_alone(session: Session, plan: "RetentionPlan") -> list[str]:
    """Whose timelines nobody meant: they must not be taken for some with nothing to let go."""
    meant = plan.policy.timelines
    if meant is None or session.timeline_given is not None:
        return []
    return [line.name for line in session.vault.timelines() if line.name not in meant]


def _data(plan: "RetentionPlan", dropped: int, left: list[str]) -> dict[str, Any]:
    return {
        "considered": plan.considered,
        "drops": [_choice(each) for each in plan.drops],
        "kept": [_choice(each) for each in plan.kept],
        "dropped": dropped,
        "left_alone": left,
    }


def _choice(one: "RetentionChoice") -> dict[str, Any]:
    return {
        "id": to_text(one.row.id),
        "ref": f"{one.row.timeline}:{one.row.seq}",
        "rule": one.rule,
        "held_by": one.row.held_by,
    }


COMMANDS = {"retain": retain}
