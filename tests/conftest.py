"""What holds for all tests: a slow machine fails no property, Ctrl-C is one, hooks are alone."""

import gc
import os
import signal

from hypothesis import HealthCheck, settings

settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

# A process that is started in the background ignores Ctrl-C, and so do its children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# To a hook that a test calls, the test is its agent: what it leaves behind would stay until the end
# of all tests. Those that are about it say so.
os.environ["HARDSAVE_DAEMON"] = "off"


def pytest_collection_finish() -> None:
    """What was imported and collected lives to the end: no collection of garbage looks at it."""
    gc.collect()
    gc.freeze()
