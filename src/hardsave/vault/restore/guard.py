"""A block of risky work: saved before, taken back if it fails.

Contract. When the block is entered, files and state are saved. If it raises, be it
`KeyboardInterrupt`, what it left behind is saved as a checkpoint with status
`failed`, and files and head go back to where they were; the exception goes on, with a note if
some files had to stay as they are. If that cannot be done, or is interrupted in its turn, both
errors are told, and what to rewind to. Taking back is an operation like any other: `undo` brings
the failed attempt back.
"""

from types import TracebackType
from typing import Any, Protocol

from hardsave.logs import log
from hardsave.vault.checkpoint import Checkpoint, Ref, record_of
from hardsave.vault.context import Context
from hardsave.vault.restore.rewind import Rewind, rewind
from hardsave.vault.restore.rewind_request import How
from hardsave.vault.workspaces.place import Place

_SHOWN = 5


class Line(Protocol):
    """What a guard needs of a timeline."""

    @property
    def name(self) -> str: ...
    def save_files(
        self, workspace: Any, *, name: str | None = None, status: str = ..., description: str = ...
    ) -> Checkpoint: ...
    def get(self, ref: Ref = ...) -> Checkpoint: ...


class Guard:
    """Made by `line.guard(...)`, for one `with` block."""

    def __init__(self, context: Context, line: Line, name: str | None, place: Place) -> None:
        self._context = context
        self._line = line
        self._name = name
        self._place = place
        self.before: Checkpoint | None = None
        """What was saved on entry."""
        self.failed: Checkpoint | None = None
        """What the block left behind, if it raised."""
        self.taken_back: Rewind | None = None

    def __enter__(self) -> "Guard":
        self.before = self._line.save_files(self._place.path, name=self._name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None or self.before is None:
            return
        try:
            self._take_back(error)
        except BaseException as failure:  # a second Ctrl-C, too
            failure.add_note(f"while taking back what failed with {error!r}")
            log(__name__).error(
                "the files could not be taken back to %s: %r; rewind to it", self.before.id, failure
            )
            raise failure from error

    def _take_back(self, error: BaseException) -> None:
        assert self.before is not None
        why = f"{type(error).__name__}: {error}"[:500]
        self.failed = self._line.save_files(self._place.path, status="failed", description=why)
        how = How(workspace=self._place, scope="mine", kind="guard")
        self.taken_back = rewind(self._context, self._line.name, record_of(self.before), how)
        self._say_what_stays(error)
        self._line.get()  # its head has moved
        self._context.events.tell("rewound", self.taken_back)

    def _say_what_stays(self, error: BaseException) -> None:
        """A caller that sees the exception believes that everything is as it was."""
        files = None if self.taken_back is None else self.taken_back.files
        if files is None or not files.kept:
            return
        shown = "; ".join(f"{each.path!r}: {each.reason}" for each in files.kept[:_SHOWN])
        more = f"; and {len(files.kept) - _SHOWN} more" if len(files.kept) > _SHOWN else ""
        said = f"not taken back by the guard: {shown}{more}"
        error.add_note(said)
        log(__name__).warning("%s", said)
