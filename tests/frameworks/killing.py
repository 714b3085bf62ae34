"""Programs that are killed at random moments: a start of one, which may end by a kill."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]


def start(
    script: str,
    *arguments: object,
    told: Path,
    kill: float | None,
    environment: Mapping[str, str] | None = None,
) -> bool:
    """Whether a program came to its end. With `kill` it and its children are killed so many seconds
    after it has first written to the file `told`."""
    before = told.stat().st_size if told.exists() else 0
    process = subprocess.Popen(
        [sys.executable, script, *map(str, arguments)],
        cwd=ROOT,
        start_new_session=True,
        env={**os.environ, **(environment or {})},
    )
    until = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < until:
        if kill is not None and told.exists() and told.stat().st_size > before:
            time.sleep(kill)
            break
        time.sleep(0.002)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait(timeout=30) == 0


def whole_lines(told: Path) -> list[str]:
    """What a program has logged, without a line that its death has cut."""
    return [line.rstrip("\n") for line in told.read_text().splitlines(True) if line.endswith("\n")]
