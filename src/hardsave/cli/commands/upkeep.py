"""`hardsave store gc` and `compact`."""

from hardsave.cli import words
from hardsave.cli.command import command
from hardsave.cli.session import Session


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
            f"{words.count(done.objects, 'object')} removed, {words.size(done.freed_bytes)} freed"
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
        lambda: [f"{words.size(before)} → {words.size(after)}"],
    )


COMMANDS = {"gc": gc, "compact": compact}
