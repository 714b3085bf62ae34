"""What a caller has seen is what it builds on: heads, plans, files on the disk."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.server.api.table import ROUTES
from tests.integration.server.site import Site
from tests.unit.server.api_client import ApiClient, Got

NEVER = "chk_0123456789abcdef01234567"


@pytest.fixture(scope="module")
def vault(site: Site) -> Iterator[hardsave.Vault]:
    with site.server.vault() as opened:
        yield opened


@pytest.fixture(scope="module")
def program(site: Site) -> Iterator[ApiClient]:
    with site.api() as client:
        yield client


@pytest.fixture
def line(vault: hardsave.Vault, request: pytest.FixtureRequest, site: Site) -> hardsave.Timeline:
    """Four checkpoints, of other files each."""
    made = vault.timeline(request.node.name)
    place = files(site, made)
    place.mkdir()
    for number in range(4):
        (place / "a.txt").write_text(f"{number}")
        made.append({"messages": [f"{number}"]}, workspace=place)
    return made


def files(site: Site, line: hardsave.Timeline) -> Path:
    return site.server.folder / line.name


def head(line: hardsave.Timeline) -> str:
    found = line.head
    assert found is not None
    return found.id


def expecting(what: str, **more: str) -> dict[str, str]:
    return {"If-Match": what if what == "*" else f'"{what}"', **more}


def rewind(program: ApiClient, line: hardsave.Timeline, headers: Any, **body: Any) -> Got:
    asked = {"timeline": line.name, "ref": "@~1", **body}
    return program.send("POST", "/api/v1/rewind", asked, headers)


def save(program: ApiClient, line: hardsave.Timeline, headers: Any) -> Got:
    body = {"timeline": line.name, "state": {"messages": ["new"]}}
    return program.send("POST", "/api/v1/checkpoints", body, headers)


def test_a_save_on_top_of_another_head_is_refused_and_writes_nothing(
    site: Site, program: ApiClient, line: hardsave.Timeline
) -> None:
    before = site.told()
    for expected in (line.get(":3").id, NEVER):
        got = save(program, line, expecting(expected))
        assert (got.status, got.data["code"]) == (412, "precondition"), got
    assert site.told() == before
    assert save(program, line, expecting(head(line))).status == 201
    assert save(program, line, expecting("*")).status == 201
    assert save(program, line, {}).status == 201


def test_a_save_that_is_repeated_is_answered_though_its_head_has_moved(
    program: ApiClient, line: hardsave.Timeline
) -> None:
    headers = expecting(head(line), **{"Idempotency-Key": line.name})
    first = save(program, line, headers)
    line.append({"messages": ["later"]}, expect=hardsave.ANY_HEAD)
    again = save(program, line, headers)
    assert (again.status, again.is_replayed) == (201, True)
    assert again.data["id"] == first.data["id"]


def test_the_first_save_of_a_timeline_expects_no_head(program: ApiClient, site: Site) -> None:
    body = {"timeline": "begun-here", "state": 1}
    got = program.send("POST", "/api/v1/checkpoints", body, expecting(NEVER))
    assert got.status == 412
    assert program.send("GET", "/api/v1/timeline?timeline=begun-here").status == 404
    assert program.send("POST", "/api/v1/checkpoints", body).status == 201


def test_a_rewind_says_what_it_builds_on(
    site: Site, program: ApiClient, line: hardsave.Timeline
) -> None:
    before = site.told()
    without = rewind(program, line, {})
    assert (without.status, without.data["code"]) == (428, "precondition_required")
    assert "rewind/preview" in without.data["detail"]
    assert rewind(program, line, expecting("plan of nothing")).status == 400
    for expected in (line.get(":3").id, NEVER):
        got = rewind(program, line, expecting(expected))
        assert (got.status, got.data["code"]) == (412, "precondition"), got
    assert site.told() == before
    assert (files(site, line) / "a.txt").read_text() == "3"
    done = rewind(program, line, expecting(head(line)))
    assert (done.status, done.data["target"]["seq"]) == (200, 3)
    assert (files(site, line) / "a.txt").read_text() == "2"


def test_retention_says_what_it_lets_go(site: Site, program: ApiClient) -> None:
    before = site.told()
    policy = {"max_per_timeline": 100_000}
    without = program.send("POST", "/api/v1/retain", policy)
    assert (without.status, without.data["code"]) == (428, "precondition_required")
    other = program.send("POST", "/api/v1/retain", policy, expecting("plan_of_nothing"))
    assert (other.status, other.data["code"]) == (412, "precondition")
    assert site.told() == before
    plan = program.send("GET", "/api/v1/retention?max_per_timeline=100000")
    assert plan.headers["etag"] == f'"{plan.data["plan"]}"'
    done = program.send("POST", "/api/v1/retain", policy, {"If-Match": plan.headers["etag"]})
    assert (done.status, done.data["dropped"]) == (200, plan.data["drops"])


def preview(program: ApiClient, line: hardsave.Timeline, **body: Any) -> Got:
    asked = {"timeline": line.name, "ref": "@~1", **body}
    got = program.send("POST", "/api/v1/rewind/preview", asked)
    assert got.status == 200, got
    assert got.headers["etag"] == f'"{got.data["plan"]}"'
    return got


def test_a_preview_changes_nothing_and_its_plan_is_carried_out(
    site: Site, program: ApiClient, line: hardsave.Timeline
) -> None:
    before = site.told()
    seen = preview(program, line)
    assert (seen.data["moved"], seen.data["dry_run"]) == (False, True)
    assert seen.data["files"]["changed"] == ["a.txt"]
    assert site.told() == before
    done = rewind(program, line, {"If-Match": seen.headers["etag"]})
    assert (done.status, done.data["moved"]) == (200, True)
    assert done.data["files"]["changed"] == ["a.txt"]


@pytest.mark.parametrize("change", ["a file on the disk", "a new file", "a save"])
def test_a_plan_is_refused_once_it_would_do_something_else(
    site: Site, program: ApiClient, line: hardsave.Timeline, change: str
) -> None:
    seen = preview(program, line)
    place = files(site, line)
    match change:
        case "a file on the disk":
            (place / "a.txt").write_text("meanwhile")
        case "a new file":
            (place / "new.txt").write_text("meanwhile")
        case "a save":
            line.append({"messages": ["meanwhile"]}, expect=hardsave.ANY_HEAD)
    before, lying = site.told(), {each.name: each.read_text() for each in place.iterdir()}
    got = rewind(program, line, {"If-Match": seen.headers["etag"]})
    assert (got.status, got.data["code"]) == (412, "precondition"), got
    assert site.told() == before
    assert {each.name: each.read_text() for each in place.iterdir()} == lying


@pytest.mark.parametrize("asked", [{"ref": "@~2"}, {"what": "state"}, {"tasks": True}])
def test_a_plan_is_for_the_request_that_it_was_made_for(
    site: Site, program: ApiClient, line: hardsave.Timeline, asked: dict[str, Any]
) -> None:
    seen, before = preview(program, line), site.told()
    got = rewind(program, line, {"If-Match": seen.headers["etag"]}, **asked)
    assert (got.status, got.data["code"]) == (400, "misuse"), got
    assert site.told() == before


@pytest.mark.parametrize("how", ["by the head", "by the plan"])
def test_of_two_people_who_rewind_the_same_session_one_does_and_the_other_is_told(
    site: Site, program: ApiClient, line: hardsave.Timeline, how: str
) -> None:
    start, seen = threading.Barrier(2), head(line)

    def go_back(ref: str) -> Got:
        with site.api() as person:
            plan = preview(person, line, ref=ref).data["plan"]
            start.wait()
            expected = expecting(seen if how == "by the head" else plan)
            return rewind(person, line, expected, ref=ref)

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(go_back, (":1", ":2")))
    assert sorted(each.status for each in answers) == [200, 412], answers
    done = next(each for each in answers if each.status == 200)
    went_to = done.data["target"]
    assert head(line) == went_to["id"]
    assert (files(site, line) / "a.txt").read_text() == str(went_to["seq"] - 1)
    assert line.get(seen).id == seen  # what was left is still there
    undone = program.send("POST", "/api/v1/undo", {"timeline": line.name})
    assert undone.status == 200
    assert head(line) == seen
    assert (files(site, line) / "a.txt").read_text() == "3"


@pytest.mark.parametrize("act", ["save", "rewind"])
def test_what_is_expected_is_looked_at_before_the_key_is_used_up(
    program: ApiClient, line: hardsave.Timeline, act: str
) -> None:
    """A request that was refused was not done: under the same key it may be done with what holds
    by now."""
    send = save if act == "save" else rewind
    key = {"Idempotency-Key": line.name}
    assert send(program, line, expecting(NEVER, **key)).status == 412
    done = send(program, line, expecting(head(line), **key))
    assert (done.status // 100, done.is_replayed) == (2, False)
    assert send(program, line, expecting(head(line), **key)).is_replayed


# What is there for good


def immutable(vault: hardsave.Vault, line: hardsave.Timeline) -> list[str]:
    one, two = line.get(":1").id, line.get(":2").id
    return [
        f"messages?ref={one}",
        f"state?ref={one}",
        f"files?ref={one}",
        f"file?ref={one}&path=a.txt",
        f"diff?from={one}&to={two}",
        f"diff/state?from={one}&to={two}",
        f"diff/file?from={one}&to={two}&path=a.txt",
    ]


def test_what_never_changes_is_sent_once(
    vault: hardsave.Vault, program: ApiClient, line: hardsave.Timeline
) -> None:
    tagged = {each.path for each in ROUTES if each.spec and "If-None-Match" in each.spec.headers}
    paths = immutable(vault, line)
    assert {f"/api/v1/{path.partition('?')[0]}" for path in paths} == tagged
    for path in paths:
        first = program.send("GET", f"/api/v1/{path}")
        assert first.status == 200
        assert first.headers["cache-control"] == "private, no-cache"
        again = program.send(
            "GET", f"/api/v1/{path}", headers={"If-None-Match": first.headers["etag"]}
        )
        assert (again.status, again.content) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
        other = program.send("GET", f"/api/v1/{path}", headers={"If-None-Match": '"other"'})
        assert (other.status, other.content) == (200, first.content)


def test_a_tag_of_a_ref_that_moves_is_another_one_once_it_has_moved(
    program: ApiClient, line: hardsave.Timeline
) -> None:
    path = f"/api/v1/messages?ref=@&timeline={line.name}"
    before = program.send("GET", path).headers["etag"]
    line.append({"messages": ["new"]}, expect=hardsave.ANY_HEAD)
    after = program.send("GET", path, headers={"If-None-Match": before})
    assert (after.status, after.data["total"]) == (200, 5)


def test_a_purge_ends_what_callers_have_kept(
    program: ApiClient, vault: hardsave.Vault, line: hardsave.Timeline
) -> None:
    one = line.append({"messages": ["the secret word"]}, expect=hardsave.ANY_HEAD)
    path = f"/api/v1/messages?ref={one.id}"
    first = program.send("GET", path)
    assert b"the secret word" in first.content
    assert program.send("POST", "/api/v1/purge", {"text": "the secret word"}).status == 200
    again = program.send("GET", path, headers={"If-None-Match": first.headers["etag"]})
    assert again.status == 200
    assert b"the secret word" not in again.content


def test_what_may_change_is_kept_by_no_caller(program: ApiClient, line: hardsave.Timeline) -> None:
    for path in ("", "/timelines", f"/checkpoint?ref={line.get(':1').id}", "/tasks", "/jobs"):
        got = program.send("GET", f"/api/v1{path}")
        assert got.headers["cache-control"] == "no-store"
        assert "etag" not in got.headers


def test_a_file_that_is_ignored_by_now_is_not_read_of_the_disk(
    site: Site, program: ApiClient, line: hardsave.Timeline
) -> None:
    place = files(site, line)
    (place / ".gitignore").write_text("a.txt\n")
    (place / "a.txt").write_text("a secret by now\n")
    query = f"from={head(line)}&to=now"
    assert program.get(f"/api/v1/diff?{query}")["files"]["removed"] == ["a.txt"]
    told = program.get(f"/api/v1/diff/file?{query}&path=a.txt")["unified"]
    assert "-3" in told
    assert "secret" not in told
