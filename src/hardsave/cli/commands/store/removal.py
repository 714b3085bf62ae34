"""`hardsave store retain` and `purge`: what goes for good."""

from typing import TYPE_CHECKING, Any

import click

from hardsave import Policy, wording
from hardsave.cli.arguments import REF
from hardsave.cli.command import ON_A_TIMELINE, YES, command
from hardsave.cli.errors import Exit
from hardsave.cli.render import times
from hardsave.cli.session import Session
from hardsave.errors import Misuse
from hardsave.timeline.policy import DEFAULT
from hardsave.timeline.refs import to_text

if TYPE_CHECKING:
    from hardsave.timeline.retention import RetentionChoice, RetentionPlan
    from hardsave.vault.purge.purge import Purged


@command(
    "retain",
    examples="""
        hardsave store retain --dry-run
        hardsave store retain --max-age 14d --yes
        hardsave store retain --keep 100 --timeline session-1
    """,
    takes=ON_A_TIMELINE,
    timeline_help="Only this timeline, by its name or a unique beginning.",
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
    given = None if everything else session.timeline_given
    if everything:
        session.refuse_timeline(beside="--all")
    policy = _policy(given, max_age, keep, everything=everything)
    plan = session.vault.retention.plan(policy, own=given is None and not everything)
    left = _left_alone(session, plan)
    if left:
        count = wording.count(len(left), "timeline")
        session.out.say(f"{count} of other projects or of none left alone; --all means them, too")
    if dry_run or not plan:
        session.out.result(lambda: _planned(plan, 0, left), lambda: [str(plan)])
        return None
    if session.out.can_ask and not yes:
        session.out.say(str(plan))
    question = f"let {wording.count(len(plan.drops), 'checkpoint')} go for good?"
    if not session.out.confirm(question, yes=yes, what="retain"):
        session.out.say("nothing was done")
        return Exit.FAILED
    with session.out.busy("letting go"):
        done = session.vault.retention.apply(plan)
    session.out.result(lambda: _planned(plan, done.dropped, left), lambda: [str(done)])
    return None


def _policy(
    given: str | None, max_age: str | None, keep: int | None, *, everything: bool
) -> Policy | None:
    if max_age is None and keep is None and given is None and not everything:
        return None
    age = DEFAULT.max_age if keep is None else None
    return Policy(
        max_age=age if max_age is None else times.span(max_age),
        max_per_timeline=keep,
        timelines=None if given is None else [given],
    )


def _left_alone(session: Session, plan: "RetentionPlan") -> list[str]:
    """The timelines that are not meant: they must not be taken for some with nothing to let go."""
    meant = plan.policy.timelines
    if meant is None or session.timeline_given is not None:
        return []
    return [line.name for line in session.vault.timelines() if line.name not in meant]


def _planned(plan: "RetentionPlan", dropped: int, left: list[str]) -> dict[str, Any]:
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


@command(
    "purge",
    examples="""
        hardsave store purge main:7
        hardsave store purge --text "sk-live-0123456789" --yes
        hardsave store purge --whole --timeline session-1
    """,
    takes=ON_A_TIMELINE,
)
@click.argument("ref", type=REF, required=False)
@click.option("--text", help="A text, replaced by [purged] in all states, names and files.")
@click.option(
    "--whole", is_flag=True, help="The timeline that --timeline names, and the job it is of."
)
@YES
def purge(
    session: Session, ref: str | None, text: str | None, whole: bool, yes: bool
) -> Exit | None:
    """Remove something from every file of the store, for good.

    A text goes from all timelines, of any project. Cannot be undone. What other checkpoints
    share with a purged one stays, and so does what you have exported. An agent that goes on, or a
    file, which has the text still, brings it back with the next save: see to these first. Where
    it still is, it says so, and ends with 1.
    """
    if [ref is None, text is None, not whole].count(False) != 1:
        raise Misuse("say what, and only one: a REF, --text TEXT, or --whole --timeline T")
    if text is not None:
        session.refuse_timeline(beside="--text, which is about the whole store")
    timeline = session.line_typed.name if whole else None
    named = session.shown_name(timeline or "")
    what = "the text" if text is not None else f"timeline {named!r}" if whole else f"{ref!r}"
    one = None if ref is None else session.find(ref).id
    if not session.out.confirm(f"purge {wording.shown(what)} for good?", yes=yes, what="purge"):
        session.out.say("nothing was done")
        return Exit.FAILED
    with session.out.busy("purging"):
        done = session.vault.store.purge(one, timeline=timeline, text=text)
    session.out.result(lambda: _purged(done), lambda: _purged_lines(done))
    for each in done.left:
        session.out.say(f"still there: {wording.shown(each)}")
    return Exit.FAILED if done.left else None


def _purged(done: "Purged") -> dict[str, Any]:
    return {
        "dropped": done.dropped,
        "rewritten": done.rewritten,
        "tasks": done.tasks,
        "objects": done.objects,
        "left": list(done.left),
    }


def _purged_lines(done: "Purged") -> list[str]:
    if not (done.dropped or done.rewritten or done.tasks or done.objects):
        return ["it was in nothing that is saved"]
    tasks = f"{wording.count(done.tasks, 'task')} forgotten, " if done.tasks else ""
    checkpoints = f"{wording.count(done.dropped, 'checkpoint')} gone, {done.rewritten:,} rewritten"
    return [f"{checkpoints}, {tasks}{wording.count(done.objects, 'object')} erased"]


COMMANDS = {"retain": retain, "purge": purge}
