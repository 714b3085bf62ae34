"""A block of risky work leaves no trace if it fails, but for what it tried."""

import shutil
from unittest import mock

import pytest

from hardsave.errors import Conflict, HardsaveError
from hardsave.vault.restore import guard
from tests.unit.vault.desk import Desk


class Risky(Exception):
    """What goes wrong."""


def fail(desk: Desk, error: BaseException, **files: str) -> None:
    with desk.line.guard("risky", workspace=desk.work):
        desk.write(**files)
        raise error


@pytest.fixture
def ready(desk: Desk) -> Desk:
    desk.write(a_txt="one", sub__b="b")
    desk.line.save({"turn": 1})
    return desk


def test_a_block_that_succeeds_keeps_what_it_did(ready: Desk) -> None:
    with ready.line.guard("risky", workspace=ready.work) as guarded:
        ready.write(a_txt="two")
    assert ready.read("a.txt") == "two"
    assert guarded.before is not None
    assert (guarded.before.name, guarded.failed, guarded.taken_back) == ("risky", None, None)
    assert ready.log() == []
    assert ready.line.load() == {"turn": 1}


@pytest.mark.parametrize("error", [Risky("oh"), KeyboardInterrupt(), SystemExit(3)])
def test_whatever_is_raised_takes_everything_back(ready: Desk, error: BaseException) -> None:
    before = ready.seen()
    guarded = ready.line.guard(workspace=ready.work)

    def work() -> None:
        with guarded:
            ready.write(a_txt="half done", new="n")
            shutil.rmtree(ready.work / "sub")
            ready.line.save({"turn": 2}, workspace=ready.work)
            raise error

    with pytest.raises(type(error)) as raised:
        work()
    assert raised.value is error
    assert not hasattr(error, "__notes__")
    assert (ready.seen(), ready.line.load()) == (before, {"turn": 1})
    assert guarded.failed is not None
    assert (guarded.failed.status, guarded.failed.read()) == ("failed", {"turn": 2})
    assert guarded.failed.description.startswith(type(error).__name__)
    assert ready.log() == ["guard"]
    ready.line.undo()
    assert ready.read("a.txt") == "half done"
    assert ready.line.load() == {"turn": 2}
    ready.line.redo()
    assert (ready.seen(), ready.line.load()) == (before, {"turn": 1})


def test_a_handle_can_go_on_saving_after_it(ready: Desk) -> None:
    with pytest.raises(Risky):
        fail(ready, Risky(), a_txt="x")
    ready.line.save({"turn": 5}, workspace=ready.work)
    assert ready.line.load() == {"turn": 5}


def test_guards_may_be_nested(ready: Desk) -> None:
    ready.write(outer="0", inner="0")
    before = ready.seen()
    with ready.line.guard("outer", workspace=ready.work):
        ready.write(outer="1")
        middle = ready.seen()
        with pytest.raises(Risky):
            fail(ready, Risky(), inner="1")
        assert ready.seen() == middle
    assert ready.seen() == middle

    def both() -> None:
        with ready.line.guard("outer", workspace=ready.work):
            ready.write(outer="2")
            fail(ready, Risky(), inner="2")

    with pytest.raises(Risky):
        both()
    assert ready.seen() == middle
    for _ in range(3):
        ready.line.undo()
    assert ready.read("outer") == "1"
    assert ready.read("inner") == "1"
    assert before[b"a.txt"] == ready.seen()[b"a.txt"]


def test_a_save_that_fails_inside_takes_the_block_back(ready: Desk) -> None:
    before = ready.seen()

    def work() -> None:
        with ready.line.guard(workspace=ready.work):
            ready.write(a_txt="x")
            handle = ready.vault.timeline("main")
            ready.line.save({"turn": 2})
            handle.save({"turn": 3})

    with pytest.raises(Conflict):
        work()
    assert (ready.seen(), ready.line.load()) == (before, {"turn": 1})


def test_a_block_that_changed_only_state_is_taken_back_too(ready: Desk) -> None:
    def work() -> None:
        with ready.line.guard(workspace=ready.work):
            ready.line.save({"turn": 2})
            raise Risky

    with pytest.raises(Risky):
        work()
    assert (ready.line.load(), ready.log()) == ({"turn": 1}, ["guard"])


def test_what_another_session_saved_meanwhile_stays_and_is_told(
    ready: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    other = ready.vault.timeline("other")

    def work() -> None:
        with ready.line.guard(workspace=ready.work):
            ready.write(theirs="t")
            ready.save(1, other)
            ready.write(a_txt="mine")
            raise Risky

    with pytest.raises(Risky) as raised, caplog.at_level("WARNING"):
        work()
    assert (ready.read("theirs"), ready.read("a.txt")) == ("t", "one")
    said = "not taken back by the guard: 'theirs': timeline 'other' has changed it"
    assert raised.value.__notes__ == [said]
    assert caplog.messages == [said]


def test_if_nothing_can_be_taken_back_both_errors_are_told(ready: Desk) -> None:
    error = Risky("the first")

    def work() -> None:
        with ready.line.guard("risky", workspace=ready.work):
            shutil.rmtree(ready.work)
            raise error

    with pytest.raises(HardsaveError) as raised:
        work()
    assert raised.value.__cause__ is error
    assert "the first" in "".join(raised.value.__notes__)
    ready.work.mkdir()
    ready.line.rewind("risky")
    assert ready.read("a.txt") == "one"


@pytest.mark.parametrize("where", ["save_files", "rewind"])
def test_a_second_interruption_says_what_to_rewind_to(
    ready: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    first = Risky("the first")

    def work() -> None:
        with ready.line.guard("risky", workspace=ready.work):
            ready.write(a_txt="broken")
            stops = mock.Mock(side_effect=KeyboardInterrupt)
            monkeypatch.setattr(ready.line if where == "save_files" else guard, where, stops)
            raise first

    with pytest.raises(KeyboardInterrupt) as raised:
        work()
    monkeypatch.undo()
    assert raised.value.__cause__ is first
    assert ready.line.get("risky").id in caplog.text
    ready.line.rewind("risky")
    assert ready.read("a.txt") == "one"
