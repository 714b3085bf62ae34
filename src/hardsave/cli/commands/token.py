"""`hardsave token …`: which programs may call the server of this store, or of all projects."""

from typing import TYPE_CHECKING, Any

import click

from hardsave import wording
from hardsave.cli.command import command, not_empty
from hardsave.cli.render import times
from hardsave.cli.session import Session
from hardsave.errors import Misuse
from hardsave.server.caller import SCOPES, Scope
from hardsave.server.tokens import EVERY_STORE, Token, token_file
from hardsave.timeline import names

if TYPE_CHECKING:
    from rich.text import Text


def _store(session: Session) -> str:
    """The store that tokens are for."""
    return session.canonical_url


@command(
    "add",
    examples="""
        hardsave token add ci
        hardsave token add deploy --scope act --expires 30d
        hardsave token add alice --user alice --scope admin
        hardsave token add ops --all-projects
    """,
)
@click.argument("name", callback=not_empty)
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    default="read",
    show_default=True,
    help="What callers may do with it: look; also change jobs; everything.",
)
@click.option("--user", callback=not_empty, help="Whose jobs it shows. Else those of no user.")
@click.option("--expires", metavar="WHEN", help="In so long (30d, 12h), or a date.")
@click.option("--all-projects", is_flag=True, help="For every store that you serve.")
def add(
    session: Session,
    name: str,
    scope: Scope,
    user: str | None,
    expires: str | None,
    all_projects: bool,
) -> None:
    """Make a token for the server of this store, or of all; it is shown once."""
    if all_projects and session.settings.store:
        raise Misuse("--all-projects is for every store, and --store names one; leave one out")
    names.check_user(user)
    names.check_user(name)  # a name like any other: one line, not too long
    ends = times.expiry(expires, session.now)
    made, secret = token_file().add(
        name,
        store=EVERY_STORE if all_projects else _store(session),
        user=user,
        scope=scope,
        now=session.now,
        expires_at=ends,
    )
    session.out.result(lambda: {**_data(made, session), "token": secret}, lambda: [secret])
    session.out.say("it is not shown again; send it as 'Authorization: Bearer …'")


@command(
    "list",
    examples="""
        hardsave token list
        hardsave token list --json
    """,
)
def list_(session: Session) -> None:
    """List the tokens that count for this store; none of them is shown."""
    found = token_file().of(_store(session))
    session.out.result(
        lambda: [_data(each, session) for each in found], lambda: _lines(session, found)
    )
    if not found:
        session.out.say("there is no token for this store; 'hardsave token add NAME' makes one")


@command(
    "revoke",
    examples="""
        hardsave token revoke ci
    """,
)
@click.argument("name", callback=not_empty)
def revoke(session: Session, name: str) -> None:
    """End a token, by its name or id; a server that runs refuses it from now on."""
    gone = token_file().revoke(name, store=_store(session))
    session.out.result(
        lambda: _data(gone, session), lambda: [f"revoked: {wording.shown(gone.name)}"]
    )


def _data(token: Token, session: Session) -> dict[str, Any]:
    expires = token.expires_at
    return {
        "id": token.id,
        "name": token.name,
        "scope": token.scope,
        "user": token.user,
        "all_projects": token.is_for_all,
        "created_at": token.created_at.isoformat(),
        "expires_at": None if expires is None else expires.isoformat(),
        "is_expired": token.is_expired(session.now),
    }


def _lines(session: Session, found: tuple[Token, ...]) -> "list[Text]":
    from rich.text import Text

    from hardsave.cli.render import draw

    return draw.columns(
        [
            (
                Text(wording.shown(each.name), style="name"),
                Text(each.scope),
                Text("" if each.user is None else f"user {wording.shown(each.user)}"),
                Text("all projects" if each.is_for_all else ""),
                Text(wording.ago(each.created_at, session.now), style="quiet"),
                Text(times.expires(each.expires_at, session.now), style="quiet"),
            )
            for each in found
        ]
    )


COMMANDS = {"add": add, "list": list_, "revoke": revoke}
