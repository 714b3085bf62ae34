"""From checkpoints to the story that they tell. Pure.

A step holds all checkpoints of a call: from before it, of files while it ran, and from after it. A
checkpoint that adds nothing to the one before it is no step of its own. One that a user named or
saved by hand always is, and nothing is added to it. What was saved again before an operation of the
same kind to the same checkpoint is one step; if files were different, these steps are numbered.

Prompts and steps belong together by parents, not by numbers: what is saved after a rewind belongs
to the prompt that was gone back to. What a head is not built on was *left behind*.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hardsave.timeline.step_summary import SAFETY
from hardsave.timeline.story import Head, Prompt, Row, Session, Step, Story


def tell(
    rows: Iterable[Row],
    heads: Mapping[str, Head] | None = None,
    titles: Mapping[str, str] | None = None,
    agents: Mapping[str, str] | None = None,
) -> Story:
    """The story of checkpoints, which come in any order. With `heads`, it is told what was left
    behind; a title that is not given is the text of the first prompt."""
    ordered = sorted(rows, key=lambda row: row.number)
    folding = _Folding()
    for row in ordered:
        folding.add(row)
    left = _left_behind(ordered, folding.parents, heads or {})
    at = _standing(ordered, heads or {})
    prompts: dict[str, list[Prompt]] = {}
    for each in folding.prompts:
        if each.before is not None or each.steps:
            prompts.setdefault(each.timeline, []).append(each.told(folding.ends | at, at, left))
    sessions = []
    for name, found in prompts.items():
        first = next((each.text for each in found if each.text), "")
        newest_first = tuple(sorted(found, key=lambda prompt: -prompt.number))
        title, agent = (titles or {}).get(name) or first, (agents or {}).get(name, "")
        sessions.append(Session(name, title, agent, newest_first))
    return Story(tuple(sorted(sessions, key=lambda each: -each.prompts[0].number)))


def _standing(rows: Sequence[Row], heads: Mapping[str, Head]) -> set[str]:
    """Where timelines stand, on checkpoints of their own; or, if they have none, on others."""
    own = {row.id: row.timeline for row in rows}
    have_own = {*own.values()}
    return {
        head.id for name, head in heads.items() if own.get(head.id) == name or name not in have_own
    }


class _Prompt:
    """A prompt that is still being told."""

    def __init__(self, timeline: str, text: str, before: Row | None, asked: Row | None) -> None:
        self.timeline, self.text = timeline, text
        self.before, self.asked = before, asked
        self.is_awaited = False  # a hook has told it, and no checkpoint has it yet
        self.steps: list[list[Row]] = []

    def told(self, ends: set[str], heads: set[str], left: set[str]) -> Prompt:
        parts = [part for rows in self.steps for part in _cut(rows, ends)]
        steps = _told_apart(_shown([_step(part, heads, left) for part in parts], self.before))
        newest_first = sorted(steps, key=lambda step: -step.newest.number)
        first = self.asked or self.steps[0][0]
        return Prompt(
            self.timeline,
            self.text,
            self.before,
            first.created_at,
            tuple(newest_first),
            is_left=all(step.is_left for step in steps) if steps else first.id in left,
            is_head=self.before is first and first.id in heads,
        )


class _Branch:
    """Checkpoints of one timeline of which each is the parent of the next."""

    def __init__(self, prompt: _Prompt) -> None:
        self.prompt = prompt
        self.tip = ""
        self.last: list[Row] | None = None  # the step of the tip, if it is one
        self.calls: dict[str, list[Row]] = {}  # the step of each call


class _Folding:
    """Puts one checkpoint after the other into its step and its prompt."""

    def __init__(self) -> None:
        self.prompts: list[_Prompt] = []
        self.ends: set[str] = set()  # checkpoints that something else was saved on top of as well
        self.parents: dict[str, str] = {}  # as far as they were read
        self._branches: dict[str, _Branch] = {}  # by checkpoint
        self._prompts: dict[str, _Prompt] = {}
        self._rows: dict[str, Row] = {}
        self._last: dict[str, str] = {}  # by timeline

    def add(self, row: Row) -> None:
        branch = self._branch_of(row)
        self._rows[row.id], self._branches[row.id] = row, branch
        if not self._is_prompt(row, branch):
            self._add_step(row, branch)
        self._prompts[row.id] = branch.prompt
        branch.tip = self._last[row.timeline] = row.id

    def _branch_of(self, row: Row) -> _Branch:
        """One whose parent was dropped goes on from the one before it."""
        parent = row.parent if row.parent in self._rows else self._last.get(row.timeline)
        if parent is None:
            return _Branch(self._begin(row.timeline))
        self.parents[row.id] = parent
        branch, prompt = self._branches[parent], self._prompts[parent]
        is_same = prompt.timeline == row.timeline
        if is_same and branch.tip == parent:
            return branch
        self.ends.add(parent)
        return _Branch(prompt if is_same else self._begin(row.timeline))

    def _begin(
        self, timeline: str, text: str = "", before: Row | None = None, asked: Row | None = None
    ) -> _Prompt:
        self.prompts.append(_Prompt(timeline, text, before, asked))
        return self.prompts[-1]

    def _is_prompt(self, row: Row, branch: _Branch) -> bool:
        """Begin a prompt, if a checkpoint is the first to have it; whether it is nothing else."""
        text, phase = row.told.prompt, row.told.phase
        if not text or row.is_by_hand:
            return False
        if branch.prompt.is_awaited and phase != "prompt" and _is_same(text, branch.prompt.text):
            branch.prompt.is_awaited = False
            return False
        is_alone = phase == "prompt" or (_is_same(row.said, text) and not row.told.call)
        parent = self._rows.get(self.parents.get(row.id, ""))
        before = row if is_alone or parent is None else parent
        branch.prompt = self._begin(row.timeline, text, before, row)
        branch.prompt.is_awaited = phase == "prompt"
        branch.last, branch.calls = None, {}
        return branch.prompt.before is row

    def _add_step(self, row: Row, branch: _Branch) -> None:
        step = None if row.is_by_hand else _step_of(row, branch) or _saved_before(row, branch)
        if step is None:
            step = []
            branch.prompt.steps.append(step)
        step.append(row)
        branch.last = step
        if row.told.call_id and not row.is_by_hand:
            branch.calls[row.told.call_id] = step


def _step_of(row: Row, branch: _Branch) -> list[Row] | None:
    """The step that a checkpoint belongs to, if it is there already."""
    told, last = row.told, branch.last
    if told.call_id in branch.calls:
        return branch.calls[told.call_id]
    if last is None or last[-1].is_by_hand:
        return None
    if told.call_id:  # files that were saved while it ran, before it was known
        is_open = all(each.told.phase == "during" and not each.told.call_id for each in last)
        return last if is_open else None
    if told.phase == "after":  # several calls that have ended together
        return last if any(each.told.call for each in last) else None
    is_end = told.phase == "end" and not row.is_counted
    return last if is_end or not (row.has_news or _tells_more(row, last[-1])) else None


def _tells_more(row: Row, last: Row) -> bool:
    """Whether a program has saved another state, or says something else of it. What a program saves
    need not be messages and files; hooks and the daemon save for what is new in these alone."""
    is_other = row.state != last.state or row.description not in ("", last.description)
    return row.told.phase == "" and is_other


def _saved_before(row: Row, branch: _Branch) -> list[Row] | None:
    """The step that holds the same files, saved for the same operation: an undo after a redo has
    nothing else to save than the one before it."""
    for step in branch.prompt.steps if row.is_safety else ():
        last = step[-1]
        if last.is_safety and (last.description, last.capture) == (row.description, row.capture):
            return step
    return None


def _is_same(one: str, other: str) -> bool:
    """Whether two texts are the same, each of which may be cut."""
    first, second = (" ".join(text.split()).rstrip("…. ") for text in (one, other))
    shorter, longer = sorted((first, second), key=len)
    return bool(shorter) and longer.startswith(shorter)


def _cut(rows: Sequence[Row], ends: set[str]) -> Iterator[list[Row]]:
    """A step as the parts that can be told apart: where a timeline stands or branches off, the rest
    is a step of its own."""
    part: list[Row] = []
    for row in rows:
        part.append(row)
        if row.id in ends:
            yield part
            part = []
    if part:
        yield part


def _step(rows: Sequence[Row], heads: set[str], left: set[str]) -> Step:
    newest = rows[-1]
    return Step(tuple(rows), _text_of(rows), newest.id in left, newest.id in heads)


def _shown(steps: list[Step], before: Row | None) -> list[Step]:
    """Without what adds nothing and was saved for an operation, or tells nothing, as the first that
    is saved after a rewind; where something else is left."""
    found = [step for step in steps if step.is_head or _tells_anything(step)]
    return found if found or before is not None else steps


def _tells_anything(step: Step) -> bool:
    is_told = (step.is_by_hand or bool(step.text)) and not step.rows[0].is_safety
    return is_told or any(row.has_news for row in step.rows)


def _told_apart(steps: Iterable[Step]) -> list[Step]:
    """Steps that hold different files, with texts that differ."""
    found: list[Step] = []
    count = Counter[str]()
    for step in steps:
        if step.rows[0].is_safety:
            count[step.text] += 1
            if (number := count[step.text]) > 1:
                step = step._replace(text=f"{step.text} ({number})")
        found.append(step)
    return found


def _text_of(rows: Sequence[Row]) -> str:
    """What was done: the call; else what was said; else what its checkpoint says of itself."""
    newest = rows[-1]
    if newest.is_by_hand:
        return newest.description or newest.said or _changed(newest)
    for row in rows:
        if row.told.call and row.told.call_id:
            return row.told.call
    return next((text for text in map(_own_text, rows) if text), "")


def _own_text(row: Row) -> str:
    """Hooks say in a description what kind of call they were made for: what was said tells more."""
    said = row.said if row.new_messages or row.told.phase == "answer" else ""
    words = (row.description, said) if row.told.phase in ("", SAFETY) else (said, row.description)
    began = "the beginning" if row.parent is None else ""
    return row.told.call or words[0] or words[1] or _changed(row) or began


def _changed(row: Row) -> str:
    return ", ".join(row.paths)


def _left_behind(
    rows: Sequence[Row], parents: Mapping[str, str], heads: Mapping[str, Head]
) -> set[str]:
    """Checkpoints that the head of their timeline is not built on. If the head is none of these
    checkpoints and older than all, that is each of them; else it is not known."""
    known = {row.id for row in rows}
    oldest: dict[str, int] = {}
    for row in rows:
        oldest.setdefault(row.timeline, row.number)
    built_on: dict[str, set[str]] = {}
    for name, head in heads.items():
        at: str | None = head.id
        found = built_on.setdefault(name, set())
        while at in known and at not in found:
            found.add(at)
            at = parents.get(at)
        if not found and head.number > oldest.get(name, 0):
            del built_on[name]
    return {
        row.id for row in rows if row.timeline in built_on and row.id not in built_on[row.timeline]
    }
