"""What the command line says of paths, changes and repositories. Pure."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hardsave.wording import count, shown

if TYPE_CHECKING:
    from hardsave.vault.files import GitState


def changed_by(told: object) -> str:
    """`Bash: 3 paths; Edit or Bash: 1 path`, of what the daemon writes into metadata; empty if it
    is anything else."""
    found = []
    for each in told if isinstance(told, Sequence) else ():
        if not isinstance(each, Mapping) or not isinstance(each.get("count"), int):
            return ""
        calls = each.get("calls", ())
        tools = dict.fromkeys(str(call["tool"]) for call in calls if isinstance(call, Mapping))
        found.append(f"{' or '.join(tools)}: {count(each['count'], 'path')}")
    return "; ".join(found)


def git(found: "GitState") -> str:
    """`main at 1a2b3c4d5e6f, rebase in progress`."""
    progress = f", {found.in_progress} in progress" if found.in_progress else ""
    return f"{shown(found.branch or 'detached')} at {(found.commit or 'no commit')[:12]}{progress}"


def branch(found: "GitState") -> str:
    """`feature`, or the commit that is checked out without a branch."""
    return shown(found.branch) if found.branch else (found.commit or "no commit")[:12]
