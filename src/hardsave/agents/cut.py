"""Where the conversation of a checkpoint ends: calls, their results, and the lines to keep. Pure.

A hook calls us in the midst of a conversation, and the transcript lags behind: what belongs to the
checkpoint may have been written a moment later. So a cut looks at the lines that were there, and at
those that came since, up to where it is certain.
"""

from collections.abc import Iterable, Iterator, Sequence

from hardsave.agents.spec import Line, Lines, Open, Unknown
from hardsave.tuples import NamedTuple


class Moment(NamedTuple):
    """When a checkpoint was made, as seen from the calls."""

    pending: str | None = None
    """This one had just ended: its result was not written yet."""
    batch: tuple[str, ...] = ()
    """These had all ended."""
    upcoming: str | None = None
    """This one was about to begin."""
    is_past: bool = False
    """Whether the files were saved some time after that, by a process that knows of no calls."""
    is_prompt: bool = False
    """Whether it was just before the model was asked something by its user."""
    is_seen: bool = False
    """Whether the conversation was read when the files were, in the midst of calls or not."""
    before: frozenset[str] = frozenset()
    """These had ended before, as earlier checkpoints tell."""
    at: str = ""
    """When that was, as agents write it; empty if it is not known."""

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
        if self._form.ends_calls(line):
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

    `lines` were there when the checkpoint was made, `later` ones came since: of these, lines behind
    the cut may be anything.

    Before a tool runs, its call is written already: the whole answer that it stands in is left
    out, so that the model is asked again. After a tool has run its result is not written yet: it
    is among the `later` lines, behind all calls of the same answer. A hook may be so quick that not
    even the call was written, or, when all have run, not all results. If a result never came, its
    call is open. A call that was about to begin, some time ago, is taken for one that is under way.
    If nothing tells how far a call had come when the files were saved, it is open, too: what came
    of it later the files may not show. One that was left behind before is not looked at any more.
    What the model was given together with the last result belongs to it.
    """
    return _Cutting(form, lines, later, session, moment).done()


class _Cutting:
    """One conversation, while it is decided how much of it a checkpoint has."""

    def __init__(
        self,
        form: Lines,
        lines: Sequence[str],
        later: Iterable[str],
        session: str,
        moment: Moment,
    ) -> None:
        self._form, self._session, self._moment = form, session, moment
        self._texts, self._later = list(lines), list(later)
        self._known = list(map(self._parsed, self._texts))
        self._pairing = Pairing(form)

    def done(self) -> Cut:
        if self._moment.is_prompt:
            self._end_before_prompt()
        self._pair()
        if self._moment.is_seen:
            return self._as_it_is()
        awaited = self._awaited()
        if not self._pairing.waiting and not awaited:
            return self._with_attached()
        if self._moment.upcoming is not None and not self._moment.is_past:
            start = self._start_of_answer()
            if not any(map(self._has_ended, self._known[start:])):
                return Cut(self._texts[:start], [])
        self._take_rest_of_answer(awaited)
        return self._with_results()

    def _parsed(self, text: str) -> Line:
        return self._form.parsed(text, self._session)

    def _as_it_is(self) -> Cut:
        return Cut(list(self._texts), list(self._pairing.waiting.values()))

    def _end_before_prompt(self) -> None:
        """What a session has from another is written down with its first prompt, and what its user
        has given up is known by where that prompt goes on from."""
        moment = self._moment
        if moment.at and not any(map(self._form.is_talk, self._known)):
            count = self._form.inherited(self._later, self._session, moment.at)
            self._known += map(self._parsed, self._later[:count])
            self._texts += self._later[:count]
            del self._later[:count]
        count = self._form.continued_from(self._known, self._later)
        del self._known[count:], self._texts[count:]

    def _pair(self) -> None:
        for line in self._known:
            self._pairing.take(line)
        left = self._form.abandoned(self._known, list(self._pairing.waiting.values()))
        self._pairing.forget(frozenset(left) - self._moment.ended)

    def _awaited(self) -> frozenset[str]:
        """Which calls that had ended are written down only later. Some never are: of a script that
        is one call itself, of a subagent. Other lines may name them all the same."""
        ids = self._moment.ended - self._pairing.over - self._pairing.waiting.keys()
        found = frozenset[str]()
        for text in self._later:
            if any(id in text for id in ids):
                line = self._parsed(text)
                found |= ids.intersection([*self._form.calls(line), *self._form.results(line)])
        return found

    def _with_attached(self) -> Cut:
        """All, and what the model was given together with the last result."""
        heard = self._unanswered() if self._moment.ended else None
        count = 0 if heard is None else self._form.attached(heard, self._readable(0))
        return Cut([*self._texts, *self._later[:count]], [])

    def _readable(self, start: int) -> Iterator[Line]:
        """The later lines from there on, up to one that is not as we know it: behind a cut, that is
        of no concern."""
        for text in self._later[start:]:
            try:
                yield self._parsed(text)
            except Unknown:
                return

    def _unanswered(self) -> Line | None:
        """The last that was heard, if nothing was said since."""
        is_to_model, is_from_model = self._form.is_to_model, self._form.is_from_model
        talk = (line for line in reversed(self._known) if is_to_model(line) or is_from_model(line))
        last = next(talk, None)
        return last if last is not None and is_to_model(last) else None

    def _start_of_answer(self) -> int:
        """Where the answer begins that the first waiting call stands in: at the first that was said
        after the last that was heard before it, or after what is past: a summary that the model has
        made of all before is none of it. Behind the call may stand results of others of the
        same answer, because some tools wait for each other. What has ended before the answer is
        none of its calls."""
        end = self._behind_first_call()
        places = range(end, -1, -1)
        heard = next(at for at in places if at == 0 or self._is_before_answer(self._known[at - 1]))
        return next((at for at in range(heard, end) if self._is_begun(self._known[at])), end)

    def _is_before_answer(self, line: Line) -> bool:
        return self._form.is_to_model(line) or self._form.ends_calls(line)

    def _behind_first_call(self) -> int:
        first = next((each.line for each in self._pairing.waiting.values()), None)
        places = (at for at, line in enumerate(self._known, 1) if line is first)
        return next(places, len(self._known))

    def _is_begun(self, line: Line) -> bool:
        return self._form.is_from_model(line) and self._form.ended_call(line) is None

    def _has_ended(self, line: Line) -> bool:
        """Whether a call of an answer had ended when this line of it was written: its result tells
        so, if nothing else. One that was left running and has its result long since is of another.
        """
        done = self._form.ended_call(line)
        is_of_it = done is not None and done not in self._pairing.over
        return is_of_it or any(self._form.results(line))

    def _take_rest_of_answer(self, awaited: frozenset[str]) -> None:
        """The answer that calls stand in which were not written yet, up to its end."""
        pairing, count = self._pairing, 0
        for text in self._later if awaited else ():
            line = self._parsed(text)
            is_all_there = awaited <= pairing.over | pairing.waiting.keys()
            if is_all_there and not self._form.is_from_model(line):
                break
            pairing.take(line)
            count += 1
        self._texts += self._later[:count]
        del self._later[:count]

    def _with_results(self) -> Cut:
        """On to where nothing waits any more. If that never came, as it was, with the results of
        those that had ended by then."""
        moment, form, pairing = self._moment, self._form, self._pairing
        best, others = self._as_it_is(), 0
        ended = moment.ended | moment.before | pairing.over  # some were left running, and end later
        for at, text in enumerate(self._later, 1):
            line = self._parsed(text)
            if form.ends_calls(line):
                break
            pairing.take(line)
            self._texts.append(text)
            others += form.ended_call(line) not in (None, *ended)
            if not pairing.waiting:
                # What came with a result that is later than the files may be about what they lack.
                is_too_late = moment.is_past and others
                count = 0 if is_too_late else form.attached(line, self._readable(at))
                return Cut([*self._texts, *self._later[at : at + count]], [], others)
            if not others and not ended.isdisjoint(form.results(line)):
                best = self._as_it_is()
        return best
