"""`hardsave webhook`: secrets are made, listed and removed; receivers are enabled again."""

import io
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.cli.errors import Exit
from hardsave.runtime.jobs.worker import Worker
from hardsave.runtime.webhooks import disabled
from hardsave.runtime.webhooks.signature import key_of, new_secret, verified
from tests.unit.cli.conftest import Run
from tests.unit.runtime.listener import listening

CI = "https://ci.example"
URL = f"{CI}/hooks/T0ken"
NOW = datetime.now(UTC)


def secrets(run: Run, *more: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run("webhook", "list", "--json", *more).data["secrets"]
    return found


def test_a_secret_is_shown_once_and_never_listed(run: Run) -> None:
    ran = run("webhook", "add", "--for", f"{URL}?x=1")
    (shown,) = ran.out.splitlines()
    assert len(key_of(shown)) == 32
    assert ran.err == f"it is not shown again; give it to {CI}, which verifies with it\n"
    made = run("webhook", "add", "--json").data
    assert len(key_of(made.pop("secret"))) == 32
    listed = secrets(run)
    assert [each["receiver"] for each in listed] == [CI, None]
    assert listed[1] == made
    for form in ([], ["--json"]):
        told = run("webhook", *form)
        assert shown not in told.out + told.err
        assert "whsec_" not in told.out + told.err


def test_what_is_listed_says_whom_it_is_for_and_until_when(run: Run) -> None:
    run("webhook", "add", "--for", CI)
    run("webhook", "add", "--expires", "90d")
    first, second = run("webhook").out.splitlines()
    ids = [each["id"] for each in secrets(run)]
    assert first.split()[:2] == [ids[0], CI]
    assert second.split()[:3] == [ids[1], "all", "receivers"]
    ends = (datetime.now(UTC) + timedelta(days=90)).astimezone()
    assert f"expires {ends:%Y-%m-%d}" in second


def test_an_older_secret_expires_after_the_overlap(run: Run) -> None:
    run("webhook", "add", "--for", CI)
    run("webhook", "add")
    run("webhook", "add", "--for", URL, "--overlap", "24h")
    old, other, new = secrets(run)
    left = datetime.fromisoformat(old["expires_at"]) - datetime.now(UTC)
    assert timedelta(hours=23) < left <= timedelta(hours=24)
    assert (other["expires_at"], new["expires_at"]) == (None, None)


def test_a_secret_of_another_host_is_read_and_not_shown(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = new_secret()
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{secret}\n"))
    ran = run("webhook", "add", "--stdin")
    (only,) = secrets(run)
    assert ran.out == f"added: {only['id']}\n"
    for form in ([], ["--json"]):
        monkeypatch.setattr(sys, "stdin", io.StringIO(secret))
        again = run("webhook", "add", "--stdin", *form)
        assert again.code == Exit.CONFLICT
        assert secret not in again.out + again.err
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert "a secret is whsec_ and 24 to 64 bytes" in run("webhook", "add", "--stdin").err


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        (["--for", "ci.example"], "http://… or https://…"),
        (["--for", ""], "it is empty"),
        (["--expires", "2020-01-01"], "has passed already"),
        (["--expires", "soon"], "is no time to come"),
        (["--overlap", "soon"], "is no length of time"),
    ],
)
def test_what_cannot_be_meant_adds_nothing(run: Run, typed: list[str], why: str) -> None:
    ran = run("webhook", "add", *typed)
    assert ran.code == Exit.USAGE
    assert why in ran.err
    assert secrets(run) == []


def test_a_secret_is_removed_by_its_id(run: Run) -> None:
    made = run("webhook", "add", "--json").data
    assert run("webhook", "remove", made["id"]).out == f"removed: {made['id']}\n"
    again = run("webhook", "remove", made["id"])
    assert again.code == Exit.NOT_FOUND
    assert "'hardsave webhook list' lists them" in again.err
    assert "callbacks are not signed; 'hardsave webhook add'" in run("webhook").err


def test_a_secret_belongs_to_the_store_that_was_named(run: Run, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/other.db"
    assert run("webhook", "add", "--store", store).code == Exit.NOT_FOUND  # it is not there
    hardsave.open(store).close()
    made = run("webhook", "add", "--json", "--store", str(tmp_path / "other.db")).data
    assert secrets(run) == []
    assert [each["id"] for each in secrets(run, "--store", store)] == [made["id"]]
    assert run("webhook", "remove", made["id"]).code == Exit.NOT_FOUND


def disable(user: str | None = None) -> disabled.Disabled:
    with hardsave.open(user=user) as vault:
        return disabled.disable(vault.tasks, URL, NOW)


def test_a_disabled_receiver_is_listed_with_what_to_type_and_enabled(run: Run) -> None:
    gone = disable()
    ran = run("webhook")
    assert f"{gone.id}  {CI}  disabled" in ran.out
    assert f"{CI}: to enable it again, type: hardsave webhook enable {gone.id}\n" in ran.err
    data = {"id": gone.id, "receiver": CI, "since": NOW.isoformat()}
    assert run("webhook", "list", "--json").data["disabled"] == [data]
    assert "T0ken" not in ran.out + ran.err
    assert run("webhook", "enable", gone.id).out == f"enabled: {CI}\n"
    assert run("webhook", "list", "--json").data["disabled"] == []
    assert run("webhook", "enable", gone.id).code == Exit.NOT_FOUND


def test_a_receiver_is_enabled_by_its_address(run: Run) -> None:
    disable()
    assert run("webhook", "enable", CI).code == Exit.NOT_FOUND  # another address
    assert run("webhook", "enable", URL, "--json").data["receiver"] == CI


def test_a_receiver_of_another_users_jobs_is_enabled_for_that_user(run: Run) -> None:
    gone = disable("ada")
    assert run("webhook", "list", "--json").data["disabled"] == []
    assert run("webhook", "enable", gone.id).code == Exit.NOT_FOUND
    assert f"webhook enable {gone.id} --user ada" in run("webhook", "list", "--user", "ada").err
    assert run("webhook", "enable", gone.id, "--user", "ada").code == Exit.DONE
    assert run("webhook", "list", "--user", "bob").code == Exit.NOT_FOUND


def test_what_is_added_here_signs_what_a_worker_of_this_project_sends(run: Run) -> None:
    secret = run("webhook", "add", "--json").data["secret"]
    with listening() as listener, hardsave.open() as vault:
        vault.jobs.add("fix", "Fix", callback=listener.url)
        vault.tasks.cancel("fix")
        Worker(vault, {}, allow_private_callbacks=True).run(until_idle=True)
        [(headers, body)] = listener.requests
    assert verified(secret, headers, body, datetime.now(UTC).timestamp(), 300)["jobId"] == "fix"
