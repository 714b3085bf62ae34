"""The step that broke it is found in as few runs as can be, and it is the right one."""

import math
import os
import random
import select
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardsave.errors import Misuse, NotFound
from hardsave.vault.history import bisect
from tests.unit.vault.desk import Desk, refusal

# Reads what the checkpoint wrote: 0 is good, 125 cannot be told.
COMMAND = ["sh", "-c", "exit $(cat code)"]


def history(desk: Desk, codes: list[int]) -> None:
    for turn, code in enumerate(codes):
        desk.write(code=str(code), **{f"step_{turn}": "x"})
        desk.save(turn)


def test_the_first_bad_step_is_found_in_logarithmic_time(desk: Desk) -> None:
    history(desk, [0] * 11 + [1] * 6)
    found = desk.line.bisect("main:1", "@", COMMAND)
    assert (found.first_bad.seq, found.last_good.seq) == (12, 11)
    assert found.skipped == ()
    assert len(found.tries) <= 2 + 4
    assert found.files.changed == ("code",)
    assert found.files.added == ("step.11",)
    assert desk.read("code") == "1"


def test_each_try_is_told_and_the_workspace_stays(desk: Desk) -> None:
    history(desk, [0, 0, 1, 1])
    before, told = desk.seen(), []
    desk.line.bisect("main:1", "main:4", COMMAND, told=lambda one: told.append(one.verdict))
    assert told[:2] == ["good", "bad"]  # the ends
    assert sorted(told[2:]) == ["bad", "good"]
    assert desk.seen() == before
    assert desk.log() == []


def test_a_command_sees_nothing_but_the_checkpoint_and_may_leave_a_mess(desk: Desk) -> None:
    (desk.work / "shut").mkdir()
    desk.write(shut__file="x")
    (desk.work / "shut").chmod(0o500)
    history(desk, [0, 0, 0, 1, 1, 1])
    mess = "test ! -e mess || exit 126; mkdir -p mess/d; touch mess/d/x; chmod 500 mess; "
    found = desk.line.bisect("main:1", "@", ["sh", "-c", mess + "exit $(cat code)"])
    assert found.first_bad.seq == 4
    assert not (desk.work / "mess").exists()


def test_what_cannot_be_told_is_skipped_and_named(desk: Desk) -> None:
    history(desk, [0, 0, 125, 125, 1, 1])
    found = desk.line.bisect("main:1", "@", COMMAND)
    assert (found.last_good.seq, found.first_bad.seq) == (2, 5)
    assert [each.seq for each in found.skipped] == [3, 4]


def test_checkpoints_without_files_are_passed_over(desk: Desk) -> None:
    history(desk, [0, 0])
    desk.line.save({"turn": "without"})
    desk.write(code="1")
    desk.save(9)
    found = desk.line.bisect("main:1", "@", COMMAND)
    assert (found.last_good.seq, found.first_bad.seq) == (2, 4)
    assert isinstance(refusal(desk.line.bisect, "main:3", "@", COMMAND), NotFound)


def test_what_cannot_be_bisected_is_an_error(desk: Desk) -> None:
    history(desk, [0, 0, 1])
    bisect_line = desk.line.bisect
    assert isinstance(refusal(bisect_line, "main:3", "main:1", COMMAND), Misuse)
    assert "cannot be good and bad" in str(refusal(bisect_line, "main:1", "main:1", COMMAND))
    assert "cannot be run" in str(refusal(bisect_line, "main:1", "@", ["no-such-program"]))
    assert "could not be run" in str(refusal(bisect_line, "main:1", "@", ["sh", "-c", "exit 127"]))
    assert isinstance(refusal(bisect_line, "main:1", "@", ["sh", "-c", "kill -9 $$"]), Misuse)


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a command says when it hangs. No other takes any time, however slow the machine is."""
    said, now = tmp_path / "hanging", [0.0]

    def clock() -> float:
        now[0] += 100.0 if said.exists() else 0.0
        return now[0]

    monkeypatch.setattr(subprocess, "_time", clock)
    return f"[ $(cat code) = 0 ] || touch {said}; "


def test_a_command_that_hangs_is_bad(desk: Desk, hanging: str) -> None:
    history(desk, [0, 60, 60])
    hangs = ["sh", "-c", hanging + "exec sleep $(cat code)"]
    found = desk.line.bisect("main:1", "@", hangs, timeout=1)
    assert found.first_bad.seq == 2


def test_a_command_that_hangs_from_the_beginning_accuses_nobody(desk: Desk) -> None:
    history(desk, [0, 60, 60])
    refused = refusal(
        lambda: desk.line.bisect("main:2", "@", ["sh", "-c", "exec sleep $(cat code)"], timeout=0.5)
    )
    assert "takes too long at main:2 already" in str(refused)


def test_a_command_that_fails_everywhere_accuses_nobody(desk: Desk) -> None:
    history(desk, [0, 0, 1])
    refused = refusal(desk.line.bisect, "main:1", "@", ["sh", "-c", "test -d .venv"])
    assert isinstance(refused, Misuse)
    assert "already" in str(refused)
    assert "ignored files" in str(refused)


def test_a_command_that_never_fails_finds_nothing(desk: Desk) -> None:
    history(desk, [0, 0, 1])
    refused = refusal(desk.line.bisect, "main:1", "@", ["true"])
    assert isinstance(refused, Misuse)
    assert "said to be bad" in str(refused)


def test_ends_that_cannot_be_told_are_refused(desk: Desk) -> None:
    history(desk, [125, 0, 1, 125])
    assert isinstance(refusal(desk.line.bisect, "main:1", "main:3", COMMAND), Misuse)
    assert isinstance(refusal(desk.line.bisect, "main:2", "main:4", COMMAND), Misuse)


def test_no_scratch_directory_is_left(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    history(desk, [0, 1, 1])
    desk.line.bisect("main:1", "@", COMMAND)
    refusal(desk.line.bisect, "main:1", "@", ["no-such-program"])
    assert list((tmp_path / "scratch").glob("hardsave-bisect-*")) == []


class Witness:
    """A pipe that commands hold: it hangs up when the last of them has ended."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.held = f"exec 9>{path}; echo >&9; "

    def sees_none(self) -> bool:
        poll = select.poll()
        poll.register(self.reading, 0)  # nothing but that they are gone
        return [event for _, event in poll.poll(60_000)] == [select.POLLHUP]


def test_what_a_command_leaves_running_is_in_nobodys_way(desk: Desk, tmp_path: Path) -> None:
    """It writes on, in the background, and none of it is left."""
    history(desk, [0, 0, 0, 1, 1, 1])
    witness = Witness(tmp_path / "pipe")
    busy = witness.held + "while :; do mkdir -p m; touch m/$(date +%N); done & exit $(cat code)"
    found = desk.line.bisect("main:1", "@", ["sh", "-c", busy])
    assert found.first_bad.seq == 4
    assert witness.sees_none()


def test_a_command_that_hangs_is_ended_with_all_that_it_started(
    desk: Desk, tmp_path: Path, hanging: str
) -> None:
    history(desk, [0, 60, 60])
    witness = Witness(tmp_path / "pipe")
    hangs = witness.held + "sleep $(cat code) & " + hanging + "wait"
    found = desk.line.bisect("main:1", "main:2", ["sh", "-c", hangs], timeout=1)
    assert found.first_bad.seq == 2
    assert witness.sees_none()


@pytest.mark.parametrize(
    "mess",
    [
        'rm -rf "$PWD"',
        'rm -rf "$PWD"; echo x > "$PWD"',
        "rm -rf ../*; mkdir ../journal",
        'rm -rf "$PWD"; ln -s /nowhere "$PWD"',
        'rm -rf "$(dirname "$PWD")"',
        'rm -rf "$(dirname "$PWD")"; echo x > "$(dirname "$PWD")"',
        "mkdir -p a/b; chmod 000 a .",
    ],
)
def test_a_command_may_remove_the_ground_that_it_stands_on(
    desk: Desk, mess: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    history(desk, [0, 0, 1, 1])
    found = desk.line.bisect("main:1", "@", ["sh", "-c", f"code=$(cat code); {mess}; exit $code"])
    assert found.first_bad.seq == 3


def test_a_command_that_is_none_is_misuse(desk: Desk) -> None:
    history(desk, [0, 1])
    for command in ([], [""], ["a\0b"]):
        assert isinstance(refusal(desk.line.bisect, "main:1", "@", command), Misuse)


# Decided over plain data


def search(verdicts: list[str]) -> tuple[int, int, int]:
    """(last good, first bad, tries), as the loop goes about it."""
    low, high, tries = 0, len(verdicts) - 1, 0
    skipped: set[int] = set()
    while (at := bisect.midpoint(frozenset(skipped), low, high)) is not None:
        tries += 1
        if verdicts[at] == "skip":
            skipped.add(at)
        elif verdicts[at] == "good":
            low = at
        else:
            high = at
    return low, high, tries


@settings(max_examples=50)
@given(st.integers(2, 500), st.randoms(use_true_random=False))
def test_it_agrees_with_looking_at_every_one(count: int, play: random.Random) -> None:
    first_bad = play.randrange(1, count)
    verdicts = ["good"] * first_bad + ["bad"] * (count - first_bad)
    low, high, tries = search(verdicts)
    assert (low, high) == (first_bad - 1, first_bad)
    assert tries <= math.ceil(math.log2(count - 1) if count > 2 else 0)


@settings(max_examples=50)
@given(st.integers(2, 60), st.randoms(use_true_random=False))
def test_with_skips_the_first_bad_one_is_between_the_two(count: int, play: random.Random) -> None:
    first_bad = play.randrange(1, count)
    verdicts = ["good"] * first_bad + ["bad"] * (count - first_bad)
    for at in range(1, count - 1):
        if play.random() < 0.3:
            verdicts[at] = "skip"
    low, high, _ = search(verdicts)
    assert low < first_bad <= high
    assert verdicts[low] == "good"
    assert verdicts[high] == "bad"
    assert all(verdicts[at] == "skip" for at in range(low + 1, high))
