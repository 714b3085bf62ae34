"""The history of channels that are kept as deltas: what steps wrote, back to a whole value."""

from collections.abc import Iterator, Mapping, Sequence

from langgraph.checkpoint.base import DeltaChannelHistory, PendingWrite

import hardsave
from hardsave.adapters.langgraph.place import Place, counted, escaped, pending
from hardsave.adapters.langgraph.threads import Threads, id_of
from hardsave.adapters.langgraph.values import Values


def history(
    threads: Threads, values: Values, place: Place, channels: Sequence[str]
) -> Mapping[str, DeltaChannelHistory]:
    """Writes of the ancestors of a checkpoint, oldest first, and the value that they begin with. Of
    an ancestor only its writes are read, and which channels it has."""
    found: dict[str, DeltaChannelHistory] = {}
    written: dict[str, list[PendingWrite]] = {name: [] for name in channels}
    left = set(channels)
    for child, one in _ancestors(threads, place) if left else ():
        notes = counted(one.notes, before=child)
        writes = [each for each in notes if each.channel in left]
        for write in reversed(pending(writes, values)):
            written[write[1]].append(write)
        state = one.state
        for name in [name for name in left if escaped(name) in state]:
            seed = values.revived(one.read(escaped(name)))
            found[name] = {"writes": [], "seed": seed}
            left.discard(name)
        if not left:
            break
    for name in channels:
        found.setdefault(name, {"writes": []})["writes"] = written[name][::-1]
    return found


def _ancestors(threads: Threads, place: Place) -> Iterator[tuple[str, hardsave.Checkpoint]]:
    """The parents of a checkpoint in its namespace, nearest first, each behind its child's id."""
    target = threads.latest(place)[0] if place.id is None else threads.find(place)
    if target is None:
        return
    line = threads.vault.timeline(target.timeline)
    child, wanted = id_of(target), target.metadata["parent"]
    for one in line.ancestors(target):
        said = one.metadata
        if wanted is None or said.get("ns", "") != place.namespace or id_of(one) != wanted:
            return
        yield child, one
        child, wanted = wanted, said["parent"]
