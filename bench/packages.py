"""How often a save with files and a rewind change package: a figure to look at, not a gate.

    python -m bench.packages

Counts the calls whose function lies in another folder below `hardsave` than that of the call
before: for the last of a few, when all modules are loaded and one file has changed. Modules that
lie in no folder, such as `tuples`, are left out.
"""

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType

import hardsave

HOME = Path(hardsave.__file__).parent


def changes(do: Callable[[], object]) -> int:
    """How often it goes from one package to another."""
    seen: list[str] = []

    def called(frame: FrameType, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(HOME) and path.parent != HOME:
            package = path.relative_to(HOME).parts[0]
            if seen[-1:] != [package]:
                seen.append(package)

    sys.setprofile(called)
    try:
        do()
    finally:
        sys.setprofile(None)
    return len(seen)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, "work")
        work.mkdir()
        with hardsave.open(f"sqlite:///{folder}/store.db") as vault:
            line = vault.timeline("main")
            figures: dict[str, int] = {}
            for turn in range(4):
                (work / "changed.txt").write_text(f"{turn}")
                (work / "same.txt").touch()
                saved = partial(line.save, {"turn": turn}, workspace=work)
                figures["a save with files"] = changes(saved)
            for _ in range(2):
                figures["a rewind"] = changes(partial(line.rewind, "@~1"))
    for what, count in figures.items():
        print(f"{what:20} {count:5} changes of package")


if __name__ == "__main__":
    main()
