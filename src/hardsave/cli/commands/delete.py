"""`hardsave delete`: hides a checkpoint; `undo` brings it back."""

import click

from hardsave import wording
from hardsave.cli.arguments import REF
from hardsave.cli.command import ON_A_TIMELINE, command
from hardsave.cli.session import Session
from hardsave.vault import json_data


@command(
    "delete",
    examples="""
        hardsave delete main:7
        hardsave delete @~2 --timeline session-1
    """,
    takes=ON_A_TIMELINE,
)
@click.argument("ref", type=REF)
def delete(session: Session, ref: str) -> None:
    """Delete a checkpoint; undo brings it back.

    It is hidden, and its bytes stay until retention lets them go. What must be gone at once is
    for 'hardsave store purge'. A whole timeline is deleted by 'hardsave timelines delete'.
    """
    gone = session.vault.delete(session.find(ref).id)
    session.out.result(
        lambda: {"deleted": json_data.checkpoint(gone)},
        lambda: [f"deleted {wording.shown(session.shown_name(gone.timeline))}:{gone.seq}"],
    )
    session.hint_undo(gone.timeline)


COMMANDS = {"delete": delete}
