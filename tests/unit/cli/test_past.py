"""`rewind --before` and `--status`: this project as of then, whichever session it was."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import hardsave
from tests.unit.cli.conftest import Ran, Run

FIRST = "claude-0b6e1f2a-5c1d-4e8f-9a3b-2f6e8d7c1a90"
SECOND = "codex-7d63e7b0-f288-46b6-abcd-2f90475a4877"
MINUTE = 60 * 10**9


class Clock:
    """The time at which checkpoints are saved: so many minutes ago."""

    def __init__(self) -> None:
        self._start = time.time_ns()
        self.minutes_ago = 0.0

    def time_ns(self) -> int:
        return self._start - int(self.minutes_ago * MINUTE)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("hardsave.vault.vault.time", SimpleNamespace(time_ns=made.time_ns))
    return made


@pytest.fixture
def two_sessions(project: Path, clock: Clock) -> Path:
    """Two sessions that saved by turns, every five minutes; a.txt says which and when."""
    with hardsave.open() as vault:
        for minutes in range(60, 0, -10):
            for name, at in ((FIRST, minutes), (SECOND, minutes - 5)):
                clock.minutes_ago = at
                (project / "a.txt").write_text(f"{name} {at} minutes ago")
                status = "passed" if at in (40, 25) else "ended"
                title = f"The prompt of {name[:5]}"
                vault.timeline(name).save({}, workspace=".", status=status, title=title)
    clock.minutes_ago = 0
    return project


def there(project: Path) -> str:
    return (project / "a.txt").read_text()


@pytest.mark.parametrize(
    ("before", "name", "at"),
    [
        ("28m", FIRST, 30),
        ("23m", SECOND, 25),
        ("31m", SECOND, 35),
        ("57m", FIRST, 60),
        ("4m", SECOND, 5),
    ],
)
def test_a_project_goes_back_to_a_time_whichever_session_saved_last_then(
    before: str, name: str, at: int, run: Run, two_sessions: Path
) -> None:
    ran = run("rewind", "--before", before, "--yes", "--json")
    assert (ran.code, ran.data["timeline"]) == (0, name), ran
    assert there(two_sessions) == f"{name} {at} minutes ago"


def test_a_checkpoint_from_that_very_moment_is_not_from_before_it(
    run: Run, two_sessions: Path
) -> None:
    (exact, *_) = [each for each in run("log", "--json").data if each["seq"] == 3]
    ran = run("rewind", "--before", exact["created_at"], "--dry-run", "--json")
    assert ran.data["target"]["created_at"] < exact["created_at"]
    with hardsave.open() as vault:
        newest = max(
            (one for name in (FIRST, SECOND) for one in vault.timeline(name).checkpoints()),
            key=lambda one: (one.created_at.isoformat() < exact["created_at"], one.created_at),
        )
    assert ran.data["target"]["id"] == newest.id


def test_before_all_that_was_saved_there_is_nothing(run: Run, two_sessions: Path) -> None:
    ran = run("rewind", "--before", "2h", "--yes")
    assert ran.code == 3
    assert "this directory has no checkpoint from before 2h; 'hardsave log" in ran.err


def test_what_is_there_is_saved_first_and_whose_files_change_is_told(
    run: Run, two_sessions: Path
) -> None:
    (two_sessions / "a.txt").write_text("not saved yet")
    ran = run("rewind", "--before", "28m", "--yes")
    assert ran.code == 0, ran
    assert (
        "what these have changed here since goes back, too, and stays saved: prompt-codex"
        in ran.err
    )
    assert FIRST not in ran.out + ran.err
    assert SECOND not in ran.out + ran.err
    assert run("undo").code == 0
    assert there(two_sessions) == "not saved yet"


def test_a_user_may_still_ask_for_what_one_session_did(run: Run, two_sessions: Path) -> None:
    ran = run("rewind", "--before", "28m", "--mine", "--yes", "--json")
    assert ran.code == 0
    assert there(two_sessions) == f"{SECOND} 5 minutes ago"


def test_the_state_alone_goes_back_without_a_word_about_files(run: Run, two_sessions: Path) -> None:
    ran = run("rewind", "--before", "28m", "--state", "--yes")
    assert (ran.code, "stays saved" in ran.err) == (0, False)
    assert there(two_sessions) == f"{SECOND} 5 minutes ago"


def test_a_status_is_looked_for_in_all_sessions(run: Run, two_sessions: Path) -> None:
    def target(*typed: str) -> str:
        data = run("rewind", *typed, "--dry-run", "--json").data
        return str(data["target"]["timeline"])

    assert target("--status", "passed") == SECOND
    assert target("--status", "passed", "--before", "30m") == FIRST
    ran = run("rewind", "--status", "failed", "--dry-run")
    assert (ran.code, "with the status 'failed'" in ran.err) == (3, True)


def test_with_a_timeline_only_that_and_what_led_to_it_count(run: Run, two_sessions: Path) -> None:
    ran = run("rewind", "--before", "23m", "-t", "claude", "--dry-run", "--everyone", "--json")
    assert (ran.data["target"]["timeline"], ran.data["target"]["seq"]) == (FIRST, 4)


def test_after_a_rewind_a_project_was_where_that_went(
    run: Run, two_sessions: Path, clock: Clock
) -> None:
    def target(before: str) -> Ran:
        return run("rewind", "--before", before, "--dry-run", "--json")

    run("rewind", "--before", "28m", "--yes")
    clock.minutes_ago = -10
    (two_sessions / "a.txt").write_text("later")
    with hardsave.open() as vault:
        vault.timeline(SECOND).save({}, workspace=".")
    soon = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 60))
    assert target(soon).data["target"]["timeline"] == FIRST
    assert target(soon).data["target"]["seq"] == 4


def test_what_another_directory_saved_into_the_same_store_does_not_count(
    run: Run, two_sessions: Path, tmp_path: Path, clock: Clock
) -> None:
    (tmp_path / "elsewhere").mkdir()
    clock.minutes_ago = 27
    with hardsave.open() as vault:
        vault.timeline("other").save({}, workspace=tmp_path / "elsewhere")
    clock.minutes_ago = 0
    ran = run("rewind", "--before", "26m", "--dry-run", "--json")
    assert ran.data["target"]["timeline"] == FIRST


def test_states_without_files_go_back_by_time_where_nothing_has_files(
    run: Run, project: Path, clock: Clock
) -> None:
    with hardsave.open() as vault:
        for minutes in (20, 10):
            clock.minutes_ago = minutes
            vault.timeline("main").save({"at": minutes}, status="ended")
    ran = run("rewind", "--before", "15m", "--yes", "--json")
    assert (ran.code, ran.data["target"]["seq"]) == (0, 1)


def test_a_ref_of_a_session_that_was_over_before_the_next_began_means_the_directory(
    run: Run, project: Path, clock: Clock
) -> None:
    with hardsave.open() as vault:
        for name, minutes in ((FIRST, (60, 50)), (SECOND, (40, 30))):
            for at in minutes:
                clock.minutes_ago = at
                (project / "a.txt").write_text(f"{name} {at} minutes ago")
                vault.timeline(name).save({}, workspace=".")
    clock.minutes_ago = 0
    ran = run("rewind", "claude-0b6e1f2a:2", "--yes")
    assert ran.code == 0, ran.err
    assert "goes back, too, and stays saved: codex-7d63e7b0" in ran.err
    assert there(project) == f"{FIRST} 50 minutes ago"


def test_a_ref_of_one_of_two_sessions_at_work_together_is_about_its_own(
    run: Run, two_sessions: Path
) -> None:
    ran = run("rewind", "prompt-claud:2", "--yes")
    assert ran.code != 0
    assert "other sessions have changed this workspace since" in ran.err
    assert there(two_sessions) == f"{SECOND} 5 minutes ago"


# After a rewind


@pytest.fixture
def one_after_the_other(project: Path, clock: Clock) -> Path:
    """Two sessions that were left unfinished, of which the first was over when the second began;
    a.txt says which and when."""
    with hardsave.open() as vault:
        for name, minutes in ((FIRST, (60, 55, 50)), (SECOND, (40, 35, 30))):
            for at in minutes:
                clock.minutes_ago = at
                (project / "a.txt").write_text(f"{name} {at} minutes ago")
                title = f"The prompt of {name[:5]}"
                vault.timeline(name).save({}, workspace=".", title=title)
    clock.minutes_ago = 0
    return project


def test_after_one_rewind_across_sessions_any_other_can_follow(
    run: Run, one_after_the_other: Path
) -> None:
    assert run("rewind", "prompt-claud:1", "--yes").code == 0
    for ref, name, at in (
        (":2", FIRST, 55),
        ("prompt-codex:2", SECOND, 35),
        (":1", SECOND, 40),
        ("prompt-claud:3", FIRST, 50),
    ):
        ran = run("rewind", ref, "--yes")
        assert ran.code == 0, ran.err
        assert there(one_after_the_other) == f"{name} {at} minutes ago"


def test_a_rewind_to_where_it_is_already_is_not_refused(
    run: Run, one_after_the_other: Path
) -> None:
    run("rewind", "prompt-claud:1", "--yes")
    ran = run("rewind", "@", "--dry-run")
    assert (ran.code, "nothing to do" in ran.err) == (0, True), ran
    assert "goes back" not in ran.err
    assert run("status", "--json").data["timeline"] == FIRST


def test_a_session_that_was_moved_without_a_save_is_the_one_that_is_meant(
    run: Run, one_after_the_other: Path
) -> None:
    assert run("rewind", "prompt-claud:1", "--state", "--yes").code == 0
    assert run("rewind", ":2", "--state", "--yes", "--json").data["timeline"] == FIRST
    with hardsave.open() as vault:
        vault.timeline(SECOND).save({}, workspace=".")
    assert run("rewind", ":2", "--state", "--yes", "--json").data["timeline"] == SECOND


def test_undo_and_redo_are_about_what_was_done_last_here(
    run: Run, one_after_the_other: Path
) -> None:
    def said() -> str:
        return there(one_after_the_other)

    end = said()
    run("rewind", "prompt-claud:1", "--yes")
    run("rewind", "prompt-codex:1", "--yes")
    for command, name, text in (
        ("undo", SECOND, f"{FIRST} 60 minutes ago"),
        ("undo", FIRST, end),
        ("redo", FIRST, f"{FIRST} 60 minutes ago"),
        ("redo", SECOND, f"{SECOND} 40 minutes ago"),
        ("undo", SECOND, f"{FIRST} 60 minutes ago"),
    ):
        ran = run(command, "--json")
        assert (ran.code, ran.data["timeline"]) == (0, name), ran
        assert said() == text


def test_undo_asks_nothing_where_sessions_work_together(run: Run, project: Path) -> None:
    with hardsave.open() as vault:
        for text in ("one", "two"):
            for name in (FIRST, SECOND):
                (project / "a.txt").write_text(f"{name} {text}")
                vault.timeline(name).save({}, workspace=".")
    assert run("rewind", "claude-0b6e1f2a:1", "--everyone", "--yes").code == 0
    assert run("rewind", ":1", "--yes").code == 2
    ran = run("undo", "--json")
    assert (ran.code, ran.data["timeline"]) == (0, FIRST), ran
    assert there(project) == f"{SECOND} two"


def test_undo_is_not_about_what_was_done_in_another_directory(
    run: Run, project: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with hardsave.open() as vault:
        for name, where in (("here", project), ("there", elsewhere)):
            for number in (1, 2):
                vault.timeline(name).save({"n": number}, workspace=where)
            vault.timeline(name).rewind(":1")
    assert run("undo", "--json").data["timeline"] == "here"
