"""What `make dist` builds holds what it should, and works in an environment of its own.

Nothing is fetched: the build tools are those of the lock, and the new environment finds the
dependencies where this one has them.
"""

import importlib.util
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.house.test_house import files_of_the_project
from tests.integration.server.browser import NEEDS_CHROMIUM, launched, visiting
from tests.integration.server.conftest import starting

ROOT = Path(__file__).parents[2]
NEEDED = ("hatchling", "pip")

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in NEEDED),
    reason=f"NOT TRIED: what is published. It takes {' and '.join(NEEDED)}, which make installs",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with sdist and wheel."""
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder)
    return folder


def build(source: Path, into: Path, *more: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(into), *more]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=120)


def only(folder: Path, ending: str) -> Path:
    (found,) = folder.glob(f"*{ending}")
    return found


def packaged(built: Path) -> set[str]:
    """The files of the wheel, without what describes it."""
    with zipfile.ZipFile(only(built, ".whl")) as wheel:
        return {name for name in wheel.namelist() if ".dist-info/" not in name}


def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    source = ROOT / "src"
    tracked = {path for path in files_of_the_project() if source in path.parents}
    assert packaged(built) == {str(path.relative_to(source)) for path in tracked}


def test_the_sdist_holds_what_is_tracked_and_builds_the_same_wheel(
    built: Path, tmp_path: Path
) -> None:
    with tarfile.open(only(built, ".tar.gz")) as tar:
        tar.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    found = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
    tracked = {str(path.relative_to(ROOT)) for path in files_of_the_project()}
    assert found - tracked == {"PKG-INFO", "examples/agent_server.py"}  # that one is a link
    assert tracked - found == {".ci/run", ".editorconfig"}
    again = tmp_path / "again"
    build(unpacked, again, "-t", "wheel")
    assert packaged(again) == packaged(built)


def test_the_wheel_works_in_an_environment_of_its_own(built: Path, tmp_path: Path) -> None:
    place = tmp_path / "env"
    venv.create(place, symlinks=True)
    python = place / "bin/python"
    library = Path(sysconfig.get_path("purelib", vars={"base": str(place)}))
    # The directory alone: what its .pth files add, this working copy among it, is not added.
    (library / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    run([*pip, "install", "--no-index", "--no-deps", "-q", str(only(built, ".whl"))], tmp_path)

    where = run([python, "-c", "import hardsave; print(hardsave.__file__)"], tmp_path)
    assert Path(where.strip()).is_relative_to(place)
    version = run([python, "-c", "import hardsave; print(hardsave.__version__)"], tmp_path)
    assert only(built, ".whl").name.startswith(f"hardsave-{version.strip()}-")

    work = tmp_path / "work"
    work.mkdir()
    hardsave = place / "bin/hardsave"
    assert version.strip() in run([hardsave, "--version"], work)
    assert "rewind" in run([hardsave, "--help"], work)
    (work / "file").write_text("first")
    run([hardsave, "save"], work)
    (work / "file").write_text("second")
    run([hardsave, "rewind", "main:1", "--yes"], work)
    assert (work / "file").read_text() == "first"
    hook = run([place / "bin/hardsave-hook", "claude-code"], work, text="{}")
    assert "Traceback" not in hook


@NEEDS_CHROMIUM
def test_the_wheel_alone_serves_the_page(built: Path, tmp_path: Path) -> None:
    unpacked = tmp_path / "wheel"
    with zipfile.ZipFile(only(built, ".whl")) as wheel:
        wheel.extractall(unpacked)  # noqa: S202 # our own
    (mark,) = unpacked.glob("hardsave/server/page/assets/search.js")
    mark.write_text(mark.read_text().replace("Fewer words find more.", "Of the wheel."))
    with starting(tmp_path) as start, launched() as browser:
        server = start(PYTHONPATH=str(unpacked))
        with server.vault() as vault:
            vault.timeline("main").append({"messages": [{"role": "user", "content": "Fix it"}]})
        with visiting(browser, server) as visitor:
            for screen, seen in (
                ("", ".session"),
                ("session?timeline=main", ".message"),
                ("work", ".empty"),
                ("inbox", ".empty"),
                ("health", ".findings li"),
                ("search?text=zzzz", "text=Of the wheel."),
            ):
                visitor.page.goto(f"{server.url}/#/{screen}")
                visitor.see(seen)


def run(command: "list[str | Path]", directory: Path, *, text: str = "") -> str:
    """What a command says, with a home of its own and nothing of this environment."""
    home = directory.parent if directory.name == "work" else directory
    ours = ("PYTHON", "HARDSAVE", "VIRTUAL_ENV", "XDG")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(
        command,
        cwd=directory,
        env={**environment, "HOME": str(home)},
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr
