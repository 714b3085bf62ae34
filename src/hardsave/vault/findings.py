"""What is found where saves are made, and how bad it is. Pure: decided over what was measured.

`hardsave doctor` and the dashboard say the same of it.
"""

from collections.abc import Collection, Sequence
from typing import Literal

from hardsave import wording
from hardsave.tuples import NamedTuple
from hardsave.workspace.filesystem import mounts

MIB = 1 << 20
SCARCE_BYTES = 1024 * MIB
TOO_LITTLE_BYTES = 100 * MIB
NEEDED_BYTES = 16 * MIB  # by retention and gc, which write small transactions into a WAL

NAMED = 5  # files that a message names

Level = Literal["ok", "warning", "failure"]


class Finding(NamedTuple):
    """What was looked at, how it is, and what helps if it is not well."""

    what: str
    level: Level
    message: str
    remedy: str = ""


def told_once(found: Sequence[Finding]) -> list[Finding]:
    """A fault that several looks came upon is told by the first; the others could not look."""
    first: dict[str, str] = {}
    answer = []
    for each in found:
        cause = first.get(each.message) if each.level == "failure" else None
        if cause is None:
            answer.append(each)
            first.setdefault(each.message, each.what)
        else:
            message = f"could not be looked at: see {cause!r} above"
            answer.append(Finding(each.what, "warning", message))
    return answer


def backup(
    what: str,
    copied: int | None,
    last: int,
    *,
    is_there: bool = False,
    save: str = "hardsave save",
) -> Finding:
    """How far a backup has come, beside the last commit that it should have. One of which nothing
    is known may be there all the same, and of no use. `save` is what to type."""
    remedy = (
        f"{save}; that of a large store is made while an agent works here, with our hooks or "
        "under 'hardsave run'"
    )
    if copied is None:
        message = "it is damaged, and of no use" if is_there else "there is none yet"
        return Finding(what, "warning", message, remedy)
    if copied < last:
        return Finding(what, "warning", f"{last - copied} commits behind", remedy)
    return Finding(what, "ok", "has everything")


def server(what: str, shown: str, survives: str, failover: str) -> Finding:
    """A store that a server keeps: what of it is lost when."""
    lost = f"a failover loses {failover}"
    if survives == "power":
        return Finding(what, "ok", f"{shown}; a save survives a power loss; {lost}")
    return Finding(
        what,
        "warning",
        f"{shown}: the end of its server may take the last saves, or more; {lost}",
        "have the server sync each commit (PostgreSQL: fsync and synchronous_commit on; Redis: "
        "appendonly yes, appendfsync always), or save nothing there that must last",
    )


def disk(what: str, free: int, spare: Sequence[tuple[str, int]] = ()) -> Finding:
    """How much room there is to save into. `spare`: files that may be deleted, and their sizes.

    To let checkpoints go is to write down that they are gone: on a full disk that does not help.
    """
    message = f"{wording.size(free)} free"
    remedy = "make room, or let old checkpoints go: hardsave store retain, then hardsave store gc"
    if free < NEEDED_BYTES:
        listed = ", ".join(f"{path} ({wording.size(size)})" for path, size in spare)
        ours = f", or delete what is not needed any more: {listed}" if listed else ""
        remedy = (
            f"make room with other files first{ours}; only then hardsave store retain and "
            "hardsave store gc can do their work, which needs some itself"
        )
    if free < TOO_LITTLE_BYTES:
        return Finding(what, "failure", message, remedy)
    return Finding(what, "warning" if free < SCARCE_BYTES else "ok", message, remedy)


def moved(what: str, gone: Sequence[str]) -> Finding:
    """Which projects have a store and no directory any more. Most were deleted: it is no fault."""
    if not gone:
        return Finding(what, "ok", "every project that was saved is where it was")
    more = f" and {len(gone) - NAMED:,} more" if len(gone) > NAMED else ""
    message = f"gone from where they were: {', '.join(gone[:NAMED])}{more}"
    return Finding(what, "ok", f"{message}; one that was moved goes on with: hardsave move OLD NEW")


def left_out(what: str, ignored: Sequence[str], unmatched: Sequence[str], settings: str) -> Finding:
    """Which ignored files nothing else has, and which patterns to include match no file. That rules
    leave files out is as it should be: it is told, and no fault."""
    if unmatched:
        message = f"no file is matched by include: {', '.join(unmatched)}"
        return Finding(what, "warning", message, f"see {settings}")
    if not ignored:
        return Finding(what, "ok", "no secret, local setting or database is ignored here")
    more = f" and {len(ignored) - NAMED:,} more" if len(ignored) > NAMED else ""
    named = ", ".join(ignored[:NAMED]) + more
    message = f"not saved, because ignored: {named}; 'include' in {settings} changes that"
    return Finding(what, "ok", message)


def file_system(what: str, kind: str) -> Finding:
    """What a workspace lies on."""
    if mounts.tells_all(kind):
        return Finding(what, "ok", kind or "unknown")
    return Finding(
        what,
        "warning",
        f"the workspace lies on {kind}, which others may change without being seen",
        "work on a local disk; captures look at everything here",
    )


def watches(what: str, directories: int, limit: int, refused: str = "") -> Finding:
    """Whether there are more directories than may be watched, others' beside them; and why they
    cannot all be watched now, because of what other programs watch."""
    message = f"{wording.count(directories, 'directory', 'directories')}, {limit:,} may be watched"
    remedy = f"sudo sysctl fs.inotify.max_user_watches={max(524_288, directories * 4)}"
    if refused:
        why = f"{message}, but not now: {refused}"
        return Finding(
            what, "warning", why, "do as it says; until then captures look at everything"
        )
    return Finding(what, "ok" if directories * 2 < limit else "warning", message, remedy)


def hooks(
    agent: str,
    program: str,
    *,
    is_found: bool,
    events: list[str],
    wanted: Collection[str] = (),
    off: str = "",
    untrusted: Sequence[str] = (),
    how_to_trust: str = "",
    gone: Sequence[str] = (),
    without_us: Sequence[str] = (),
    init: str = "hardsave init",
) -> Finding:
    """Whether the hooks of an agent, started as `program`, call us, at all that is wanted; which
    file switches them off, which are not trusted; what is gone, and which Python does not find us.
    `init` is what to type to have them renewed where they stand."""
    if not is_found:
        return Finding(agent, "ok", "was not found here")
    if not events:
        return Finding(agent, "ok", "does not call us; 'hardsave init' changes that")
    if gone:
        message = f"calls {gone[0]}, which is not there any more"
        return Finding(agent, "warning", message, init)
    if without_us:
        message = f"calls {without_us[0]}, in which there is no hardsave: nothing is saved"
        return Finding(agent, "warning", message, init)
    if off:
        message = f"leaves all hooks out: {off}"
        return Finding(agent, "warning", message, without_hooks(program))
    if untrusted:
        message = f"leaves our hooks out: {', '.join(untrusted)}: not trusted as they are, or off"
        return Finding(agent, "warning", message, how_to_trust)
    message = f"calls us at {', '.join(dict.fromkeys(events))}"
    if missing := [event for event in wanted if event not in events]:
        return Finding(agent, "warning", f"{message}, not at {', '.join(missing)}", init)
    return Finding(agent, "ok", message)


def without_hooks(program: str) -> str:
    """What to do about a file that keeps an agent from running any; it may be another user's."""
    return f"take that out of there, or start it by 'hardsave run -- {program}', which needs none"
