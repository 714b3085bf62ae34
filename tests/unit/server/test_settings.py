"""What a server goes by: what was typed, variables, the user's file, the defaults."""

import logging
from pathlib import Path

import pytest

from hardsave import config
from hardsave.config import file, trust
from hardsave.defaults import SERVER_HOST, SERVER_PORT
from hardsave.errors import Misuse
from hardsave.server.settings import Settings, settled

SECTION = """
server:
  host: 0.0.0.0
  port: 9000
  public_url: https://tools.example.com/hardsave
  all_projects: true
  open_loopback: false
  allow_agent: [coder, tester]
  allow_workspace: [/srv/shop]
  checkpoint:
    max_task_attempts: 4
"""
NOTHING = dict.fromkeys(Settings._fields)


@pytest.fixture
def user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = tmp_path / "config" / "hardsave" / "config.yaml"
    path.parent.mkdir(parents=True)
    return path


def environment(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": str(tmp_path)}


def test_what_is_given_counts_before_the_file_and_that_before_the_defaults() -> None:
    assert settled(NOTHING, {}) == Settings(SERVER_HOST, SERVER_PORT)
    of_file = {"port": 9000, "all_projects": True, "agents": ("coder",)}
    assert settled(NOTHING, of_file) == Settings(port=9000, all_projects=True, agents=("coder",))
    given = {**NOTHING, "port": 0, "all_projects": False, "agents": ("tester",), "workspaces": ()}
    assert settled(given, of_file) == Settings(port=0, agents=("tester",))


def test_the_users_file_says_how_to_serve(user_file: Path, tmp_path: Path) -> None:
    assert config.serving(environment(tmp_path)) == {}
    user_file.write_text(SECTION)
    assert settled(NOTHING, config.serving(environment(tmp_path))) == Settings(
        "0.0.0.0",  # noqa: S104
        9000,
        "https://tools.example.com/hardsave",
        True,
        False,
        ("coder", "tester"),
        ("/srv/shop",),
    )


def test_a_projects_file_never_says_how_to_serve(
    user_file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It comes with a clone: it would open this machine to others. Also if it is trusted."""
    project = tmp_path / "project"
    project.mkdir()
    (project / config.PROJECT_FILE).write_text(SECTION + "strict: true\n")
    with caplog.at_level(logging.WARNING):
        (counts,) = config.readable(environment(tmp_path), project)
    assert counts.keys() == {"max_attempts"}
    assert "server.host is left out" in caplog.text
    assert "your own config.yaml alone" in caplog.text
    found = trust.look(project)
    assert found is not None
    assert found.risky.keys() == {"strict"}
    trust.trust(found, environment(tmp_path), "linux")
    (counts,) = config.files(environment(tmp_path), project)
    assert counts.keys() == {"max_attempts", "strict"}
    assert config.serving(environment(tmp_path)) == {}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("host: ''", "an address"),
        ("host: 5", "an address"),
        ("port: 65536", "a number from 0 to 65535"),
        ("port: true", "a number"),
        ("public_url: tools.example.com", "https://tools.example.com/hardsave"),
        ("all_projects: sure", "true, false"),
        ("allow_agent: coder", "a list of names"),
        ("allow_agent: [5]", "is no name"),
        ("allow_workspace: [here]", "is no whole path"),
        ("allow_workspace: []", "a list of paths"),
        ("tls: true", "is not a setting; there are: all_projects, allow_agent"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(line: str, why: str) -> None:
    with pytest.raises(Misuse, match=r"mine:2: server\.") as caught:
        file.read(f"server:\n  {line}\n", "mine")
    assert why in str(caught.value)
