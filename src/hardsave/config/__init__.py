"""Settings, and where things lie. Only `hardsave.open()` and the command line
ask; the rest is told. The more specific wins: what is said to a call, the environment, the
project's file, the user's file.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hardsave.config.places import (
    PROJECT_FILE,
    STORE_FILE,
    data_directory,
    file_url,
    project_key,
    project_root,
    store_folder,
    user_file,
)

if TYPE_CHECKING:
    from hardsave.config.file import Found

__all__ = [
    "PROJECT_FILE",
    "STORE_FILE",
    "STORE_VARIABLE",
    "data_directory",
    "file_url",
    "files",
    "named_store",
    "project_key",
    "project_root",
    "store_folder",
    "store_url",
    "user_file",
]

STORE_VARIABLE = "HARDSAVE_STORE"


def store_url(environment: Mapping[str, str], directory: Path) -> str:
    """The store to use when none was named."""
    named = named_store(environment, directory)
    if named is not None:
        return named
    return file_url(store_folder(environment, directory, sys.platform) / STORE_FILE)


def named_store(environment: Mapping[str, str], directory: Path) -> str | None:
    """The store that the environment names, or else a configuration file, as a URL."""
    chosen = environment.get(STORE_VARIABLE)
    if not chosen:
        root = project_root(directory)
        said = [found["store"] for found in files(environment, root) if "store" in found]
        chosen = said[-1].value if said else None
    if not chosen:
        return None
    return chosen if "://" in chosen else file_url(Path(chosen))


def files(
    environment: Mapping[str, str], project: Path, platform: str = sys.platform
) -> "list[Found]":
    """What counts of the user's file and of the project's, which is the more specific one."""
    user = user_file(environment, platform)
    found: list[Found] = []
    if os.path.exists(user):
        from hardsave.config.file import content, read  # few have such files

        found.append(read(content(user) or b"", str(user)))
    if os.path.lexists(project / PROJECT_FILE):
        from hardsave.config.trust import of_project

        found.append(of_project(project, environment, platform))
    return found
