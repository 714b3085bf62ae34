"""What threads and namespaces are called in a vault: names that its commands take. Pure."""

from urllib.parse import quote, unquote

import hardsave

_LONGEST = 200  # characters of a name in a vault
_ROOT = "root"
_DIGEST = "%-"  # what quoting never makes


def timeline(prefix: str, thread: str) -> str:
    """The timeline of a thread. A name that would be too long is a digest of the thread's id."""
    name = prefix + quote(thread, safe="")
    if len(name) > _LONGEST:
        return prefix + _DIGEST + hardsave.checkpoint_id(thread)
    return name


def thread(prefix: str, timeline: str) -> str | None:
    """The thread of a timeline; None if its name does not tell."""
    rest = timeline.removeprefix(prefix)
    return None if rest.startswith(_DIGEST) else unquote(rest)


def checkpoint(namespace: str) -> str:
    """What the checkpoints of a namespace are called: of the root `root`, of others the namespace
    with a stroke behind it, so that `child:1` does not read as number 1 of a timeline."""
    if not namespace:
        return _ROOT
    name = namespace + "/"
    is_plain = namespace.isprintable() and namespace == namespace.lstrip()
    if not is_plain or len(name) > _LONGEST or name.startswith(("@", _DIGEST)):
        return _DIGEST + hardsave.checkpoint_id(namespace)
    return name
