"""What is shown of a moment: what goes back, compared with the disk, and what stays done."""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from rich.text import Text

from hardsave import Rewind, wording
from hardsave.cli.picker.frame import Facts
from hardsave.cli.picker.options import Since
from hardsave.cli.picker.state import What
from hardsave.cli.render import changed_files, draw, refs, rewind_plan
from hardsave.cli.render.changed_files import FileStat
from hardsave.errors import HardsaveError
from hardsave.wording import in_our_words

STATS = 40  # files whose lines are counted
_KEPT = 3  # paths that stay as they are
_NAMED = 4  # steps and sessions
_DIFF_LINES = 20_000

Planner = Callable[[str, What], Rewind]
"""What going back to a checkpoint would do, as the question before it says. Reads the disk."""


def facts(plan: Planner, id: str, what: What) -> Facts:
    """What would happen; or why it cannot."""
    try:
        planned = plan(id, what)
    except (HardsaveError, OSError) as error:
        return Facts((_warning(in_our_words(str(error))),))
    files = planned.files
    found = () if files is None else _changed(planned)
    stats = tuple(islice(_stats(planned), STATS))
    return Facts(tuple(_lines(planned, what)), stats, max(0, len(found) - len(stats)))


def diff(plan: Planner, id: str, what: What) -> list[Text]:
    """What each file would lose and gain."""
    try:
        planned = plan(id, what)
        if planned.files is None:
            return []
        return list(islice(rewind_plan.patches(planned), _DIFF_LINES))
    except (HardsaveError, OSError) as error:
        return [_warning(in_our_words(str(error)))]


def notes(found: Since, shown_name: Callable[[str], str], what: What) -> Iterator[Text]:
    """What has happened since that does not go back, and whose work goes back too."""
    yield from rewind_plan.reached_outside(found.outside)
    if found.others and what != "state":
        names = ", ".join(wording.shown(shown_name(name)) for name in found.others[:_NAMED])
        more = f" and {len(found.others) - _NAMED} more" if len(found.others) > _NAMED else ""
        yield _warning(f"files of other sessions since go back too: {names}{more}")


def _lines(planned: Rewind, what: What) -> Iterator[Text]:
    files = planned.files
    if what != "files" and planned.before != planned.target:
        yield draw.line(("state  ", "quiet"), rewind_plan.state_change(planned))
    if files is not None:
        counts = str(files) if files or files.kept else "as they are"
        yield draw.line(("files  ", "quiet"), counts)
        yield from rewind_plan.what_stays_behind(files, indent="", limit=_KEPT)
        for each in files.kept[:_KEPT]:
            yield _warning(f"{each.path} is left as it is: {refs.in_text(each.reason)}")
    steps = [step for task in planned.tasks for step in task.effects]
    if steps:
        named = ", ".join(map(wording.shown, steps[:_NAMED]))
        yield _warning(f"{wording.count(len(steps), 'step')} of tasks since, still done: {named}")


def _changed(planned: Rewind) -> list[tuple[str, str]]:
    """Paths that would change, by path, with their signs."""
    files = planned.files
    if files is None:
        return []
    some = {"+": files.created, "~": files.changed, "-": files.removed}
    return sorted(((sign, path) for sign in some for path in some[sign]), key=lambda each: each[1])


def _stats(planned: Rewind) -> Iterator[FileStat]:
    if planned.files is None:
        return
    from hardsave.vault.history import file_sides  # with all that files need

    now = file_sides.disk_side(Path(planned.files.workspace))
    then = file_sides.checkpoint_side(planned.target.files)
    for sign, path in _changed(planned):
        yield changed_files.file_stat(sign, path.rstrip("/"), now, then)


def _warning(text: str) -> Text:
    return Text.assemble(("! ", "warning"), wording.shown(text))
