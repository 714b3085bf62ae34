"""`hardsave store stats`, `verify`, `repair`, `gc` and `compact`."""

from typing import TYPE_CHECKING

import click

import hardsave
from hardsave import Stats, wording
from hardsave.cli.arguments import REF
from hardsave.cli.command import ON_A_TIMELINE, YES, command
from hardsave.cli.errors import Exit
from hardsave.cli.session import Session
from hardsave.stores.registry import shown

if TYPE_CHECKING:
    from rich.text import Text


@command(
    "stats",
    examples="""
        hardsave store stats
        hardsave store stats --json
    """,
)
def stats(session: Session) -> None:
    """Show how much is stored, and where."""
    found = session.vault.store.stats()
    session.out.result(
        lambda: {"store": shown(session.url), **found.as_dict()}, lambda: _lines(session, found)
    )


def _lines(session: Session, found: Stats) -> "list[Text]":
    from hardsave.cli.render import draw

    return draw.fields(
        {
            "store": shown(session.url),
            "timelines": f"{found.timelines:,}",
            "checkpoints": f"{found.checkpoints:,}",
            "objects": f"{found.objects:,}",
            "tasks": f"{found.tasks:,}",
            "on disk": _on_disk(found),
        }
    )


def _on_disk(found: Stats) -> str:
    backup = wording.size(found.backup_bytes)
    said = f", of which {backup} are the backup" if found.backup_bytes else ""
    return wording.size(found.disk_bytes) + said


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
    if ref is None:
        session.refuse_timeline(beside="the whole store, which is checked without a REF")
    one = None if ref is None else session.find(ref).id
    with session.out.busy("verifying"):
        found = session.vault.store.verify(one)
    session.out.result(
        lambda: {**found.as_dict(), "faults": list(found.faults), "ok": found.ok},
        lambda: [
            (
                f"{wording.count(found.checkpoints, 'checkpoint')} and "
                f"{wording.count(found.objects, 'object')}: {'sound' if found.ok else 'damaged'}"
            ),
            *(f"  {wording.shown(fault)}" for fault in found.faults),
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

    No other process may have it open. The old files are set aside, never deleted; what is lost or
    incomplete is named, and then it ends with 5.
    """
    if not session.out.confirm(f"repair {shown(session.url)}?", yes=yes, what="repair"):
        session.out.say("nothing was done")
        return Exit.FAILED
    with session.out.busy("repairing"):
        found = hardsave.repair(session.url)
    session.out.result(
        lambda: {**found.as_dict(), "faults": list(found.faults), "ok": found.ok},
        lambda: [
            f"the store has {wording.count(found.checkpoints, 'checkpoint')} now",
            *([f"the old files lie in {found.set_aside}"] if found.set_aside else []),
            *(f"  {wording.shown(fault)}" for fault in found.faults),
        ],
    )
    return None if found.ok else Exit.DAMAGED


@command(
    "gc",
    examples="""
        hardsave store gc
    """,
)
def gc(session: Session) -> None:
    """Remove what no checkpoint leads to.

    In the whole store. May run while agents save. Gives the room back to the file system.
    """
    with session.out.busy("collecting"):
        done = session.vault.store.gc()
    session.out.result(
        done.as_dict,
        lambda: [
            (
                f"{wording.count(done.objects, 'object')} removed, "
                f"{wording.size(done.freed_bytes)} freed"
            )
        ],
    )


@command(
    "compact",
    examples="""
        hardsave store compact
    """,
)
def compact(session: Session) -> None:
    """Make the store small and quick to read."""
    before = session.vault.store.stats().disk_bytes
    with session.out.busy("compacting"):
        session.vault.store.compact()
    after = session.vault.store.stats().disk_bytes
    session.out.result(
        lambda: {"disk_bytes_before": before, "disk_bytes": after},
        lambda: [f"{wording.size(before)} → {wording.size(after)}"],
    )


COMMANDS = {"stats": stats, "verify": verify, "repair": repair, "gc": gc, "compact": compact}
