"""Neither direction holds in memory what it carries."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MIB = 1 << 20


def peak(step: str, folder: Path, mebibytes: int) -> int:
    """The most memory that one step took, in a process of its own."""
    module = "tests.unit.vault.transfer_process"
    command = [sys.executable, "-m", module, step, str(folder), str(mebibytes)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return int(done.stdout)


def peaks(folder: Path, mebibytes: int) -> tuple[int, int]:
    folder.mkdir()
    peak("make", folder, mebibytes)
    return peak("export", folder, mebibytes), peak("import", folder, mebibytes)


@pytest.mark.torture
def test_64_mebibytes_need_less_than_themselves(tmp_path: Path) -> None:
    """A process that does next to nothing is what they are compared with."""
    baseline = max(peaks(tmp_path / "small", 4))
    for found in peaks(tmp_path / "large", 64):
        assert found - baseline < 60 * MIB


@pytest.mark.torture
def test_a_gibibyte_needs_at_most_200_megabytes(tmp_path: Path) -> None:
    for found in peaks(tmp_path / "large", 1024):
        assert found <= 200_000_000
