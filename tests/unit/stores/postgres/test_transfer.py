from pathlib import Path

import pytest

import hardsave
from tests.postgres_server import url_of


@pytest.mark.parametrize("to_server", [True, False])
def test_an_export_of_one_kind_of_store_is_imported_whole_by_the_other(
    to_server: bool, tmp_path: Path
) -> None:
    urls = [f"sqlite:///{tmp_path}/a.db", url_of(tmp_path)]
    source, target = urls if to_server else urls[::-1]
    files = tmp_path / "files"
    files.mkdir()
    with hardsave.open(source) as vault:
        line = vault.timeline("main")
        for at in range(30):
            (files / f"{at % 7}.txt").write_text(f"content {at}")
            line.save({"messages": [f"message {n}" for n in range(at)]}, workspace=files)
        before = [(each.id, each.seq, each.state) for each in line.checkpoints(limit=99)]
        vault.export_file(tmp_path / "all.hardsave")
    with hardsave.open(target) as vault:
        vault.import_file(tmp_path / "all.hardsave")
        found = vault.timeline("main").checkpoints(limit=99)
        assert [(each.id, each.seq, each.state) for each in found] == before
        assert vault.store.verify().ok
