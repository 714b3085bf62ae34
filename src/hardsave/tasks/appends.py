"""What an attempt appends to timelines: the same append of a later attempt is recognised. Pure.

A task's body begins again from its beginning if its attempt fails or its process dies, and so does
a step whose end was not recorded. What it has appended by then is stored; appended again, it would
be there twice. So each append has an id that a later attempt comes to as well: by the task, the
step that it is made in, the timeline, what is appended, and how many times that was appended
before.

A body that has looked at a timeline, or saved a whole state there, goes on from what is there: what
it appends after that is new, however much it is like something older. A look belongs to the step
that it happens in: the next attempt has that step's result from the journal and looks at nothing,
so what comes after the step must not depend on it. Only a step that has failed runs again, and may
look again: what it has looked at counts for what is around it.
"""

from hardsave.objects.hashing import digest
from hardsave.objects.records import ID_BYTES, Id, TaskRecord


class Appends:
    """Of one attempt. The caller sees to it that threads take turns."""

    def __init__(self, task: TaskRecord) -> None:
        self._task = (task.name, str(task.created_at), str(task.generation))
        self._made: dict[str, set[Id]] = {}  # by step
        self._looked: set[tuple[str, str]] = set()  # step and timeline

    def look(self, step: str, timeline: str) -> None:
        """What comes next on a timeline relies on what is there."""
        self._looked.add((step, timeline))

    def begin(self, step: str, timeline: str, content: bytes) -> Id | None:
        """The id of an append; None if any will do."""
        if (step, timeline) in self._looked:
            return None
        made = self._made.setdefault(step, set())
        number = 1
        while (id := self._id(step, timeline, content, number)) in made:
            number += 1
        made.add(id)
        return id

    def give_up(self, step: str, id: Id) -> None:
        """It was not made, as far as is known: the next one like it is the same."""
        self._made.get(step, set()).discard(id)

    def failed(self, step: str) -> None:
        """A step ended without a result: the next attempt calls it again."""
        around = step.rpartition("/")[0]
        self._looked |= {(around, timeline) for path, timeline in self._looked if path == step}

    def anew(self, step: str) -> None:
        """A step begins again."""
        for path in [each for each in self._made if _is_in(each, step)]:
            del self._made[path]
        self._looked = {each for each in self._looked if not _is_in(each[0], step)}

    def _id(self, step: str, timeline: str, content: bytes, number: int) -> Id:
        parts = (*self._task, step, timeline, content.hex(), str(number))
        return digest("".join(f"{len(each)}:{each}" for each in parts).encode())[:ID_BYTES]


def _is_in(path: str, step: str) -> bool:
    """Whether something happened in a step, or in one inside of it."""
    return path == step or path.startswith(f"{step}/")
