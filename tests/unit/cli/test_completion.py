"""What a shell is offered: for the directory that was named, and nothing if something is wrong."""

from collections.abc import Callable
from pathlib import Path

import pytest

import hardsave
from hardsave.cli import arguments
from hardsave.cli.main import main

Offered = Callable[..., list[str]]


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Offered:
    def offered(*words: str, begun: str = "") -> list[str]:
        """What bash would be told behind these words."""
        monkeypatch.setenv("_HARDSAVE_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(["hardsave", *words, begun]))
        monkeypatch.setenv("COMP_CWORD", str(len(words) + 1))
        capsys.readouterr()
        with pytest.raises(SystemExit):
            main([])
        out, err = capsys.readouterr()
        assert err == ""
        return [line.removeprefix("plain,") for line in out.splitlines() if line]

    return offered


@pytest.mark.parametrize("words", [("-C", "{}", "show"), ("show", "-C", "{}")])
def test_refs_are_those_of_the_directory_that_is_named(
    session_1: Path, offered: Offered, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    elsewhere = session_1.parent / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert "plan-ready" in offered(*(each.format(session_1) for each in words))


@pytest.mark.parametrize(
    "words",
    [("--timeline", "t", "show"), ("show", "--timeline", "t"), ("--timeline=t", "rewind")],
)
def test_refs_are_those_of_the_timeline_that_is_named(
    session_1: Path, offered: Offered, words: tuple[str, ...]
) -> None:
    with hardsave.open() as vault:
        vault.timeline("t").save({}, name="on-t")
    assert [each for each in offered(*words) if not each.startswith("@")] == ["on-t", "t:1"]


def test_refs_are_those_of_the_store_that_is_named(session_1: Path, offered: Offered) -> None:
    other = session_1.parent / "other.db"
    with hardsave.open(f"sqlite:///{other}") as vault:
        vault.timeline("t").save({}, name="on-t")
    assert "on-t" in offered("--store", str(other), "show")
    assert "plan-ready" not in offered("--store", str(other), "show")


def test_bash_is_given_names_with_spaces_as_one_word(
    session_1: Path, offered: Offered, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hardsave.open() as vault:
        vault.timeline("session-1").save({}, name="two words")
    assert "two\\ words" in offered("show")


def test_nothing_is_offered_and_nothing_said_where_there_is_no_directory(
    session_1: Path, offered: Offered, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = session_1.parent / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert offered("show") == []


def test_refs_are_offered_where_several_timelines_are_unfinished(
    session_1: Path, offered: Offered
) -> None:
    with hardsave.open() as vault:
        vault.timeline("session-2").append({"messages": []}, workspace=session_1, name="on-2")
    assert {"@", "@~1", "on-2", "session-2:1"} <= {*offered("show")}
    assert "session-1:1" not in offered("show")


def test_numbers_of_another_timeline_are_completed_once_its_name_is_begun(
    session_1: Path, offered: Offered, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hardsave.open() as vault:
        for _ in range(2):
            vault.timeline("other").save({})
    monkeypatch.setenv("HARDSAVE_TIMELINE", "session-1")
    for begun in ("ot", "other:"):
        assert offered("show", begun=begun) == ["other:2", "other:1"]


def test_a_name_is_offered_at_any_age(
    session_1: Path, offered: Offered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arguments, "_MOST_COMPLETIONS", 1)
    assert offered("show", begun="plan") == ["plan-ready"]


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--", "sh"),
        ("bisect", "a", "b", "--", "sh"),
        ("rewind", "--path"),
        ("show", "--file"),
    ],
)
def test_files_are_offered_where_they_belong(offered: Offered, words: tuple[str, ...]) -> None:
    assert offered(*words) == ["file,"]


def test_jobs_are_offered_where_one_is_asked_for(session_1: Path, offered: Offered) -> None:
    assert main(["jobs", "submit", "fix-1", "--prompt", "Fix it", "--json"]) == 0
    for name in ("show", "resume", "approve", "deny"):
        assert offered("jobs", name) == ["fix-1"]


@pytest.mark.parametrize("name", ["$(touch here)", "`id`", "a;b", "a'b", "a|b", "*", "~x"])
def test_a_name_that_would_act_in_a_shell_is_not_offered(
    session_1: Path, offered: Offered, name: str
) -> None:
    with hardsave.open() as vault:
        vault.timeline("session-1").append({"messages": []}, name=name)
        vault.timeline(name).save({})
        vault.tasks.add(name)
    refs = offered("show", "--timeline", "session-1")
    assert "plan-ready" in refs
    assert not [each for each in refs if name in each]
    assert offered("--timeline") == ["session-1"]
    assert offered("tasks", "show") == []
