"""`hardsave store verify` and `repair`."""

import click

import hardsave
from hardsave.cli import words
from hardsave.cli.arguments import REF
from hardsave.cli.command import ON_A_TIMELINE, YES, command
from hardsave.cli.errors import Exit
from hardsave.cli.session import Session


@command(
    "verify",
    examples="""
        hardsave store verify
        hardsave store verify plan-ready
    """,
    takes=ON_A_TIMELINE,
)
@click.argument("ref", type=REF, required=False)
def verify(session: Session, ref: str | None) -> Exit | None:
    """Read everything once, to know that it can be read.

    Checks one checkpoint, or the whole store: every object against its hash, every number, every
    parent, the index and the backup. Ends with 5 if something is damaged.
    """
    one = None if ref is None else session.find(ref).id
    with session.out.busy("verifying"):
        found = session.vault.store.verify(one)
    session.out.result(
        lambda: {**found.as_dict(), "faults": list(found.faults), "ok": found.ok},
        lambda: [
            (
                f"{words.count(found.checkpoints, 'checkpoint')} and "
                f"{words.count(found.objects, 'object')}: {'sound' if found.ok else 'damaged'}"
            ),
            *(f"  {words.shown(fault)}" for fault in found.faults),
        ],
    )
    if found.ok:
        return None
    session.out.say("'hardsave store repair' saves what can be read, and sets the rest aside")
    return Exit.DAMAGED


@command(
    "repair",
    examples="""
        hardsave store repair
        hardsave store repair --store sqlite:///runs.db --yes
    """,
)
@YES
def repair(session: Session, yes: bool) -> Exit | None:
    """Save what can be read of a damaged store.

    Nobody else may have it open. The old files are set aside, never deleted; what is lost or
    incomplete is named, and then it ends with 5.
    """
    if not session.out.confirm(f"repair {session.url}?", yes=yes, what="repair"):
        session.out.say("nothing was done")
        return Exit.FAILED
    with session.out.busy("repairing"):
        found = hardsave.repair(session.url)
    session.out.result(
        lambda: {**found.as_dict(), "faults": list(found.faults), "ok": found.ok},
        lambda: [
            f"the store has {words.count(found.checkpoints, 'checkpoint')} now",
            *([f"the old files lie in {found.set_aside}"] if found.set_aside else []),
            *(f"  {words.shown(fault)}" for fault in found.faults),
        ],
    )
    return None if found.ok else Exit.DAMAGED


COMMANDS = {"verify": verify, "repair": repair}
