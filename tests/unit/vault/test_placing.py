"""Where a timeline from elsewhere goes, decided on plain data."""

import pytest

from hardsave.defaults import MAX_NAME
from hardsave.objects.records import TimelineRecord
from hardsave.timeline.names import check_timeline
from hardsave.vault.transfer import placing
from hardsave.vault.transfer.placing import Arriving, Here, Relation

OURS, THEIRS, POINT = b"o" * 12, b"t" * 12, b"p" * 12
HERE = TimelineRecord("main", OURS, 5, 100, None)
LINE = TimelineRecord("main", THEIRS, 9, 200, None)


def arriving(
    *, is_head_new: bool = True, checkpoints: bool = True, is_known: bool = True
) -> Arriving:
    return Arriving(LINE, 8, checkpoints, is_known, is_head_new, POINT)


@pytest.mark.parametrize(
    ("is_free", "relation", "expected"),
    [
        (True, "behind", True),
        (True, "ahead", True),
        (True, "apart", False),
        (False, "behind", False),
        (False, "ahead", False),
    ],
)
def test_only_more_of_the_same_history_fits(
    is_free: bool, relation: Relation, expected: bool
) -> None:
    assert placing.fits(Here(HERE, is_free, relation)) is expected


@pytest.mark.parametrize(
    ("relation", "is_head_new", "head"),
    [
        ("behind", True, THEIRS),
        ("behind", False, OURS),  # it was left on purpose: a rewind is not taken back
        ("ahead", True, OURS),
        ("ahead", False, OURS),
    ],
)
def test_a_head_moves_forwards_to_what_is_new_and_never_else(
    relation: Relation, is_head_new: bool, head: bytes
) -> None:
    here = Here(HERE, True, relation)
    found = placing.extended(arriving(is_head_new=is_head_new), here)
    assert found == HERE._replace(head=head, last_seq=9)


def test_numbers_never_fall() -> None:
    here = Here(HERE._replace(last_seq=50), True, "behind")
    assert placing.extended(arriving(), here).last_seq == 50


def test_a_deleted_timeline_is_listed_again_if_it_gets_checkpoints() -> None:
    here = Here(HERE._replace(head=None, is_deleted=True), True, "behind")
    assert not placing.extended(arriving(), here).is_deleted
    assert placing.extended(arriving(checkpoints=False), here).is_deleted


def test_what_is_partly_here_becomes_a_fork_of_it() -> None:
    found = placing.created(arriving(), "main-2")
    assert found == LINE._replace(name="main-2", last_seq=8, origin=POINT)
    assert placing.created(arriving(is_known=False), "x") == LINE._replace(name="x")


def test_the_next_name_is_free_short_enough_and_a_name() -> None:
    assert placing.free_name("main", lambda name: False) == "main-2"
    assert placing.free_name("main", {"main-2", "main-3"}.__contains__) == "main-4"
    long = "x" * (MAX_NAME - 3) + " yy"
    found = placing.free_name(long, lambda name: False)
    assert len(check_timeline(found)) == MAX_NAME - 1
    assert found.endswith("x-2")
