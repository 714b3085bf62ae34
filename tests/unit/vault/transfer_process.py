"""One step of a transfer in a process of its own, which says how much memory it took.

python -m tests.unit.vault.transfer_process STEP FOLDER MEBIBYTES
"""

import random
import sys
from pathlib import Path

import hardsave
from tests.peak import peak

MIB = 1 << 20
ITEM = 64_000
SAVE = 4  # mebibytes


def make(folder: Path, mebibytes: int) -> None:
    """A store with so much that does not compress, in a save for each 4 MiB."""
    draw = random.Random(7)
    with hardsave.open(f"sqlite:///{folder}/source.db", durability="process") as vault:
        for number in range(mebibytes // SAVE):
            line = vault.timeline(f"line {number % 3}")
            line.append({"items": [draw.randbytes(ITEM) for _ in range(SAVE * MIB // ITEM)]})


def export(folder: Path, mebibytes: int) -> None:
    with hardsave.open(f"sqlite:///{folder}/source.db") as vault:
        assert vault.export_file(folder / "out.hardsave").checkpoints == mebibytes // SAVE


def import_(folder: Path, mebibytes: int) -> None:
    with hardsave.open(f"sqlite:///{folder}/target.db", durability="process") as vault:
        assert vault.import_file(folder / "out.hardsave").checkpoints == mebibytes // SAVE


if __name__ == "__main__":
    {"make": make, "export": export, "import": import_}[sys.argv[1]](
        Path(sys.argv[2]), int(sys.argv[3])
    )
    print(peak())  # noqa: T201 # the answer
