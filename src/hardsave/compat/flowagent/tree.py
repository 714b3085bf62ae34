"""How a user's checkpoints follow from each other. Pure: over records that were listed."""

from collections.abc import Iterable, Iterator

from hardsave.compat.flowagent.records import Checkpoint


class Tree:
    """Checkpoints by their parents. A parent that is gone is as good as none."""

    def __init__(self, checkpoints: Iterable[Checkpoint]) -> None:
        oldest_first = sorted(checkpoints, key=lambda one: (one.timestamp, one.id))
        self._by_id = {one.id: one for one in oldest_first}
        self._children: dict[str | None, list[Checkpoint]] = {}
        for one in oldest_first:
            self._children.setdefault(one.parent_checkpoint_id, []).append(one)

    def get(self, checkpoint_id: str | None) -> Checkpoint | None:
        return None if checkpoint_id is None else self._by_id.get(checkpoint_id)

    def path(self, checkpoint_id: str) -> list[Checkpoint]:
        """From the root to a checkpoint; empty if there is none."""
        found: dict[str, Checkpoint] = {}
        at = self.get(checkpoint_id)
        while at is not None and at.id not in found:  # stored parents may lead in a circle
            found[at.id] = at
            at = self.get(at.parent_checkpoint_id)
        return list(found.values())[::-1]

    def depth(self, checkpoint_id: str) -> int:
        """How many checkpoints lie above it."""
        return max(0, len(self.path(checkpoint_id)) - 1)

    def children(self, checkpoint_id: str) -> list[Checkpoint]:
        """Those that follow from it, oldest first: more than one is a branching."""
        return list(self._children.get(checkpoint_id, ()))

    def roots(self) -> list[Checkpoint]:
        return [one for one in self if self.get(one.parent_checkpoint_id) is None]

    def leaves(self) -> list[Checkpoint]:
        """The ends of the branches, oldest first."""
        return [one for one in self if one.id not in self._children]

    def __iter__(self) -> Iterator[Checkpoint]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)
