"""The most memory that this process has taken, in bytes."""

import resource
import sys
from pathlib import Path


def peak() -> int:
    """What getrusage tells begins with the parent's memory, from before the program was started."""
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
