"""The file of secrets: whose they are, which of them sign, and that none is shown."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hardsave.errors import Conflict, Misuse, NotFound, Unavailable
from hardsave.runtime.webhooks.secret_file import Secret, SecretFile, live, receiver_of
from hardsave.runtime.webhooks.signature import new_secret

NOW = datetime(2026, 1, 31, tzinfo=UTC)
URL = "https://ci.example/hooks/done?key=1"
DAY = timedelta(days=1)


@pytest.fixture
def file(tmp_path: Path) -> SecretFile:
    return SecretFile(tmp_path / "data" / "webhook-secrets.json")


def add(
    file: SecretFile,
    receiver: str | None = None,
    *,
    store: str = "s",
    now: datetime = NOW,
    expires: timedelta | None = None,
    overlap: timedelta | None = None,
) -> Secret:
    return file.add(
        new_secret(),
        store=store,
        receiver=receiver,
        now=now,
        expires_at=None if expires is None else NOW + expires,
        others_expire_at=None if overlap is None else now + overlap,
    )


def signing(file: SecretFile, url: str = URL, after: timedelta = timedelta()) -> list[str]:
    return [each.id for each in live(file.of("s"), url, NOW + after)]


# Which of them sign


def test_a_secret_signs_for_its_receiver_or_for_all(file: SecretFile) -> None:
    every = add(file)
    ours = add(file, "https://ci.example")
    add(file, "https://other.example")
    add(file, "https://ci.example", store="another")
    assert signing(file) == [every.id, ours.id]
    assert signing(file, "https://third.example/") == [every.id]


def test_a_second_secret_signs_beside_the_first_until_that_is_removed(file: SecretFile) -> None:
    old, new = add(file, "https://ci.example"), add(file, "https://ci.example")
    assert signing(file) == [old.id, new.id]
    assert file.remove(old.id, store="s") == old
    assert signing(file) == [new.id]
    with pytest.raises(NotFound, match="webhook list"):
        file.remove(old.id, store="s")


def test_a_secret_signs_until_it_expires(file: SecretFile) -> None:
    made = add(file, expires=DAY)
    assert signing(file, after=DAY - timedelta(seconds=1)) == [made.id]
    assert signing(file, after=DAY) == []


def test_the_older_secrets_of_a_receiver_expire_after_the_overlap(file: SecretFile) -> None:
    every, other = add(file), add(file, "https://other.example")
    old, soon = add(file, "https://ci.example"), add(file, "https://ci.example", expires=DAY / 2)
    new = add(file, "https://ci.example", overlap=DAY)
    assert signing(file) == [every.id, old.id, soon.id, new.id]
    assert signing(file, after=DAY / 2) == [every.id, old.id, new.id]  # not prolonged
    assert signing(file, after=DAY) == [every.id, new.id]
    assert signing(file, "https://other.example/", after=DAY) == [every.id, other.id]


def test_secrets_that_have_expired_go_when_one_is_added_for_the_same_receiver(
    file: SecretFile,
) -> None:
    add(file, "https://ci.example", expires=DAY)
    other = add(file, "https://other.example", expires=DAY)
    new = add(file, "https://ci.example", now=NOW + 2 * DAY)
    assert [each.id for each in file.of("s")] == [other.id, new.id]


def test_a_secret_is_added_once_for_a_receiver(file: SecretFile) -> None:
    made = add(file, expires=DAY)
    file.add(made.secret, store="s", receiver="https://ci.example", now=NOW)
    with pytest.raises(Conflict, match="there already"):
        file.add(made.secret, store="s", receiver=None, now=NOW)
    again = file.add(made.secret, store="s", receiver=None, now=NOW + DAY)  # that one has expired
    assert [each.id for each in file.of("s") if each.receiver is None] == [again.id]
    with pytest.raises(Misuse, match="whsec_"):
        file.add("hunter2", store="s", receiver=None, now=NOW)


@pytest.mark.parametrize(
    ("url", "receiver"),
    [
        ("https://CI.example:443/x?y#z", "https://ci.example"),
        ("http://me:pass@ci.example:80", "http://ci.example"),
        ("http://ci.example:443/", "http://ci.example:443"),
        ("https://[2606:4700::1111]:8443/", "https://[2606:4700::1111]:8443"),
    ],
)
def test_a_receiver_has_one_spelling(url: str, receiver: str) -> None:
    assert receiver_of(url) == receiver_of(receiver) == receiver


@pytest.mark.parametrize("url", ["ci.example", "ftp://ci.example", "https://", "https://a:x"])
def test_what_cannot_be_called_back_is_no_receiver(url: str) -> None:
    with pytest.raises(Misuse, match="http://… or https://…"):
        receiver_of(url)


# The file


def test_secrets_that_are_added_at_once_are_all_there(file: SecretFile) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: add(SecretFile(file.path)), range(24)))
    assert {each.id for each in file.of("s")} == {each.id for each in made}


def test_the_file_is_for_its_user_alone(file: SecretFile) -> None:
    add(file)
    for path in file.path.parent.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
    assert file.path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_file_that_others_may_read_or_write_is_refused(file: SecretFile, mode: int) -> None:
    add(file)
    file.path.chmod(mode)
    for use in (lambda: file.of("s"), lambda: add(file)):
        with pytest.raises(Unavailable, match=f"sign callbacks; .* chmod 600 {file.path}"):
            use()
    file.path.chmod(0o600)
    assert len(file.of("s")) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", 5),
        ("store", None),
        ("receiver", 5),
        ("receiver", "https://ci.example/path"),
        ("receiver", "ci.example"),
        ("secret", "hunter2"),
        ("secret", None),
        ("expires_at", "2027-01-01T00:00:00"),
        ("created_at", 5),
        ("more", 1),
    ],
)
def test_a_file_that_is_wrong_inside_is_one_error_that_names_the_next_step(
    file: SecretFile, name: str, value: object
) -> None:
    made = add(file)
    data = json.loads(file.path.read_bytes())
    data["secrets"][0][name] = value
    file.path.write_text(json.dumps(data))
    with pytest.raises(Unavailable, match="hardsave webhook add") as told:
        file.of("s")
    assert made.secret not in str(told.value)


def test_a_secret_is_not_shown_where_it_is_logged(file: SecretFile) -> None:
    made = add(file, "https://ci.example")
    assert made.secret not in f"{made!r} {made}"
    assert made.id in repr(made)
