"""What is asked for twice under one key is done once, and what a caller expects is looked at."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

import hardsave
from hardsave.server.api.table import ROUTES
from tests.integration.server.acts import ACTS, Act, Asked
from tests.integration.server.site import Site
from tests.unit.server.api_client import ApiClient, Got
from tests.unit.server.api_samples import Sample

TOGETHER = 8


@pytest.fixture(scope="module")
def vault(site: Site) -> Iterator[hardsave.Vault]:
    with site.server.vault() as opened:
        yield opened


@pytest.fixture(scope="module")
def program(site: Site) -> Iterator[ApiClient]:
    with site.api() as client:
        yield client


def prepared(name: str, test: str, vault: hardsave.Vault, site: Site) -> tuple[Act, Asked, str]:
    word = f"{test}-{name.replace(' ', '-')}"
    asked = ACTS[name].prepare(vault, word, site.server.folder)
    return ACTS[name], asked, word


def same(act: Act, got: Got) -> list[Any]:
    return [got.data[field] for field in act.same]


def with_key(sample: Sample, key: str) -> Sample:
    return sample._replace(headers={**sample.headers, "idempotency-key": key})


def test_every_act_that_takes_a_key_is_among_these(site: Site, vault: hardsave.Vault) -> None:
    taking = {
        (each.method, each.path)
        for each in ROUTES
        if each.spec is not None and "Idempotency-Key" in each.spec.headers
    }
    tried = [prepared(name, "all", vault, site)[1].sample.route for name in ACTS]
    assert {(each.method, each.path) for each in tried} == taking


@pytest.mark.parametrize("name", ACTS)
def test_an_act_that_is_repeated_under_its_key_is_done_once(
    site: Site, vault: hardsave.Vault, program: ApiClient, name: str
) -> None:
    act, asked, word = prepared(name, "once", vault, site)
    keyed = with_key(asked.sample, word)
    assert asked.sample.route.spec is not None
    status = asked.sample.route.spec.status
    answers = [program.try_sample(keyed) for _ in range(3)]
    assert [each.status for each in answers] == [status] * 3, answers
    assert [each.is_replayed for each in answers] == [False, True, True]
    assert same(act, answers[1]) == same(act, answers[2]) == same(act, answers[0])
    assert act.times(vault, word) == 1
    before = site.told()
    other = program.try_sample(with_key(asked.other, word))
    assert (other.status, other.data["code"]) == (409, "conflict"), other
    assert site.told() == before
    assert program.try_sample(keyed).is_replayed


@pytest.mark.parametrize("name", ACTS)
def test_an_act_that_is_repeated_without_a_key_is_another_one(
    site: Site, vault: hardsave.Vault, program: ApiClient, name: str
) -> None:
    """And so the count of the other tests could be another one."""
    act, asked, word = prepared(name, "twice", vault, site)
    any_head = dict.fromkeys(asked.sample.headers, "*")
    without = asked.sample._replace(headers=any_head)
    answers = [program.try_sample(without) for _ in range(2)]
    done = [each for each in answers if each.status < 300 and each.data != {"cleared": 0}]
    assert done
    assert not any(each.is_replayed for each in answers)
    assert act.times(vault, word) == len(done)


@pytest.mark.parametrize("name", ACTS)
def test_an_act_that_comes_eight_times_at_once_is_done_once(
    site: Site, vault: hardsave.Vault, name: str
) -> None:
    act, asked, word = prepared(name, "together", vault, site)
    assert asked.sample.route.spec is not None
    keyed, start = with_key(asked.sample, word), threading.Barrier(TOGETHER)

    def send() -> Got:
        with site.api() as client:
            client.get("/api/v1")  # it is connected
            start.wait()
            return client.try_sample(keyed)

    with ThreadPoolExecutor(TOGETHER) as pool:
        answers = [each.result() for each in [pool.submit(send) for _ in range(TOGETHER)]]
    assert {each.status for each in answers} == {asked.sample.route.spec.status}, answers
    assert len({str(same(act, each)) for each in answers}) == 1
    assert act.times(vault, word) == 1


@pytest.mark.parametrize("name", [each for each in ACTS if not each.startswith(("save", "append"))])
def test_a_key_is_that_of_a_save_or_of_another_act_and_not_of_both(
    site: Site, vault: hardsave.Vault, program: ApiClient, name: str
) -> None:
    _, asked, word = prepared(name, "both", vault, site)
    for order in (1, -1):
        key = f"{word}-{order}"
        save = {"timeline": key, "state": {}}
        saving = partial(
            program.send, "POST", "/api/v1/checkpoints", save, {"idempotency-key": key}
        )
        acting = partial(program.try_sample, with_key(asked.sample, key))
        first, second = [saving, acting][::order]
        assert first().status < 300
        before = site.told()
        refused = second()
        assert (refused.status, refused.data["code"]) == (409, "conflict"), refused
        assert "give each request its own" in refused.data["detail"]
        assert site.told() == before
