"""`python -m bench`: measure, print the table, write it down where asked.

Exit codes: 0 measured, 1 a target was missed and --strict given, 2 something broke.
"""

import argparse
import os
import shlex
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import hardsave
from bench import machine, report
from bench.report import Row
from bench.setting import Setting
from bench.state import ASKED_FOR, SECTIONS

FAILURES = (machine.Broken, hardsave.HardsaveError, OSError, subprocess.SubprocessError)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # new processes find compiled modules
    try:
        with machine.workplace(options.directory, allow_tmpfs=options.allow_tmpfs) as place:
            facts = machine.facts(place, _command(options))
            setting = Setting(place, quick=options.quick, tree=options.tree)
            rows, broken = _measure(
                setting, options.only or [name for name in SECTIONS if name not in ASKED_FOR]
            )
    except machine.Broken as error:
        print(error, file=sys.stderr)
        return 2
    if options.quick:
        facts["quick"] = f"{setting.turns} turns and shorter runs; targets are for the whole run"
    print(report.as_text(facts, rows))
    for path, write in ((options.markdown, report.as_markdown), (options.json, report.as_json)):
        if path is not None:
            path.write_text(write(facts, rows))
    if broken:
        print(f"broken: {', '.join(broken)}; see above", file=sys.stderr)
        return 2
    return int(options.strict and any(row.is_met is False for row in rows))


def _measure(setting: Setting, chosen: Sequence[str]) -> tuple[list[Row], list[str]]:
    """The rows of the chosen sections, and the names of those that broke."""
    rows: list[Row] = []
    broken: list[str] = []
    for name in (name for name in SECTIONS if name in chosen):
        begin = time.perf_counter()
        try:
            rows += SECTIONS[name](setting)
        except FAILURES:
            traceback.print_exc()
            broken.append(name)
        print(f"{name}: {report.duration(time.perf_counter() - begin)}", file=sys.stderr)
    return rows, broken


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--only", action="append", choices=SECTIONS, metavar="NAME", help=", ".join(SECTIONS)
    )
    parser.add_argument("--quick", action="store_true", help="shorter runs, under a minute")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there too")
    parser.add_argument("--directory", type=Path, default=machine.ROOT / ".bench", metavar="DIR")
    parser.add_argument(
        "--tree", type=Path, metavar="DIR", help="snapshot copies of this, not of packages"
    )
    parser.add_argument("--allow-tmpfs", action="store_true", help="run in memory all the same")
    return parser.parse_args(arguments)


def _command(options: argparse.Namespace) -> str:
    """How to run this again, without the paths of whoever ran it."""
    flags = [f"--{name}" for name in ("quick", "strict") if getattr(options, name)]
    only = [part for name in options.only or () for part in ("--only", name)]
    words = [*flags, *only]
    return f"make bench ARGS={shlex.quote(' '.join(words))}" if words else "make bench"


if __name__ == "__main__":
    sys.exit(main())
