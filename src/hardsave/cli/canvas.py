"""rich's console, as we use it. Imported with the first line that is drawn, and not before."""

import errno
import os

from rich.console import Console


class Canvas(Console):
    """Leaves the streams of this process alone."""

    def on_broken_pipe(self) -> None:
        """rich would end the process here, and let stdout lead nowhere: also that of an agent
        which this process is about to become."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
