"""Long calls say how far they have come, to a caller that wants to know."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

import hardsave
from hardsave import CallProgress, aio, progress


@pytest.fixture(autouse=True)
def reports_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each addition is reported: no test waits for a tenth of a second to pass."""
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.0)


def reports(call: Callable[[], object]) -> dict[str, CallProgress]:
    """The last report of each part of a call."""
    found: dict[str, CallProgress] = {}
    with hardsave.on_progress(lambda each: found.__setitem__(each.doing, each)):
        call()
    return found


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "below").mkdir(parents=True)
    for number in range(5):
        (folder / "below" / f"{number}.txt").write_bytes(b"%d" % number * 100)
    (folder / "long.bin").write_bytes(bytes(range(256)) * 2_000)
    return folder


@pytest.fixture
def vault(tmp_path: Path) -> hardsave.Vault:
    return hardsave.open(f"sqlite:///{tmp_path / 'store' / 'store.db'}")


def test_a_save_says_how_many_files_and_bytes_are_read(vault: hardsave.Vault, work: Path) -> None:
    with vault:
        found = reports(lambda: vault.timeline("main").save_files(work))
        assert found["looking"] == CallProgress("looking", "files", 6, 0, None, None)
        total = 5 * 100 + 512_000
        assert found["reading"] == CallProgress("reading", "files", 6, total, 6, total)
        while reports(lambda: vault.timeline("main").save_files(work))["reading"].items:
            pass  # what was just written is read again
        (work / "long.bin").write_bytes(b"short")
        again = reports(lambda: vault.timeline("main").save_files(work))
        assert again["reading"] == CallProgress("reading", "files", 1, 5, 1, 5)


def test_a_restore_says_what_is_written_and_put_in_place(vault: hardsave.Vault, work: Path) -> None:
    with vault:
        line = vault.timeline("main")
        line.save_files(work)
        for file in work.glob("below/*.txt"):
            file.write_text("ruined")
        found = reports(lambda: line.rewind("@", what="files", workspace=work))
        assert found["writing"] == CallProgress("writing", "files", 5, 500, 5, 500)
        assert found["checking copies"].items == found["checking copies"].total_items == 1
        assert found["putting in place"].items == found["putting in place"].total_items == 5
        fork = reports(lambda: vault.workspace(work).fork("@", work.parent / "fork"))
        assert fork["writing"].items == fork["writing"].total_items == 6


def test_the_store_as_a_whole_says_how_far_it_is(
    vault: hardsave.Vault, work: Path, tmp_path: Path
) -> None:
    file = tmp_path / "all.hardsave"
    with vault:
        line = vault.timeline("main")
        for number in range(3):
            (work / "a.txt").write_text(f"{number}")
            line.save({"number": number}, workspace=work)
        verified = reports(vault.store.verify)["verifying"]
        assert verified.items == verified.total_items
        assert verified.bytes == verified.total_bytes
        exported = reports(lambda: vault.export_file(file))["exporting"]
        assert exported.items == exported.total_items
        some = reports(lambda: vault.export_file(file, timelines=["main"]))["exporting"]
        assert (some.items, some.total_items) == (exported.items, None)
        compacted = reports(vault.store.compact)["compacting"]
        assert compacted.items == compacted.total_items
        looked = reports(vault.store.gc)["looking"]
        assert looked.items == looked.total_items
    with hardsave.open(f"sqlite:///{tmp_path / 'other' / 'store.db'}") as other:
        imported = reports(lambda: other.import_file(file))
        for part in ("checking", "importing"):
            assert imported[part].total_bytes == file.stat().st_size
            assert imported[part].bytes >= file.stat().st_size


def test_a_coroutine_hears_of_its_own_call(work: Path, tmp_path: Path) -> None:
    found: list[CallProgress] = []

    async def saved() -> None:
        async with aio.open(f"sqlite:///{tmp_path / 'store' / 'store.db'}") as vault:
            line = await vault.timeline("main")
            with hardsave.on_progress(found.append):
                await line.save_files(work)
            count = len(found)
            await line.save_files(work)
            assert len(found) == count > 0

    asyncio.run(saved())


def test_a_callback_that_raises_is_logged_once_and_changes_nothing(
    vault: hardsave.Vault, work: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: CallProgress) -> None:
        raise ZeroDivisionError

    with vault, hardsave.on_progress(refuse), caplog.at_level(logging.ERROR):
        saved = vault.timeline("main").save_files(work)
        assert saved.files is not None
    parts = [each for each in caplog.records if "on_progress" in each.message]
    assert len(parts) == 2, "one for each part: looking, reading"


def test_reports_are_a_tenth_of_a_second_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.1)
    monkeypatch.setattr(progress, "monotonic", lambda: now)
    found: list[int] = []
    with hardsave.on_progress(lambda each: found.append(each.items)):
        meter = progress.meter("counting", "files")
        for _ in range(100):
            now += 0.011
            meter.add(1)
    assert found == [*range(0, 101, 10)]
