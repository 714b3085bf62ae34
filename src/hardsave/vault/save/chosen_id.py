"""A save under an id that a checkpoint has already: the same request once more, or a mistake."""

from hardsave.objects.growth import Growth
from hardsave.objects.hashing import Hash
from hardsave.objects.records import CheckpointRecord
from hardsave.stores.base import CheckpointGone
from hardsave.stores.requests import OtherRequest
from hardsave.tasks import current
from hardsave.timeline.refs import to_text
from hardsave.vault.context import Context
from hardsave.vault.save.request import SaveRequest


def check_same(
    context: Context, timeline: str, request: SaveRequest, found: CheckpointRecord
) -> None:
    """`Conflict` if what has the id is on another timeline, or has another state than the request.
    What it says of itself, and its files, may have changed since. Only for an id that was found:
    the state is built once more."""
    if found.is_hidden:
        raise OtherRequest(
            f"checkpoint {to_text(found.id)} was saved before, and deleted; undo brings it back, "
            "and what is new is saved under another id"
        )
    differs = ""
    if found.timeline != timeline:
        differs = "another timeline"
    elif not _is_of_this_task(context, found) and _root(context, request, found) != found.root:
        differs = "another state"
    if differs:
        raise OtherRequest(
            f"id {to_text(found.id)} is that of {found.timeline}:{found.seq}, and this save on "
            f"timeline {timeline!r} is of {differs}; give each save its own id"
        )


def _is_of_this_task(context: Context, found: CheckpointRecord) -> bool:
    """Whether an earlier attempt at the task under way has made it: what a later one comes to may
    differ, and is made once all the same (see `Attempt.once`)."""
    work = current.work(context.store, context.user)
    standing = None if work is None else work.standing()
    return standing is not None and (standing.task, standing.generation) == (
        found.task,
        found.generation,
    )


def _root(context: Context, request: SaveRequest, found: CheckpointRecord) -> Hash:
    """The state that the request would have saved; the found one where that cannot be told."""
    if request.form == "copied":
        return Hash(request.state.root)
    if request.form == "whole":
        from hardsave.objects.shadow import Shadow  # few saves come twice

        return Shadow(context.objects.builder).save(request.state)[0]
    if request.form != "grown":
        return found.root  # parts can be read only once, and files come with the head's state
    try:
        root = None if found.parent is None else context.history.at(found.parent).root
    except CheckpointGone:
        return found.root  # its parent was dropped
    growth = Growth(context.objects.builder, context.objects.verbatim, root)
    return growth.append(dict(request.state))[0]
