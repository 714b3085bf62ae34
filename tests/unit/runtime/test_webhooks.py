"""Callbacks that a worker sends, as their receiver sees them: signed, and not after a 410."""

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import hardsave
from hardsave.config import places
from hardsave.runtime import verify_webhook
from hardsave.runtime.jobs import notices
from hardsave.runtime.jobs.worker import Worker
from hardsave.runtime.webhooks import disabled
from hardsave.runtime.webhooks.secret_file import FILE, Secret, receiver_of, secret_file
from hardsave.runtime.webhooks.signature import new_secret
from hardsave.stores.postgres import PostgresStore
from hardsave.stores.redis import RedisStore
from hardsave.vault.opening import url_of
from tests import postgres_server, redis_server
from tests.unit.runtime.listener import Listener, listening

AT_ONCE = hardsave.Retry(first_seconds=0, max_seconds=0)
ELSEWHERE = "https://elsewhere.example"


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as server:
        yield server


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this user's data are."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "hardsave"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store/store.db"


@pytest.fixture
def vault(url: str, tmp_path: Path) -> Iterator[hardsave.Vault]:
    (tmp_path / "store").mkdir()
    with hardsave.open(url) as opened:
        yield opened


def add(vault: hardsave.Vault, receiver: str | None = None, *, seconds: int | None = None) -> str:
    """A new secret for this store."""
    now = datetime.now(UTC)
    ends = None if seconds is None else now + timedelta(seconds=seconds)
    return _added(vault, receiver, now, ends).secret


def _added(
    vault: hardsave.Vault, receiver: str | None, now: datetime, ends: datetime | None
) -> Secret:
    return secret_file().add(
        new_secret(), store=url_of(vault), receiver=receiver, now=now, expires_at=ends
    )


def end(vault: hardsave.Vault, id: str, callback: str, **how: Any) -> None:
    """A job that is over, and a worker that tells of it."""
    vault.jobs.add(id, "Fix", callback=callback)
    vault.tasks.cancel(id)
    tell(vault, **how)


def tell(vault: hardsave.Vault, **how: Any) -> None:
    Worker(vault, {}, allow_private_callbacks=True, **how).run(until_idle=True)


def signatures(listener: Listener, at: int = -1) -> int:
    headers, _ = listener.requests[at]
    return len((headers["webhook-signature"] or "").split())


# Signed


def test_a_callback_is_signed_over_the_very_bytes_that_are_sent(
    vault: hardsave.Vault, listener: Listener
) -> None:
    secret = add(vault)
    end(vault, "fix", listener.url)
    [(headers, body)] = listener.requests
    told = verify_webhook(secret, headers, body)
    assert told.pop("completedAt").endswith("+00:00")
    assert told == {
        "jobId": "fix",
        "status": "failed",
        "success": False,
        "message": "cancelled",
        "error": "cancelled",
    }
    assert headers["webhook-id"] == headers["Idempotency-Key"]
    assert headers["webhook-id"].startswith("fix/notice-")
    with pytest.raises(hardsave.Misuse, match="no signature"):
        verify_webhook(new_secret(), headers, body)


def test_a_callback_without_a_secret_is_sent_as_before(
    vault: hardsave.Vault, listener: Listener
) -> None:
    add(vault, ELSEWHERE)
    add(vault, seconds=0)  # it has expired
    with hardsave.open("memory://") as other:
        add(other)
    end(vault, "fix", listener.url)
    [(headers, _)] = listener.requests
    assert [name for name in headers if name.lower().startswith("webhook-")] == []
    assert headers["Idempotency-Key"].startswith("fix/notice-")


def test_a_callback_is_signed_with_every_secret_of_its_receiver_and_of_all(
    vault: hardsave.Vault, listener: Listener
) -> None:
    known = [add(vault), add(vault, receiver_of(listener.url)), add(vault, seconds=3600)]
    add(vault, ELSEWHERE)
    end(vault, "fix", listener.url)
    assert signatures(listener) == 3
    for secret in known:
        assert verify_webhook(secret, *listener.requests[0])["jobId"] == "fix"


def test_a_secret_that_is_added_or_removed_counts_at_once_in_a_worker_that_runs(
    vault: hardsave.Vault, listener: Listener
) -> None:
    old = _added(vault, None, datetime.now(UTC), None)
    seen: list[str] = []

    def replace(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        wait_for(lambda: len(listener.requests) > len(seen))
        seen.append("one")
        if len(seen) == 1:
            seen.append(add(vault))
            vault.tasks.cancel("second")
            wait_for(lambda: len(listener.requests) == 2)
            secret_file().remove(old.id, store=url_of(vault))
        return ModelResponse(parts=[TextPart("done")])

    for id in ("first", "second"):
        vault.jobs.add(id, "Fix", callback=listener.url, agent="none")
    vault.tasks.cancel("first")
    vault.jobs.add("long", "Wait", callback=listener.url)
    agent: Agent[None, Any] = Agent(FunctionModel(replace))
    Worker(vault, {"default": agent}, allow_private_callbacks=True).run(until_idle=True)
    assert [signatures(listener, at) for at in range(3)] == [1, 2, 1]
    assert verify_webhook(seen[1], *listener.requests[2])["jobId"] == "long"


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_all_tries_have_one_id_and_each_its_own_time(
    vault: hardsave.Vault, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = [datetime(2026, 1, 31, 12, minute, tzinfo=UTC) for minute in range(60)]

    class Clock:
        @staticmethod
        def now(_: object) -> datetime:
            return moments.pop(0)

    add(vault)
    monkeypatch.setattr(notices, "datetime", Clock)
    listener.status = 503
    end(vault, "fix", listener.url, callback_retry=AT_ONCE)
    ids = {headers["webhook-id"] for headers, _ in listener.requests}
    times = [int(headers["webhook-timestamp"]) for headers, _ in listener.requests]
    assert len(ids) == 1
    assert len(times) == 10
    assert times == sorted({*times})


@pytest.mark.parametrize("id", ["release 1.2", "修复-1", "100%", "a~b@(c)"])
def test_a_job_with_any_id_is_told_and_verified(
    vault: hardsave.Vault, listener: Listener, id: str
) -> None:
    secret = add(vault)
    end(vault, id, listener.url)
    [(headers, body)] = listener.requests
    assert verify_webhook(secret, headers, body)["jobId"] == id
    assert "." not in headers["webhook-id"]
    assert headers["webhook-id"] == headers["Idempotency-Key"]


def test_a_job_of_another_user_of_the_store_is_signed_with_its_secrets(
    vault: hardsave.Vault, listener: Listener
) -> None:
    secret = add(vault)
    with vault.as_user("ada", create=True) as ada:
        end(ada, "fix", listener.url)
    assert verify_webhook(secret, *listener.requests[0])["jobId"] == "fix"


def test_nothing_is_sent_unsigned_because_the_secrets_cannot_be_read(
    vault: hardsave.Vault, listener: Listener, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = add(vault)
    (data / FILE).chmod(0o644)
    with caplog.at_level(logging.WARNING):
        end(vault, "fix", listener.url)
    assert listener.requests == []
    assert "chmod 600" in caplog.text
    assert "it is tried again" in caplog.text
    (data / FILE).chmod(0o600)
    (notice,) = vault.tasks.find(state="pending")
    vault.tasks.cancel(notice.id)
    vault.tasks.retry(notice.id)
    tell(vault)
    assert verify_webhook(secret, *listener.requests[0])["jobId"] == "fix"


def test_a_user_without_a_home_has_no_secrets(
    vault: hardsave.Vault, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown() -> str:
        raise KeyError("uid not found")

    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setattr(places, "_user_name", unknown)
    end(vault, "fix", listener.url)
    assert signatures(listener) == 0


def test_a_secret_is_in_no_file_of_the_store_in_no_export_and_in_no_log(
    vault: hardsave.Vault, listener: Listener, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = add(vault)
    listener.status = 410
    with caplog.at_level(logging.DEBUG):
        end(vault, "fix", listener.url)
    vault.timeline("main").save({"turn": 1})
    vault.export_file(tmp_path / "store" / "out.hardsave")
    text = secret.removeprefix("whsec_")
    files = [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert len(files) > 2
    assert [path for path in files if text.encode() in path.read_bytes()] == []
    assert text not in caplog.text
    assert text not in repr(vault.tasks.find(limit=9))


# Gone


def test_a_receiver_that_answers_410_is_not_told_again_until_it_is_enabled(
    vault: hardsave.Vault, listener: Listener, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    listener.status = 410
    with caplog.at_level(logging.WARNING):
        end(vault, "one", listener.url, callback_retry=AT_ONCE)
    assert len(listener.requests) == 1
    [gone] = disabled.listed(vault.tasks)
    enabling = f"to enable it again, type: hardsave webhook enable {gone.id}"
    assert "answered 410 and is disabled from now on" in caplog.text
    assert f"{enabling}; it is not tried again" in caplog.text
    listener.status = 200
    with hardsave.open(url) as later, caplog.at_level(logging.WARNING):
        end(later, "two", listener.url, callback_retry=AT_ONCE)
        failed = [each for each in later.tasks.find(state="failed") if notices.is_notice(each)]
    assert len(listener.requests) == 1
    assert [each.attempts for each in failed] == [1, 1]
    assert failed[1].error is not None
    assert f"is disabled: it has answered 410 Gone on {gone.since:%Y-%m-%d}" in failed[1].error
    assert enabling in failed[1].error
    disabled.enable(vault.tasks, gone.id)
    end(vault, "three", listener.url)
    assert [told["jobId"] for _, _, told in listener.got] == ["one", "three"]
    vault.tasks.retry(failed[1].id)
    tell(vault)
    assert listener.got[-1][2]["jobId"] == "two"


def test_another_address_of_the_same_host_is_told(
    vault: hardsave.Vault, listener: Listener
) -> None:
    listener.status = 410
    end(vault, "one", listener.url)
    listener.status = 200
    end(vault, "two", f"{listener.url}&y=2")
    assert [told["jobId"] for _, _, told in listener.got] == ["one", "two"]


@pytest.mark.parametrize("status", [404, 409, 302, 429, 500])
def test_other_answers_disable_nothing(
    vault: hardsave.Vault, listener: Listener, status: int
) -> None:
    listener.status = status
    end(vault, "fix", listener.url)
    assert disabled.listed(vault.tasks) == []


def test_what_is_disabled_for_one_user_is_named_with_that_user(
    vault: hardsave.Vault, listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    listener.status = 410
    with vault.as_user("ada l", create=True) as ada:
        end(ada, "fix", listener.url)
        [gone] = disabled.listed(ada.tasks)
    assert f"hardsave webhook enable {gone.id} --user 'ada l'; it is" in caplog.text
    assert disabled.listed(vault.tasks) == []


URL = "https://me:pass@ci.example:443/hooks/T0ken?key=T0ken"
NOW = datetime(2026, 1, 31, tzinfo=UTC)


def test_a_disabled_address_keeps_its_secrets_and_when_that_was(vault: hardsave.Vault) -> None:
    first = disabled.disable(vault.tasks, URL, NOW)
    assert disabled.disable(vault.tasks, URL, NOW + timedelta(days=1)) == first
    assert disabled.listed(vault.tasks) == [first] == [disabled.found(vault.tasks, URL)]
    assert (first.receiver, first.since) == ("https://ci.example", NOW)
    assert "T0ken" not in repr(vault.tasks.happened())


@pytest.mark.parametrize("by_url", [True, False])
def test_an_address_is_enabled_by_its_id_or_by_itself(vault: hardsave.Vault, by_url: bool) -> None:
    gone = disabled.disable(vault.tasks, URL, NOW)
    other = disabled.disable(vault.tasks, ELSEWHERE, NOW)
    named = URL if by_url else gone.id
    assert disabled.enable(vault.tasks, named) == gone
    assert disabled.listed(vault.tasks) == [other]
    with pytest.raises(hardsave.NotFound, match="hardsave webhook list"):
        disabled.enable(vault.tasks, named)


def test_addresses_that_are_disabled_at_once_are_all_there(vault: hardsave.Vault, url: str) -> None:
    def disable(number: int) -> None:
        with hardsave.open(url) as opened:
            disabled.disable(opened.tasks, f"{ELSEWHERE}/{number}", NOW)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(disable, range(12)))
    assert len(disabled.listed(vault.tasks)) == 12


def test_of_very_many_disabled_addresses_the_newest_are_known(
    vault: hardsave.Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disabled, "_MOST", 3)
    for number in range(5):
        disabled.disable(vault.tasks, f"{ELSEWHERE}/{number}", NOW + timedelta(days=number))
    assert [each.since.day for each in disabled.listed(vault.tasks)] == [2, 3, 4]


# Which store


def test_a_store_has_the_same_name_for_secrets_however_it_was_opened(
    vault: hardsave.Vault, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "store")
    monkeypatch.chdir(tmp_path)
    for spelled in (url, "sqlite:///store/store.db", f"sqlite:///{tmp_path}/link/store.db"):
        with hardsave.open(spelled) as again:
            assert url_of(again) == url_of(vault) == places.canonical(url)
    with vault.as_user("ada", create=True) as ada:
        assert url_of(ada) == url_of(vault)
    with hardsave.open("memory://") as other:
        assert url_of(other) == "memory://"


def test_stores_on_a_server_have_names_of_their_own_for_secrets(tmp_path: Path) -> None:
    for server, make in ((postgres_server, PostgresStore), (redis_server, RedisStore)):
        one, two = (server.url_of(tmp_path / name) for name in ("one", "two"))
        with hardsave.Vault(make(one)) as made, hardsave.open(one) as opened:
            assert url_of(made) == url_of(opened) == places.canonical(one)
            with made.as_user("ada", create=True) as ada:
                assert url_of(ada) == url_of(made)
        with hardsave.Vault(make(two)) as other:
            assert url_of(other) not in (places.canonical(one), "memory://")
