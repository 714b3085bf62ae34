"""How a request names a checkpoint, and which directories of this machine it may be about."""

import shlex
from collections.abc import Collection

from hardsave import Checkpoint, Vault
from hardsave.defaults import MAX_NAME
from hardsave.errors import Misuse, NotFound
from hardsave.server import directories
from hardsave.server.errors import Refused
from hardsave.server.fields import Field, text
from hardsave.server.route import Allowed, Call

TIMELINE = text("timeline", "The name of a timeline.", most=MAX_NAME)
NEEDED_TIMELINE = TIMELINE._replace(needed=True)
REF = text("ref", "A checkpoint: chk_…, TIMELINE:N; with a timeline also @, @~2, :7 or a name.")
NEEDED_REF = REF._replace(needed=True)
AT: tuple[Field, ...] = (NEEDED_REF, TIMELINE)


def checkpoint(call: Call, name: str = "ref") -> Checkpoint:
    """The one that a parameter names, on the timeline of the request if that has one."""
    return find(call.vault, call.asked[name], call.asked.get("timeline"))


def find(vault: Vault, ref: str, timeline: str | None) -> Checkpoint:
    if timeline is not None:
        return vault.timeline(timeline).get(ref)
    check_whole(ref)
    return vault.get(ref)


def check_whole(ref: str) -> None:
    """Whether a ref says its timeline itself."""
    if ref.startswith(("@", ":")):
        raise Misuse(f"{ref!r} is on a timeline: name it with timeline=…")


def with_files(one: Checkpoint) -> Checkpoint:
    if one.files is None:
        raise NotFound(
            f"checkpoint {one.timeline}:{one.seq} was saved without files; choose one that has some"
        )
    return one


def check_host(one: Checkpoint, *command: str) -> None:
    """Refuse to touch files of another machine, with what to type there."""
    files = one.files
    if files is not None and files.host is not None:
        raise elsewhere(files.host, files.workspace, *command)


def elsewhere(host: str, workspace: str, *command: str) -> Refused:
    """What is answered where files of another machine would be touched."""
    where = f"host {host}" if host else "a host that is not known"
    return Refused(
        409,
        "other_host",
        f"the files are in {workspace} of {where}, which this server cannot reach; type there: "
        f"{shlex.join(('hardsave', *command))}",
    )


def directory(vault: Vault, given: str, allowed: Allowed) -> str:
    """A directory of this machine that a caller may have captured: one that was saved before, or
    that the server was told to allow. Its real path."""
    real = directories.real(given)
    known: Collection[str] = [str(each) for each in allowed.workspaces]
    if real is not None and (real in known or vault.moments(real, limit=1)):
        return real
    raise Refused(
        403,
        "not_allowed",
        f"{given} is not a directory that this server may read: it saves those that were saved "
        "before, and those of 'hardsave serve --allow-workspace DIR'",
    )
