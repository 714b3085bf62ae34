"""What holds for all tests: a slow machine fails no property, and Ctrl-C is one."""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

# Whoever is started in the background ignores Ctrl-C, and so do all whom he starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
