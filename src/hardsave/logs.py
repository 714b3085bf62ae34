"""Where reports go: the loggers of the standard library, under the names of our modules.

`logging` takes as long to load as all modules of this package together, and most programs
never have anything reported: it is loaded by the first report.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

_spelt: Callable[[str], str] | None = None


def log(name: str) -> "logging.Logger":
    """The logger of the module `name`."""
    import logging

    if _spelt is not None and logging.lastResort is not None:
        logging.lastResort.setFormatter(_formatter(_spelt))
    return logging.getLogger(name)


def spell(how: Callable[[str], str]) -> None:
    """Let reports that no program takes, and that are printed therefore, be spelt like this:
    the name of a file or a message in it may hold escape sequences for the terminal."""
    global _spelt  # noqa: PLW0603 # of the process, as what it is about
    _spelt = how


@cache
def _formatter(how: Callable[[str], str]) -> "logging.Formatter":
    import logging

    class Spelt(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return how(super().format(record))

    return Spelt()
