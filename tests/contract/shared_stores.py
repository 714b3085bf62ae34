"""A store that several hosts share, for tests: a file that all of them see, on one kernel.

It stands for a store that a server keeps: one clock for all hosts, which is the kernel's here.
"""

from hardsave.stores.host.boot import awake
from hardsave.stores.ledger import Moment
from hardsave.stores.sqlite import SqliteStore


class SharedStore(SqliteStore):
    is_shared = True

    def moment(self) -> Moment:
        return Moment(b"of the server", awake())
