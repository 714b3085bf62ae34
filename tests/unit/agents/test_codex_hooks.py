"""What keeps Codex from running any hook, as version 0.166.0 does it."""

import json
from pathlib import Path

import pytest

from hardsave.agents.codex.hooks import why_off

OFF = "[features]\nhooks = false\n"
ON = "[features]\nhooks = true\n"


class Places:
    def __init__(self, folder: Path) -> None:
        self.user, self.project = folder / "user", folder / "project"
        self.here = self.project
        self.machine = folder / "machine"
        for each in (self.user, self.machine, self.project / ".codex"):
            each.mkdir(parents=True)
        self.hooks = self.user / "hooks.json"
        self.own = self.project / ".codex" / "config.toml"

    def why(self) -> str:
        return why_off(self.user, self.hooks, self.project, self.here, machine=self.machine)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def test_where_nothing_is_said_hooks_run(places: Places) -> None:
    assert places.why() == ""
    places.hooks.write_text('{"description": "mine", "hooks": {"Stop": [{"hooks": []}]}}')
    (places.user / "config.toml").write_text("no TOML")
    assert places.why() == ""


@pytest.mark.parametrize("text", [f"a = {'[' * 100_000}", f"a = {'9' * 10_000}"])
def test_what_cannot_be_read_in_a_clone_is_no_fault_of_ours(places: Places, text: str) -> None:
    places.own.write_text(text)
    assert places.why() == ""
    (places.user / "config.toml").write_text(OFF)
    assert places.why() != ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("user/config.toml", OFF),
        ("user/config.toml", "[features]\ncodex_hooks = false\n"),
        ("project/.codex/config.toml", OFF),
        ("machine/config.toml", OFF),
        ("machine/managed_config.toml", OFF),
        ("machine/requirements.toml", OFF),
        ("machine/requirements.toml", "allow_managed_hooks_only = true\n"),
    ],
)
def test_each_layer_can_switch_them_off_and_is_named(
    places: Places, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    assert places.why().startswith(str(tmp_path / name))


def test_the_strongest_that_says_anything_counts(places: Places) -> None:
    (places.user / "config.toml").write_text(OFF)
    places.own.write_text(ON)
    assert places.why() == ""
    (places.machine / "managed_config.toml").write_text(OFF)
    assert "managed_config.toml" in places.why()


def test_what_is_nearer_to_where_codex_is_started_counts(places: Places) -> None:
    places.here = places.project / "part" / "deep"
    own = places.project / "part" / ".codex" / "config.toml"
    own.parent.mkdir(parents=True)
    own.write_text(OFF)
    places.own.write_text(ON)
    assert places.why().startswith(str(own))
    places.here = places.project
    assert places.why() == ""


def test_the_new_name_counts_before_the_old_one(places: Places) -> None:
    places.own.write_text(ON + "codex_hooks = false\n")
    assert places.why() == ""


def test_a_project_that_is_not_trusted_switches_nothing_off(places: Places) -> None:
    places.own.write_text(OFF)
    told = f'[projects."{places.project}"]\ntrust_level = "untrusted"\n'
    (places.user / "config.toml").write_text(told)
    assert places.why() == ""


@pytest.mark.parametrize(
    ("told", "what"),
    [
        ({"$schema": "x"}, "'$schema'"),
        ({"description": 1}, "'description'"),
        ({"hooks": {"Stop": ["x"]}}, "'Stop'"),
        ({"hooks": {"Stop": [{"matcher": 3}]}}, "'Stop'"),
        ({"hooks": {"Stop": [{"hooks": "x"}]}}, "'Stop'"),
        ({"hooks": {"Stop": [{"hooks": ["x"]}]}}, "'Stop'"),
        ({"hooks": {"Stop": [{"hooks": [{"type": "other"}]}]}}, "'Stop'"),
        ({"hooks": {"Stop": [{"hooks": [{"type": "command"}]}]}}, "'Stop'"),
        (
            {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": 1.5}]}]}},
            "'Stop'",
        ),
    ],
)
def test_a_file_of_hooks_that_codex_cannot_read_is_left_out_as_a_whole(
    places: Places, told: dict[str, object], what: str
) -> None:
    places.hooks.write_text(json.dumps(told))
    assert places.why().startswith(f"{places.hooks} has")
    assert what in places.why()
