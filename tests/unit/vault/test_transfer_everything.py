"""One export of everything that a store can hold, all of it at once."""

from collections.abc import Iterator
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave import Checkpoint, Vault
from hardsave.errors import NotFound
from hardsave.timeline.policy import Policy
from tests.unit.vault.desk import put

USERS = (None, "ada", "bob")
_OF_ONE_STORE: dict[str, Any] = {
    "number": 0,
    "hidden": 0,
    "task": None,
    "generation": 0,
    "attempt": 0,
}


@pytest.fixture(params=["memory", "sqlite"])
def vaults(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Vault, Vault]]:
    urls = ["memory://"] * 2
    if request.param == "sqlite":
        urls = [f"sqlite:///{tmp_path}/{name}/runs.db" for name in ("source", "target")]
    with hardsave.open(urls[0]) as source, hardsave.open(urls[1]) as target:
        yield source, target


def live(vault: Vault, work: Path) -> None:
    """What happens to a store in years, in a few calls. Each user has something of their own."""
    by = str(vault.user)
    work.mkdir()
    few = vault.timeline("few")
    for turn in range(1, 4):
        few.save({"turn": turn}, labels={"few": by}, notes={"n": turn})
    vault.delete("few:2")
    strict = Policy(max_per_timeline=1, undo_window=timedelta(0))
    assert vault.retention.apply(vault.retention.plan(strict)).dropped == 2
    few.save({"turn": 4}, labels={"few": by}, notes={"n": 4})
    vault.delete("few:3")
    vault.tasks.add("work", by)
    main = vault.timeline("main")
    for turn in range(1, 9):
        put(work, "notes.txt", f"{by} {turn}")
        with vault.tasks.attempt("work") if turn == 2 else nullcontext():
            labels = {"turn": str(turn), "by": by} if turn != 4 else None
            notes = {"seen": [by, turn], "odd": {1: (b"\xff", None)}} if turn % 2 else None
            where = work if turn > 5 else None
            main.save({"turn": turn, "by": by}, labels=labels, notes=notes, workspace=where)
    vault.put_notes("main:4", {"late": by})
    main.fork("main:7", name="fork")
    vault.timeline("fork").save({"of": by}, labels={"by": by}, notes={"k": 1}, status="DONE")
    vault.delete("main:7")  # hidden, and still the history of the fork
    vault.delete("main:3")  # hidden, and needed by none
    main.rewind("main:6")
    main.save({"after": "the rewind"}, name="named", labels={"by": by})
    gone = vault.timeline("gone")
    gone.save({"no": "more"}, labels={"by": by}, notes={"k": by})
    gone.delete()


def everything(vault: Vault) -> dict[str, Any]:
    """All that an export carries: of hidden history as of what is seen."""
    lines = {}
    for line in vault.timelines():
        head = line.head
        lines[line.name] = (
            None if head is None else head.id,
            [told(each) for each in line.ancestors()] if head else [],
            [told(each) for each in line.checkpoints(limit=1_000)],
        )
    labelled = vault.checkpoints(labels={"by": str(vault.user)}, limit=1_000)
    return {"lines": lines, "labelled": [each.id for each in labelled]}


def told(checkpoint: Checkpoint) -> tuple[Any, ...]:
    files = checkpoint.files
    content = None
    if files is not None:
        texts = {each.path: files.read(each.path) for each in files.list()}
        content = (files.workspace, texts)
    record = checkpoint._record._replace(**_OF_ONE_STORE)
    return (record, checkpoint.read(), checkpoint.labels, checkpoint.notes, content)


def test_everything_at_once_arrives_as_it_was(vaults: tuple[Vault, Vault], tmp_path: Path) -> None:
    for user in USERS:
        live(vaults[0].as_user(user, create=True), tmp_path / f"work of {user}")
    for user in USERS:
        source, target = (each.as_user(user, create=True) for each in vaults)
        file = tmp_path / f"{user}.hardsave"
        source.export_file(file)
        target.import_file(file)
        seen = everything(source)
        assert everything(target) == seen
        assert {"main", "fork", "few"} == set(seen["lines"])
        assert any(each[0].seq == 7 and each[2] for each in seen["lines"]["fork"][1])
        assert any(each[4] for each in seen["lines"]["main"][2])
        for deleted in ("main:3", "main:7", "few:1", "few:3", "gone:1"):
            with pytest.raises(NotFound):
                target.get(deleted)
        assert not target.tasks.find()
        assert target.store.verify().faults == ()
        again = tmp_path / "again.hardsave"
        target.export_file(again)
        assert again.read_bytes() == file.read_bytes()
    assert vaults[0].store.verify().faults == ()


@pytest.mark.parametrize("beside", [{"labels": {"k": "v"}}, {"notes": {"k": "v"}}])
def test_what_a_deleted_checkpoint_had_beside_it_is_not_exported(
    vaults: tuple[Vault, Vault], tmp_path: Path, beside: dict[str, Any]
) -> None:
    source, target = vaults
    line = source.timeline("t")
    line.save({"a": 1}, **beside)
    line.save({"a": 0})
    source.delete("t:1")
    source.export_file(tmp_path / "out.hardsave")
    target.import_file(tmp_path / "out.hardsave")
    assert [each.read() for each in target.timeline("t").checkpoints()] == [{"a": 0}]
    with pytest.raises(NotFound):
        target.get("t:1")
