"""Saves that wait on this host because the server of their store was away: delivered, and told."""

import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hardsave import wording
from hardsave.cli.hints import quoted
from hardsave.errors import HardsaveError, Unavailable
from hardsave.stores import registry
from hardsave.vault.workspaces import projects

if TYPE_CHECKING:
    from hardsave.cli.render.output import Output
    from hardsave.daemon.outbox import Outbox


def outbox(url: str) -> "Outbox | None":
    """That of this project; None if its store is not on a server, or this user has no home."""
    if not registry.is_on_server(url):
        return None
    from hardsave.daemon.outbox import Outbox  # most stores are files

    try:
        return Outbox(os.environ, projects.root(os.environ, Path.cwd()), url)
    except Unavailable:
        return None


def settle(url: str, out: "Output", now: datetime) -> None:
    """Deliver what waits, before the store is looked at. `Unavailable` at once, with what waits, if
    the server is still away."""
    found = outbox(url)
    if found is None or found.is_empty:
        return
    if why := found.why_away(is_patient=True):
        raise Unavailable(f"{why}; {sentence(found, now)}")
    try:
        done = found.deliver()
    except (HardsaveError, OSError) as error:
        out.say(f"{sentence(found, now)}; it could not be delivered: {error}")
        return
    if done is not None and done.checkpoints:
        count = wording.count(done.checkpoints, "save")
        out.say(f"{count} that waited on this host: delivered")
        for name, beside in done.beside.items():
            out.say(f"{name!r} had moved on elsewhere, so they are on {beside!r}")


def sentence(found: "Outbox", now: datetime) -> str:
    """What waits, and how it is looked at."""
    left = found.left()
    if not left.checkpoints:
        return "nothing waits on this host"
    since = "" if left.since is None else f", the first from {wording.ago(left.since, now)}"
    count = wording.count(left.checkpoints, "save")
    waits = "waits" if left.checkpoints == 1 else "wait"
    return (
        f"{count} {waits} on this host{since}, to be delivered when it answers; look at them with: "
        f"hardsave --store {quoted(found.url)} log"
    )
