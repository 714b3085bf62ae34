"""Files that are captured at one moment, and committed with a later save."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import hardsave
from hardsave.stores.base import Batch, ObjectsGone
from hardsave.stores.workspaces import WorkspaceMove
from hardsave.testing.batches import an_entry
from hardsave.vault.checkpoint import record_of


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def vault(url: str) -> Iterator[hardsave.Vault]:
    with hardsave.open(url) as made:
        yield made


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    (made / "f").write_text("one")
    (made / "same").write_text("the same all along")
    return made


def texts(checkpoint: hardsave.Checkpoint) -> dict[str, str]:
    files = checkpoint.files
    assert files is not None
    return {name: files.read(name).decode() for name in ("f", "same")}


def test_the_files_are_those_of_the_capture(vault: hardsave.Vault, work: Path) -> None:
    line, workspace = vault.timeline("a"), vault.workspace(work)
    captured = workspace.capture()
    (work / "f").write_text("two")
    made = line.save({"turn": 1}, workspace=captured)
    assert texts(made) == {"f": "one", "same": "the same all along"}
    assert made.summary is not None
    assert made.summary.files is not None
    assert (made.summary.files.added, made.summary.files.total) == (2, 2)
    assert texts(line.save({"turn": 2}, workspace=work))["f"] == "two"


def test_several_captures_are_committed_in_any_order(vault: hardsave.Vault, work: Path) -> None:
    line, workspace = vault.timeline("a"), vault.workspace(work)
    captured = []
    for text in ("1", "2", "3"):
        (work / "f").write_text(text)
        captured.append(workspace.capture())
    (work / "f").write_text("4")
    made = [
        line.append({"n": 1}, workspace=captured[1]),
        line.save_files(captured[0]),
        line.save({"n": 3}, workspace=captured[2]),
    ]
    assert [texts(each)["f"] for each in made] == ["2", "1", "3"]
    assert texts(line.save_files(work))["f"] == "4"
    assert not workspace.status().files
    assert vault.store.verify().ok


def test_a_capture_that_waits_is_not_collected(vault: hardsave.Vault, work: Path) -> None:
    captured = vault.workspace(work).capture()
    (work / "f").write_text("two")
    vault.store.gc()
    assert texts(vault.timeline("a").save({}, workspace=captured))["f"] == "one"


def test_a_capture_that_was_given_up_is_collected_and_refused(
    vault: hardsave.Vault, work: Path, caplog: pytest.LogCaptureFixture
) -> None:
    line, workspace = vault.timeline("a"), vault.workspace(work)
    line.save({"n": 0})
    with workspace.capture() as captured:
        pass
    assert vault.store.gc().objects > 0
    with pytest.raises(hardsave.Conflict, match=r"not stored any more.*capture them again$"):
        line.save({"n": 1}, workspace=captured)
    assert caplog.text == ""
    assert len(line) == 1
    assert texts(line.save({"n": 2}, workspace=workspace.capture()))["f"] == "one"


def test_after_the_save_nothing_holds_the_collector(vault: hardsave.Vault, work: Path) -> None:
    line = vault.timeline("a")
    line.save({}, workspace=vault.workspace(work).capture())
    assert vault.store.gc().left == ()


def test_a_capture_can_be_saved_more_than_once(vault: hardsave.Vault, work: Path) -> None:
    captured = vault.workspace(work).capture()
    made = [vault.timeline(name).save({}, workspace=captured) for name in ("a", "b")]
    assert texts(made[0]) == texts(made[1])


def test_what_the_cache_takes_for_stored_is_looked_up(vault: hardsave.Vault, work: Path) -> None:
    """The objects of a capture that was given up are gone, and the cache does not know."""
    workspace = vault.workspace(work)
    workspace.capture().close()
    vault.store.gc()
    made = vault.timeline("a").save({}, workspace=workspace.capture())
    assert texts(made) == {"f": "one", "same": "the same all along"}


def test_other_objects_that_are_gone_do_not_cost_the_capture(
    vault: hardsave.Vault, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the handle remembers of its state was collected: that is built anew."""
    store = vault._context.store
    commit, refused = store.commit, list[Batch]()

    def late(batch: Batch) -> int:
        if not refused:
            refused.append(batch)
            raise ObjectsGone("object 00 is no longer stored")
        return commit(batch)

    captured = vault.workspace(work).capture()
    (work / "f").write_text("two")
    monkeypatch.setattr(store, "commit", late)
    assert texts(vault.timeline("a").save({}, workspace=captured))["f"] == "one"
    assert refused


def test_a_capture_of_another_user_is_refused(work: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with hardsave.open(url, user="ada") as ada, hardsave.open(url, user="bob") as bob:
        captured = ada.workspace(work).capture()
        with pytest.raises(hardsave.Misuse, match="captured by another vault or user"):
            bob.timeline("a").save({}, workspace=captured)


def test_a_capture_from_before_a_workspace_was_taken_over_is_refused(
    vault: hardsave.Vault, work: Path
) -> None:
    line, workspace = vault.timeline("a"), vault.workspace(work)
    before = workspace.capture()  # when the store did not know the workspace
    made = line.save({}, workspace=workspace.capture())
    store, id = vault._context.store, record_of(made).workspace
    assert id is not None
    known = store.workspace(None, id)
    assert known is not None
    taken = WorkspaceMove(known.epoch, known._replace(epoch=known.epoch + 1))
    store.commit(Batch(None, an_entry("taken over"), workspaces=[taken]))
    with pytest.raises(hardsave.Conflict, match="was taken over before this capture was saved"):
        line.save({}, workspace=before)
    assert len(line) == 1


def test_coroutines_capture_too(url: str, work: Path) -> None:
    async def main() -> None:
        async with await hardsave.aio.open(url) as vault:
            captured = await (await vault.workspace(work)).capture()
            (work / "f").write_text("two")
            made = await (await vault.timeline("a")).save({}, workspace=captured)
            assert texts(made.sync)["f"] == "one"

    asyncio.run(main())
