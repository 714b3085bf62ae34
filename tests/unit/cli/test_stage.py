from pathlib import Path

import pytest

from hardsave.cli.demo.stage import Stage


def test_a_scene_imports_nothing_of_the_directory_that_it_is_played_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("json", "random", "logging"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not yours')")
    assert Stage(tmp_path, lambda line: None).play("hardsave", "--version")
