from collections.abc import Callable

import pytest

from hardsave.objects.records import OwnerRecord
from hardsave.stores.host.processes import UNKNOWN, Place
from hardsave.stores.ledger import Moment
from hardsave.tasks.recovery import MAX_LEASE, fate, orphaned
from hardsave.testing.duties import a_task, an_owner

HERE = Place("host", 7, 1, 1)
NOW = Moment(b"bootboot", 5_000)
OWNER = OwnerRecord(b"o", "s", "host", b"bootboot", 7, 42, 99, 0, 6_000)


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
        (OWNER._replace(boot=b"earlier."), there, "dead", "restarted"),
        (OWNER._replace(boot=b"earlier.", host="other"), gone, "elsewhere", "runs on other"),
        (OWNER._replace(space=8), gone, "alive", "lease holds"),  # in another container
        (OWNER._replace(space=8, until=1), gone, "dead", "lease has passed"),
        (OWNER._replace(host="renamed"), there, "alive", "lease holds"),  # one boot, one machine
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


def test_tasks_whose_owner_has_no_lease_are_orphans() -> None:
    known = an_owner("one")
    running = [a_task("a", owner=known.id), a_task("b", owner=b"gone"), a_task("c", owner=None)]
    found = orphaned(running, [known])
    assert {owner: [task.name for task in tasks] for owner, tasks in found.items()} == {
        b"gone": ["b"],
        None: ["c"],
    }
