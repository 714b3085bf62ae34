"""Listing checkpoints: every filter, and page after page."""

import contextlib
import time
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hardsave
from hardsave.errors import Misuse, NotFound
from hardsave.stores.memory.store import MemoryStore
from hardsave.vault.checkpoint import Checkpoint
from hardsave.vault.line import Timeline
from hardsave.vault.vault import Vault
from tests.unit.vault.stage import MOMENT, SECOND, Watched


@pytest.fixture
def line(vault: Vault) -> Timeline:
    line = vault.timeline("main")
    for n in range(30):
        line.save(
            n,
            name=("plan", None, "test")[n % 3],
            kind=("manual", "automatic")[n % 2],
            status=("running", "done", "failed", "done")[n % 4],
        )
    vault.timeline("other").save(0, name="plan")
    return line


def moment(seq: int) -> datetime:
    return datetime.fromtimestamp(MOMENT // SECOND + seq, UTC)


def walked(line: Timeline, **query: Any) -> list[Checkpoint]:
    """All pages, one after the other."""
    found: list[Checkpoint] = []
    page = line.checkpoints(**query)
    while True:
        found += page
        assert len(page) <= query.get("limit", 50)
        if page.next is None:
            return found
        page = line.checkpoints(**query, after=page.next)


def test_checkpoints_come_newest_first(line: Timeline) -> None:
    page = line.checkpoints()
    assert [cp.seq for cp in page] == list(range(30, 0, -1))
    assert page.next is None
    assert page[0] == line.head
    assert [cp.seq for cp in page[-2:]] == [2, 1]
    assert len(page) == 30


def test_a_page_says_whether_more_follow(line: Timeline) -> None:
    page = line.checkpoints(limit=10)
    assert page.next is not None
    assert "more follow" in repr(page)
    last = line.checkpoints(limit=10, after=line.checkpoints(limit=20).next)
    assert [cp.seq for cp in last] == list(range(10, 0, -1))
    assert last.next is None
    assert "more follow" not in repr(last)


def test_all_pages_of_every_query_make_up_the_whole(line: Timeline) -> None:
    everything = list(line.checkpoints())
    choices: dict[str, list[Any]] = {
        "name": [None, "plan", "absent"],
        "kind": [None, "manual"],
        "status": [None, "done"],
        "since": [None, moment(8)],
        "until": [None, moment(25)],
        "limit": [1, 4, 30],
    }
    for values in product(*choices.values()):
        query = dict(zip(choices, values, strict=True))
        wanted = [
            cp
            for cp in everything
            if query["name"] in (None, cp.name)
            and query["kind"] in (None, cp.kind)
            and query["status"] in (None, cp.status)
            and (query["since"] is None or cp.created_at >= query["since"])
            and (query["until"] is None or cp.created_at <= query["until"])
        ]
        assert walked(line, **query) == wanted, query


def test_saves_between_two_pages_move_nothing(line: Timeline) -> None:
    first = line.checkpoints(limit=10)
    for n in range(5):
        line.save(n)
    second = line.checkpoints(limit=10, after=first.next)
    assert [cp.seq for cp in second] == list(range(20, 10, -1))


def test_times_are_inclusive_and_of_any_zone(line: Timeline) -> None:
    far = timezone(timedelta(hours=-9, minutes=-30))
    for at in (moment(10), moment(10).astimezone(far)):
        assert [cp.seq for cp in line.checkpoints(since=at, until=at)] == [10]
        assert line.checkpoints(since=at)[-1].seq == 10
        assert line.checkpoints(until=at)[0].seq == 10


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_naive_times_are_local(line: Timeline, zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        local = moment(10).astimezone().replace(tzinfo=None)
        assert [cp.seq for cp in line.checkpoints(since=local, until=local)] == [10]
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_the_ends_of_time_can_be_named(
    line: Timeline, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for ends in (
            (datetime.min, datetime.max),  # noqa: DTZ901 # naive on purpose
            (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
        ):
            assert len(line.checkpoints(since=ends[0], until=ends[1])) == 30
            assert len(line.checkpoints(since=ends[1])) == 0
            assert len(line.checkpoints(until=ends[0])) == 0
    finally:
        monkeypatch.undo()
        time.tzset()


@given(st.integers(0, 4_000_000_000 * SECOND))
def test_a_moment_is_found_by_the_time_it_shows(microseconds: int) -> None:
    line = Vault(MemoryStore(), clock=lambda: microseconds).timeline("main")
    saved = line.save(None)
    shown = saved.created_at
    assert shown == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    assert list(line.checkpoints(since=shown, until=shown)) == [saved]
    assert not line.checkpoints(since=shown + timedelta(microseconds=1))
    assert not line.checkpoints(until=shown - timedelta(microseconds=1))


@pytest.mark.parametrize("limit", [0, -1, 2**63, 2**100])
def test_a_limit_that_cannot_be_is_misuse(tmp_path: Any, limit: int) -> None:
    for url in ("memory://", f"sqlite:///{tmp_path / 'store.db'}"):
        with hardsave.open(url) as vault:
            line = vault.timeline("main")
            line.save(1)
            try:
                assert len(line.checkpoints(limit=limit)) == 1
                assert limit > 0
            except Misuse:
                pass


@pytest.mark.parametrize("after", ["", "x", "-1", "1.5", " 1", "٣", 3, b"4", "9" * 20, "9" * 5000])
def test_a_cursor_that_is_none_is_misuse(tmp_path: Any, after: Any) -> None:
    for url in ("memory://", f"sqlite:///{tmp_path / 'store.db'}"):
        with hardsave.open(url) as vault:
            line = vault.timeline("main")
            line.save(1)
            try:
                line.checkpoints(after=after)  # an honest number may also find nothing
                assert after.isdigit()
            except Misuse:
                pass


@pytest.mark.parametrize("odd", [7, 10**30, b"a", ["a"], object()])
def test_what_is_looked_for_is_text(line: Timeline, vault: Vault, odd: Any) -> None:
    for what in ("name", "kind", "status"):
        with pytest.raises(Misuse, match=f"^{what} is text, not "):
            line.checkpoints(**{what: odd})
    with pytest.raises(Misuse, match=r"^timeline is text, not "):
        vault.operations(odd)


@pytest.mark.parametrize("odd", ["a\0b", "\ud800", "x" * 5000, ""])
def test_odd_filters_find_nothing(tmp_path: Any, odd: str) -> None:
    for url in ("memory://", f"sqlite:///{tmp_path / 'store.db'}"):
        with hardsave.open(url) as vault:
            line = vault.timeline("main")
            line.save(1)
            for query in ({"name": odd}, {"kind": odd}, {"status": odd}):
                with contextlib.suppress(Misuse):
                    assert not line.checkpoints(**query)  # type: ignore[arg-type] # texts only


@pytest.mark.parametrize(
    "ref", ["a\0b", "\ud800", "\ud800:1", "x" * 5000, "@~" + "9" * 30, "main:" + "9" * 30]
)
def test_odd_refs_are_not_found(tmp_path: Any, ref: str) -> None:
    for url in ("memory://", f"sqlite:///{tmp_path / 'store.db'}"):
        with hardsave.open(url) as vault:
            line = vault.timeline("main")
            line.save(1)
            with pytest.raises(hardsave.HardsaveError):
                line.load(ref)
            assert line.load() == 1


def test_a_checkpoint_at_hand_is_as_good_as_a_ref(line: Timeline, vault: Vault) -> None:
    tenth, last = line.get("main:10"), line.get()
    assert line.load(tenth) == 9
    assert line.get(tenth).id == vault.get(tenth).id == tenth.id
    assert [each.seq for each in line.children(tenth)] == [11]
    assert next(line.ancestors(tenth)).seq == line.depth(tenth) == 9
    assert line.fork(tenth, name="fork").load() == 9
    assert vault.store.verify(tenth).checkpoints == 1
    assert line.rewind(tenth).target.id == tenth.id
    assert line.load() == 9
    assert vault.delete(last).id == last.id
    assert vault.store.purge(last).dropped == 1
    with pytest.raises(NotFound):
        vault.get(last)


def test_a_checkpoint_of_another_user_is_not_found(line: Timeline, store: Watched) -> None:
    with Vault(store, user="bob") as bob, pytest.raises(NotFound):
        bob.timeline("main").load(line.get())


def test_what_was_deleted_or_dropped_is_still_known(vault: Vault, line: Timeline) -> None:
    ids = [line.save({"n": n}).id for n in range(3)]
    vault.delete(ids[1])
    dropped = vault.retention.apply(vault.retention.plan(hardsave.Policy(max_per_timeline=2)))
    assert dropped.dropped
    assert [vault.knows(id) for id in ids] == [True] * 3
    assert not vault.knows("chk_" + "0" * 24)
    assert not vault.knows("main:1")
