"""What the page on monitoring shows happens when it is typed, and its rules name real metrics."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from hardsave.defaults import SERVER_PORT
from hardsave.server.metrics import metrics
from tests.docs.pages import DOCS, blocks
from tests.docs.test_howto import ran, shape, typed
from tests.unit.server.test_metrics import NUMBERS

PAGE = DOCS / "howto" / "monitoring.md"
DEFAULT = f"http://127.0.0.1:{SERVER_PORT}"
NAMES = {metric.name for metric in metrics(NUMBERS)}


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address of a server of the project, at a port that is free."""
    home = {"HOME": str(folder.parent), "XDG_DATA_HOME": str(folder.parent / "data")}
    command = [sys.executable, "-m", "hardsave", "serve", "--port", "0", "--json"]
    with subprocess.Popen(
        command,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **home},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


def same(printed: str, folder: Path) -> list[str]:
    """Without a run's own times and processes."""
    for pattern, stands_for in (
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME"),
        (r"\bpid \d+", "pid N"),
    ):
        printed = re.sub(pattern, stands_for, printed)
    return [line for line in shape(printed, folder) if line]


def test_every_command_of_the_page_prints_what_it_says(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "agents.py").write_text(blocks(PAGE, "python")[0])
    steps = [step for block in blocks(PAGE, "console") for step in typed(block)]
    assert len(steps) > 8
    with serving(folder) as address:
        for command, printed in steps:
            found = ran(command.replace(DEFAULT, address), folder)
            assert same(found, folder) == same(printed, folder), command


def test_the_table_and_the_rules_name_the_metrics_that_there_are() -> None:
    text = PAGE.read_text()
    table = "\n".join(line for line in text.splitlines() if line.startswith("| `hardsave_"))
    assert {*re.findall(r"hardsave_\w+", table)} == NAMES
    scrape, rules = (yaml.safe_load(block) for block in blocks(PAGE, "yaml"))
    assert scrape["scrape_configs"][0]["static_configs"][0]["targets"] == [
        f"127.0.0.1:{SERVER_PORT}"
    ]
    expressions = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    assert len(expressions) > 5
    for expression in expressions:
        assert {*re.findall(r"hardsave_\w+", expression)} <= NAMES
