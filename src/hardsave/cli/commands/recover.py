"""`hardsave recover`: what dead processes have left, put back to work."""

import click

from hardsave.cli import data, words
from hardsave.cli.command import command
from hardsave.cli.session import Session


@command(
    "recover",
    examples="""
        hardsave recover
        hardsave recover --dry-run --json
    """,
)
@click.option("--dry-run", is_flag=True, help="Only tell what was interrupted.")
@click.option("--take-over", is_flag=True, help="Take sessions on other machines for dead.")
def recover(session: Session, dry_run: bool, take_over: bool) -> None:
    """Put tasks of dead processes back to work, and tell what happened.

    Runners do this by themselves, when they start and while they run: it is for looking, and for
    when none is to start.
    """
    found = session.vault.tasks.recover(take_over=take_over, dry_run=dry_run)
    session.out.result(
        lambda: data.recovery(found, dry_run=dry_run),
        lambda: words.passage(str(found)).splitlines(),
    )


COMMANDS = {"recover": recover}
