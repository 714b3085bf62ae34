"""Where reports go: the loggers of the standard library, under the names of our modules.

`logging` takes as long to load as all modules of this package together, and most programs
never have anything reported: it is loaded by the first report.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging


def log(name: str) -> "logging.Logger":
    """The logger of the module `name`."""
    import logging

    return logging.getLogger(name)
