import pytest

from hardsave.defaults import LINK_SECONDS, MAX_WRONG_TOKENS, SESSION_SECONDS
from hardsave.server.access import WrongTokens
from hardsave.server.caller import Caller
from hardsave.server.logins import Logins

RIGHT = "right"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def logins(clock: Clock) -> Logins:
    known = {RIGHT: Caller("ci", "alice", "read")}
    return Logins(known.get, clock)


def test_a_key_lets_one_browser_in_once(logins: Logins) -> None:
    key = logins.new_key()
    first = logins.enter(key=key)
    assert first is not None
    session = logins.session(first)
    assert session is not None
    assert session.caller.user is None
    assert session.caller.form_token
    assert logins.enter(key=key) is None


def test_a_key_is_good_for_minutes(logins: Logins, clock: Clock) -> None:
    key = logins.new_key()
    clock.now = LINK_SECONDS
    assert logins.enter(key=key) is None


@pytest.mark.parametrize("given", [{}, {"key": "x"}, {"token": "x"}, {"key": "x", "token": RIGHT}])
def test_a_wrong_key_or_token_lets_no_browser_in(logins: Logins, given: dict[str, str]) -> None:
    logins.new_key()
    assert logins.enter(**given) is None


def test_a_token_lets_a_browser_in_as_its_user(logins: Logins) -> None:
    id = logins.enter(token=RIGHT)
    assert id is not None
    session = logins.session(id)
    assert session is not None
    assert (session.caller.user, session.caller.scope) == ("alice", "read")


def test_a_session_ends(logins: Logins, clock: Clock) -> None:
    one, two = logins.enter(token=RIGHT), logins.enter(token=RIGHT)
    assert one is not None
    assert two is not None
    assert one != two
    assert logins.session(one) is not None
    clock.now = SESSION_SECONDS
    assert logins.session(two) is None
    assert logins.session("") is None


def test_sessions_are_bounded_and_the_oldest_goes(logins: Logins) -> None:
    ids = [logins.enter(token=RIGHT) or "" for _ in range(100)]
    assert logins.session(ids[0]) is None
    assert sum(logins.session(id) is not None for id in ids) == 64


def test_an_address_that_sends_wrong_tokens_has_to_wait(clock: Clock) -> None:
    wrong = WrongTokens(clock)
    assert [wrong.add("a") for _ in range(MAX_WRONG_TOKENS)] == [0] * MAX_WRONG_TOKENS
    assert wrong.add("a") == 60
    assert wrong.add("b") == 0
    clock.now = 60
    assert wrong.add("a") == 0


def test_addresses_that_send_wrong_tokens_are_bounded(clock: Clock) -> None:
    wrong = WrongTokens(clock)
    for number in range(5_000):
        wrong.add(str(number))
    assert len(wrong._since) <= 1_000
