"""What the picker shows of a checkpoint before it is chosen."""

from pathlib import Path

import pytest

import hardsave
from hardsave.cli.log_query import pick_list
from hardsave.cli.picker.options import previewed
from hardsave.cli.picker.state import What


@pytest.mark.parametrize(
    ("what", "has_files", "has_talk"),
    [("all", True, True), ("state", False, True), ("files", True, False)],
)
def test_a_preview_tells_of_what_goes_back_and_of_nothing_else(
    what: What, has_files: bool, has_talk: bool, session_1: Path
) -> None:
    with hardsave.open() as vault:
        line = vault.timeline("session-1")
        lines = [each.plain for each in previewed(line.head, line.get("@~2"), what)]
    assert any("would change" in each for each in lines) == has_files
    assert any("1 message" in each for each in lines) == has_talk


def test_what_has_a_name_is_offered_at_any_age_and_so_is_the_head() -> None:
    with hardsave.open("memory://") as vault:
        line = vault.timeline("main")
        for number in range(1, 10):
            line.save({"turn": number}, name="plan-ready" if number == 2 else None)
        line.rewind("main:4", what="state")
        found = pick_list(line, 3)
    assert [one.seq for one in found.checkpoints] == [9, 8, 7, 4, 2]
    assert found.has_more
