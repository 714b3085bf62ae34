"""What the transcripts of agents have in common: calls that wait for results, and where to cut.

Pure. Formats are private and change with every version: `Unknown` says what is not as we know it,
and then nothing is written.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from hardsave.tuples import NamedTuple

Line: TypeAlias = Mapping[str, Any]  # as it was parsed

UNSAVED = (
    "No result: the session was taken back to a moment when this call was under way or its result "
    "was not written yet. Whether it has taken effect is unknown; look at the files before you "
    "repeat it."
)


class Unknown(Exception):
    """Something in a transcript is not as we know it."""


class Open(NamedTuple):
    """A call without a result: its id, and the line that it stands in."""

    id: str
    line: Line


class Ending(NamedTuple):
    """What a copy needs to know to end by itself."""

    session: str  # its own
    title: str
    moment: str  # as agents write it
    make_id: Callable[[], str]


class Lines(Protocol):
    """How one agent writes transcripts. Each agent has a module of these functions, all pure."""

    def parsed(self, text: str, session: str) -> Line:
        """A line of this session; `Unknown` if it is anything else."""

    def directory(self, line: Line) -> str | None:
        """Where its session works, if this line says so."""

    def calls(self, line: Line) -> Iterable[str]:
        """The tools that are called here, by the ids of the calls."""

    def results(self, line: Line) -> Iterable[str]:
        """The calls whose results stand here."""

    def done(self, line: Line) -> str | None:
        """The call that had just ended when this line was written, if the agent notes that."""

    def is_past(self, line: Line) -> bool:
        """Whether nothing is waited for any more that was called before this line."""

    def is_said(self, line: Line) -> bool:
        """Whether this is part of an answer of the model."""

    def is_heard(self, line: Line) -> bool:
        """Whether this is something that the model answers to."""

    def is_talk(self, line: Line) -> bool:
        """Whether a session that has this line is worth going on with."""

    def along(self, heard: Line, later: Sequence[str], session: str) -> int:
        """How many of the lines behind a result were given to the model together with it: what the
        tool says besides, what others' hooks have to say, what its user has said meanwhile."""

    def inherited(self, later: Sequence[str], session: str, moment: str) -> int:
        """How many lines were those of another session, which this one goes on from, when it was
        asked its first prompt at this moment: they are written down with it, not before."""

    def gone_on_from(self, known: Sequence[Line], later: Sequence[str]) -> int:
        """How many of these lines a prompt has gone on from, as later lines tell: fewer than all
        if its user had taken the agent itself back, without us."""

    def given_up(self, known: Sequence[Line], waiting: Sequence[Open]) -> Iterable[str]:
        """Which of these calls its user has left behind since, by taking the agent itself back:
        none is waited for, and nobody speaks of them any more."""

    def copied(self, text: str, session: str, new: str) -> str | None:
        """A line as it stands in a copy under another id; None if it is the original's alone."""

    def ended(self, lines: Sequence[str], waiting: Sequence[Open], ending: Ending) -> list[str]:
        """The lines that a copy ends with: the truth about calls that wait, and a name."""

    def messages(self, lines: Sequence[bytes]) -> list[dict[str, Any]]:
        """What was said, for people; whatever is no talk is left out."""


class Moment(NamedTuple):
    """When a checkpoint was made, as seen from the calls."""

    pending: str | None = None
    """This one had just ended: its result was not written yet."""
    batch: tuple[str, ...] = ()
    """These had all ended."""
    upcoming: str | None = None
    """This one was about to begin."""
    is_past: bool = False
    """Whether the files were saved some time after that, by somebody who knows of no calls."""
    is_prompt: bool = False
    """Whether it was just before the model was asked something by its user."""
    is_seen: bool = False
    """Whether the conversation was read when the files were, whatever the calls were at."""
    before: frozenset[str] = frozenset()
    """These had ended before, as earlier checkpoints tell."""
    at: str = ""
    """When that was, as agents write it; empty if nobody knows."""

    @property
    def ended(self) -> frozenset[str]:
        """The calls that the files know of for certain."""
        return frozenset(self.batch) | ({self.pending} if self.pending is not None else set())


class Cut(NamedTuple):
    """The conversation of a checkpoint."""

    lines: list[str]
    waiting: list[Open]
    """Calls that never got a result."""
    later: int = 0
    """Calls that it tells of, and that the files may not know of: they ended later."""


class Pairing:
    """Calls and results, line by line."""

    def __init__(self, form: Lines) -> None:
        self._form = form
        self.waiting: dict[str, Open] = {}
        self.over: set[str] = set()

    def take(self, line: Line) -> None:
        if self._form.is_past(line):
            self.over |= self.waiting.keys()
            self.waiting.clear()
        for id in self._form.calls(line):
            self._call(id, line)
        for id in self._form.results(line):
            self._result(id)

    def _call(self, id: str, line: Line) -> None:
        if id in self.waiting or id in self.over:
            raise Unknown(f"the call {id!r} stands there twice")
        self.waiting[id] = Open(id, line)

    def _result(self, id: str) -> None:
        if self.waiting.pop(id, None) is None:
            raise Unknown(f"there is a result for {id!r}, which no call waits for")
        self.over.add(id)

    def forget(self, ids: Iterable[str]) -> None:
        for id in ids:
            del self.waiting[id]
            self.over.add(id)


def cut(
    form: Lines, lines: Sequence[str], later: Iterable[str], session: str, moment: Moment
) -> Cut:
    """The lines up to where every call has its result, and the calls that never got one.

    Before a tool runs, its call is written already: the whole answer that it stands in is left
    out, so that the model is asked again. After a tool has run its result is not written yet: it
    is among the `later` lines, behind all calls of the same answer. A hook may be so quick that not
    even the call was written, or, when all have run, not all results. If a result never came, its
    call is open. A call that was about to begin, some time ago, is taken for one that is under way.
    If nobody can tell how far a call had come when the files were saved, it is open, too: what
    came of it later the files may not show. One that was left behind before is nobody's any more.
    What the model was given together with the last result belongs to it.
    """
    rest = list(later)
    known = [form.parsed(text, session) for text in lines]
    if moment.is_prompt and moment.at and not any(map(form.is_talk, known)):
        count = form.inherited(rest, session, moment.at)
        lines, rest = [*lines, *rest[:count]], rest[count:]
        known = [form.parsed(text, session) for text in lines]
    if moment.is_prompt:
        known = known[: form.gone_on_from(known, rest)]
        lines = lines[: len(known)]
    pairing = Pairing(form)
    for line in known:
        pairing.take(line)
    left = form.given_up(known, list(pairing.waiting.values()))
    pairing.forget(frozenset(left) - moment.ended)
    if moment.is_seen:
        return Cut(list(lines), list(pairing.waiting.values()))
    unwritten = moment.ended - pairing.over - pairing.waiting.keys()
    awaited = _to_come(form, rest, session, unwritten)
    if not pairing.waiting and not awaited:
        heard = _unanswered(form, known) if moment.ended else None
        return Cut([*lines, *rest[: form.along(heard, rest, session) if heard else 0]], [])
    if moment.upcoming is not None and not moment.is_past:
        start = _start_of_answer(form, _up_to_call(known, pairing))
        if not any(_has_ended(form, line, pairing) for line in known[start:]):
            return Cut(list(lines[:start]), [])
    written = [*lines, *_rest_of_answer(form, rest, session, awaited, pairing)]
    return _with_results(form, written, rest[len(written) - len(lines) :], session, moment, pairing)


def _to_come(
    form: Lines, later: Sequence[str], session: str, ids: frozenset[str]
) -> frozenset[str]:
    """Which of these calls are written down only later. Some never are: of a script that is one
    call itself, of a subagent. Other lines may name them all the same."""
    found = frozenset[str]()
    for text in later:
        if any(id in text for id in ids):
            line = form.parsed(text, session)
            found |= ids.intersection([*form.calls(line), *form.results(line)])
    return found


def _rest_of_answer(
    form: Lines, later: Sequence[str], session: str, awaited: frozenset[str], pairing: Pairing
) -> Iterator[str]:
    """The answer that calls stand in which were not written yet, up to its end."""
    for text in later if awaited else ():
        line = form.parsed(text, session)
        if not form.is_said(line) and awaited <= pairing.over | pairing.waiting.keys():
            return
        pairing.take(line)
        yield text


def _with_results(
    form: Lines,
    lines: list[str],
    later: Sequence[str],
    session: str,
    moment: Moment,
    pairing: Pairing,
) -> Cut:
    """On to where nothing waits any more. If that never came, as it was, with the results of those
    that had ended by then."""
    kept, others = list(lines), 0
    known = Cut(lines, list(pairing.waiting.values()))
    ended = moment.ended | moment.before | pairing.over  # some were left running, and end later
    for at, text in enumerate(later, 1):
        line = form.parsed(text, session)
        if form.is_past(line):
            break
        pairing.take(line)
        kept.append(text)
        others += form.done(line) not in (None, *ended)
        if not pairing.waiting:
            rest = later[at:]
            # What came with a result that is later than the files may be about what they lack.
            count = 0 if moment.is_past and others else form.along(line, rest, session)
            return Cut([*kept, *rest[:count]], [], others)
        if not others and not ended.isdisjoint(form.results(line)):
            known = Cut(list(kept), list(pairing.waiting.values()))
    return known


def _up_to_call(known: Sequence[Line], pairing: Pairing) -> Sequence[Line]:
    """The lines up to the first call that waits: behind it may stand results of others of its
    answer, because some tools wait for each other."""
    first = next((each.line for each in pairing.waiting.values()), None)
    return known[: next((at for at, line in enumerate(known, 1) if line is first), len(known))]


def _has_ended(form: Lines, line: Line, pairing: Pairing) -> bool:
    """Whether a call of an answer had ended when this line of it was written: its result tells so,
    if nothing else. One that was left running and has its result long since is of another."""
    done = form.done(line)
    return (done is not None and done not in pairing.over) or any(form.results(line))


def _unanswered(form: Lines, known: Sequence[Line]) -> Line | None:
    """The last that was heard, if nothing was said since."""
    talk = (line for line in reversed(known) if form.is_heard(line) or form.is_said(line))
    last = next(talk, None)
    return last if last is not None and form.is_heard(last) else None


def _start_of_answer(form: Lines, known: Sequence[Line]) -> int:
    """Where the last answer begins: at the first that was said after the last that was heard. What
    has ended before that is none of its calls."""
    heard = next(at for at in range(len(known), -1, -1) if at == 0 or form.is_heard(known[at - 1]))
    rest = range(heard, len(known))
    said = (at for at in rest if form.is_said(known[at]) and form.done(known[at]) is None)
    return next(said, len(known))


def has_said(messages: Iterable[Mapping[str, Any]], answer: str) -> bool:
    """Whether the model has said this, be it in several parts."""
    said: list[str] = []
    for content in (each["content"] for each in messages if each["role"] == "assistant"):
        parts = [{"text": content}] if isinstance(content, str) else content or ()
        said += [str(part.get("text", "")) for part in parts if isinstance(part, Mapping)]
    return " ".join(answer.split()) in " ".join(" ".join(said).split())


def replaced(text: str, old: str, new: str) -> Iterator[str]:
    """Each way to replace one occurrence, from the last to the first."""
    at = text.rfind(old)
    while at >= 0:
        yield text[:at] + new + text[at + len(old) :]
        at = text.rfind(old, 0, at)
