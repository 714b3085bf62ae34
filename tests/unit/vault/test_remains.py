"""A purged text outside of objects and rows: gone from there too, or the place is named."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.stores.local.daemon_lock import DaemonLock
from hardsave.vault.workspaces import projects
from tests.unit.vault.secrets_scanner import found

TEXT = 'sésame "opens"'
IN_JSON = "*" * (len(json.dumps(TEXT)) - 2)  # where JSON has written it
MASKED = b"*" * len(TEXT.encode())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


def opened(folder: Path) -> hardsave.Vault:
    return hardsave.open(f"sqlite:///{folder}/store.db")


def beside(folder: Path, what: str) -> Path:
    return folder / f"store.db-{what}"


def test_logs_are_masked_where_they_stand(folder: Path) -> None:
    for name in ("run.log", "hooks.log"):
        beside(folder, name).write_text(f"a {TEXT} b {json.dumps(TEXT)} c\n")
    with opened(folder) as vault, beside(folder, "run.log").open("ab") as writing:
        assert vault.store.purge(text=TEXT).left == ()
        writing.write(b"more\n")
    escaped = b"*" * (len(json.dumps(TEXT)) - 2)
    whole = b"a " + MASKED + b' b "' + escaped + b'" c\n'
    assert beside(folder, "hooks.log").read_bytes() == whole
    assert beside(folder, "run.log").read_bytes() == whole + b"more\n"


def test_a_log_that_is_too_large_to_be_looked_through_is_named(folder: Path) -> None:
    with beside(folder, "run.log").open("wb") as file:
        file.truncate((64 << 20) + 1)
    with opened(folder) as vault:
        (left,) = vault.store.purge(text=TEXT).left
    assert left.endswith("is too large to be looked through: delete it")


def test_a_seat_is_emptied_once_nobody_sits_there(folder: Path) -> None:
    path = str(beside(folder, "files-0-daemon"))
    with opened(folder) as vault:
        seat = DaemonLock.take(path, f"/{TEXT}/socket", is_evictable=False)
        assert seat is not None
        (left,) = vault.store.purge(text=TEXT).left
        assert left.startswith(f"{path}, which says where a running agent is")
        seat.close()
        Path(path).write_text(json.dumps([1, 1, f"/{TEXT}/socket", False]))
        assert vault.store.purge(text=TEXT).left == ()
    assert Path(path).read_bytes() == b""


def project(folder: Path, root: str, *formerly: str) -> None:
    known = projects.Project(root, 1, 2, None, None, None, formerly)
    projects.remember(projects.OwnFolder(folder, known))


def test_where_a_project_was_is_forgotten_and_where_it_is_is_named(folder: Path) -> None:
    project(folder, "/home/me/now", "/home/me/before", f"/home/{TEXT}/first")
    with opened(folder) as vault:
        assert vault.store.purge(text=TEXT).left == ()
        known = projects.read(folder)
        assert known is not None
        assert known.formerly == ("/home/me/before",)
        project(folder, f"/home/{TEXT}/now")
        (left,) = vault.store.purge(text=TEXT).left
    assert left == f"{folder / 'project.json'}: the project's own directory is called so"


def test_notes_of_hooks_are_masked_and_links_to_nobody_go(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "data" / "hardsave"
    note, odd = data / "hooks" / "p-0" / "1.json", data / "hooks" / "p-0" / "2.json"
    note.parent.mkdir(parents=True)
    note.write_text(json.dumps({"why": f"no {TEXT}", "at": 5, "deep": [{TEXT: 1}]}))
    odd.write_text(f"{TEXT}, and no JSON")
    reserve = data / "hooks" / "p-0.reserve"
    reserve.write_text(json.dumps({"count": 1, "why": TEXT}).ljust(4096))
    (folder / "store.db-odd.log").symlink_to(tmp_path / "nowhere")
    links = data / "daemons"
    links.mkdir()
    (links / "dead").symlink_to(f"/{TEXT}/socket")
    (tmp_path / TEXT).write_text("")
    (links / "alive").symlink_to(tmp_path / TEXT)
    with opened(folder) as vault:
        (left,) = vault.store.purge(text=TEXT).left
    assert left.startswith(f"{links / 'alive'}, which leads to a running agent")
    assert [path.name for path in links.iterdir()] == ["alive"]
    about = json.loads(note.read_text())
    assert about == {"why": f"no {IN_JSON}", "at": 5, "deep": [{IN_JSON: 1}]}
    assert odd.read_bytes() == MASKED + b", and no JSON"
    assert reserve.stat().st_size == 4096
    assert json.loads(reserve.read_text())["why"] == IN_JSON


def test_a_log_that_somebody_keeps_elsewhere_is_named_and_left(
    folder: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(TEXT)
    (folder / "store.db-run.log").symlink_to(elsewhere)
    with opened(folder) as vault:
        (left,) = vault.store.purge(text=TEXT).left
    assert left == f"{folder / 'store.db-run.log'}, which leads to {elsewhere}: take it out there"
    assert elsewhere.read_text() == TEXT


def test_what_is_known_of_other_projects_and_sessions_is_named(
    folder: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data" / "hardsave"
    for name in ("trusted/p-0.json", "projects/p-1/project.json", "sessions/s1"):
        (data / name).parent.mkdir(parents=True)
        (data / name).write_text(f'"/home/{json.dumps(TEXT)[1:-1]}"')
    with opened(folder) as vault:
        left = vault.store.purge(text=TEXT).left
    assert [each.partition(":")[0] for each in left] == [
        str(data / name)
        for name in ("sessions/s1", "projects/p-1/project.json", "trusted/p-0.json")
    ]


def test_tokens_and_secrets_of_callbacks_that_have_it_are_named(
    folder: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data" / "hardsave"
    data.mkdir(parents=True)
    for name in ("tokens.json", "webhook-secrets.json"):
        (data / name).write_text(json.dumps({"receiver": TEXT}))
    with opened(folder) as vault:
        left = vault.store.purge(text=TEXT).left
    assert [each.partition(": a token or a secret")[0] for each in left] == [
        str(data / "tokens.json"),
        str(data / "webhook-secrets.json"),
    ]


def test_names_that_stay_are_named(folder: Path, tmp_path: Path) -> None:
    with opened(folder) as vault:
        vault.timeline(f"about {TEXT}").save({"turn": 1})
        with vault.tasks.runner(f"session {TEXT}"):
            pass
        left = vault.store.purge(text=TEXT).left
    assert len(left) == 2
    assert "timeline" in left[0]
    assert "session" in left[1]
    other = tmp_path / TEXT
    other.mkdir()
    with opened(other) as vault:
        (left_there,) = vault.store.purge(text=TEXT).left
    assert left_there.startswith("the path of the store")


def test_what_was_set_aside_is_named_whatever_is_purged(folder: Path) -> None:
    (folder / "store.db.damaged-20260101T000000.000000").write_bytes(b"anything")
    with opened(folder) as vault:
        vault.timeline("main").save({"turn": 1})
        vault.timeline("main").save({"turn": 2})
        for what in ({"ref": "main:1"}, {"text": "nowhere"}, {"timeline": "main"}):
            (left,) = vault.store.purge(**what).left
            assert "store.db.damaged-2026" in left


def test_another_users_text_is_not_told(folder: Path) -> None:
    url = f"sqlite:///{folder}/store.db"
    with hardsave.open(url, user="ada") as ada, hardsave.open(url, user="bob") as bob:
        bob.timeline(f"about {TEXT}").save({"text": TEXT})
        assert ada.store.purge(text=TEXT).left == ()


def test_a_log_that_cannot_be_written_is_no_purge(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    beside(folder, "run.log").write_text(TEXT)
    with opened(folder) as vault:
        monkeypatch.setattr("hardsave.vault.purge.remains.os.pwrite", fails)
        with pytest.raises(hardsave.Unavailable, match="still has it, and cannot be written"):
            vault.store.purge(text=TEXT)


def test_a_purge_that_leaves_nothing_leaves_nothing(folder: Path) -> None:
    """Whatever it says nothing of has none of it."""
    work = folder.parent / "work"
    work.mkdir()
    (work / "f.txt").write_text("sesame-opens")
    with opened(folder) as vault:
        line = vault.timeline("main")
        line.save({"text": "sesame-opens"}, workspace=work, metadata={"a": "sesame-opens"})
        state: dict[str, Any] = line.load()
        (work / "f.txt").write_text("closed")
        beside(folder, "run.log").write_text("sesame-opens\n")
        done = vault.store.purge(text="sesame-opens")
        assert (done.rewritten, done.left, state["text"]) == (1, (), "sesame-opens")
    assert found(folder, ["sesame-opens"]) == set()
