"""Records are read by their annotations, also from servers that say more."""

from datetime import UTC, datetime
from typing import Any

import pytest

from hardsave.client import reading
from hardsave.client.reading import Unreadable
from hardsave.client.records import RemoteRewind
from hardsave.errors import Unavailable
from hardsave.tasks.task import Progress
from hardsave.timeline.step_summary import FileCounts, StepSummary
from hardsave.vault.history.session_list import Session
from hardsave.vault.restore.path_choice import Kept
from hardsave.vault.restore.plan import FileChanges
from hardsave.vault.restore.task_rollback import RolledBack
from hardsave.vault.restore.undo import Operation

NOW = "2026-01-31T14:00:00+00:00"
SESSION = {
    "timeline": "main",
    "title": "Fix it",
    "created_at": NOW,
    "updated_at": NOW,
    "newest": None,
    "head": {"id": "chk_1"},
    "origin": None,
    "is_deleted": False,
    "checkpoints": 3,
}
OPERATION = {
    "id": "op",
    "kind": "rewind",
    "timeline": "main",
    "created_at": NOW,
    "number": 7,
    "is_undone": False,
    "about": {"keep": {"$tuple": [1, {"$bytes": "AP8="}]}},
}
CHANGES = {
    "workspace": {"$text": "/caf\\udce9"},
    "created": ["a", {"$text": "\\udcff"}],
    "changed": [],
    "removed": [],
    "bytes": {"$int": str(1 << 60)},
    "kept": [{"path": "b", "reason": "in the way"}],
}


def test_a_record_has_its_moments_checkpoints_and_properties() -> None:
    found: Session[Any] = reading.record(Session, SESSION, lambda told: told["id"])
    assert found.head == "chk_1"
    assert found.newest is None
    assert found.updated_at == datetime(2026, 1, 31, 14, tzinfo=UTC)
    assert found.status is None


def test_nested_records_and_tuples_are_read() -> None:
    told = {"messages": 2, "outside": ["api"], "files": {"added": 1, "total": 4}, "paths": ["a"]}
    assert reading.record(StepSummary, told) == StepSummary(
        messages=2, outside=("api",), files=FileCounts(added=1, total=4), paths=("a",)
    )


def test_values_of_users_come_back_as_they_were() -> None:
    assert reading.record(Operation, OPERATION).about == {"keep": (1, b"\x00\xff")}


def test_classes_that_are_loaded_late_are_read_too() -> None:
    found = reading.record(Operation, {**OPERATION, "files": CHANGES})
    assert isinstance(found.files, FileChanges)
    assert found.files.kept == (Kept("b", "in the way"),)
    rolled = {"id": "t", "text": "", "state": "completed", "effects": ["mail"]}
    told = {"timeline": "main", "before": None, "target": {"id": "x"}, "moved": True}
    rewound: RemoteRewind[Any] = reading.record(
        RemoteRewind, {**told, "tasks": [rolled], "files": None}, lambda told: told["id"]
    )
    assert rewound.tasks == (RolledBack("t", "", "completed", ("mail",)),)
    assert rewound.files is None


def test_names_and_numbers_that_json_lacks_are_read() -> None:
    found = reading.record(FileChanges, CHANGES)
    assert found.workspace == "/caf\udce9"
    assert found.created == ("a", "\udcff")
    assert found.bytes == 1 << 60


def test_fields_of_a_newer_server_are_passed_by() -> None:
    assert reading.record(Progress, {"done": 1, "total": 2, "since": NOW}) == Progress(1, 2)


@pytest.mark.parametrize(
    "told",
    [None, [], "x", {"done": 1}, {**SESSION, "created_at": "yesterday"}],
)
def test_what_is_no_such_record_is_an_error_of_ours(told: Any) -> None:
    cls: Any = Session if isinstance(told, dict) and "title" in told else Progress
    with pytest.raises(Unreadable, match="another version"):
        reading.record(cls, told)
    assert issubclass(Unreadable, Unavailable)


def test_a_page_has_items_and_the_next_cursor() -> None:
    found = reading.page({"items": [1, 2], "next": "c", "more": 1}, str)
    assert ([*found], found.next) == (["1", "2"], "c")
    with pytest.raises(Unreadable, match="items"):
        reading.page({"next": None}, str)
