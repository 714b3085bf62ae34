"""Breakpilot's checkpoints, in memory and on a file, without the faults of the original."""

import itertools
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.compat.breakpilot import Checkpoint, CheckpointManager
from hardsave.stores.memory.store import MemoryStore
from hardsave.stores.registry import open_store
from tests.unit.vault.stage import MOMENT, SECOND, Clock

BEGINNING = datetime.fromtimestamp(MOMENT / SECOND, UTC)


@pytest.fixture(params=["memory", "sqlite"])
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[hardsave.Vault]:
    store = (
        MemoryStore()
        if request.param == "memory"
        else open_store(f"sqlite:///{tmp_path}/store.db", durability="process")
    )
    with hardsave.Vault(store, clock=Clock()) as vault:
        yield vault


@pytest.fixture
def manager(vault: hardsave.Vault) -> CheckpointManager:
    return CheckpointManager("s", vault=vault)


def ids(manager: CheckpointManager) -> list[str]:
    return [checkpoint.id for checkpoint in manager]


def exported(**about: Any) -> str:
    """An export of one checkpoint, as somebody else might have written it."""
    one = {"id": "s:7", "name": "a", "timestamp": "2024-05-01T12:00:00+02:00", "data": {}}
    return json.dumps([{**one, **about}])


def moment(seconds: float) -> datetime:
    return BEGINNING + timedelta(seconds=seconds)


# Creating and finding


def test_a_checkpoint_has_a_rising_id_and_a_time_in_utc(manager: CheckpointManager) -> None:
    first = manager.create("start", {"step": 1})
    second = manager.create("step", {"step": 2}, {"by": "me"})
    assert (first.id, second.id) == ("s:1", "s:2")
    assert first.timestamp == moment(1)
    assert first.timestamp.tzinfo is UTC
    assert (second.data, second.metadata, first.metadata) == ({"step": 2}, {"by": "me"}, {})


def test_checkpoints_are_found_by_id_name_and_time(manager: CheckpointManager) -> None:
    for n, name in enumerate("abab", 1):
        manager.create(name, {"n": n})
    assert manager.get("s:2") == Checkpoint("s:2", "b", moment(2), {"n": 2}, {})
    assert [found.id for found in manager.get_by_name("a")] == ["s:3", "s:1"]
    assert [found.id for found in manager.get_all()] == ["s:1", "s:2", "s:3", "s:4"]
    assert [found.id for found in manager.get_since(moment(2))] == ["s:3", "s:4"]
    assert [found.id for found in manager.get_between(moment(2), moment(3))] == ["s:2", "s:3"]
    latest, latest_a = manager.get_latest(), manager.get_latest("a")
    assert manager.get_latest("") == latest
    assert latest is not None
    assert latest_a is not None
    assert (latest.id, latest_a.id) == ("s:4", "s:3")
    assert len(manager) == 4


def test_what_is_not_there_is_none(manager: CheckpointManager) -> None:
    assert manager.get_latest() is None
    manager.create("a", {})
    assert manager.get("s:9") is None
    assert manager.rollback_to("s:9") is None
    assert manager.get_latest("z") is None
    assert manager.get_by_name("z") == []


def test_any_zone_may_ask_and_none_means_local(manager: CheckpointManager) -> None:
    manager.create("a", {})
    manager.create("b", {})
    east = moment(1).astimezone(timezone(timedelta(hours=9)))
    naive = moment(1).astimezone().replace(tzinfo=None)
    assert [found.id for found in manager.get_since(east)] == ["s:2"]
    assert [found.id for found in manager.get_since(naive)] == ["s:2"]


def test_rolling_back_gives_data_and_moves_nothing(
    manager: CheckpointManager, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    manager.create("a", {"n": 1})
    manager.create("b", {"n": 2})
    assert manager.rollback_to("s:1") == {"n": 1}
    assert ids(manager) == ["s:1", "s:2"]
    assert "rollback to 'a' (s:1)" in caplog.text


def test_nothing_that_comes_back_is_shared(manager: CheckpointManager) -> None:
    data: dict[str, Any] = {"list": [1]}
    metadata = {"tags": ["x"]}
    created = manager.create("a", data, metadata)
    for given in (data["list"], metadata["tags"], created.data["list"]):
        given.append("changed")
    rolled = manager.rollback_to("s:1")
    assert rolled == {"list": [1]}
    rolled["list"].append("changed")
    found = manager.get("s:1")
    assert found is not None
    assert (found.data, found.metadata) == ({"list": [1]}, {"tags": ["x"]})


@pytest.mark.parametrize(
    "name",
    ["", " ", "two\nlines", "@", "s:1", "chk_" + "0" * 24, "x" * 5_000, "\ud800", "~", "\0"],
    ids=ascii,
)
def test_any_text_is_a_name_and_a_session(vault: hardsave.Vault, name: str) -> None:
    manager = CheckpointManager(name, vault=vault)
    created = manager.create(name, {"n": 1})
    manager.create("another", {})
    assert (created.id, created.name) == (f"{name}:1", name)
    assert [found.id for found in manager.get_by_name(name)] == [f"{name}:1"]
    assert manager.get_summary()["names"] == {name: 1, "another": 1}
    assert CheckpointManager("s", vault=vault).get_all() == []


# Letting go


def test_two_hundred_creates_of_five_names_leave_at_most_fifty(manager: CheckpointManager) -> None:
    for n in range(200):
        manager.create(f"name {n % 5}", {"n": n})
        assert len(manager) <= 50
    assert ids(manager)[0] == "s:1"
    assert ids(manager)[-20:] == [f"s:{n}" for n in range(181, 201)]
    assert manager.get_summary()["unique_names"] == 5


def test_past_the_threshold_the_middle_keeps_the_latest_of_each_name(
    manager: CheckpointManager, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger="hardsave.compat.breakpilot")
    for n in range(50):
        manager.create(f"name {n % 4}", {"n": n})
    assert "compressed" not in caplog.text
    manager.create("name 2", {"n": 50})
    assert ids(manager) == [f"s:{n}" for n in (1, 28, 29, 30, 31, *range(32, 52))]
    assert "session s: compressed checkpoints from 51 to 25" in caplog.text


def test_the_limit_holds_also_where_every_name_is_another() -> None:
    manager = CheckpointManager("s")
    for n in range(300):
        manager.create(f"name {n}", {"n": n})
        assert len(manager) <= 100
    assert ids(manager) == [f"s:{n}" for n in range(201, 301)]


@pytest.mark.parametrize("compress_after", [0, 1, 2, 5, 20])
def test_small_thresholds_double_nothing(compress_after: int) -> None:
    manager = CheckpointManager("s", compress_after=compress_after)
    for n in range(60):
        manager.create("step", {"n": n})
        found = ids(manager)
        assert len(set(found)) == len(found) <= max(2, compress_after)
        assert found[-1] == f"s:{n + 1}"


def test_odd_names_are_thinned_by_name_too() -> None:
    manager = CheckpointManager("s", compress_after=5)
    for n in range(20):
        manager.create(f"@{n % 2}", {"n": n})
    assert len(manager) <= 5
    assert {found.name for found in manager} == {"@0", "@1"}


def test_other_timelines_of_the_vault_are_left_alone(vault: hardsave.Vault) -> None:
    for n in range(10):
        vault.timeline("s").save({"n": n})
        CheckpointManager("other", vault=vault).create("a", {})
    manager = CheckpointManager("s", max_checkpoints=3, vault=vault)
    for n in range(10):
        manager.create("a", {"n": n})
    assert (len(manager), len(vault.timeline("s"))) == (3, 10)
    assert len(CheckpointManager("other", vault=vault)) == 10


def test_clearing_counts_and_the_numbers_go_on(vault: hardsave.Vault) -> None:
    manager = CheckpointManager("s", vault=vault)
    assert manager.clear() == 0
    for _ in range(3):
        manager.create("a", {})
    assert manager.clear() == 3
    assert (len(manager), manager.clear()) == (0, 0)
    assert CheckpointManager("s", vault=vault).create("b", {}).id == "s:4"


# Numbers


def test_the_summary_of_nothing_has_the_zero_form(manager: CheckpointManager) -> None:
    assert manager.get_summary() == {
        "total_count": 0,
        "unique_names": 0,
        "names": {},
        "first_checkpoint": None,
        "last_checkpoint": None,
        "duration_seconds": 0,
    }


def test_a_summary_counts_names_and_shows_both_ends(manager: CheckpointManager) -> None:
    for n, name in enumerate("aab", 1):
        manager.create(name, {"n": n})
    summary = manager.get_summary()
    assert summary == json.loads(json.dumps(summary))
    assert summary["total_count"] == 3
    assert summary["names"] == {"a": 2, "b": 1}
    assert summary["first_checkpoint"]["id"] == "s:1"
    assert summary["last_checkpoint"]["data"] == {"n": 3}
    assert summary["duration_seconds"] == 2.0


# The callback


def test_the_callback_is_called_once_for_each_and_the_last_one_set_counts(
    manager: CheckpointManager,
) -> None:
    first: list[str] = []
    second: list[str] = []
    manager.on_checkpoint(lambda checkpoint: first.append(checkpoint.id))
    manager.create("a", {})
    manager.on_checkpoint(lambda checkpoint: second.append(checkpoint.id))
    manager.create("b", {})
    manager.on_checkpoint(None)
    manager.create("c", {})
    assert (first, second) == (["s:1"], ["s:2"])


def test_a_failing_callback_breaks_nothing(
    manager: CheckpointManager, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(checkpoint: Checkpoint) -> None:
        raise ValueError("no")

    manager.on_checkpoint(fails)
    assert manager.create("a", {}).id == "s:1"
    assert "the callback failed" in caplog.text


def test_the_callback_may_use_the_manager(manager: CheckpointManager) -> None:
    seen: list[int] = []
    manager.on_checkpoint(lambda checkpoint: seen.append(len(manager.get_all())))
    manager.create("a", {})
    assert seen == [1]


# Export and import


def filled(vault: hardsave.Vault | None = None) -> CheckpointManager:
    manager = CheckpointManager("s", vault=vault)
    for n, name in enumerate(["start", "@odd", "step", "step"], 1):
        manager.create(name, {"n": n, "deep": {"list": [1, None, 2.5]}}, {"by": "me"})
    return manager


def test_export_import_export_are_equal(vault: hardsave.Vault) -> None:
    exported = filled().export()
    manager = CheckpointManager("s", vault=vault)
    assert manager.import_checkpoints(exported) == 4
    assert manager.export() == exported
    assert [one["id"] for one in json.loads(exported)] == ["s:1", "s:2", "s:3", "s:4"]


@pytest.mark.parametrize("data", [None, [1], "text", 5, {}])
def test_whatever_was_created_can_be_imported(vault: hardsave.Vault, data: Any) -> None:
    first = CheckpointManager("s")
    first.create("data", data)
    first.create("metadata", {}, data)
    manager = CheckpointManager("s", vault=vault)
    assert manager.import_checkpoints(first.export()) == 2
    assert manager.export() == first.export()


def test_metadata_may_be_null_in_an_export(manager: CheckpointManager) -> None:
    assert manager.import_checkpoints(exported(metadata=None)) == 1
    assert manager.get_all()[0].metadata == {}


def test_an_import_brings_no_id_twice(vault: hardsave.Vault) -> None:
    manager = filled(vault)
    exported = manager.export()
    assert manager.import_checkpoints(exported) == 0
    once = json.loads(exported)[:1]
    once[0]["id"] = "s:70"
    assert manager.import_checkpoints(json.dumps(once + once)) == 1
    assert ids(manager) == ["s:1", "s:2", "s:3", "s:4", "s:70"]


def test_numbers_go_on_past_the_highest_imported(vault: hardsave.Vault) -> None:
    manager = CheckpointManager("s", vault=vault)
    manager.create("own", {})
    exported = json.loads(filled().export())
    for one, number in zip(exported, (10, 40, 20, 3), strict=True):
        one["id"] = f"s:{number}"
    assert manager.import_checkpoints(json.dumps(exported)) == 4
    assert manager.create("next", {}).id == "s:41"
    assert manager.create("next", {}).id == "s:42"
    assert len(set(ids(manager))) == 7
    again = CheckpointManager("s", vault=vault)
    assert again.create("next", {}).id == "s:43"
    again.clear()
    assert again.create("next", {}).id == "s:44"
    again.clear()
    assert again.create("next", {}).id == "s:45"


def test_numbers_go_on_after_the_timeline_was_rewound(vault: hardsave.Vault) -> None:
    manager = CheckpointManager("s", vault=vault)
    manager.create("own", {})
    manager.import_checkpoints(exported(id="s:4"))
    assert manager.create("next", {}).id == "s:5"
    vault.timeline("breakpilot/s").rewind(":1")
    assert manager.create("next", {}).id == "s:6"
    vault.timeline("breakpilot/s").rewind(":1")
    manager.clear()
    assert manager.create("next", {}).id == "s:7"


def test_another_sessions_checkpoints_keep_their_ids(vault: hardsave.Vault) -> None:
    manager = CheckpointManager("t", vault=vault)
    manager.create("own", {})
    assert manager.import_checkpoints(filled().export()) == 4
    assert manager.create("own", {}).id == "t:6"
    assert ids(manager)[:3] == ["t:1", "s:1", "s:2"]


def test_an_import_obeys_the_limit() -> None:
    manager = CheckpointManager("s", max_checkpoints=2)
    assert manager.import_checkpoints(filled().export()) == 4
    assert ids(manager) == ["s:3", "s:4"]


def test_imported_times_are_the_original_ones(vault: hardsave.Vault) -> None:
    given = [{"id": "s:1", "name": "a", "timestamp": "2024-05-01T12:00:00+02:00", "data": {}}]
    manager = CheckpointManager("s", vault=vault)
    manager.import_checkpoints(json.dumps(given))
    found = manager.get("s:1")
    assert found is not None
    assert found.to_dict()["timestamp"] == "2024-05-01T10:00:00+00:00"
    assert found.metadata == {}


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "5",
        "{}x",
        '[{"id": "s:1"}]',
        '["s:1"]',
        '[{"id": 1, "name": "a", "data": {}, "timestamp": "2024-05-01"}]',
        '[{"id": "s:1", "name": "a", "data": {}, "timestamp": "?"}]',
        "[" * 100_000,
        exported(id="s:" + "9" * 5_000),
        exported(id="s:9223372036854775808"),
        exported(id="x" * 30_001),
        exported(name="x" * 30_001),
        exported(timestamp="9999-12-31T23:59:59-12:00"),
        exported(timestamp="0001-01-01T00:00:00+12:00"),
        exported(timestamp=5),
        '[{"id": "s:1", "name": "a", "data": {"n": ' + "9" * 5_000 + '}, "timestamp": "2024"}]',
    ],
    ids=itertools.count(),
)
def test_what_is_no_export_changes_nothing(manager: CheckpointManager, wrong: str) -> None:
    good = exported(id="s:1")[1:-1]
    with pytest.raises(hardsave.Misuse):
        manager.import_checkpoints(wrong)
    with pytest.raises(hardsave.Misuse):
        manager.import_checkpoints(f"[{good},{wrong[1:]}")
    assert len(manager) == 0


def test_what_is_wrong_in_an_export_is_named(manager: CheckpointManager) -> None:
    good, bad = exported()[1:-1], exported(name=5)[1:-1]
    with pytest.raises(hardsave.Misuse, match="name of checkpoint 2 of this export is a text"):
        manager.import_checkpoints(f"[{good}, {bad}]")


@pytest.mark.parametrize("url", ["memory://", "sqlite:///{}/small.db"])
def test_what_cannot_be_stored_takes_the_whole_import_back(url: str, tmp_path: Path) -> None:
    exported = json.loads(filled().export())
    exported[3]["data"]["long"] = "x" * 2_000
    with hardsave.open(url.format(tmp_path), max_value_bytes=1_000) as vault:
        manager = CheckpointManager("s", vault=vault)
        manager.create("own", {})
        with pytest.raises(hardsave.Unstorable, match=r"state\.data\.long"):
            manager.import_checkpoints(json.dumps(exported))
        assert ids(manager) == ["s:1"]
        assert [one.name for one in manager] == ["own"]
        del exported[3]
        for one in exported:
            one["id"] = one["id"].replace(":", ":1")
        assert manager.import_checkpoints(json.dumps(exported)) == 3
        assert ids(manager) == ["s:1", "s:11", "s:12", "s:13"]


def test_an_import_that_cannot_be_taken_back_says_what_it_has_added(
    vault: hardsave.Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager, saves = CheckpointManager("s", vault=vault), list[Any]()
    saved = manager._save_imported

    def full(*about: Any) -> Any:
        if len(saves) == 2:
            raise hardsave.Unavailable("no space left")
        saves.append(saved(*about))
        return saves[-1]

    def fails(_: object) -> None:
        raise hardsave.Unavailable("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(manager, "_save_imported", full)
        patch.setattr(vault, "delete", fails)
        with pytest.raises(hardsave.Unavailable, match=r"2 checkpoints .* were added.*no space"):
            manager.import_checkpoints(filled().export())
    assert manager.import_checkpoints(filled().export()) == 2
    assert ids(manager) == ["s:1", "s:2", "s:3", "s:4"]


def test_the_highest_number_can_be_imported_and_is_not_given_out_again(
    manager: CheckpointManager,
) -> None:
    manager.import_checkpoints(exported(id=f"s:{2**63 - 1}"))
    assert manager.create("a", {}).id == f"s:{2**63}"
    assert len(manager.export()) > 0


def test_what_is_too_deep_to_be_imported_is_not_exported(manager: CheckpointManager) -> None:
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"in": deep}
    manager.create("a", deep)
    assert manager.rollback_to("s:1") == deep
    with pytest.raises(hardsave.Misuse, match="nested"):
        manager.export()


def test_the_ends_of_time_mean_all(manager: CheckpointManager) -> None:
    first, last = datetime(1, 1, 1), datetime(9999, 12, 31, 23)  # noqa: DTZ001 # that is the test
    manager.create("a", {})
    assert len(manager.get_since(first)) == 1
    assert len(manager.get_between(first, last)) == 1
    assert manager.get_since(last) == []
    with pytest.raises(hardsave.Misuse, match="timestamp is a datetime, not str"):
        manager.get_since("2024-01-01")  # type: ignore[arg-type] # that is the test


def test_what_json_cannot_hold_is_kept_and_said_at_export(manager: CheckpointManager) -> None:
    manager.create("a", {"set": {1, 2}, "at": BEGINNING})
    assert manager.rollback_to("s:1") == {"set": {1, 2}, "at": BEGINNING}
    with pytest.raises(hardsave.Misuse, match="JSON"):
        manager.export()


def test_a_checkpoint_round_trips_as_a_dict() -> None:
    one = Checkpoint("s:1", "a", BEGINNING, {"n": 1}, {"m": 2})
    assert Checkpoint.from_dict(one.to_dict()) == one
    bare = {key: value for key, value in one.to_dict().items() if key != "metadata"}
    assert Checkpoint.from_dict(bare).metadata == {}


# Where it lives


def test_without_a_vault_each_manager_has_its_own() -> None:
    CheckpointManager("s").create("a", {})
    assert len(CheckpointManager("s")) == 0


def test_with_the_url_of_a_store_it_outlives_the_process(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    manager = CheckpointManager("s", vault=url)
    manager.create("a", {"n": 1})
    manager.close()
    again = CheckpointManager("s", vault=url)
    assert again.rollback_to("s:1") == {"n": 1}
    assert again.create("b", {}).id == "s:2"
    again.close()


def test_a_vault_that_was_handed_in_stays_open(vault: hardsave.Vault) -> None:
    CheckpointManager("s", vault=vault).close()
    assert list(vault.timelines()) == []


def test_many_threads_and_managers_share_a_session(vault: hardsave.Vault) -> None:
    managers = [CheckpointManager("s", vault=vault) for _ in range(3)]
    made: list[str] = []

    def work(manager: CheckpointManager) -> None:
        made.extend(manager.create("a", {"n": n}).id for n in range(8))

    threads = [threading.Thread(target=work, args=(manager,)) for manager in managers * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made, key=lambda id: int(id[2:])) == [f"s:{n}" for n in range(1, 49)]


def test_limits_that_cannot_be_meant_are_refused() -> None:
    with pytest.raises(hardsave.Misuse, match="max_checkpoints"):
        CheckpointManager("s", max_checkpoints=0)
    with pytest.raises(hardsave.Misuse, match="above"):
        CheckpointManager("s", compress_after=-1)
