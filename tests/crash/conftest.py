"""What the crash tests share: the launcher of processes, and the account of what has run.

Each of the two nets (the injector, strace) may be missing on a machine, but not both. If
the environment variable HARDSAVE_CRASH_NETS names a file, every net that has struck at
least one process adds its name to it, as a line: "injector" or "strace". An empty or missing
file after the tests means that nothing was crashed.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tests.crash.launcher import Launcher
from tests.crash.rig import Rig


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    launcher = Launcher()
    yield launcher
    launcher.close()


@pytest.fixture(scope="session")
def rig(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Rig:
    return Rig(launcher, tmp_path_factory.mktemp("crash"))


@pytest.fixture
def ran(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Tells that a net has struck, and how often."""

    def tell(net: str, **counts: int) -> None:
        for name, count in counts.items():
            record_property(f"crash: {name.replace('_', ' ')} ({net})", count)
        if path := os.environ.get("HARDSAVE_CRASH_NETS"):
            with open(path, "a") as file:
                file.write(f"{net}\n")

    return tell


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much was crashed."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name.startswith("crash: ") and isinstance(value, int):
                counts[name.removeprefix("crash: ")] += value
    for name, count in sorted(counts.items()):
        terminalreporter.write_line(f"survived: {count} {name}")
