import pytest

from hardsave.adapters.langgraph.versions import next_version


def test_versions_sort_as_they_were_made() -> None:
    made = [next_version(None)]
    for _ in range(1000):
        made.append(next_version(made[-1]))
    assert made == sorted(made)
    assert made[0].startswith("00000001.")


def test_two_branches_never_make_the_same_version() -> None:
    assert len({next_version("00000006.00000000") for _ in range(100)}) == 100


@pytest.mark.parametrize("current", [6, 6.5, "00000006.ab", f"{6:032}.0.8444218515250481"])
def test_the_versions_of_other_savers_go_on(current: str | int | float) -> None:
    assert next_version(current).startswith("00000007.")
