"""What a shell is offered: for the directory that was named, and nothing if something is wrong."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hardsave.cli.main import main

Offered = Callable[..., list[str]]


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Offered:
    def offered(*words: str) -> list[str]:
        """What bash would be told behind these words."""
        monkeypatch.setenv("_HARDSAVE_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(["hardsave", *words, ""]))
        monkeypatch.setenv("COMP_CWORD", str(len(words) + 1))
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


def test_nothing_is_offered_and_nothing_said_where_there_is_no_directory(
    session_1: Path, offered: Offered, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = session_1.parent / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert offered("show") == []
