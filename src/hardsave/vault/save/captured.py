"""Files that were captured earlier than they are committed.

An agent's files and its state change at different moments: a tool has written, and the next one is
already at work when the state is saved. What is captured right after the tool, and committed with
the state that belongs to it, is not torn.

Contract. All of a capture is stored when it returns, under a pin that ends with the save that takes
it, with `close`, or an hour later. After that it may be collected; a save that comes too late is
refused, and never takes the files as they are by then.
"""

from types import TracebackType
from typing import TYPE_CHECKING

from hardsave.errors import Misuse
from hardsave.stores.workspaces import WorkspaceMove
from hardsave.vault.context import Context
from hardsave.vault.restore.settling import settled
from hardsave.vault.save.pin import Pin
from hardsave.vault.save.request import CaptureGone
from hardsave.vault.workspaces.place import Place

if TYPE_CHECKING:
    from hardsave.vault.save.capturing import Taken


class CapturedFiles:
    """The files of a workspace as they were at one moment: `line.save(state, workspace=captured)`
    commits them. Made by `workspace.capture()`."""

    def __init__(self, context: Context, taken: "Taken", pin: Pin) -> None:
        self._context = context
        self._taken = taken
        self._pin = pin

    def close(self) -> None:
        """They are not needed any more. A save does this by itself."""
        self._pin.give_back()

    def __enter__(self) -> "CapturedFiles":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<captured files {self._taken.snapshot.hex()}>"


class Held:
    """In the place of a capture that is made with its save: see `capturing.Taking`."""

    def __init__(self, captured: CapturedFiles, context: Context) -> None:
        ours = captured._context
        if ours.store is not context.store or ours.user != context.user:
            raise Misuse("these files were captured by another vault or user; capture them here")
        self._captured = captured

    def take(self, *, afresh: bool = False) -> "Taken":
        """`afresh`: objects were gone that the save relied on, perhaps these."""
        taken, context = self._captured._taken, self._captured._context
        is_doubtful = afresh or not self._captured._pin.is_held
        if is_doubtful and context.store.missing(context.user, taken.requires):
            raise CaptureGone(
                "the files that were captured are not stored any more: they have waited for their "
                "save too long; capture them again"
            )
        return taken._replace(where=self._where(taken.where))

    def _where(self, where: WorkspaceMove) -> WorkspaceMove:
        """A workspace that was new when it was captured may be known by now, by a capture after
        this one that was committed before it. It is the same as long as no host took it over."""
        context = self._captured._context
        if where.expect is None:
            standing = context.store.workspace(context.user, where.become.id)
            if standing == where.become:
                return where._replace(expect=standing.epoch)
        return where

    def done(self) -> None:
        self._captured.close()


def capture(context: Context, place: Place) -> CapturedFiles:
    """The files as they are now, all of them stored."""
    pin = Pin(context, "capture")
    with settled(context, place) as files:
        taken = files.take()
        pin.put(taken.objects)
        if context.store.missing(context.user, taken.requires):  # that the cache took for stored
            taken = files.take(afresh=True)
            pin.put(taken.objects)
        files.done()
    stored = taken.requires | taken.objects.keys()
    return CapturedFiles(context, taken._replace(objects={}, requires=stored), pin)
