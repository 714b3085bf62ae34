"""The checkpoint skill's interface, on real projects with and without git."""

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.compat.skill import Checkpoint, CheckpointManager
from hardsave.compat.skill.records import features, id_for
from hardsave.errors import Corrupt, Misuse, NotFound

NOON = datetime(2026, 1, 15, 12, 0, 0, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "app.ts").write_text("one\n")
    (folder / "feature_list.json").write_text(
        json.dumps(
            [
                {"id": "auth-001", "passes": True},
                {"id": "auth-002", "status": "completed"},
                {"id": "auth-003", "status": "in_progress"},
                {"id": "auth-004"},
            ]
        )
    )
    (folder / "claude-progress.txt").write_text("started\n")
    return folder


@pytest.fixture
def manager(project: Path, tmp_path: Path) -> Iterator[CheckpointManager]:
    made = CheckpointManager(project, vault=f"sqlite:///{tmp_path}/s.db", clock=Clock())
    yield made
    made.close()


def git(project: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", "-C", str(project), *who, *words], check=True, capture_output=True, text=True
    )
    return done.stdout


def run(awaited: Any) -> Any:
    return asyncio.run(awaited)


def tree(project: Path) -> dict[str, bytes]:
    inside = (path for path in project.rglob("*") if path.is_file())
    return {
        str(path.relative_to(project)): path.read_bytes()
        for path in inside
        if not str(path.relative_to(project)).startswith((".git/", ".claude/"))
    }


def test_a_record_has_the_shape_of_the_page(manager: CheckpointManager, project: Path) -> None:
    record = run(
        manager.create_checkpoint(
            name="before-refactor",
            description="State before major refactoring",
            session_number=5,
            token_usage=45_000,
        )
    )
    assert record.id == "checkpoint-20260115-120001"
    assert record.type == "manual"
    assert record.feature_state.current == "auth-003"
    assert record.feature_state.completed == ["auth-001", "auth-002"]
    assert (project / record.feature_state.snapshot_path).read_bytes() == (
        project / "feature_list.json"
    ).read_bytes()
    assert record.context.session_number == 5
    assert record.context.token_usage == 45_000
    written = json.loads(
        (project / ".claude/checkpoints" / record.id / "checkpoint.json").read_text()
    )
    assert Checkpoint.from_dict(written) == record
    assert written["git_state"] == {"commit_hash": None, "branch": None, "dirty_files": []}


def test_git_is_named_with_its_dirty_and_unknown_files(project: Path, tmp_path: Path) -> None:
    git(project, "init", "-q", "-b", "main")
    git(project, "add", ".")
    git(project, "commit", "-qm", "one")
    (project / "app.ts").write_text("two\n")
    (project / "new.ts").write_text("new\n")
    manager = CheckpointManager(project, vault=f"sqlite:///{tmp_path}/s.db")
    record = run(manager.create_checkpoint("x"))
    assert record.git_state.commit_hash == git(project, "rev-parse", "HEAD").strip()
    assert record.git_state.branch == "main"
    assert record.git_state.dirty_files == ["app.ts", "new.ts"]
    assert git(project, "status", "--porcelain") == " M app.ts\n?? new.ts\n"  # no mirror
    manager.close()


def test_contents_come_back_and_what_came_later_goes(
    manager: CheckpointManager, project: Path
) -> None:
    (project / ".gitignore").write_text("build/\n")
    (project / "build").mkdir()
    (project / "build/out").write_text("mine")
    before = tree(project)
    record = run(manager.create_checkpoint("x"))
    (project / "app.ts").unlink()
    (project / "scratch.tmp").write_text("junk")
    (project / "feature_list.json").write_text("[]")
    (project / "claude-progress.txt").write_text("lost\n")
    (project / "build/out").write_text("newer")
    destroyed = tree(project)
    done = run(manager.rollback(record.id))
    assert tree(project) == before | {"build/out": b"newer"}  # ignored: nobody's to touch
    assert done.removed == ("scratch.tmp",)
    assert done.safety is not None
    run(manager.undo())
    assert tree(project) == destroyed
    run(manager.redo())
    assert tree(project) == before | {"build/out": b"newer"}


def test_the_two_files_come_back_even_if_git_ignores_them(project: Path, tmp_path: Path) -> None:
    (project / ".gitignore").write_text("feature_list.json\nclaude-progress.txt\n")
    manager = CheckpointManager(project, vault=f"sqlite:///{tmp_path}/s.db")
    record = run(manager.create_checkpoint("x"))
    before = tree(project)
    (project / "feature_list.json").unlink()
    (project / "claude-progress.txt").write_text("lost")
    run(manager.rollback(record.id))
    assert tree(project) == before
    manager.close()


def test_of_seven_automatic_ones_five_stay_and_manual_ones_all(
    manager: CheckpointManager, project: Path
) -> None:
    for number in range(7):
        (project / "app.ts").write_text(f"{number}\n")
        run(manager.create_checkpoint(f"auto-{number}", type="automatic"))
    for number in range(5):
        run(manager.session_started(number))
    for number in range(6):
        run(manager.create_checkpoint(f"mine-{number}"))
    run(manager.feature_completed("auth-003"))
    kept = {
        t: run(manager.list_checkpoints(t)) for t in ("automatic", "session", "manual", "feature")
    }
    assert [record.name for record in kept["automatic"]] == [f"auto-{n}" for n in (6, 5, 4, 3, 2)]
    assert [record.name for record in kept["session"]] == ["session-4", "session-3", "session-2"]
    assert (len(kept["manual"]), len(kept["feature"])) == (6, 1)
    folders = {path.name for path in (project / ".claude/checkpoints").iterdir()}
    assert folders == {record.id for records in kept.values() for record in records}


def test_a_guard_takes_back_what_failed(manager: CheckpointManager, project: Path) -> None:
    before = tree(project)

    async def risky() -> None:
        async with manager.guard("risky"):
            (project / "app.ts").write_text("broken")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run(risky())
    assert tree(project) == before


def test_a_guard_leaves_what_succeeded(manager: CheckpointManager, project: Path) -> None:
    async def fine() -> None:
        async with manager.guard("risky"):
            (project / "app.ts").write_text("better")

    run(fine())
    assert (project / "app.ts").read_text() == "better"


def test_recovery_goes_to_the_latest_that_was_asked_for(
    manager: CheckpointManager, project: Path
) -> None:
    run(manager.before_change("one"))
    (project / "app.ts").write_text("two\n")
    latest = run(manager.before_change("two"))
    (project / "app.ts").write_text("three\n")
    done = run(manager.recover(ValueError("broke")))
    assert done.checkpoint.id == latest.id
    assert (project / "app.ts").read_text() == "two\n"


def test_a_tracker_tells_its_state(manager: CheckpointManager) -> None:
    manager.track(
        lambda: {"session_number": 9, "token_usage": 7, "current": "x", "completed": ["y"]}
    )
    record = run(manager.create_checkpoint("x"))
    assert (record.context.session_number, record.context.token_usage) == (9, 7)
    assert (record.feature_state.current, record.feature_state.completed) == ("x", ["y"])


def test_with_no_commit_and_without_git(project: Path, tmp_path: Path) -> None:
    git(project, "init", "-q")
    manager = CheckpointManager(project, vault=f"sqlite:///{tmp_path}/s.db")
    record = run(manager.create_checkpoint("x"))
    assert record.git_state.commit_hash is None
    before = tree(project)
    (project / "app.ts").unlink()
    run(manager.rollback_to_latest())
    assert tree(project) == before
    manager.close()


def test_two_within_a_second_have_two_ids() -> None:
    first = id_for(NOON, ())
    assert first == "checkpoint-20260115-120000"
    assert id_for(NOON, {first}) == first + "-2"
    assert id_for(NOON, {first, first + "-2"}) == first + "-3"


def test_the_mirror_is_put_right_at_the_next_start(project: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    manager = CheckpointManager(project, vault=url)
    record = run(manager.create_checkpoint("x"))
    manager.close()
    path = project / ".claude/checkpoints" / record.id / "checkpoint.json"
    path.write_text("garbage")
    stray = project / ".claude/checkpoints/notes.txt"
    stray.write_text("somebody's own")
    CheckpointManager(project, vault=url).close()
    assert json.loads(path.read_text())["id"] == record.id
    assert stray.read_text() == "somebody's own"


def test_records_that_this_vault_never_wrote_stay(project: Path, tmp_path: Path) -> None:
    """The skill's own, from before there was a vault; those of a store that is lost or elsewhere;
    and what people put beside a copy."""
    folder = project / ".claude/checkpoints"
    foreign = folder / "checkpoint-20250101-120000"
    foreign.mkdir(parents=True)
    (foreign / "checkpoint.json").write_text('{"id": "checkpoint-20250101-120000"}')
    (foreign / "feature_list.json").write_text("[1]")
    first = CheckpointManager(project, vault=f"sqlite:///{tmp_path}/one.db", clock=Clock())
    theirs = run(first.create_checkpoint("theirs", type="automatic"))
    (folder / theirs.id / "notes.md").write_text("mine")
    for other in ("lost", "again"):
        CheckpointManager(project, vault=f"sqlite:///{tmp_path}/{other}.db").close()
    assert (foreign / "feature_list.json").read_text() == "[1]"
    assert (folder / theirs.id / "feature_list.json").exists()
    for number in range(5):
        run(first.create_checkpoint(f"auto-{number}", type="automatic"))
    first.close()
    assert [each.name for each in (folder / theirs.id).iterdir()] == ["notes.md"]
    assert (foreign / "checkpoint.json").exists()


def test_what_was_let_go_before_a_crash_goes_at_the_next_start(
    project: Path, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    manager = CheckpointManager(project, vault=url, clock=Clock())
    gone, kept = (run(manager.create_checkpoint(name)) for name in "ab")
    manager.vault.delete(gone.ref)
    manager.close()
    CheckpointManager(project, vault=url).close()
    assert [each.name for each in (project / ".claude/checkpoints").iterdir()] == [kept.id]


def test_a_damaged_checkpoint_is_refused_before_anything_is_touched(
    manager: CheckpointManager, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = run(manager.create_checkpoint("x"))
    (project / "app.ts").write_text("mine\n")
    bad = hardsave.Verification(1, 1, ("object x is missing",))
    monkeypatch.setattr(hardsave.VaultStore, "verify", lambda store, ref=None: bad)
    with pytest.raises(Corrupt, match="is damaged"):
        run(manager.rollback(record.id))
    assert (project / "app.ts").read_text() == "mine\n"


def test_what_is_not_there_says_so(manager: CheckpointManager) -> None:
    with pytest.raises(NotFound, match="create one first"):
        run(manager.rollback_to_latest())
    with pytest.raises(NotFound, match="checkpoint-1"):
        run(manager.rollback("checkpoint-1"))
    with pytest.raises(Misuse, match="type is one of"):
        run(manager.create_checkpoint("x", type="odd"))
    assert run(manager.get_checkpoint("nothing")) is None
    assert run(manager.delete_checkpoint("nothing")) is False


def test_deleting_can_be_undone(manager: CheckpointManager) -> None:
    first = run(manager.create_checkpoint("x"))
    run(manager.create_checkpoint("y"))
    assert run(manager.delete_checkpoint(first.id)) is True
    assert run(manager.get_checkpoint(first.id)) is None
    run(manager.undo())
    assert run(manager.get_checkpoint(first.id)) == first


@pytest.mark.parametrize(
    ("listed", "current", "completed"),
    [
        ({"features": [{"name": "a", "completed": True}, {"name": "b"}]}, "b", ["a"]),
        ([{"id": 1, "status": "done"}, {"id": 2, "status": "active"}], "2", ["1"]),
        ("nonsense", None, []),
        ([1, None, "x"], None, []),
        ({"features": {"a": 1}}, None, []),
    ],
)
def test_feature_lists_of_several_shapes(listed: Any, current: Any, completed: Any) -> None:
    found = features(listed)
    assert (found.current, found.completed) == (current, completed)


# A project that somebody else wrote


def test_nothing_outside_is_touched_by_a_mirror_that_is_a_link(
    project: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    precious = outside / "checkpoint-20200101-000000"
    precious.mkdir(parents=True)
    (precious / "checkpoint.json").write_text("{}")
    (project / ".claude").mkdir()
    (project / ".claude/checkpoints").symlink_to(outside)
    manager = CheckpointManager(project, vault=f"sqlite:///{tmp_path}/s.db", clock=Clock())
    made = asyncio.run(manager.create_checkpoint("one"))
    assert asyncio.run(manager.get_checkpoint(made.id)) == made
    assert [each.name for each in outside.iterdir()] == [precious.name]
    assert (precious / "checkpoint.json").read_text() == "{}"
    manager.close()


def test_what_cannot_be_mirrored_is_saved_all_the_same(
    project: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (project / ".claude").mkdir()
    (project / ".claude/checkpoints").write_text("a file")
    manager = CheckpointManager(project, vault=f"sqlite:///{tmp_path}/s.db", clock=Clock())
    made = asyncio.run(manager.create_checkpoint("one"))
    assert "could not be put right" in caplog.text
    (project / "app.ts").write_text("two\n")
    asyncio.run(manager.rollback(made.id))
    assert (project / "app.ts").read_text() == "one\n"
    manager.close()


def test_a_record_that_calls_itself_a_path_is_not_mirrored(
    manager: CheckpointManager, project: Path, tmp_path: Path
) -> None:
    """As in a store that was imported from somebody."""
    made = asyncio.run(manager.create_checkpoint("one"))
    record = {**made.to_dict(), "id": "../../../outside"}
    line = manager.vault.timeline("checkpoints")
    line.save({"skill": record}, metadata={"skill": record["id"]}, workspace=project)
    manager._mend()
    assert not (tmp_path / "outside").exists()
    assert [each.name for each in (project / ".claude/checkpoints").iterdir()] == [made.id]


def test_a_feature_list_may_be_anything(manager: CheckpointManager, project: Path) -> None:
    (project / "feature_list.json").unlink()
    os.mkfifo(project / "feature_list.json")
    (project / "claude-progress.txt").unlink()
    (project / "claude-progress.txt").symlink_to("app.ts")
    made = asyncio.run(manager.create_checkpoint("one"))
    assert made.feature_state.snapshot_path is None


def test_a_guard_leaves_what_another_session_did(manager: CheckpointManager, project: Path) -> None:
    async def work() -> None:
        async with manager.guard("risky"):
            (project / "theirs.ts").write_text("theirs")
            manager.vault.timeline("other").save({}, workspace=project)
            (project / "app.ts").write_text("half done")
            raise ValueError("half done")

    with pytest.raises(ValueError, match="half done") as raised:
        asyncio.run(work())
    assert (project / "app.ts").read_text() == "one\n"
    assert (project / "theirs.ts").read_text() == "theirs"
    said = "not taken back by the guard: theirs.ts: timeline 'other' has changed it"
    assert raised.value.__notes__ == [said]
    failed = manager.vault.timeline("checkpoints").checkpoints(limit=1)[0]
    assert (failed.status, failed.description) == ("failed", "ValueError: half done")


def test_a_guard_goes_back_however_many_checkpoints_its_block_makes(
    manager: CheckpointManager, project: Path
) -> None:
    before = tree(project)

    async def work() -> None:
        async with manager.guard("risky"):
            for turn in range(8):
                (project / "app.ts").write_text(f"change {turn}")
                await manager.before_change(f"change {turn}")
            raise ValueError("half done")

    with pytest.raises(ValueError, match="half done"):
        asyncio.run(work())
    assert tree(project) == before
    names = [each.name for each in asyncio.run(manager.list_checkpoints("automatic"))]
    assert names.count("risky") == 1
