import json
import shlex
import sys
from pathlib import Path

import pytest

from hardsave.adapters import install
from hardsave.cli.commands.doctor import judge_hooks
from hardsave.cli.errors import Exit
from hardsave.errors import Conflict
from tests.unit.cli.conftest import Run


@pytest.fixture
def settings(tmp_path: Path, project: Path) -> Path:
    return tmp_path / "claude" / "settings.json"


def test_init_shows_the_change_writes_it_and_takes_it_back(run: Run, settings: Path) -> None:
    before = json.dumps({"model": "opus"}, indent=2) + "\n"
    settings.write_text(before)
    settings.chmod(0o640)
    ran = run("init", "--yes")
    assert ran.code == Exit.DONE
    assert '+    "PostToolBatch": [' in ran.err
    command = json.loads(settings.read_text())["hooks"]["Stop"][0]["hooks"][0]["command"]
    assert shlex.split(command)[0] == sys.executable
    assert settings.stat().st_mode & 0o777 == 0o640
    assert "already" in run("init").out  # nothing to ask
    assert run("init", "--undo", "--yes", "--json").data["changed"] is True
    assert settings.read_text() == before


def test_settings_that_are_a_link_stay_one(run: Run, settings: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    settings.symlink_to(real)
    assert run("init", "--yes").code == Exit.DONE
    assert settings.is_symlink()
    assert "hardsave" in real.read_text()


def test_settings_with_comments_are_left_as_they_are(run: Run, settings: Path) -> None:
    settings.write_text('{"a": 1} // mine\n')
    ran = run("init", "--yes")
    assert ran.code == Exit.USAGE
    assert "left as it is" in ran.err
    assert settings.read_text() == '{"a": 1} // mine\n'


def test_a_project_has_settings_of_its_own(run: Run, settings: Path, project: Path) -> None:
    assert run("init", "--project", "--yes").code == Exit.DONE
    assert (project / ".claude/settings.local.json").exists()
    assert not settings.exists()


def test_where_claude_code_is_not_found_nothing_is_made(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "nowhere"))
    assert run("init", "--yes").code == Exit.NOT_FOUND
    assert not (tmp_path / "nowhere").exists()


def test_settings_that_somebody_changed_meanwhile_are_not_overwritten(settings: Path) -> None:
    settings.write_text("{}")
    change = install.plan(settings, undo=False)
    settings.write_text('{"a": 1}')
    with pytest.raises(Conflict):
        install.apply(change)
    assert settings.read_text() == '{"a": 1}'
    assert [path.name for path in settings.parent.iterdir()] == ["settings.json"]


def test_the_doctor_tells_of_missed_saves_first() -> None:
    found = judge_hooks("hooks", is_found=True, events=["Stop"], missed=["one", "two"])
    assert found.level == "warning"
    assert found.message == "2 saves missed, the last: two"
    assert judge_hooks("hooks", is_found=True, events=["Stop"], missed=[]).level == "ok"
