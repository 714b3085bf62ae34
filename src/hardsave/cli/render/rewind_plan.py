"""What a rewind takes back, and how that is shown: before it happens, and afterwards."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hardsave import Checkpoint, Rewind, wording
from hardsave.cli.render import phrases
from hardsave.tuples import NamedTuple
from hardsave.values import messages

if TYPE_CHECKING:
    from rich.text import Text

    from hardsave.vault.restore.not_saved import Checkout
    from hardsave.vault.restore.path_choice import Kept
    from hardsave.vault.restore.plan import FileChanges

NAMED = 10  # files that were not saved
_CALLS = 4  # that reached outside

What = Literal["all", "state", "files"]
Scope = Literal["mine", "everyone"]


class RewindOptions(NamedTuple):
    """What is to go back, and how."""

    what: What = "all"
    paths: tuple[str, ...] | None = None
    scope: Scope | None = None
    into: str | None = None
    git: bool = False
    tasks: bool = False
    this_timeline: bool = False  # the timeline is not that of the target

    def asked(self) -> dict[str, Any]:
        """The same in the words of the library."""
        asked = self._asdict()
        asked["workspace"] = asked.pop("into")
        del asked["this_timeline"]
        return asked

    def moves_head(self, plan: Rewind) -> bool:
        may = self.what != "files" and self.paths is None
        return may and plan.before != plan.target

    def does_something(self, plan: Rewind) -> bool:
        return self.moves_head(plan) or bool(plan.files) or bool(plan.tasks)


def failed(plan: "FileChanges | None", done: "FileChanges | None") -> "list[Kept]":
    """What was asked for and is not back, and what the plan did not say would be kept."""
    if done is None:
        return []
    agreed = set() if plan is None else {each.path for each in plan.kept}
    agreed -= {each.path for each in done.missing}
    return [each for each in done.kept if each.path not in agreed]


def plan_lines(plan: Rewind, options: RewindOptions, now: datetime) -> "Iterator[Text]":
    """What would happen."""
    from hardsave.cli.render import draw

    name = (f" {wording.shown(plan.target.name)}", "name") if plan.target.name else ""
    age = (f"  {wording.ago(plan.target.created_at, now)}", "quiet")
    line = draw.timeline(plan.timeline)
    yield draw.line("rewind ", line, " to ", draw.ref(plan.target), name, age)
    if options.moves_head(plan):
        yield draw.line(("  state  ", "quiet"), state_change(plan))
    if plan.files is not None:
        counts = str(plan.files) if plan.files or plan.files.kept else "as they are"
        where = wording.shown(plan.files.workspace)
        yield draw.line(("  files  ", "quiet"), counts, (f"  in {where}", "quiet"))
        yield from draw.file_changes(plan.files)
        yield from what_stays_behind(plan.files)
    if options.tasks:
        said = wording.count(len(plan.tasks), "task") if plan.tasks else "none"
        yield draw.line(("  tasks  ", "quiet"), f"{said} rolled back")
        yield from draw.rolled_back(plan.tasks)


def state_change(plan: Rewind) -> "Text":
    """Where the head goes, and how many messages the conversation then has."""
    from hardsave.cli.render import draw

    before, after = (_messages(one) for one in (plan.before, plan.target))
    said = ""
    if before is not None and after is not None:
        said = f"  {before:,} → {wording.count(after, 'message')}"
    start = draw.ref(plan.before) if plan.before is not None else "nothing"
    return draw.line(start, " → ", draw.ref(plan.target), said)


def _messages(one: Checkpoint | None) -> int | None:
    found = None if one is None else messages.of(one.state)
    return None if found is None else len(found[1])


def done_lines(done: Rewind, options: RewindOptions) -> "Iterator[Text]":
    """What has happened."""
    from hardsave.cli.render import draw

    where = draw.ref(done.target)
    if options.moves_head(done):
        yield draw.line("rewound ", draw.timeline(done.timeline), " to ", where)
    if done.files is not None:
        counts = str(done.files) if done.files or done.files.kept else "as they were"
        yield draw.line("files as of ", where, f": {counts}")
        yield from draw.file_changes(done.files, limit=10)
        yield from what_stays_behind(done.files, indent="")
    if done.tasks:
        yield draw.line(f"rolled back {wording.count(len(done.tasks), 'task')}")
        yield from draw.rolled_back(done.tasks, limit=10)


def what_stays_behind(
    found: "FileChanges", *, indent: str = "    ", limit: int = NAMED
) -> "Iterator[Text]":
    """What was not saved and does not come back, and the branch that git was on."""
    from hardsave.cli.render import draw

    for each in found.not_saved[:limit]:
        said = "does not come back" if each.is_gone else "stays as it is now"
        path = wording.shown(each.path)
        yield draw.line((f"{indent}! ", "warning"), f"{path} was not saved and {said}")
    if len(found.not_saved) > limit:
        more = f"{len(found.not_saved) - limit:,} more"
        yield draw.line((f"{indent}! ", "warning"), f"{more} were not saved either")
    if found.checkout is not None:
        yield draw.line((f"{indent}! ", "warning"), _branches(found.checkout))


def reached_outside(calls: Sequence[tuple[str, int]]) -> "Iterator[Text]":
    """What calls have done since beyond the files of this machine, and how often."""
    from hardsave.cli.render import draw

    if not calls:
        return
    some = ", ".join(
        f"{wording.shown(phrase)}{f' ×{number}' if number > 1 else ''}"
        for phrase, number in calls[:_CALLS]
    )
    more = f" and {len(calls) - _CALLS} more" if len(calls) > _CALLS else ""
    times = wording.count(sum(number for _, number in calls), "call")
    said = f"{times} since reached outside, still done: {some}{more}"
    yield draw.line(("! ", "warning"), said)


def _branches(found: "Checkout") -> str:
    then, now = (phrases.branch(each) for each in (found.then, found.now))
    said = f"git was on {then}; it is on {now} now"
    return f"{said}: --git brings it back" if found.can_return else said


def patches(plan: Rewind) -> "Iterator[Text]":
    """What each file would lose and gain: from what lies there now to the checkpoint."""
    from hardsave.cli.render import changed_files, draw

    assert plan.files is not None
    root = Path(plan.files.workspace)
    for path in (*plan.files.created, *plan.files.changed, *plan.files.removed):
        yield from draw.patch(
            changed_files.patch_back_to(plan.target.files, root, path.rstrip("/"))
        )
