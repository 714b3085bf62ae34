"""Everything that `stores.base` promises, as tests that any store can be put through.

A subclass says how its store is opened, and pytest does the rest:

    class TestMyStore(StoreContract):
        def open_store(self, folder: Path) -> Store:
            return MyStore(folder / "my.store")

Define the class at the top level of its module: other processes import it to open the same store.
`folder` is empty and each test has its own. `open_store` is called again with the same
folder to open the same store a second time; a store that is gone with its process says
`persists = False` instead, and those tests are skipped. One that does not do everything names in
`not_claimed` what it refuses; the tests see that it refuses that, and does all else.

writing    all or nothing, repeats, numbers, what a batch may expect
reading    every read, its order, its filters, its pages
listing    timelines by their last update, counts, branches, ancestors
workspaces which directory of which host files are of, and whose captures are refused
users      what a user sees is its own
threads    many writers at once
attaching  labels and notes of checkpoints, timelines by the beginning of their names
operating  hide, show, drop, replace, move several timelines, import
collecting what goes, and what must not
processes  several processes, and one that dies before it has told
hosts      a second host, and a container on this one
following  reading what is committed while others write
claiming   what a store does not do, and how it says so
turns      turns, paths of this host, calls that are repeated
working    tasks, their epochs and entries, and who may write them
queueing   which tasks are due, for whom they wait, and who may claim them
lasting    large things, closing, opening again
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hardsave.stores.base import Store
from hardsave.testing.attaching import Attaching
from hardsave.testing.claiming import Claiming
from hardsave.testing.collecting import Collecting
from hardsave.testing.following import Following
from hardsave.testing.hosts import Hosts
from hardsave.testing.lasting import Lasting
from hardsave.testing.listing import Listing
from hardsave.testing.operating import Operating
from hardsave.testing.processes import Processes
from hardsave.testing.queueing import Queueing
from hardsave.testing.reading import Reading
from hardsave.testing.threads import Threads
from hardsave.testing.turns import Turns
from hardsave.testing.users import Users
from hardsave.testing.working import Working
from hardsave.testing.workspaces import Workspaces
from hardsave.testing.writing import Writing


class StoreContract(
    Writing,
    Reading,
    Listing,
    Attaching,
    Operating,
    Collecting,
    Claiming,
    Working,
    Queueing,
    Workspaces,
    Users,
    Threads,
    Turns,
    Following,
    Processes,
    Hosts,
    Lasting,
):
    """Subclass it as `Test…`, and define `open_store`."""

    def open_store(self, folder: Path) -> Store:
        raise NotImplementedError(f"{type(self).__name__} has to define open_store(folder)")

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        """A store that has never been used, closed after the test."""
        store = self.open_store(tmp_path)
        yield store
        store.close()
