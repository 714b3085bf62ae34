import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hardsave.errors import Conflict, Misuse, NotFound, Unavailable
from hardsave.server.caller import Scope
from hardsave.server.tokens import EVERY_STORE, LiveTokens, Token, TokenFile, canonical, matching

NOW = datetime(2026, 1, 31, tzinfo=UTC)


@pytest.fixture
def file(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "data" / "tokens.json")


def add(
    file: TokenFile, name: str, *, store: str = "s", scope: Scope = "read", days: int | None = None
) -> tuple[Token, str]:
    ends = None if days is None else NOW + timedelta(days=days)
    return file.add(name, store=store, user=None, scope=scope, now=NOW, expires_at=ends)


def test_a_token_is_known_by_what_its_caller_sends(file: TokenFile) -> None:
    made, secret = add(file, "ci")
    add(file, "other")
    assert matching(file.of("s"), secret, NOW) == made
    for wrong in ("", secret[:-1], secret + "x", made.hash, made.id, "é\ud800"):
        assert matching(file.of("s"), wrong, NOW) is None


def test_a_token_is_never_kept_itself(file: TokenFile) -> None:
    _, secret = add(file, "ci")
    assert secret not in file.path.read_text()
    assert secret.removeprefix("hs_") not in file.path.read_text()


def test_the_file_is_for_its_user_alone(file: TokenFile) -> None:
    add(file, "ci")
    for path in file.path.parent.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
    assert file.path.parent.stat().st_mode & 0o777 == 0o700


def test_a_token_is_for_one_store(file: TokenFile) -> None:
    _, secret = add(file, "ci", store="one")
    assert matching(file.of("two"), secret, NOW) is None
    add(file, "ci", store="two")  # the name is free there
    with pytest.raises(NotFound):
        file.revoke("ci", store="three")


def test_a_token_for_all_projects_counts_for_every_store(file: TokenFile) -> None:
    _, secret = add(file, "ops", store=EVERY_STORE)
    found = matching(file.of("one"), secret, NOW)
    assert found is not None
    assert found.is_for_all
    assert not add(file, "ci", store="one")[0].is_for_all
    assert [each.name for each in file.of("one")] == ["ops", "ci"]
    assert [each.name for each in file.of("two")] == ["ops"]
    assert [each.name for each in file.every()] == ["ops", "ci"]
    assert file.revoke("ops", store="two").name == "ops"
    assert [each.name for each in file.every()] == ["ci"]


def test_two_tokens_of_one_name_are_told_apart_by_their_ids(file: TokenFile) -> None:
    own, every = add(file, "ci", store="one")[0], add(file, "ci", store=EVERY_STORE)[0]
    with pytest.raises(Misuse, match=f"{own.id}.*{every.id}"):
        file.revoke("ci", store="one")
    assert file.revoke(every.id, store="one") == every
    assert file.revoke("ci", store="one") == own


def test_an_expired_token_counts_no_longer_and_its_name_is_free(file: TokenFile) -> None:
    _, secret = add(file, "ci", days=1)
    assert matching(file.of("s"), secret, NOW + timedelta(days=1)) is None
    assert matching(file.of("s"), secret, NOW + timedelta(hours=23)) is not None
    with pytest.raises(Conflict):
        add(file, "ci")
    later = NOW + timedelta(days=2)
    file.add("ci", store="s", user=None, scope="read", now=later, expires_at=None)
    assert [each.expires_at for each in file.of("s")] == [None]


def test_a_revoked_token_is_refused_by_a_server_that_runs(file: TokenFile) -> None:
    live = LiveTokens(file)
    assert live.now() == ()
    made, _ = add(file, "ci")
    assert live.now() == (made,)
    assert file.revoke(made.id, store="s") == made
    assert live.now() == ()


def test_tokens_that_are_added_at_once_are_all_there(file: TokenFile) -> None:
    names = [f"t{number}" for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: add(TokenFile(file.path), name), names))
    assert sorted(each.name for each in file.of("s")) == sorted(names)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"version": 2, "tokens": []}', '{"version": 1, "tokens": [{}]}']
)
def test_a_file_that_cannot_be_read_lets_no_caller_in(file: TokenFile, content: str) -> None:
    file.path.parent.mkdir()
    file.path.write_text(content)
    with pytest.raises(Unavailable, match="token add"):
        file.of("s")


def test_a_scope_that_is_unknown_is_no_scope(file: TokenFile) -> None:
    add(file, "ci")
    data = json.loads(file.path.read_text())
    data["tokens"][0]["scope"] = "everything"
    file.path.write_text(json.dumps(data))
    with pytest.raises(Unavailable):
        file.of("s")


def test_a_store_has_one_spelling(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    plain = canonical(f"sqlite:///{tmp_path}/a.db")
    assert canonical(f"sqlite:///{tmp_path}/link/../{tmp_path.name}/a.db") == plain
    assert canonical(f"sqlite:///{os.path.relpath(tmp_path)}/a.db") == plain
    assert canonical("memory://") == "memory://"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("expires_at", "2027-01-01T00:00:00"),  # no zone
        ("created_at", "2026-01-01T00:00:00"),
        ("expires_at", 5),
        ("hash", "é" * 64),
        ("hash", 5),
        ("name", None),
        ("store", ["s"]),
        ("user", 5),
        ("scope", {}),
        ("more", 1),
    ],
)
def test_a_file_that_is_wrong_inside_is_one_error_that_names_the_next_step(
    file: TokenFile, name: str, value: object
) -> None:
    add(file, "ci")
    data = json.loads(file.path.read_bytes())
    data["tokens"][0][name] = value
    file.path.write_text(json.dumps(data))
    with pytest.raises(Unavailable, match="hardsave token add"):
        file.of("s")


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_refused(file: TokenFile, mode: int) -> None:
    add(file, "ci")
    file.path.chmod(mode)
    for use in (lambda: file.of("s"), lambda: add(file, "other")):
        with pytest.raises(Unavailable, match=f"chmod 600 {file.path}"):
            use()
    file.path.chmod(0o644)
    assert len(file.of("s")) == 1


def test_a_write_that_fails_leaves_the_file_as_it_was_and_no_draft(
    file: TokenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(file, "ci")
    before = file.path.read_bytes()

    def full(_: int) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        add(file, "other")
    assert file.path.read_bytes() == before
    assert {each.name for each in file.path.parent.iterdir()} == {"tokens.json", "tokens.lock"}
