"""Which transcript is the agent's own, over plain data."""

import pytest

from hardsave.daemon.running_agents import Others
from hardsave.daemon.transcripts import Choice, Grown, own_after

NONE, SOME, UNKNOWN = Others.NONE, Others.SOME, Others.UNKNOWN


def seen(*looks: tuple[Others, str]) -> Choice:
    """What is known after looks that have each found these to have grown, the newest last."""
    choice = Choice()
    for company, sessions in looks:
        grown = [Grown(name, at) for at, name in enumerate(sessions)]
        choice = own_after(choice, grown, company)
    return choice


def test_what_grows_while_no_other_agent_is_here_is_ours() -> None:
    assert seen().session is None
    assert seen((NONE, "")).session is None
    assert seen((NONE, "a")).session == "a"
    assert seen((NONE, "a"), (NONE, ""), (NONE, "a")) == seen((NONE, "a"))


def test_an_agent_that_goes_over_to_another_session_is_followed() -> None:
    assert seen((NONE, "a"), (NONE, "b")).session == "b"
    assert seen((NONE, "a"), (NONE, "ab")).session == "b"
    assert seen((NONE, "a"), (NONE, "b"), (NONE, "a")).session == "a"


def test_in_company_nothing_is_taken_and_the_reason_is_told() -> None:
    choice = seen((SOME, "a"))
    assert choice.session is None
    assert "cannot be told apart" in choice.why_none
    assert seen((SOME, "a"), (SOME, "b"), (SOME, "ab")).session is None


def test_what_was_proven_stays_in_company() -> None:
    choice = seen((NONE, "a"), (SOME, "b"), (SOME, "ab"))
    assert choice.session == "a"
    assert choice.why_none == ""


def test_the_last_words_of_another_are_not_ours_although_it_is_gone_by_then() -> None:
    assert seen((SOME, "b"), (NONE, "b")).session is None
    assert seen((NONE, "a"), (SOME, "b"), (NONE, "b")).session == "a"
    assert seen((SOME, "ab"), (NONE, "b"), (NONE, "a"), (NONE, "a")).session == "a"


def test_who_goes_on_alone_is_ours() -> None:
    choice = seen((SOME, "ab"), (NONE, "a"), (NONE, "a"))
    assert choice.session == "a"
    assert choice.why_none == ""


@pytest.mark.parametrize(
    ("looks", "session"),
    [
        (["a"], "a"),
        (["a", "a"], "a"),
        (["a", "b"], "b"),
        (["a", "b", "c"], "c"),
        (["ab"], None),
        (["a", "b", "a"], None),
        (["a", "ab"], None),
        (["a", "b", "a", "b", "b"], None),
    ],
)
def test_where_other_agents_cannot_be_seen_turns_tell_two_agents(
    looks: list[str], session: str | None
) -> None:
    choice = seen(*((UNKNOWN, each) for each in looks))
    assert choice.session == session
    assert bool(choice.why_none) == (session is None)
