"""Every read: what it finds, in which order, through which filters, page by page."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from hardsave.objects.hashing import Hash, digest
from hardsave.objects.records import CheckpointRecord
from hardsave.stores.base import Batch, Changes, Query, Store
from hardsave.stores.results import Stats
from hardsave.testing.batches import (
    MOMENT,
    SECOND,
    Line,
    a_note,
    an_entry,
    an_id,
    an_object,
    but,
    operate,
    some_objects,
    walk,
)
from hardsave.testing.claiming import compact_if_claimed

# In the order of their code points, which is that of their UTF-8 bytes. It is neither the order
# of UTF-16 (there U+1F642 comes before U+F900) nor a dictionary's (there "Z" comes after "a").
NAMES = ("A", "Z", "_", "a", "a b", "ab", "aé", "b", "z", "ß", "é", "Ω", "中文", "\uf900", "🙂")


class Reading:
    """Needs a `store` fixture."""

    # Objects

    def test_read_gives_the_bytes_back(self, store: Store) -> None:
        objects = some_objects("some", 20) | {digest(b"\0\xff" * 50): b"\0\xff" * 50}
        store.commit(Batch(None, an_entry("some"), objects=objects))
        assert {k: v for k, v in store.read(None, list(objects)).items() if k in objects} == objects

    def test_read_leaves_out_what_is_not_stored(self, store: Store) -> None:
        objects = some_objects("some", 3)
        store.commit(Batch(None, an_entry("some"), objects=objects))
        absent = [digest(b"absent"), digest(b"also absent")]
        found = store.read(None, [absent[0], *objects, absent[1]])
        assert found.keys() >= objects.keys()
        assert not found.keys() & set(absent)
        assert not store.read(None, absent).keys() & set(absent)

    def test_read_of_nothing_finds_nothing(self, store: Store) -> None:
        assert store.read(None, []) == {}

    def test_a_hash_may_be_asked_for_twice(self, store: Store) -> None:
        (address,) = objects = an_object("one")
        store.commit(Batch(None, an_entry("one"), objects=objects))
        assert store.read(None, [address, address])[address] == objects[address]
        assert store.missing(None, [address, address, digest(b"x"), digest(b"x")]) == {digest(b"x")}

    def test_missing_is_exactly_what_is_not_stored(self, store: Store) -> None:
        stored, absent = some_objects("stored", 30), some_objects("absent", 30)
        store.commit(Batch(None, an_entry("stored"), objects=stored))
        assert store.missing(None, [*stored, *absent]) == set(absent)
        assert store.missing(None, stored) == set()
        assert store.missing(None, []) == set()

    def test_many_hashes_may_be_asked_for_at_once(self, store: Store) -> None:
        stored, absent = some_objects("stored", 30), some_objects("absent", 30_000)
        store.commit(Batch(None, an_entry("stored"), objects=stored))
        assert store.missing(None, [*stored, *absent]) == set(absent)
        assert store.missing("ada", [*stored, *absent]) == {*stored, *absent}

    def test_a_scan_brings_every_object_and_no_other(self, store: Store) -> None:
        saved: dict[Hash, bytes] = {}
        for label in map(str, range(40)):
            objects = some_objects(label, 30)
            store.commit(Batch(None, an_entry(label), objects=objects))
            saved |= objects
        store.commit(Batch("ada", an_entry("hers"), objects=some_objects("hers", 3)))
        assert _scanned(store) == saved
        assert _scanned(store, "ada") == some_objects("hers", 3)
        assert list(store.scan("bob")) == []

    def test_a_scan_loses_nothing_to_what_other_callers_do_meanwhile(self, store: Store) -> None:
        lines = [Line(store, str(number)) for number in range(12)]
        saved: dict[Hash, bytes] = {}
        for label in map(str, range(12)):
            objects = some_objects(label, 200)
            lines[int(label)].commit(lines[int(label)].next(objects=objects))
            saved |= objects
        found: dict[Hash, bytes] = {}
        for count, part in enumerate(store.scan(None)):
            found |= part
            if count == 1:
                compact_if_claimed(store)
                store.commit(Batch(None, an_entry("new"), objects=some_objects("new", 3)))
        assert found.items() >= saved.items()

    # Timelines

    def test_a_timeline_that_does_not_exist_is_none(self, store: Store) -> None:
        Line(store, "main").save()
        assert store.timeline(None, "mai") is None
        assert store.timeline(None, "main2") is None
        assert store.timeline(None, "MAIN") is None

    def test_timelines_come_by_name(self, store: Store) -> None:
        for name in reversed(NAMES):
            Line(store, name).save()
        assert [row.name for row in store.timelines(None, None, 100)] == list(NAMES)

    def test_timelines_page_by_name(self, store: Store) -> None:
        for name in NAMES:
            Line(store, name).save()
        for limit in (1, 3, len(NAMES), len(NAMES) + 1):
            found = walk(lambda at, n: store.timelines(None, at, n), lambda row: row.name, limit)
            assert [row.name for row in found] == list(NAMES)

    def test_timelines_after_a_name_that_does_not_exist(self, store: Store) -> None:
        for name in NAMES:
            Line(store, name).save()
        assert [row.name for row in store.timelines(None, "aa", 3)] == ["ab", "aé", "b"]
        assert [row.name for row in store.timelines(None, "", 1)] == ["A"]
        assert store.timelines(None, "🙂", 5) == []

    def test_a_page_of_timelines_is_not_moved_by_new_ones(self, store: Store) -> None:
        for name in "bdfh":
            Line(store, name).save()
        first = store.timelines(None, None, 2)
        for name in "ace":
            Line(store, name).save()
        second = store.timelines(None, first[-1].name, 10)
        assert [row.name for row in first + second] == ["b", "d", "e", "f", "h"]

    # Checkpoints

    def test_a_summary_comes_back_as_it_was(self, store: Store) -> None:
        line = Line(store)
        for summary in (None, b"\x90", b"\0\xff" * 900):
            batch = line.next()
            assert isinstance(batch.event, CheckpointRecord)
            line.commit(but(batch, event=batch.event._replace(summary=summary)))
            assert store.checkpoint(None, line.saved[-1].id) == line.saved[-1]
        assert store.checkpoints(None, Query("main", 10)) == line.saved[::-1]
        assert line.saved[-1].summary == b"\0\xff" * 900

    def test_a_checkpoint_comes_back_as_it_was(self, store: Store) -> None:
        line = Line(store, "timeline Ω")
        line.save()
        line.save(name="name\u00a0🙂", kind="manual", status="wàiting", description="a\nb\0c")
        line.commit(line.next(metadata=b"\0\xff" * 100))
        for record in line.saved:
            assert store.checkpoint(None, record.id) == record

    def test_an_unknown_or_incomplete_id_finds_nothing(self, store: Store) -> None:
        record = Line(store).save()
        assert store.checkpoint(None, an_id("unknown")) is None
        assert store.checkpoint(None, record.id[:-1]) is None
        assert store.checkpoint(None, b"") is None

    def test_checkpoints_between_include_both_ends_in_order(self, store: Store) -> None:
        lines = [Line(store, "one"), Line(store, "two")]
        saved = sorted((line.save() for _ in range(10) for line in lines), key=lambda row: row.id)
        ids = [row.id for row in saved]
        assert store.checkpoints_between(None, ids[3], ids[12], 100) == saved[3:13]
        assert store.checkpoints_between(None, ids[3], ids[12], 4) == saved[3:7]
        assert store.checkpoints_between(None, ids[5], ids[5], 10) == [saved[5]]
        assert store.checkpoints_between(None, ids[6], ids[5], 10) == []
        assert store.checkpoints_between(None, bytes(12), b"\xff" * 12, 100) == saved

    def test_checkpoints_come_newest_first(self, store: Store) -> None:
        line = Line(store)
        for _ in range(12):
            line.save()
        newest_first = line.saved[::-1]
        assert store.checkpoints(None, Query("main", limit=100)) == newest_first
        assert store.checkpoints(None, Query("main", limit=5)) == newest_first[:5]
        assert store.checkpoints(None, Query("other", limit=5)) == []

    def test_every_filter_narrows_alone_and_with_the_others(self, store: Store) -> None:
        saved = _various(store)
        for query in _queries():
            wanted = [row for row in saved if _matches(row, query)]
            assert store.checkpoints(None, query) == wanted[: query.limit], query

    def test_pages_of_every_query_make_up_the_whole(self, store: Store) -> None:
        saved = _various(store)
        for query in _queries():
            wanted = [row for row in saved if _matches(row, query)]

            def page(at: int | None, limit: int, query: Query = query) -> list[CheckpointRecord]:
                before = query.before_seq if at is None else at
                return store.checkpoints(None, but(query, limit=limit, before_seq=before))

            assert list(walk(page, lambda row: row.seq, limit=2)) == wanted, query

    def test_since_and_until_include_their_moment(self, store: Store) -> None:
        line = Line(store)
        for _ in range(5):
            line.save()
        moment = line.saved[2].created_at

        def numbers(since: int | None = None, until: int | None = None) -> list[int]:
            query = Query("main", limit=9, since=since, until=until)
            return [row.seq for row in store.checkpoints(None, query)]

        assert numbers(since=moment) == [5, 4, 3]
        assert numbers(since=moment + 1) == [5, 4]
        assert numbers(until=moment) == [3, 2, 1]
        assert numbers(until=moment - 1) == [2, 1]
        assert numbers(since=moment, until=moment) == [3]
        assert numbers(since=moment + 1, until=moment) == []

    def test_a_page_of_checkpoints_is_not_moved_by_new_ones(self, store: Store) -> None:
        line = Line(store)
        for _ in range(6):
            line.save()
        first = store.checkpoints(None, Query("main", limit=3))
        for _ in range(4):
            line.save()
        second = store.checkpoints(None, Query("main", limit=9, before_seq=first[-1].seq))
        assert [row.seq for row in first + second] == [6, 5, 4, 3, 2, 1]

    def test_filters_compare_exactly(self, store: Store) -> None:
        line = Line(store)
        for name in ("plan", "Plan", "plan ", "plän", "pl%"):
            line.save(name=name)
        line.save()
        for name in ("plan", "pl%", "plän"):
            found = store.checkpoints(None, Query("main", limit=9, name=name))
            assert [row.name for row in found] == [name]
        assert store.checkpoints(None, Query("main", limit=9, name="")) == []
        assert store.checkpoints(None, Query("main", limit=9, status="run%")) == []

    def test_count_is_of_one_timeline(self, store: Store) -> None:
        one, two = Line(store, "one"), Line(store, "two")
        for _ in range(3):
            one.save()
        two.save()
        assert [store.count(None, name) for name in ("one", "two", "three")] == [3, 1, 0]

    # Files

    def test_checkpoints_of_a_workspace_come_newest_first(self, store: Store) -> None:
        one, other = Line(store, "one"), Line(store, "other")
        first, second = one.save_files(b"/w"), other.save_files(b"/w")
        elsewhere = one.save_files(b"/w/x")
        other.save()
        third = one.save_files(b"/w")
        Line(store, "one", user="ada").save_files(b"/w")
        assert store.captured(None, b"/w", None, 10) == [third, second, first]
        assert store.captured(None, b"/w", third.number, 1) == [second]
        assert store.captured(None, b"/w/x", None, 10) == [elsewhere]
        assert store.captured(None, b"/", None, 10) == []
        assert store.checkpoint(None, third.id) == third

    def test_deleted_checkpoints_of_a_workspace_are_found_too(self, store: Store) -> None:
        line = Line(store)
        record = line.save_files(b"/w")
        number = operate(store, "hide", Changes(hide=[record.id]))
        assert store.captured(None, b"/w", None, 10) == [record._replace(hidden=number)]
        shown = line.save_files(b"/w")
        assert store.captured(None, b"/w", None, 10, hidden=False) == [shown]
        assert store.captured(None, b"/w", shown.number, 10, hidden=False) == []

    # Log

    def test_the_log_comes_in_the_order_of_its_commits(self, store: Store) -> None:
        line = Line(store)
        numbers = []
        for number in range(8):
            line.save()
            numbers.append(store.commit(a_note(f"note {number}")))
        entries = store.log(None, 0, 100)
        assert [entry.number for entry in entries] == numbers
        assert [entry.data for entry in entries] == [b"note %d" % n for n in range(8)]

    def test_a_log_entry_comes_back_as_it_was(self, store: Store) -> None:
        entry = an_entry("x", timeline="no such timeline Ω", kind="fork")._replace(data=b"\0\xff")
        entry = entry._replace(number=store.commit(Batch(None, entry)))
        assert store.log(None, 0, 10) == [entry]

    def test_a_log_entry_is_found_by_its_id(self, store: Store) -> None:
        entries = [an_entry(f"entry {number}") for number in range(3)]
        numbers = [store.commit(Batch(None, entry)) for entry in entries]
        Line(store).save()
        for entry, number in zip(entries, numbers, strict=True):
            assert store.log_entry(None, entry.id) == entry._replace(number=number)
        assert store.log_entry("ada", entries[0].id) is None
        assert store.log_entry(None, b"?" * len(entries[0].id)) is None
        checkpoint = store.checkpoints(None, Query("main", 1))[0]
        assert store.log_entry(None, checkpoint.id) is None
        forget = Batch(None, an_entry("forget"), changes=Changes(forget_log=numbers[0]))
        store.commit(forget)
        assert store.log_entry(None, entries[0].id) is None

    def test_the_log_pages_by_number(self, store: Store) -> None:
        for number in range(7):
            store.commit(a_note(f"note {number}"))
        whole = store.log(None, 0, 100)
        for limit in (1, 3, 7, 8):
            found = walk(lambda at, n: store.log(None, at or 0, n), lambda row: row.number, limit)
            assert list(found) == whole
        assert store.log(None, whole[-1].number, 10) == []

    def test_a_page_of_the_log_is_followed_by_what_came_since(self, store: Store) -> None:
        for number in range(4):
            store.commit(a_note(f"note {number}"))
        first = store.log(None, 0, 3)
        store.commit(a_note("note 4"))
        second = store.log(None, first[-1].number, 10)
        assert [entry.data for entry in first + second] == [b"note %d" % n for n in range(5)]

    # The whole

    def test_stats_count_what_is_stored(self, store: Store) -> None:
        empty = store.stats(None)
        assert empty == Stats(0, 0, 0, empty.disk_bytes)
        line = Line(store)
        for number in range(3):
            line.commit(line.next(objects=some_objects(f"turn {number}", 4)))
        Line(store, "other").save()
        store.commit(a_note("counts as nothing"))
        found = store.stats(None)
        assert (found.timelines, found.checkpoints, found.objects) == (2, 4, 13)
        assert found.disk_bytes > 0
        assert 0 < found.own_bytes <= found.disk_bytes

    def test_nothing_is_wrong_with_a_sound_store(self, store: Store) -> None:
        assert list(store.verify()) == []
        for user in (None, "ada"):
            line = Line(store, user=user)
            for _ in range(3):
                line.save()
        store.commit(a_note("and a note"))
        assert list(store.verify()) == []


def _various(store: Store) -> list[CheckpointRecord]:
    """A timeline with a bit of everything, newest first."""
    line = Line(store)
    Line(store, "other").save(name="plan", kind="manual", status="done")
    for number in range(24):
        about = {
            "kind": ("automatic", "manual", "feature")[number % 3],
            "status": ("running", "done")[number % 2],
        }
        if number % 4 != 3:
            about["name"] = ("plan", "test", "plan")[number % 4]
        line.save(**about)
    return line.saved[::-1]


def _queries() -> Iterator[Query]:
    """Every combination of conditions, each with one value or none."""
    choices: dict[str, tuple[Any, ...]] = {
        "before_seq": (None, 15),
        "seq": (None, 9),
        "name": (None, "plan"),
        "kind": (None, "automatic"),
        "status": (None, "running"),
        "since": (None, MOMENT + 5 * SECOND),
        "until": (None, MOMENT + 20 * SECOND),
    }
    assert choices.keys() == Query.__annotations__.keys() - {
        "timeline",
        "limit",
        "hidden",
        "labels",  # see `attaching`
    }
    for values in product(*choices.values()):
        yield Query("main", limit=7, **dict(zip(choices, values, strict=True)))


def _matches(row: CheckpointRecord, query: Query) -> bool:
    exact = all(
        wanted is None or got == wanted
        for got, wanted in (
            (row.seq, query.seq),
            (row.name, query.name),
            (row.kind, query.kind),
            (row.status, query.status),
        )
    )
    return (
        exact
        and (query.before_seq is None or row.seq < query.before_seq)
        and (query.since is None or row.created_at >= query.since)
        and (query.until is None or row.created_at <= query.until)
    )


def _scanned(store: Store, user: str | None = None) -> dict[Hash, bytes]:
    return {address: data for part in store.scan(user) for address, data in part.items()}
