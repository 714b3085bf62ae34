"""The tests of the server and its page, on a store that PostgreSQL keeps: some of them, and all of
them among the tests that take minutes.

`HARDSAVE_TEST_STORE=postgresql make test ARGS=tests/integration/server` runs all of them, too.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

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


@pytest.mark.torture
def test_all_tests_of_server_and_page_pass_on_a_server() -> None:
    """In processes of their own: what a session of tests shares is made once."""
    folder = Path(__file__).parent
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", str(folder), "-q", "-n", "2", "-p", "no:cacheprovider"],
        check=False,
        env={**ours, "HARDSAVE_TEST_STORE": "postgresql"},
        cwd=folder.parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=3_000,
    )
    assert done.returncode == 0, done.stdout[-20_000:]
