"""The names people type, and what it costs to have them."""

import subprocess
import sys
from pathlib import Path

import pytest

import hardsave
import hardsave.client
from tests.docs.surface import reachable

PUBLIC = {
    "hardsave": hardsave,
    "hardsave.aio": hardsave.aio,
    "hardsave.client": hardsave.client,
}
NAMES = [
    "ANY_HEAD",
    "Attempt",
    "BisectTry",
    "Bisected",
    "CallProgress",
    "CapturedFiles",
    "Checkout",
    "Checkpoint",
    "ChildLock",
    "Collected",
    "Conflict",
    "Corrupt",
    "DeadSession",
    "DeadlineExceeded",
    "Diff",
    "Event",
    "Exported",
    "File",
    "FileChanges",
    "FileCounts",
    "FileDiff",
    "FileVersion",
    "Files",
    "Following",
    "Fork",
    "GitChanges",
    "GitCommit",
    "GitState",
    "GraphNode",
    "Guard",
    "HardsaveError",
    "Hit",
    "Hits",
    "Imported",
    "Job",
    "JobHealth",
    "JobResumption",
    "JobSpec",
    "Jobs",
    "Kept",
    "LeaseLost",
    "LeftOut",
    "Misuse",
    "NotFound",
    "NotSaved",
    "Operation",
    "OutlivedTask",
    "Page",
    "Policy",
    "Progress",
    "Purged",
    "RecoveryReport",
    "Redaction",
    "Report",
    "Retained",
    "Retention",
    "RetentionChoice",
    "RetentionPlan",
    "RetentionRow",
    "Retry",
    "Rewind",
    "RolledBack",
    "Rule",
    "Runner",
    "SaveFailed",
    "Session",
    "StateList",
    "StateMap",
    "StatePath",
    "Stats",
    "StepSummary",
    "StepUnknown",
    "StepsChanged",
    "Survivors",
    "Task",
    "TaskEvent",
    "TaskStats",
    "Tasks",
    "Thin",
    "Timeline",
    "TimelineSummary",
    "Unavailable",
    "Unstorable",
    "Upkept",
    "Vault",
    "VaultStore",
    "Verification",
    "Watching",
    "Workspace",
    "WorkspaceStatus",
    "WorkspaceTaken",
    "acting_as",
    "aio",
    "checkpoint_id",
    "deadline",
    "from_json",
    "on_progress",
    "open",
    "register",
    "repair",
    "to_json",
]


def loaded_by(statement: str) -> set[str]:
    """The modules that a fresh Python has loaded after a statement."""
    script = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60
    )
    return set(done.stdout.split())


def test_the_exported_names_are_these() -> None:
    assert hardsave.__all__ == NAMES
    for name in NAMES:
        assert getattr(hardsave, name) is not None


def test_what_public_methods_return_is_exported() -> None:
    """And the fields of that, and what their methods return: all that a program can hold."""
    exported = {id(getattr(room, name)) for room in PUBLIC.values() for name in room.__all__}
    found = reachable(PUBLIC)
    assert len(found) > 80
    assert [way for each, way in found.items() if id(each) not in exported] == []


def test_what_public_methods_return_cannot_be_unpacked_by_position() -> None:
    found = reachable(PUBLIC)
    assert {each.__name__ for each in found if issubclass(each, tuple)} == {"StatePath"}  # a path


def test_no_other_name_looks_like_an_export() -> None:
    public = {name for name in vars(hardsave) if not name.startswith("_")}
    rooms = {
        "actor",
        "agents",
        "aio",
        "cli",
        "client",
        "compat",
        "config",
        "daemon",
        "defaults",
        "errors",
        "logs",
        "objects",
        "page",
        "progress",
        "record",
        "server",
        "stores",
        "testing",
        "tuples",
        "wording",
    }
    rooms |= {"runtime", "tasks", "timeline", "values", "vault", "workspace"}
    typing_only = {"TYPE_CHECKING"}
    assert public - rooms - typing_only <= set(NAMES)


def test_all_of_them_come_with_a_star() -> None:
    space: dict[str, object] = {}
    exec("from hardsave import *", space)  # noqa: S102 # what is tested
    assert space.keys() >= set(NAMES)


def test_every_error_is_in_the_tree() -> None:
    for name in ("Conflict", "Corrupt", "Misuse", "NotFound", "Unavailable", "Unstorable"):
        error = getattr(hardsave, name)
        assert issubclass(error, hardsave.HardsaveError)
        assert not issubclass(error, KeyError | ValueError | OSError)
    assert issubclass(hardsave.Unstorable, hardsave.Misuse)


def test_importing_loads_no_more_than_it_must() -> None:
    found = loaded_by("import hardsave")
    assert "hardsave" in found
    assert not found & {
        "asyncio",
        "apsw",
        "click",
        "rich",
        "sqlite3",
        "pydantic",
        "msgspec",
        "pytest",
    }
    assert not {name for name in found if name.startswith("hardsave.testing")}


def test_a_store_in_memory_loads_no_database() -> None:
    found = loaded_by("import hardsave; hardsave.open('memory://').timeline('a').save({'b': 1})")
    assert not found & {"asyncio", "apsw", "sqlite3"}


def test_a_save_into_a_file_loads_nothing_that_it_could_do_without(tmp_path: Path) -> None:
    line = f"hardsave.open('sqlite:///{tmp_path}/store.db').timeline('a')"
    found = loaded_by(f"import hardsave; {line}.save({{'b': 1}})")
    assert "apsw" in found
    slow = {"asyncio", "decimal", "json", "logging", "pathlib", "unicodedata", "urllib", "zoneinfo"}
    assert not found & slow
    assert not found & {"hardsave.objects.redaction", "hardsave.vault.search.index"}
    assert "hardsave.stores.compression" not in found


def test_aio_is_loaded_when_it_is_asked_for() -> None:
    assert {"asyncio", "hardsave.aio"} <= loaded_by("import hardsave; hardsave.aio")


def test_the_client_loads_no_database_and_no_server() -> None:
    found = loaded_by("import hardsave.client")
    assert not found & {"asyncio", "apsw", "sqlite3", "starlette", "uvicorn", "click", "rich"}
    assert not {name for name in found if name.startswith(("hardsave.server", "hardsave.stores.s"))}
    assert "hardsave.vault.vault" not in found


def test_the_version_is_known() -> None:
    assert hardsave.__version__[0].isdigit()
    assert hardsave.__version__ == __import__("importlib.metadata").metadata.version("hardsave")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = hardsave.nonsense  # type: ignore[attr-defined] # what is tested


def test_register_lets_a_class_come_back() -> None:
    script = """
import dataclasses, hardsave
@dataclasses.dataclass
class Point:
    x: int
hardsave.register(Point)
line = hardsave.open("memory://").timeline("main")
line.save({"at": Point(3)})
assert line.load() == {"at": Point(3)}
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
