"""A part of the tests of the server, on a store that PostgreSQL keeps.

All of them run there by `HARDSAVE_TEST_STORE=postgresql make test ARGS=tests/integration/server`.
"""

from collections.abc import Iterator

import pytest

from tests.integration.server import test_other_users as users
from tests.integration.server.test_other_users import bob

__all__ = ["bob"]


@pytest.fixture(scope="module", autouse=True)
def on_a_server() -> Iterator[None]:
    """Before the site of this module is made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARDSAVE_TEST_STORE", "postgresql")
        yield


test_what_others_have_is_answered_like_what_is_not_there = (
    users.test_what_others_have_is_answered_like_what_is_not_there
)
test_no_act_without_a_name_reaches_what_others_have = (
    users.test_no_act_without_a_name_reaches_what_others_have
)
test_two_users_may_use_the_same_names_and_the_same_keys = (
    users.test_two_users_may_use_the_same_names_and_the_same_keys
)
