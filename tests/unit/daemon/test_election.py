"""Whether a hook leaves a daemon behind, and which hooks that one answers."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hardsave import config
from hardsave.daemon import election, protocol
from hardsave.daemon.election import address_for
from hardsave.daemon.handler import objection
from hardsave.daemon.lifecycle import SameFiles
from hardsave.daemon.server import Request
from hardsave.vault.workspaces import projects


@pytest.fixture
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    own = {"HOME": str(tmp_path / "home"), "XDG_DATA_HOME": str(tmp_path / "data")}
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "work").mkdir()
    return own


# Where it would be


def test_hooks_of_a_project_have_one_place(surroundings: dict[str, str], tmp_path: Path) -> None:
    work = tmp_path / "work"
    post = address_for(surroundings, work / "deep", work)
    assert post is not None
    assert post.url == projects.store_url(surroundings, work)
    assert post.url == f"sqlite:///{post.store}"
    assert post.workspace == str(work)
    assert post.lock == election.lock_path(post.store, str(work))
    assert post.socket.startswith(f"{post.store}{protocol.SOCKET_INFIX}")
    assert post.link == protocol.rendezvous(surroundings, str(work / "deep"))


@pytest.mark.parametrize(
    "more",
    [
        {"HARDSAVE_DAEMON": "off"},
        {"HARDSAVE_SOCKET": "/somewhere"},  # `hardsave run` has one already
        {"HARDSAVE_STORE": "memory://"},
        {"HARDSAVE_STORE": "relative.db"},  # another store in every directory
        {"HARDSAVE_STORE": "sqlite:///relative.db"},
        {"HOME": "", "XDG_DATA_HOME": "", "HARDSAVE_STORE": "/s.db"},
    ],
)
def test_there_is_no_place_for(
    more: dict[str, str], surroundings: dict[str, str], tmp_path: Path
) -> None:
    assert address_for({**surroundings, **more}, tmp_path, tmp_path / "work") is None


def test_a_file_that_says_no_is_heard_whichever_it_is(
    surroundings: dict[str, str], tmp_path: Path
) -> None:
    work, user = tmp_path / "work", tmp_path / "home" / ".config" / "hardsave" / "config.yaml"
    user.parent.mkdir(parents=True)
    for users, of_project, is_wanted in (
        ("true", "true", True),
        ("false", "true", False),  # a project cannot switch on what its user has switched off
        ("true", "false", False),
    ):
        user.write_text(f"hooks:\n  daemon: {users}\n")
        (work / "hardsave.yaml").write_text(f"hooks:\n  daemon: {of_project}\n")
        assert config.leaves_daemon(surroundings, work) == is_wanted
        assert (address_for(surroundings, work, work) is not None) == is_wanted
    user.write_text("hooks:\n  daemon: perhaps\n")
    assert (
        address_for(surroundings, work, work) is None
    )  # and hooks do not save, until it is mended


# Whom it answers


def request(work: Path, environment: dict[str, str], **more: Any) -> Request:
    told = {"session_id": "s", "hook_event_name": "Stop", "cwd": str(work)}
    made = Request("chk_1", 1, work, environment, (), json.dumps(told).encode())
    return made._replace(**{"code": protocol.__file__, "caller": os.getpid(), **more})


def test_it_answers_hooks_that_would_have_saved_the_same(
    surroundings: dict[str, str], tmp_path: Path
) -> None:
    work = tmp_path / "work"
    store, code = projects.store_url(surroundings, work), SameFiles((protocol.__file__,))
    asked = request(work, surroundings)
    assert objection(asked, store, str(work), code) is None
    assert objection(asked._replace(directory=tmp_path), store, str(work), code) is None

    elsewhere = {**surroundings, "CLAUDE_PROJECT_DIR": str(tmp_path)}
    others = {
        "another installation": asked._replace(code="/other/protocol.py"),
        "other surroundings": request(work, {**surroundings, "HOME": "/other"}),
        "another container": asked._replace(caller=0),
        "not the input of a hook": asked._replace(data=b"nonsense"),
        f"the daemon of {work}": request(work, elsewhere),
        f"the daemon of {store}": request(work, {**surroundings, "HARDSAVE_STORE": "/s.db"}),
    }
    for why, other in others.items():
        assert why in str(objection(other, store, str(work), code))
    assert objection(asked, store, str(work), SameFiles(("/gone",))) is not None
