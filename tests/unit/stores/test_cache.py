from hardsave.objects.hashing import digest
from hardsave.stores.sqlite.cache import PackCache

PACK = {digest(b"x"): b"x"}


def test_what_was_put_is_found_under_its_key() -> None:
    cache = PackCache(100)
    cache.put((1, 10), PACK)
    assert cache.get((1, 10)) is PACK
    assert cache.get((1, 11)) is None  # merged since: the same id, more in it
    assert cache.get((2, 10)) is None


def test_the_least_recently_used_make_room() -> None:
    cache = PackCache(100)
    for number in range(4):
        cache.put((number, 25), PACK)
    cache.get((0, 25))
    cache.put((4, 50), PACK)
    assert [n for n in range(5) if cache.get((n, 50 if n == 4 else 25))] == [0, 3, 4]


def test_the_bound_holds_however_much_is_put() -> None:
    cache = PackCache(1_000)
    for number in range(500):
        cache.put((number, number % 90), PACK)
    kept = [n for n in range(500) if cache.get((n, n % 90))]
    assert sum(n % 90 for n in kept) <= 1_000
    assert kept[-1] == 499


def test_putting_a_pack_again_does_not_count_it_twice() -> None:
    cache = PackCache(100)
    for _ in range(10):
        cache.put((1, 40), PACK)
    cache.put((2, 40), PACK)
    assert cache.get((1, 40)) is PACK
    assert cache.get((2, 40)) is PACK


def test_a_pack_larger_than_the_bound_is_kept_alone() -> None:
    cache = PackCache(100)
    cache.put((1, 60), PACK)
    cache.put((2, 5_000), PACK)
    assert cache.get((1, 60)) is None
    assert cache.get((2, 5_000)) is PACK
    cache.put((3, 60), PACK)
    assert cache.get((2, 5_000)) is None
