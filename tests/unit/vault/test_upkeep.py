"""Once a day, without being asked: what the settings let go goes, and nothing else."""

import errno
import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import hardsave
from hardsave import config
from hardsave.config import file, trust
from hardsave.stores.registry import open_store
from hardsave.stores.results import Collected
from hardsave.timeline.policy import DAY, DEFAULT, Policy
from hardsave.vault.retention import upkeep
from hardsave.vault.retention.retain import Retained
from hardsave.vault.vault import Vault
from tests.unit.repositories import begin_repository
from tests.unit.stores.processes import eventually

MICROSECONDS = 1_000_000


class Clock:
    """It stands still until it is set."""

    def __init__(self) -> None:
        self.days = 20_000.0

    def __call__(self) -> int:
        return int(self.days * 86_400 * MICROSECONDS)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return project


@pytest.fixture
def opened(project: Path, clock: Clock) -> Iterator[Callable[..., hardsave.Vault]]:
    vaults: list[hardsave.Vault] = []

    def open_it(user: str | None = None) -> hardsave.Vault:
        store = open_store(f"sqlite:///{project.parent}/store.db")
        vaults.append(Vault(store, user=user, clock=clock, directory=str(project)))
        return vaults[-1]

    yield open_it
    for each in vaults:
        each.close()


def settings_of_user(text: str) -> None:
    path = config.user_file(os.environ, sys.platform)
    path.parent.mkdir(parents=True)
    path.write_text(text)


def seqs(vault: hardsave.Vault) -> list[int]:
    return [checkpoint.seq for checkpoint in vault.timeline("main").checkpoints()]


def saved_long_ago(vault: hardsave.Vault, clock: Clock) -> None:
    """Three without a name and one with one, 40 days ago; one today."""
    for turn in range(3):
        vault.timeline("main").save({"turn": turn})
    vault.timeline("main").save({"turn": 3}, name="kept")
    clock.days += 40
    vault.timeline("main").save({"turn": 4})


def test_what_is_old_and_has_no_name_goes_once_a_day(
    opened: Callable[[], hardsave.Vault], clock: Clock
) -> None:
    vault = opened()
    saved_long_ago(vault, clock)
    told: list[str] = []
    vault.on("retained", lambda _: told.append("retained"))
    vault.on("collected", lambda _: told.append("collected"))
    done = vault.store.upkeep()
    assert done is not None
    assert (done.retained.dropped, done.over_bytes) == (3, 0)
    assert done.collected.objects > 0
    assert told == ["retained", "collected"]
    assert seqs(vault) == [5, 4]
    assert vault.store.verify().ok

    assert vault.store.upkeep() is None
    assert opened().store.upkeep() is None
    clock.days += 1
    assert opened().store.upkeep() is not None


def test_a_clock_that_was_set_back_is_believed(
    opened: Callable[[], hardsave.Vault], clock: Clock
) -> None:
    assert opened().store.upkeep() is not None
    clock.days -= 300
    assert opened().store.upkeep() is not None
    assert opened().store.upkeep() is None


def test_a_clock_that_leaps_ahead_is_not_believed_at_once(
    opened: Callable[[], hardsave.Vault], clock: Clock
) -> None:
    vault = opened()
    assert vault.store.upkeep() is not None
    for turn in range(3):
        vault.timeline("main").save({"turn": turn})
    clock.days += 3_650
    assert vault.store.upkeep() is None
    assert vault.store.upkeep() is None
    clock.days -= 3_650
    done = vault.store.upkeep()  # it was right before
    assert done is not None
    assert done.retained.dropped == 0
    clock.days += 40
    assert vault.store.upkeep() is None
    clock.days += 40  # whoever is here that rarely
    done = vault.store.upkeep()
    assert done is not None
    assert done.retained.dropped == 2


def test_what_was_saved_while_the_clock_was_behind_is_not_old(
    opened: Callable[[], hardsave.Vault], clock: Clock
) -> None:
    vault = opened()
    vault.timeline("main").save({"turn": 0})
    clock.days -= 20_000
    for turn in range(1, 4):
        vault.timeline("main").save({"turn": turn})
    clock.days += 20_001
    assert vault.store.upkeep() is not None
    assert not vault.retention.plan(hardsave.Policy(max_age=30 * DAY, timelines=["main"]))
    assert seqs(vault) == [4, 3, 2, 1]


def test_what_was_imported_has_its_time_from_then_on(
    opened: Callable[..., hardsave.Vault], clock: Clock, tmp_path: Path
) -> None:
    old, vault = opened("ada"), opened()
    for turn in range(3):
        old.timeline("main").save({"turn": turn})
    old.export_file(tmp_path / "old.hardsave")
    clock.days += 400
    vault.import_file(tmp_path / "old.hardsave")
    assert vault.store.upkeep() is not None
    assert seqs(vault) == [3, 2, 1]
    clock.days += 31
    assert [choice.row.seq for choice in vault.retention.plan().drops] == [1, 2]


def test_each_user_has_a_day_of_his_own(
    opened: Callable[..., hardsave.Vault], clock: Clock
) -> None:
    for user in (None, "ada", "../ada"):
        assert opened(user).store.upkeep() is not None
        assert opened(user).store.upkeep() is None


def test_of_two_at_once_one_does_it(
    opened: Callable[[], hardsave.Vault], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = opened(), opened()
    found: list[object] = []
    gc = hardsave.VaultStore.gc

    def meanwhile(store: hardsave.VaultStore) -> object:
        found.append(two.store.upkeep())
        return gc(store)

    monkeypatch.setattr(hardsave.VaultStore, "gc", meanwhile)
    assert one.store.upkeep() is not None
    assert found == [None]


def test_what_failed_is_begun_again_an_hour_later(
    opened: Callable[[], hardsave.Vault], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(vault: hardsave.Vault) -> object:
        raise hardsave.Unavailable("the disk is full")

    vault = opened()
    saved_long_ago(vault, clock)
    with monkeypatch.context() as patch:
        patch.setattr(hardsave.VaultStore, "gc", fail)
        with pytest.raises(hardsave.Unavailable):
            vault.store.upkeep()
        assert vault.store.upkeep() is None  # not each time that somebody asks
    clock.days += 1 / 24
    done = vault.store.upkeep()
    assert done is not None
    assert done.collected.objects > 0


def test_a_file_that_says_nothing_is_no_reason_not_to(
    opened: Callable[[], hardsave.Vault], project: Path, clock: Clock
) -> None:
    vault = opened()
    (project.parent / "store.db-upkeep").write_text("garbage")
    assert vault.store.upkeep() is not None
    assert vault.store.upkeep() is None


def test_in_memory_nothing_is_kept_up(clock: Clock) -> None:
    with hardsave.open("memory://") as vault:
        assert vault.store.upkeep() is None


# What the settings say


def test_the_users_settings_count(opened: Callable[[], hardsave.Vault], clock: Clock) -> None:
    settings_of_user("retention:\n  max_age_days: 1000\n  max_per_timeline: 3\n")
    vault = opened()
    saved_long_ago(vault, clock)
    assert [choice.row.seq for choice in vault.retention.plan().drops] == [1]
    vault.store.upkeep()
    assert seqs(vault) == [5, 4, 3, 2]


def test_long_timelines_are_thinned_if_the_settings_say_so(
    opened: Callable[[], hardsave.Vault], clock: Clock
) -> None:
    settings_of_user("retention:\n  max_age_days: 1000\n  thin: 3\n")
    vault = opened()
    saved_long_ago(vault, clock)
    vault.store.upkeep()
    assert seqs(vault) == [5, 4, 3, 1]  # 3 has a name


def test_it_can_be_switched_off(
    opened: Callable[[], hardsave.Vault], project: Path, clock: Clock
) -> None:
    (project / "hardsave.yaml").write_text("retention:\n  automatic: false\n")
    vault = opened()
    saved_long_ago(vault, clock)
    assert vault.store.upkeep() is None
    assert len(seqs(vault)) == 5


def test_an_agent_cannot_make_its_past_go_away(
    opened: Callable[[], hardsave.Vault], project: Path, clock: Clock
) -> None:
    vault = opened()
    for turn in range(5):
        vault.timeline("main").save({"turn": turn})
    (project / "hardsave.yaml").write_text(
        "retention:\n  max_age_days: 1\n  max_per_timeline: 1\n  max_store_mb: 1\n"
    )
    clock.days += 2
    vault.store.upkeep()
    assert len(seqs(vault)) == 5
    found = trust.look(project)
    assert found is not None
    trust.trust(found, os.environ, sys.platform)
    clock.days += 1
    vault.store.upkeep()
    assert seqs(vault) == [5]


def test_a_comment_in_a_trusted_file_lets_nothing_go(
    opened: Callable[[], hardsave.Vault], project: Path, clock: Clock
) -> None:
    (project / "hardsave.yaml").write_text("retention:\n  max_age_days: 1000\n")
    found = trust.look(project)
    assert found is not None
    trust.trust(found, os.environ, sys.platform)
    vault = opened()
    saved_long_ago(vault, clock)
    with (project / "hardsave.yaml").open("a") as written:
        written.write("# of an agent\n")
    assert vault.store.upkeep() is None
    assert len(seqs(vault)) == 5


def test_a_project_cannot_switch_on_what_its_user_has_switched_off(
    opened: Callable[[], hardsave.Vault], project: Path, clock: Clock
) -> None:
    settings_of_user("retention:\n  automatic: false\n")
    (project / "hardsave.yaml").write_text("retention:\n  automatic: true\n")
    vault = opened()
    saved_long_ago(vault, clock)
    assert vault.store.upkeep() is None
    assert len(seqs(vault)) == 5


def test_where_there_is_no_directory_any_more_the_users_settings_count(project: Path) -> None:
    settings_of_user("retention:\n  automatic: false\n  max_age_days: 1000\n")
    gone = project / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    with hardsave.open(f"sqlite:///{project.parent}/store.db") as vault:
        os.chdir(project)
        assert vault.store.upkeep() is None
        assert vault.retention.plan().policy.max_age == 1000 * DAY


def test_nothing_goes_for_room_that_is_free_once_the_rest_is_collected(
    opened: Callable[[], hardsave.Vault], clock: Clock
) -> None:
    settings_of_user("retention:\n  max_store_mb: 3\n")
    vault = opened()
    vault.timeline("old").save({"large": os.urandom(3 << 20)})
    vault.timeline("old").save({"small": 1})
    clock.days += 40
    for turn in range(5):
        vault.timeline("main").save({"turn": turn})
    backup = vault._context.store.local("backup")
    assert backup is not None
    assert eventually(lambda: os.path.exists(backup) and os.path.getsize(backup) > 3 << 20)
    clock.days += 2
    done = vault.store.upkeep()
    assert done is not None
    assert (done.retained.dropped, done.over_bytes) == (1, 0)
    assert len(seqs(vault)) == 5

    vault.timeline("main").save({"large": os.urandom(3 << 20)}, name="kept")
    clock.days += 2
    done = vault.store.upkeep()
    assert done is not None
    assert done.retained.dropped > 0
    assert done.over_bytes > 0
    assert seqs(vault)[-1] == 1


@pytest.mark.parametrize("call", ["flock", "pread", "pwrite"])
def test_a_file_that_cannot_be_used_is_told_as_our_errors_are(
    opened: Callable[[], hardsave.Vault], monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    vault = opened()
    with monkeypatch.context() as patch:
        patch.setattr(fcntl if call == "flock" else os, call, fail)
        with pytest.raises(hardsave.Unavailable, match="No space left on device"):
            upkeep.once_a_day(
                vault._context,
                None,
                lambda _: Retained(0, 0, 0),
                lambda: Collected(0, 0, 0),
            )
    assert vault.store.upkeep() is not None


def test_terms_are_put_together() -> None:
    user = file.read("retention:\n  max_age_days: 7\n  max_store_mb: 5\n", "user")
    project = file.read("retention:\n  max_age_days: 9\n  automatic: false\n", "project")
    assert upkeep.combined([]) == (DEFAULT, True)
    policy, automatic = upkeep.combined([user, project])
    assert (policy.max_age, policy.max_store_bytes) == (9 * DAY, 5 << 20)
    assert policy.undo_window == timedelta(days=30)
    assert not automatic


NOT_OURS, OURS, THEIRS = Path("/elsewhere"), Path("/ours"), Path("/theirs")
SHORT, LONG = upkeep.Terms(Policy(max_age=DAY)), upkeep.Terms(Policy(max_age=300 * DAY))


@pytest.mark.parametrize(
    ("homes", "shares"),
    [
        ({}, [(SHORT, None)]),
        ({"a": OURS, "state": None}, [(SHORT, None)]),  # the store is this project's alone
        ({"a": OURS, "b": THEIRS, "state": None}, [(SHORT, {"a"}), (LONG, {"b", "state"})]),
        ({"b": THEIRS}, [(SHORT, set()), (LONG, {"b"})]),
        ({"a": OURS, "b": NOT_OURS}, [(SHORT, {"a"})]),  # nobody knows what is wanted there
    ],
)
def test_each_project_governs_its_own_timelines(
    homes: dict[str, Path | None], shares: list[tuple[upkeep.Terms, set[str] | None]]
) -> None:
    def terms(root: Path | None) -> upkeep.Terms | None:
        return None if root == NOT_OURS else LONG

    assert upkeep.divided(homes, OURS, SHORT, terms) == [
        (found, None if names is None else frozenset(names)) for found, names in shares
    ]
    same = upkeep.divided(homes, OURS, LONG, lambda _: LONG)
    assert same == [(LONG, None)]  # where all want the same, nothing is divided


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_a_trusted_project_lets_nothing_go_that_is_another_one_s(
    project: Path, clock: Clock, first: str
) -> None:
    for name, days in (("ours", 2), ("theirs", 300)):
        home = project.parent / name
        begin_repository(home)
        (home / "hardsave.yaml").write_text(f"retention:\n  max_age_days: {days}\n")
        found = trust.look(home)
        assert found is not None
        trust.trust(found, os.environ, sys.platform)
    store = open_store(f"sqlite:///{project.parent}/store.db")
    with Vault(store, clock=clock, directory=str(project.parent / first)) as vault:
        for name in ("ours", "theirs"):
            for turn in range(3):
                files = vault.workspace(project.parent / name)
                vault.timeline(name).save({"turn": turn}, workspace=files)
        for turn in range(3):
            vault.timeline("nobody's").save({"turn": turn})
        clock.days += 3
        vault.store.upkeep()
        assert [len(vault.timeline(x)) for x in ("ours", "theirs", "nobody's")] == [1, 3, 3]
        clock.days += 40
        wanted = vault.retention.plan()
        assert {each.row.timeline for each in wanted.drops} == set()
        vault.store.upkeep()  # more than a week: the clock may be wrong
        clock.days += 1.5
        vault.store.upkeep()
        assert [len(vault.timeline(x)) for x in ("ours", "theirs", "nobody's")] == [1, 3, 1]


def test_one_users_size_lets_nothing_of_another_one_go(
    opened: Callable[[str | None], hardsave.Vault], clock: Clock
) -> None:
    settings_of_user("retention:\n  max_store_mb: 2\n")
    small, large = opened("small"), opened("large")
    for turn in range(5):
        small.timeline("main").save({"turn": turn})
    for turn in range(5):
        large.timeline("main").save({"turn": turn, "large": os.urandom(1 << 20)})
    clock.days += 2
    done = small.store.upkeep()
    assert done is not None
    assert (done.retained.dropped, done.over_bytes) == (0, 0)
    done = large.store.upkeep()
    assert done is not None
    assert done.retained.dropped > 0
    assert len(seqs(small)) == 5


def test_a_server_that_forgets_no_tasks_is_kept_up_too(
    opened: Callable[[], hardsave.Vault], project: Path, clock: Clock
) -> None:
    (project / "hardsave.yaml").write_text("tasks:\n  cleanup_every: 0\n")
    vault = opened()
    saved_long_ago(vault, clock)
    for _ in range(10):
        vault.tasks.iterate()
    assert seqs(vault) == [5, 4]


def test_a_store_that_stays_too_large_is_told_of(
    opened: Callable[[], hardsave.Vault], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    settings_of_user("retention:\n  max_store_mb: 1\n")
    vault = opened()
    vault.timeline("main").save({"large": os.urandom(3 << 20)}, name="kept")
    done = vault.store.upkeep()
    assert done is not None
    assert done.over_bytes > 1 << 20
    assert "larger than it should be" in caplog.text
    vault.timeline("main").save({"turn": 1})  # saving goes on


def test_a_server_that_iterates_is_kept_up(
    opened: Callable[[], hardsave.Vault], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    vault = opened()
    saved_long_ago(vault, clock)
    for _ in range(9):
        vault.tasks.iterate()
    assert len(seqs(vault)) == 5
    vault.tasks.iterate()
    assert seqs(vault) == [5, 4]
    assert caplog.text == ""
