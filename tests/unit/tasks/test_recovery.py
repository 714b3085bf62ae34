from collections.abc import Callable

import pytest

from hardsave.objects.records import OwnerRecord
from hardsave.stores.host.location import Location, Numbering
from hardsave.stores.host.processes import UNKNOWN
from hardsave.stores.ledger import Moment
from hardsave.tasks.recovery import MAX_LEASE, fate, orphaned
from hardsave.testing.duties import a_task, an_owner

HERE = Location(Numbering("host", b"bootboot", 7), 1, 1)
NOW = Moment(b"bootboot", 5_000)  # of a store that counts in the time of a boot
OWNER = OwnerRecord(b"o", "s", "host", b"bootboot", 7, 42, 99, 0, 6_000, b"bootboot")
EARLIER = OWNER._replace(boot=b"earlier.", clock=b"earlier.")
SERVER = Moment(b"server", 5_000)  # of a store that is shared
SHARED = OWNER._replace(clock=b"server")


def gone(pid: int) -> int | None:
    return None


def there(pid: int) -> int | None:
    return 99


def hidden(pid: int) -> int | None:
    return UNKNOWN


def another(pid: int) -> int | None:
    return 100


@pytest.mark.parametrize(
    ("owner", "ask", "judged", "why"),
    [
        (OWNER, there, "alive", "lease holds"),
        (OWNER, gone, "dead", "process 42 is gone"),
        (OWNER, another, "dead", "process 42 is another one"),
        (OWNER, hidden, "alive", "lease holds"),
        (OWNER._replace(until=5_000), hidden, "dead", "lease has passed"),
        (OWNER._replace(until=5_000), there, "dead", "lease has passed"),
        (OWNER, None, "alive", "lease holds"),
        (OWNER._replace(until=4_999), None, "dead", "lease has passed"),
        (EARLIER, there, "dead", "restarted"),
        (EARLIER._replace(host="other"), gone, "elsewhere", "runs on other"),
        (OWNER._replace(space=8), gone, "alive", "lease holds"),  # in another container
        (OWNER._replace(space=8, until=1), gone, "dead", "lease has passed"),
        (OWNER._replace(host="renamed"), gone, "alive", "lease holds"),  # its lease decides
        (OWNER._replace(pid_started=0), gone, "alive", "lease holds"),  # it could not tell
        (OWNER._replace(pid=1), there, "dead", "process 1 has begun its program anew"),
        (OWNER._replace(pid=1, id=b"before"), there, "alive", "lease holds"),
        (OWNER._replace(pid=1, space=8), there, "alive", "lease holds"),  # in another container
        (OWNER._replace(until=5_001 + MAX_LEASE), there, "dead", "before a restart"),
    ],
)
def test_the_fate_of_an_owner(
    owner: OwnerRecord, ask: Callable[[int], int | None] | None, judged: str, why: str
) -> None:
    found = fate(owner, HERE, NOW, ask, ours=[b"before"])
    assert found.is_ == judged
    assert why in found.why


@pytest.mark.parametrize(
    ("owner", "ask", "judged", "why"),
    [
        (SHARED, there, "alive", "lease holds"),
        (SHARED, gone, "dead", "process 42 is gone"),
        # Every Linux host numbers its first processes in a space of the same id, and hosts that
        # were copied from one image have one name: only the boot tells them apart.
        (SHARED._replace(host="other"), gone, "alive", "lease holds"),
        (SHARED._replace(host="other", boot=b"another."), gone, "alive", "lease holds"),
        (SHARED._replace(boot=b"another."), gone, "alive", "lease holds"),
        (SHARED._replace(boot=b"another."), another, "alive", "lease holds"),
        (SHARED._replace(boot=b"another.", pid=1), there, "alive", "lease holds"),
        (SHARED._replace(host="other", until=5_000), there, "dead", "lease has passed"),
        (SHARED._replace(boot=b"another.", until=4_000), there, "dead", "lease has passed"),
        (SHARED._replace(clock=b"before", host="other"), gone, "elsewhere", "runs on other"),
    ],
)
def test_on_a_shared_store_a_lease_decides_about_owners_of_other_hosts(
    owner: OwnerRecord, ask: Callable[[int], int | None], judged: str, why: str
) -> None:
    found = fate(owner, HERE, SERVER, ask, ours=())
    assert found.is_ == judged
    assert why in found.why


def test_tasks_whose_owner_has_no_lease_are_orphans() -> None:
    known = an_owner("one")
    running = [a_task("a", owner=known.id), a_task("b", owner=b"gone"), a_task("c", owner=None)]
    found = orphaned(running, [known])
    assert {owner: [task.name for task in tasks] for owner, tasks in found.items()} == {
        b"gone": ["b"],
        None: ["c"],
    }
