"""A user sees nothing of another one: things of others are answered like things that are not
there, by their names and by their ids."""

import re
from collections.abc import Iterator

import pytest

from hardsave.server.table import ROUTES
from tests.integration.server.site import AGENT, Site
from tests.integration.server.test_every_route import filled
from tests.unit.server.api_client import ApiClient, Got
from tests.unit.server.api_samples import Sample, samples
from tests.unit.server.api_store import Things

# What begins something of the caller's own, whatever others have under that name.
BEGINNINGS = {("POST", "/api/v1/jobs")}
COUNTS = {"changes", "sqlite_sequence"}


@pytest.fixture(scope="module")
def bob(site: Site) -> Iterator[ApiClient]:
    with site.server.vault("bob") as vault:
        vault.timeline("bobs").save({"messages": ["bobs"]})
        vault.tasks.add("bobs-task")
        vault.store.purge(text="that is nowhere")  # removes what no checkpoint leads to
    with site.api(site.token("bob", user="bob")) as client:
        yield client


def rows(site: Site) -> list[tuple[str, list[object]]]:
    """All but how often something was removed: that counts also when nothing was there."""
    return [(table, found) for table, found in site.written() if table not in COUNTS]


def nameless(got: Got, things: Things) -> tuple[int, str]:
    """An answer without what differs between two requests about two things. What is removed that
    no checkpoint leads to is removed by the first."""
    text = got.content.decode()
    for id in things.ids.values():
        text = text.replace(id, "ID")
    text = text.replace(things.folder, "FOLDER").replace(things.word, "WORD")
    return got.status, re.sub(r'"request_id": "\w+"|"(freed_bytes|objects)": \d+', "", text)


def asked(things: Things) -> Iterator[Sample]:
    """About what others have. A directory that the server was told to allow is there for all."""
    for sample in samples(things):
        if (sample.route.method, sample.route.path) not in BEGINNINGS:
            body = sample.body and {**sample.body}
            if body is not None:
                body.pop("workspace", None)
            yield sample._replace(body=body)


def test_what_others_have_is_answered_like_what_is_not_there(site: Site, bob: ApiClient) -> None:
    before = rows(site)
    theirs, none = site.things, site.things.lost()
    wrong = []
    for one, other in zip(asked(theirs), asked(none), strict=True):
        seen, unseen = bob.try_sample(one), bob.try_sample(other)
        if nameless(seen, theirs) != nameless(unseen, none):
            wrong.append((one.route.method, one.path, seen, unseen))
    assert wrong == []
    assert rows(site) == before


def test_no_answer_tells_a_word_of_what_others_have(site: Site, bob: ApiClient) -> None:
    before, told = rows(site), 0
    for sample in asked(site.things):
        got = bob.try_sample(sample)
        if got.status < 400:
            told += 1
            about = bob.try_sample(sample._replace(query={}, body=sample.body and {}))
            for each in (got, about):
                assert site.things.word not in each.content.decode(), (sample.path, each)
    assert told > 15  # lists, and what is about the store as a whole
    assert rows(site) == before


def test_lists_have_what_is_ones_own(site: Site, bob: ApiClient) -> None:
    assert "bobs" in [each["timeline"] for each in bob.get("/api/v1/timelines")["items"]]
    assert "bobs-task" in [each["id"] for each in bob.get("/api/v1/tasks")["items"]]
    assert bob.get("/api/v1/search?text=bobs&wait=true")["items"]
    assert bob.get("/api/v1")["user"] == "bob"
    for path in ("approvals", "operations"):
        assert bob.get(f"/api/v1/{path}")["items"] == []


def test_no_act_without_a_name_reaches_what_others_have(site: Site, bob: ApiClient) -> None:
    before = rows(site)
    for path in ("undo", "redo"):
        assert bob.send("POST", f"/api/v1/{path}", {}).status in (404, 409)
    assert rows(site) == before


def test_two_users_may_use_the_same_names_and_the_same_keys(site: Site, bob: ApiClient) -> None:
    key, name = {"Idempotency-Key": "the-same"}, "both"
    with site.api() as mine:
        ids = []
        for caller, word in ((mine, "alices"), (bob, "bobs")):
            body = {"timeline": name, "state": {"messages": [f"{word}-both"]}}
            saved = caller.send("POST", "/api/v1/checkpoints", body, key)
            assert (saved.status, saved.is_replayed) == (201, False), saved
            ids.append(saved.data["id"])
            work = {"prompt": f"{word}-both", "agent": AGENT, "workspace": str(site.server.folder)}
            queued = caller.send("POST", "/api/v1/jobs", work, {"Idempotency-Key": "the-same-job"})
            assert (queued.status, queued.is_replayed) == (202, False), queued
        for caller, word, id in ((mine, "alices", ids[0]), (bob, "bobs", ids[1])):
            state = caller.get(f"/api/v1/state?ref={id}")
            assert state["value"] == {"messages": [f"{word}-both"]}
            assert (
                caller.get(f"/api/v1/graph?timeline={name}")["items"][0]["checkpoint"]["id"] == id
            )


def test_a_job_of_another_user_is_answered_like_one_that_is_not_there(
    site: Site, bob: ApiClient
) -> None:
    """By the documented routes and the pages: those of the API have samples."""
    before = rows(site)
    theirs, none = site.things, site.things.lost()
    for route in ROUTES:
        if route.scope is None or route.spec is not None:
            continue
        body: dict[str, str] | None = {} if route.method == "POST" else None
        seen, unseen = (
            bob.send(route.method, filled(route, things("fix")), body) for things in (theirs, none)
        )
        assert nameless(seen, theirs) == nameless(unseen, none), route
        if route.method != "GET":
            assert seen.status in (400, 403, 404, 415), route
    assert rows(site) == before
