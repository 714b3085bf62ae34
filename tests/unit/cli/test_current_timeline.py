from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hardsave.cli import current_timeline
from hardsave.cli.current_timeline import TimelineState
from hardsave.errors import Misuse
from hardsave.tuples import NamedTuple

HERE = Path("/home/user/project")


def standing(
    name: str, saved: int, status: str = "running", workspace: str | None = str(HERE)
) -> TimelineState:
    return TimelineState(name, status, saved, workspace)


def test_what_is_given_is_taken() -> None:
    assert current_timeline.timeline("other", [standing("a", 1), standing("b", 2)], HERE) == "other"


def test_without_any_it_is_main() -> None:
    assert current_timeline.timeline(None, [], HERE) == "main"


def test_the_one_that_last_saved_here_is_taken() -> None:
    lines = [standing("a", 3, "done"), standing("b", 2), standing("c", 1, "failed")]
    assert current_timeline.timeline(None, lines, HERE) == "a"


def test_two_that_are_unfinished_are_listed() -> None:
    lines = [standing("b", 3), standing("a", 2, "waiting"), standing("c", 1, "done")]
    with pytest.raises(Misuse, match=r"2 timelines are unfinished here: 'b', 'a'.*--timeline"):
        current_timeline.timeline(None, lines, HERE)
    assert current_timeline.timeline(None, lines, HERE, reads_only=True) == "b"


def test_the_session_of_the_agent_that_calls_is_taken_until_it_has_ended() -> None:
    lines = [standing("b", 3), standing("a", 2, "waiting"), standing("c", 1, "ended")]
    assert current_timeline.timeline(None, lines, HERE, callers=["a"]) == "a"
    assert current_timeline.timeline("b", lines, HERE, callers=["a"]) == "b"
    elsewhere = [*lines, standing("d", 4, workspace="/elsewhere")]
    for caller in ("c", "d", "gone"):
        with pytest.raises(Misuse, match="2 timelines are unfinished"):
            current_timeline.timeline(None, elsewhere, HERE, callers=[caller])


def test_a_session_that_was_left_before_the_newest_began_is_not_meant() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    left = standing("left", 2)._replace(worked_at=noon - timedelta(seconds=1))
    newest = standing("newest", 3)._replace(created_at=noon, worked_at=noon)
    assert current_timeline.timeline(None, [left, newest], HERE) == "newest"
    beside = left._replace(worked_at=noon)
    assert current_timeline.unfinished([beside, newest], HERE) == ["newest", "left"]


def test_the_one_that_was_moved_last_is_taken() -> None:
    lines = [standing("a", 1)._replace(moved=4), standing("b", 3, "done")]
    assert current_timeline.timeline(None, lines, HERE) == "a"


class Done(NamedTuple):
    kind: str
    timeline: str | None
    is_undone: bool = False


def test_an_undo_is_about_the_last_operation_that_stands() -> None:
    newest_first = [Done("undo", "b"), Done("rewind", "b", is_undone=True), Done("rewind", "a")]
    assert current_timeline.to_undo(newest_first) == newest_first[2]
    assert current_timeline.to_undo(newest_first[:2]) is None


def test_a_redo_is_about_the_last_undo_that_stands() -> None:
    undone = [Done("undo", "b"), Done("undo", "a"), Done("rewind", "b", is_undone=True)]
    assert current_timeline.to_redo(undone) == undone[0]
    assert current_timeline.to_redo([Done("redo", "b"), *undone]) == undone[1]
    assert current_timeline.to_redo([Done("redo", "a"), *undone]) == undone[0]
    assert current_timeline.to_redo([Done("rewind", "c"), *undone]) is None


def test_many_that_are_unfinished_are_counted() -> None:
    lines = [standing(f"s{number}", number) for number in range(1, 10)]
    assert current_timeline.listed(current_timeline.unfinished(lines, HERE)) == (
        "9 timelines are unfinished here: 's9', 's8', 's7', 's6' and 5 more"
    )


def test_what_saves_elsewhere_does_not_count() -> None:
    lines = [
        standing("a", 1),
        standing("b", 9, workspace="/elsewhere"),
        standing("c", 8, workspace=None),
    ]
    assert current_timeline.timeline(None, lines, HERE) == "a"


def test_timelines_without_files_count_where_none_has_files_from_here() -> None:
    lines = [standing("b", 9, workspace="/elsewhere"), standing("c", 8, workspace=None)]
    assert current_timeline.timeline(None, lines, HERE) == "c"


@pytest.mark.parametrize("status", ["done", "Completed", "FAILED"])
def test_a_status_that_ends_something_is_known_in_any_case(status: str) -> None:
    assert not standing("a", 1, status).is_unfinished
    assert standing("a", 1, "step 3").is_unfinished


def test_the_workspace_is_the_nearest_directory_that_was_saved() -> None:
    inner = HERE / "src" / "deep"
    assert current_timeline.workspace(inner, HERE, [str(HERE / "src"), str(HERE)]) == HERE / "src"
    assert current_timeline.workspace(inner, HERE, []) == HERE


def test_the_workspace_never_lies_above_the_project() -> None:
    assert current_timeline.workspace(HERE / "src", HERE, [str(HERE.parent)]) == HERE


def test_a_free_name_is_the_next_number() -> None:
    assert current_timeline.free_name("main", ["main"]) == "main-2"
    assert current_timeline.free_name("main", ["main", "main-2", "main-4"]) == "main-3"
