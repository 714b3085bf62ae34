import pytest

from hardsave.objects.hashing import Hash, digest
from hardsave.stores import object_cache
from hardsave.stores.object_cache import ObjectCache


def some(label: str, size: int = 10) -> dict[Hash, bytes]:
    data = label.encode().ljust(size)
    return {digest(data): data}


def test_what_was_put_is_found_by_its_hash() -> None:
    cache = ObjectCache(100)
    one, other = some("one"), some("other")
    cache.put(1, one)
    assert cache.get(1, [*one, *other]) == one
    assert cache.get(1, []) == {}


def test_a_user_is_not_given_what_is_kept_for_another() -> None:
    cache = ObjectCache(100)
    one = some("one")
    cache.put(1, one)
    assert cache.get(2, list(one)) == {}


def test_what_is_asked_for_stays_and_the_rest_is_evicted() -> None:
    cache = ObjectCache(100)
    wanted, forgotten = some("wanted"), some("forgotten")
    cache.put(1, wanted | forgotten)
    for number in range(50):
        cache.put(1, some(f"another {number}"))
        assert cache.get(1, list(wanted)) == wanted
    assert cache.get(1, list(forgotten)) == {}


def test_the_bound_holds_however_much_is_put() -> None:
    cache = ObjectCache(1_000)
    everything = [some(f"number {number}", 20 + number % 70) for number in range(500)]
    for objects in everything:
        cache.put(1, objects)
    kept = [data for objects in everything for data in cache.get(1, list(objects)).values()]
    assert 400 <= sum(map(len, kept)) <= 1_000 + 2 * 90
    assert cache.get(1, list(everything[-1])) == everything[-1]


def test_something_larger_than_the_bound_is_kept_until_more_comes() -> None:
    cache = ObjectCache(100)
    large = some("large", 5_000)
    cache.put(1, large)
    assert cache.get(1, list(large)) == large
    cache.put(1, some("one", 40))
    cache.put(1, some("two", 40))
    assert cache.get(1, list(large)) == {}


def test_a_process_may_keep_less_in_all_that_it_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_cache, "_most", object_cache.CACHE_BYTES)  # put back afterwards
    before, first, rest = ObjectCache(), some("first", 60), some("rest", 60)
    object_cache.keep_at_most(100)
    after = ObjectCache()
    for cache in (before, after):
        for number in range(3):
            cache.put(1, first if number == 0 else rest)
    assert before.get(1, list(first)) == first
    assert after.get(1, list(first)) == {}
