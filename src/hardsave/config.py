"""Settings, and where things lie. Only `hardsave.open()` asks; the rest is told.

The default store lies outside the project, in the user's data directory, so that an agent
that empties its workspace (`rm -rf .`, `git clean -fdx`) cannot reach it.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from blake3 import blake3

STORE_VARIABLE = "HARDSAVE_STORE"


def store_url(environment: Mapping[str, str], directory: Path) -> str:
    """The store to use when none was named."""
    chosen = environment.get(STORE_VARIABLE)
    if chosen:
        return chosen if "://" in chosen else file_url(Path(chosen))
    place = data_directory(environment, sys.platform) / "projects" / project_key(directory)
    return file_url(place / "store.db")


def file_url(path: Path) -> str:
    return f"sqlite:///{path.absolute()}"


def project_root(directory: Path) -> Path:
    """The nearest folder upwards that holds a repository; else the directory itself."""
    real = directory.resolve()
    for folder in (real, *real.parents):
        if (folder / ".git").exists():
            return folder
    return real


def project_key(directory: Path) -> str:
    """The name of a project's folder: readable, and unique for its real path."""
    root = project_root(directory)
    digest = blake3(os.fsencode(root)).hexdigest(8)
    readable = "".join(c if c.isalnum() or c in "-_." else "-" for c in root.name)[:40]
    return f"{readable or 'root'}-{digest}"


def data_directory(environment: Mapping[str, str], platform: str) -> Path:
    """Where this user's programs keep their data."""
    if platform == "win32":
        base = Path(environment.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        given = environment.get("XDG_DATA_HOME", "")
        base = Path(given) if os.path.isabs(given) else Path.home() / ".local" / "share"
    return base / "hardsave"
