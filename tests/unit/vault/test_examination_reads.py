"""How often an import asks its scratch about objects."""

from pathlib import Path
from typing import Any

import pytest

from hardsave.stores.memory.store import MemoryStore
from hardsave.vault.scratch import Scratch
from hardsave.vault.transfer import examination
from hardsave.vault.vault import Vault


@pytest.mark.parametrize(("in_mind", "most"), [(50_000, 0), (20, 400)])
def test_new_and_recent_objects_are_not_looked_for_in_the_scratch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_mind: int, most: int
) -> None:
    with Vault(MemoryStore()) as source:
        for number in range(200):
            source.timeline("main").append({"messages": [f"{number} " + "x" * 300]})
        objects = source.export_file(tmp_path / "export").objects
    asked: list[str] = []
    row = Scratch.row

    def counted(self: Scratch, sql: str, *values: Any) -> tuple[Any, ...] | None:
        asked.append(sql)
        return row(self, sql, *values)

    monkeypatch.setattr(Scratch, "row", counted)
    monkeypatch.setattr(examination, "IN_MIND", in_mind)
    with Vault(MemoryStore()) as vault:
        assert vault.import_file(tmp_path / "export").checkpoints == 200
        assert len(vault.timeline("main").load()["messages"]) == 200
    assert objects > most
    assert sum("FROM objects" in sql for sql in asked) <= most
