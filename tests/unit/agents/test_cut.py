"""Where a conversation is cut, with lines as Claude Code writes them."""

import pytest

from hardsave.agents.claude_code import lines as claude_lines
from hardsave.agents.cut import Cut, Moment, cut
from hardsave.agents.spec import Unknown
from tests.unit.agents.conftest import answered, called, line, said


def settled(lines: list[str], later: list[str], pending: str | None) -> Cut:
    return cut(claude_lines, lines, later, "s-1", Moment(pending=pending))


def test_what_is_settled_is_kept_as_it_is() -> None:
    lines = [said("user", "hi"), called("a"), answered("a")]
    assert settled(lines, [called("b")], None) == Cut(lines, [])


def test_a_pending_result_is_looked_for_behind_all_calls_of_its_answer() -> None:
    lines = [said("user", "hi"), called("a")]
    later = [called("b"), line("tools-used"), answered("a"), answered("b"), said("assistant", "x")]
    assert settled(lines, later, "a") == Cut([*lines, *later[:4]], [], 1)


def test_a_call_that_an_earlier_checkpoint_tells_of_is_nothing_more_than_the_files_know() -> None:
    lines, later = [called("a", "b")], [answered("a"), answered("b")]
    for before, more in ((frozenset[str](), 1), (frozenset("a"), 0)):
        moment = Moment(pending="b", before=before)
        assert cut(claude_lines, lines, later, "s-1", moment) == Cut([*lines, *later], [], more)


def test_a_pending_result_that_never_came_leaves_its_call_open() -> None:
    lines = [said("user", "hi"), called("a")]
    found = settled(lines, [called("b"), answered("b")], "a")
    assert found.lines == lines
    assert [call.id for call in found.waiting] == ["a"]


@pytest.mark.parametrize(
    ("before", "kept", "open"), [(frozenset[str](), 2, "cd"), (frozenset("c"), 3, "d")]
)
def test_beside_a_call_that_was_killed_those_that_had_ended_keep_their_results(
    before: frozenset[str], kept: int, open: str
) -> None:
    lines, later = [called("b", "c", "d")], [answered("b"), answered("c"), said("user", "well?")]
    found = cut(claude_lines, lines, later, "s-1", Moment(pending="b", before=before))
    assert found.lines == [*lines, *later][:kept]
    assert [call.id for call in found.waiting] == list(open)


def test_behind_the_result_of_another_call_none_is_kept_where_one_was_killed() -> None:
    """What came of that other call the files may not show."""
    lines = [said("user", "hi"), called("a"), called("b"), called("c")]
    found = settled(lines, [answered("b"), answered("a")], "a")
    assert (found.lines, [each.id for each in found.waiting]) == (lines, ["a", "b", "c"])


def test_a_result_that_was_written_too_late_for_any_hook_is_taken_along() -> None:
    lines, later = [called("a", "b"), answered("a")], [answered("b"), said("assistant", "x")]
    assert settled(lines, later, None) == Cut([*lines, later[0]], [], 1)


def test_a_call_that_is_not_waited_for_any_more_is_open_too() -> None:
    found = settled([called("a", "b"), answered("a")], [said("user", "well?")], None)
    assert len(found.lines) == 2
    assert [call.id for call in found.waiting] == ["b"]


def test_before_a_call_the_whole_answer_that_it_stands_in_is_left_out() -> None:
    lines = [said("user", "hi"), line("mode"), said("assistant", "well"), called("a")]
    found = cut(claude_lines, lines, [answered("a")], "s-1", Moment(upcoming="a"))
    assert found == Cut(lines[:2], [])


def test_before_a_call_that_has_waited_for_another_of_its_answer_both_are_told_of() -> None:
    lines = [said("user", "hi"), called("a"), called("b"), answered("a")]
    later = [answered("b"), said("assistant", "x")]
    found = cut(claude_lines, lines, later, "s-1", Moment(upcoming="b"))
    assert found == Cut([*lines, later[0]], [], 1)
    killed = cut(claude_lines, lines, [], "s-1", Moment(upcoming="b"))
    assert killed.lines == lines
    assert [call.id for call in killed.waiting] == ["b"]


@pytest.mark.parametrize(
    "lines",
    [[answered("a")], [called("a"), answered("a"), answered("a")], [called("a"), called("a")]],
)
def test_results_and_calls_that_do_not_pair_are_refused(lines: list[str]) -> None:
    with pytest.raises(Unknown):
        settled(lines, [], None)


def test_an_unknown_line_after_the_cut_is_of_no_concern() -> None:
    lines, later = [called("a")], [answered("a"), line("brand-new-type")]
    assert settled(lines, later, "a") == Cut([*lines, later[0]], [])


def test_a_checkpoint_that_claims_two_moments_at_once_is_cut_all_the_same() -> None:
    lines, later = [said("user", "hi")], [called("b"), answered("b")]
    found = cut(claude_lines, lines, later, "s-1", Moment(pending="b", upcoming="a"))
    assert found == Cut(lines, [])
