"""A call that a thread of its own makes, while its caller goes on."""

import threading
from collections.abc import Callable


class Ahead(threading.Thread):
    """One call. To store is to compress and to wait for a disk: neither holds up the others."""

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__(name="hardsave-ahead")
        self._call = call
        self._error: BaseException | None = None
        try:
            self.start()
        except RuntimeError:  # no further thread can be had: then it is done here and now
            self.run()

    def run(self) -> None:
        try:
            self._call()
        except BaseException as error:  # noqa: BLE001 - the caller waits for it, and gets it
            self._error = error

    def wait(self) -> None:
        """Until it is done. Its error is raised here."""
        if self.ident is not None:
            self.join()
        if self._error is not None:
            raise self._error
