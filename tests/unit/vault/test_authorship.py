"""Whose a change is where several agents work in one directory: over plain data, and in a vault."""

from typing import Any

import pytest

from hardsave.errors import Conflict
from hardsave.vault.line import Timeline
from hardsave.vault.restore import authorship
from hardsave.vault.restore.authorship import Authors, CallSpan, Changed, Evidence, Saying
from tests.unit.vault.desk import Desk, refusal


def shell(who: str, began: float | None, ended: float | None, id: str = "1") -> CallSpan:
    return CallSpan(who, who, id, began=began, ended=ended)


def edit(who: str, path: str, began: float, ended: float) -> CallSpan:
    return CallSpan(who, who, "e", "edits", frozenset({path.encode()}), began, ended)


def made(*calls: CallSpan, since: float = 0, at: float = 10, claimed: str | None = None) -> Authors:
    return authorship.authors(b"f", since, Changed(at - 1, at), calls, claimed)


def known(*names: str) -> Authors:
    return Authors(frozenset(names), is_known=True)


def unknown(*names: str) -> Authors:
    return Authors(frozenset(names), is_known=False)


def test_a_change_is_of_the_one_timeline_whose_calls_ran() -> None:
    assert made(shell("a", 5, 15), shell("b", 20, 30)) == known("a")
    assert made(shell("a", 5, 15), shell("a", 6, 12, "2")) == known("a")


def test_commands_of_both_at_once_leave_it_unknown() -> None:
    assert made(shell("a", 5, 15), shell("b", 8, 30)) == unknown("a", "b")


def test_a_command_that_ended_before_the_last_change_may_have_changed_it_too() -> None:
    """Unless a capture that has come in between does not have that."""
    assert made(shell("a", 1, 4), shell("b", 8, 30)) == unknown("a", "b")
    assert made(shell("a", 1, 4), shell("b", 8, 30), since=5) == known("b")


def test_a_command_that_began_after_the_last_change_did_not_make_it() -> None:
    assert made(shell("a", 5, 15), shell("b", 11, 30)) == known("a")


def test_what_was_changed_while_no_call_ran_is_of_none() -> None:
    assert made(shell("a", 20, 30)) == unknown()


def test_an_edit_counts_for_the_files_that_it_names() -> None:
    assert made(edit("a", "g", 5, 15), shell("b", 5, 15)) == known("b")
    assert made(edit("a", "f", 5, 15)) == known("a")
    assert made(edit("a", "f", 5, 15), edit("b", "f", 5, 15)) == known("a", "b")
    assert made(edit("a", "f", 5, 15), shell("b", 5, 15)) == unknown("a", "b")


def test_a_program_that_saves_by_itself_says_that_it_made_the_change() -> None:
    assert made(claimed="a") == known("a")
    assert made(shell("b", 5, 15), claimed="a") == unknown("a", "b")
    assert made(edit("b", "f", 5, 15), claimed="a") == unknown("a", "b")


def saying(who: str, moment: float, *calls: CallSpan, **more: Any) -> Saying:
    return Saying(who, moment, b"", Evidence(moment, "", calls), **more)


def test_a_call_is_told_once_with_all_that_is_known_of_it() -> None:
    """By another session before it has ended, under a name that is only guessed."""
    guessed = CallSpan("run-1", "s", "c", began=5)
    own = CallSpan("mine", "s", "c", "edits", frozenset({b"f"}), 4, 9)
    for order in ([("other", guessed), ("mine", own)], [("mine", own), ("other", guessed)]):
        (found,) = authorship.spans([saying(who, 8, call) for who, call in order])
        assert found == own


def test_a_call_that_is_never_seen_to_end_ran_as_long_as_it_was_seen() -> None:
    call = CallSpan("a", "s", "c", began=5)
    (found,) = authorship.spans([saying("b", 6, call), saying("b", 8, call), saying("b", 20)])
    assert (found.began, found.ended) == (5, 8)


def test_a_call_whose_beginning_is_unknown_began_after_the_checkpoint_before() -> None:
    call = CallSpan("a", "s", "c", ended=9)
    (found,) = authorship.spans([saying("a", 3), saying("b", 5), saying("a", 9, call)])
    assert (found.began, found.ended) == (3, 9)


def test_a_hook_that_saved_alone_tells_of_its_call_all_the_same() -> None:
    (found,) = authorship.spans([saying("a", 3), Saying("a", 9, b"", None, is_of_call=True)])
    assert (found.timeline, found.does, found.began, found.ended) == ("a", "runs", 3, 9)


def test_moments_hold_for_a_capture_of_the_files_that_were_looked_at() -> None:
    told = Saying("a", 12, b"", Evidence(12, "id", (), {"f": Changed(9, 10)}))
    calls = [shell("a", 5, 12), shell("b", 11, 20)]
    assert authorship.of_capture({b"f": 0.0}, told, "id", calls) == {b"f": known("a")}
    assert authorship.of_capture({b"f": 0.0}, told, "other", calls) == {b"f": unknown("a", "b")}


def test_an_edit_that_makes_exactly_the_change_has_made_it_also_beside_a_command() -> None:
    calls = [edit("a", "f", 5, 12), shell("b", 5, 20)]
    told = Saying("b", 12, b"", Evidence(12, "id", (), {"f": Changed(9, 10)}, {"f": ("a", "e")}))
    assert authorship.of_capture({b"f": 0.0}, told, "id", calls) == {b"f": known("a")}
    assert authorship.of_capture({b"f": 0.0}, told, "other", calls) == {b"f": unknown("a", "b")}


def test_a_call_that_waits_for_its_hook_has_changed_nothing_yet() -> None:
    calls = [shell("a", 5, 12), shell("b", 9, 20)]
    told = Saying("b", 10, b"", None, upcoming=("b", "1"))
    assert authorship.of_capture({b"f": 0.0}, told, "", calls) == {b"f": known("a")}


def test_a_directory_is_of_those_that_have_made_what_lies_in_it() -> None:
    moments = {"d/f": Changed(9, 10), "d/e/g": Changed(9, 10)}
    told = Saying("a", 12, b"", Evidence(12, "id", (), moments))
    calls = [shell("a", 5, 12), shell("b", 11, 20)]
    news = dict.fromkeys([b"d", b"d/e", b"d/e/g", b"d/f"], 0.0)
    assert set(authorship.of_capture(news, told, "id", calls).values()) == {known("a")}


def test_evidence_is_read_as_it_was_written() -> None:
    calls = (shell("a", 5.0625, None), CallSpan("b", "s", "c", "edits", frozenset({b"f"}), 1, 2))
    told = Evidence(7.5, "id", calls, {"f": Changed(1.5, 2.5)}, {"f": ("s", "c")})
    assert authorship.read(authorship.metadata(told)) == told._replace(
        calls=(shell("a", 5.062, None), calls[1])
    )


@pytest.mark.parametrize("told", [None, 1, {}, {"at": "x", "calls": []}, {"at": 1, "calls": [1]}])
def test_evidence_that_is_not_understood_says_nothing(told: Any) -> None:
    assert authorship.read({"evidence": told}) is None


# In a vault


@pytest.fixture
def other(desk: Desk) -> Timeline:
    return desk.vault.timeline("other")


def saved(desk: Desk, line: Timeline, *calls: CallSpan) -> str:
    """As the daemon saves: with the calls that it knows of, which ran all the time."""
    head = line.head
    found = desk.vault.workspace(desk.work).status(None if head is None else head.id)
    now = found.last.created_at.timestamp() + 3600 if found.last else 0.0
    told = authorship.metadata(Evidence(now, found.files_id, calls))
    return line.save({}, workspace=desk.work, metadata={"hook": "Stop", **told}).id


def test_mine_is_what_its_own_calls_changed_also_if_another_saved_it_first(
    desk: Desk, other: Timeline
) -> None:
    desk.write(mine="0", theirs="0")
    start = saved(desk, desk.line)
    desk.write(mine="1", theirs="1")
    always = {"began": 0.0, "ended": 4e9}
    calls = [
        CallSpan("main", "m", "1", "edits", frozenset({b"mine"}), **always),
        CallSpan("other", "o", "1", "edits", frozenset({b"theirs"}), **always),
    ]
    saved(desk, other, *calls)
    saved(desk, desk.line, *calls)
    done = desk.line.rewind(start, scope="mine")
    assert (desk.read("mine"), desk.read("theirs")) == ("0", "1")
    assert done.files is not None
    (kept,) = done.files.kept
    assert (kept.path, kept.reason) == ("theirs", "timeline 'other' has changed it")


def test_what_is_not_known_to_be_its_own_is_refused_and_listed(desk: Desk, other: Timeline) -> None:
    desk.write(mine="0", both="0")
    start = saved(desk, desk.line)
    desk.write(mine="1", both="1")
    both = [shell("main", 0, 4e9), shell("other", 0, 4e9)]
    saved(desk, desk.line, *both)
    before = desk.seen()
    error = refusal(desk.line.rewind, start, scope="mine")
    assert isinstance(error, Conflict)
    assert "not known who has changed: both (other, or this one), mine (other, or" in str(error)
    assert "paths=" in str(error)
    assert "scope='everyone'" in str(error)
    assert isinstance(refusal(desk.line.rewind, start), Conflict)
    assert desk.seen() == before
    desk.line.rewind(start, paths=["mine"], scope="everyone")
    assert (desk.read("mine"), desk.read("both")) == ("0", "1")
    desk.line.rewind(start, scope="everyone")
    assert desk.read("both") == "0"


def test_what_was_changed_while_no_call_ran_is_not_called_its_own(
    desk: Desk, other: Timeline
) -> None:
    desk.write(mine="0")
    start = saved(desk, desk.line)
    saved(desk, other)
    desk.write(mine="by hand")
    saved(desk, desk.line)
    assert "mine (while no call ran)" in str(refusal(desk.line.rewind, start, scope="mine"))
    desk.line.rewind(start)  # it says nothing of another session
    assert desk.read("mine") == "0"


def test_what_is_as_it_was_is_no_reason_to_refuse(desk: Desk) -> None:
    desk.write(mine="0")
    start = saved(desk, desk.line)
    desk.write(mine="1")
    saved(desk, desk.line, shell("main", 0, 4e9), shell("other", 0, 4e9))
    desk.write(mine="0")
    assert desk.line.rewind(start, scope="mine").moved
