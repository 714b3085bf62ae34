"""What the crash tests share: the launcher of processes, and the account of what has run.

Each of the two nets (the injector, strace) may be missing on a machine, but not both. If
the environment variable HARDSAVE_CRASH_NETS names a file, every net that has struck at
least one process adds its name to it, as a line: "injector" or "strace". An empty or missing
file after the tests means that nothing was crashed.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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


NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount"]


@pytest.fixture
def on_a_disk(tmp_path: Path) -> Callable[[str, str], Any]:
    """What a module finds out, in a case of its own, on a file system that it may mount."""

    def run(module: str, case: str) -> Any:
        disk, elsewhere = tmp_path / "disk", tmp_path / "elsewhere"
        disk.mkdir()
        elsewhere.mkdir()
        try:
            probe = [*NAMESPACE, "mount", "-t", "tmpfs", "tmpfs", str(disk)]
            subprocess.run(probe, check=True, capture_output=True, timeout=60)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no disk can be mounted here: {error}")
        done = subprocess.run(
            [*NAMESPACE, sys.executable, "-m", module, case, str(disk), str(elsewhere)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            cwd=Path(__file__).parents[2],
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
