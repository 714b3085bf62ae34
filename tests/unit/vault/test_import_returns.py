"""What was dropped for good comes back from an export, with its head."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import hardsave


@pytest.fixture
def exported(tmp_path: Path) -> tuple[hardsave.Vault, Path]:
    vault = hardsave.open("memory://")
    line = vault.timeline("main")
    for turn in range(1, 4):
        line.append({"messages": [turn], "turn": turn})
    vault.export_file(tmp_path / "out.hardsave")
    return vault, tmp_path / "out.hardsave"


@pytest.mark.parametrize("way", ["delete", "clear", "purge", "purge the head"])
def test_a_timeline_that_was_dropped_returns_with_its_head(
    exported: tuple[hardsave.Vault, Path], way: str
) -> None:
    vault, file = exported
    line = vault.timeline("main")
    if way == "purge":
        vault.store.purge(timeline="main")
    elif way == "purge the head":
        vault.store.purge("main:3")
    else:
        getattr(line, way)()
        policy = hardsave.Policy(undo_window=timedelta(0))
        vault.retention.apply(vault.retention.plan(policy))
    vault.import_file(file)
    line = vault.timeline("main")
    assert line.load() == {"messages": [1, 2, 3], "turn": 3}
    assert [each.seq for each in line.checkpoints()] == [3, 2, 1]
    assert line.append({"messages": [4], "turn": 4}).seq == 4
    assert vault.store.verify().faults == ()


def test_a_head_that_was_rewound_stays_where_it_is(
    exported: tuple[hardsave.Vault, Path],
) -> None:
    vault, file = exported
    line = vault.timeline("main")
    line.rewind("main:1")
    vault.import_file(file)
    assert line.load()["turn"] == 1


@pytest.mark.parametrize("way", ["delete", "clear", "one", "one by one"])
def test_what_was_deleted_after_an_import_goes_and_comes_with_every_undo_and_redo(
    exported: tuple[hardsave.Vault, Path], way: str
) -> None:
    _, file = exported
    with hardsave.open("memory://") as vault:
        vault.import_file(file)
        imported = numbers(vault)
        if way == "one":
            vault.delete("main:3")
        elif way == "one by one":
            vault.delete("main:2")
            vault.delete("main:3")
        else:
            getattr(vault.timeline("main"), way)()
        deleted = numbers(vault)
        steps = len(list(vault.operations())) - 1
        for _ in range(3):
            repeat(vault.undo, steps)
            assert numbers(vault) == imported
            vault.undo()
            assert numbers(vault) == []
            vault.redo()
            assert numbers(vault) == imported
            repeat(vault.redo, steps)
            assert numbers(vault) == deleted
        assert vault.store.verify().faults == ()


def test_an_import_that_was_taken_back_does_not_keep_a_fork_from_being_undone(
    exported: tuple[hardsave.Vault, Path],
) -> None:
    source, file = exported
    with hardsave.open("memory://") as vault:
        source.timeline("main").fork("main:1", name="fork")
        source.export_file(file)
        vault.import_file(file)
        vault.timeline("fork").delete()
        vault.timeline("main").fork("main:1", name="fork")
        source.timeline("fork").save({"turn": "other"})
        source.export_file(file)
        assert vault.import_file(file).renamed == {}
        vault.undo()
        assert vault.undo().about == {"of": "fork"}


def repeat(step: Callable[[], object], times: int) -> None:
    for _ in range(times):
        step()


def numbers(vault: hardsave.Vault) -> list[int]:
    return [each.seq for line in vault.timelines() for each in line.checkpoints()]
