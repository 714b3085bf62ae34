"""What keeps Claude Code from running any hook, as version 2.1.325 does it."""

import json
from pathlib import Path

import pytest

from hardsave.agents.claude_code.hooks import why_off

OFF, ON = {"disableAllHooks": True}, {"disableAllHooks": False}
ONLY, NOT_ONLY = {"allowManagedHooksOnly": True}, {"allowManagedHooksOnly": False}
MANAGED, FURTHER = "machine/managed-settings.json", "machine/managed-settings.d"
LOCAL, PROJECT = "project/.claude/settings.local.json", "project/.claude/settings.json"


def why(folder: Path, **files: object) -> str:
    """With these files, by what they hold."""
    for name, told in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(told))
    return why_off(folder / "user", folder / "project", folder / "machine")


def test_where_nothing_is_said_hooks_run(tmp_path: Path) -> None:
    assert why(tmp_path) == ""
    assert why(tmp_path, **{MANAGED: {}, LOCAL: {}}) == ""


@pytest.mark.parametrize(
    "name", [MANAGED, f"{FURTHER}/a.json", LOCAL, PROJECT, "user/settings.json"]
)
def test_each_file_can_switch_them_off_and_is_named(tmp_path: Path, name: str) -> None:
    assert why(tmp_path, **{name: OFF}) == f"{tmp_path / name} has disableAllHooks"


@pytest.mark.parametrize("name", [MANAGED, f"{FURTHER}/a.json"])
def test_a_machine_can_allow_no_hooks_but_its_own(tmp_path: Path, name: str) -> None:
    assert why(tmp_path, **{name: ONLY}) == f"{tmp_path / name} allows no hooks of yours"


def test_that_is_nothing_that_a_user_could_say(tmp_path: Path) -> None:
    assert why(tmp_path, **{LOCAL: ONLY}) == ""


@pytest.mark.parametrize(
    ("files", "strongest"),
    [
        ({MANAGED: ON, LOCAL: OFF}, ""),
        ({MANAGED: ON, f"{FURTHER}/a.json": OFF}, f"{FURTHER}/a.json"),
        ({MANAGED: OFF, f"{FURTHER}/a.json": ON}, ""),
        ({f"{FURTHER}/a.json": OFF, f"{FURTHER}/b.json": ON}, ""),
        ({f"{FURTHER}/a.json": ON, f"{FURTHER}/b.json": OFF}, f"{FURTHER}/b.json"),
        ({MANAGED: ONLY, f"{FURTHER}/a.json": NOT_ONLY}, ""),
        ({LOCAL: ON, PROJECT: OFF}, ""),
    ],
)
def test_the_strongest_that_says_anything_counts(
    tmp_path: Path, files: dict[str, object], strongest: str
) -> None:
    found = why(tmp_path, **files)
    assert found.startswith(str(tmp_path / strongest)) if strongest else found == ""


def test_what_is_no_json_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / LOCAL
    path.parent.mkdir(parents=True)
    path.write_text("{")
    assert why(tmp_path, **{PROJECT: OFF}).startswith(str(tmp_path / PROJECT))
