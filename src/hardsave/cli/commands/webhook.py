"""`hardsave webhook …`: the secrets that callbacks of jobs are signed with, and who is told nothing
more."""

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from hardsave import wording
from hardsave.cli.command import command, not_empty
from hardsave.cli.render import times
from hardsave.cli.session import Session
from hardsave.runtime.webhooks import disabled
from hardsave.runtime.webhooks.disabled import Disabled
from hardsave.runtime.webhooks.secret_file import Secret, receiver_of, secret_file
from hardsave.runtime.webhooks.signature import new_secret

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.text import Text

    from hardsave import Vault

_USER = click.option(
    "--user", callback=not_empty, help="Whose jobs have the receiver. Else those of no user."
)


@command(
    "add",
    examples="""
        hardsave webhook add --for https://ci.example
        hardsave webhook add --for https://ci.example --overlap 24h
        hardsave webhook add --expires 90d
        hardsave webhook add --stdin < secret.txt
    """,
)
@click.option(
    "--for", "url", metavar="URL", callback=not_empty, help="The receiver, by any URL. Else all."
)
@click.option("--expires", metavar="WHEN", help="In so long (90d, 12h), or a date.")
@click.option(
    "--overlap", metavar="TIME", help="The older ones for the same receiver expire in so long."
)
@click.option("--stdin", "reads", is_flag=True, help="Read the secret, instead of making one.")
def add(
    session: Session, url: str | None, expires: str | None, overlap: str | None, reads: bool
) -> None:
    """Sign callbacks with one more secret, which is shown once.

    Those that are there go on signing, until they are removed or expire: a receiver accepts a
    callback that one of its secrets has signed. Workers of this user on this machine sign with it.
    """
    secret = sys.stdin.readline().strip() if reads else new_secret()
    made = secret_file().add(
        secret,
        store=session.canonical_url,
        receiver=None if url is None else receiver_of(url),
        now=session.now,
        expires_at=times.expiry(expires, session.now),
        others_expire_at=None if overlap is None else session.now + times.span(overlap),
    )
    session.out.result(
        lambda: _secret_data(made, session) | ({} if reads else {"secret": secret}),
        lambda: [f"added: {made.id}"] if reads else [secret],
    )
    if not reads:
        session.out.say(f"it is not shown again; give it to {_whom(made)}, which verifies with it")


@command(
    "list",
    examples="""
        hardsave webhook list
        hardsave webhook list --json
    """,
)
@_USER
def list_(session: Session, user: str | None) -> None:
    """List the secrets, and the receivers that are told nothing more."""
    known = secret_file().of(session.canonical_url)
    with _as_user(session, user) as vault:
        gone = disabled.listed(vault.tasks)
    session.out.result(
        lambda: {
            "secrets": [_secret_data(each, session) for each in known],
            "disabled": [_gone_data(each) for each in gone],
        },
        lambda: [*_secret_lines(session, known), *_gone_lines(session, gone)],
    )
    if not known:
        session.out.say("callbacks are not signed; 'hardsave webhook add' makes a secret")
    for each in gone:
        session.out.say(f"{each.receiver}: {disabled.how_to_enable(each.id, user)}")


@command(
    "remove",
    examples="""
        hardsave webhook remove 1f6c0a52
    """,
)
@click.argument("id", callback=not_empty)
def remove(session: Session, id: str) -> None:
    """Remove a secret, by its id; a worker that runs heeds it at once."""
    gone = secret_file().remove(id, store=session.canonical_url)
    session.out.result(lambda: _secret_data(gone, session), lambda: [f"removed: {gone.id}"])


@command(
    "enable",
    examples="""
        hardsave webhook enable 5be1f0a2c3d49687
        hardsave webhook enable https://ci.example/hooks/done
    """,
)
@click.argument("receiver", metavar="ID|URL", callback=not_empty)
@_USER
def enable(session: Session, receiver: str, user: str | None) -> None:
    """Tell a receiver again that has answered 410 Gone.

    Notices that were not sent meanwhile have failed, and stay so: 'hardsave tasks retry' sends one.
    """
    with _as_user(session, user) as vault:
        told = disabled.enable(vault.tasks, receiver)
    session.out.result(lambda: _gone_data(told), lambda: [f"enabled: {told.receiver}"])


def _as_user(session: Session, user: str | None) -> "AbstractContextManager[Vault]":
    return nullcontext(session.vault) if user is None else session.vault.as_user(user)


def _secret_data(secret: Secret, session: Session) -> dict[str, Any]:
    expires = secret.expires_at
    return {
        "id": secret.id,
        "receiver": secret.receiver,
        "created_at": secret.created_at.isoformat(),
        "expires_at": None if expires is None else expires.isoformat(),
        "is_expired": secret.is_expired(session.now),
    }


def _gone_data(gone: Disabled) -> dict[str, Any]:
    return {"id": gone.id, "receiver": gone.receiver, "since": gone.since.isoformat()}


def _whom(secret: Secret) -> str:
    return wording.shown(secret.receiver or "all receivers")


def _secret_lines(session: Session, known: list[Secret]) -> "Iterator[Text]":
    from rich.text import Text

    from hardsave.cli.render import draw

    yield from draw.columns(
        [
            (
                Text(each.id, style="name"),
                Text(_whom(each)),
                Text(wording.ago(each.created_at, session.now), style="quiet"),
                Text(times.expires(each.expires_at, session.now), style="quiet"),
            )
            for each in known
        ]
    )


def _gone_lines(session: Session, gone: list[Disabled]) -> "Iterator[Text]":
    from rich.text import Text

    from hardsave.cli.render import draw

    yield from draw.columns(
        [
            (
                Text(each.id, style="name"),
                Text(wording.shown(each.receiver)),
                Text(f"disabled (410 Gone) {wording.ago(each.since, session.now)}", style="quiet"),
            )
            for each in gone
        ]
    )


COMMANDS = {"add": add, "list": list_, "remove": remove, "enable": enable}
