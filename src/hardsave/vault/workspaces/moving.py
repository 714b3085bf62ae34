"""`hardsave move`: the store of a project that was moved goes to the place of its new directory.

What was saved stays as it is, and names the old directory: the record beside the store keeps both,
so that commands take the one for the other (see `projects`). All of it is one rename of the store's
folder; what is done besides can be done again.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from hardsave import config
from hardsave.errors import Conflict, Misuse, NotFound
from hardsave.tuples import NamedTuple
from hardsave.vault.workspaces import projects
from hardsave.vault.workspaces.projects import OwnFolder, Project


class ProjectMove(NamedTuple):
    """What was done."""

    old: str
    new: str
    store: str  # its URL
    forks: tuple[str, ...]  # directories that go on with the store where it is now


def move(environment: Mapping[str, str], old: Path, new: Path) -> ProjectMove:
    """Let the project that was at `old` go on at `new`.

    `NotFound` if there was none, `Misuse` if it is still there, `Conflict` if the new directory has
    a store of its own; `Unavailable` if a process has the store open.
    """
    if not new.is_dir():
        raise Misuse(f"{new} is no directory; move the project there first")
    root = config.project_root(new)
    there, known = _found(environment, old)
    if projects.is_still_there(known):
        raise Misuse(
            f"the project is still at {known.root}; move the directory first, or name the one that "
            "was moved"
        )
    folder = config.folder_of(environment, root, sys.platform)
    if folder.exists() and projects.is_there(folder / config.STORE_FILE):
        store = there / config.STORE_FILE
        raise Conflict(
            f"{root} has a store of its own by now. To bring in what the other holds, type: "
            f"hardsave store export --store {projects.quoted(store)} all.hardsave, then: "
            f"hardsave -C {projects.quoted(root)} store import all.hardsave"
        )
    _rename(there, folder)
    project = projects.moved(projects.described(root, known), known)
    projects.remember(OwnFolder(folder, project))
    urls = [config.file_url(each / config.STORE_FILE) for each in (there, folder)]
    forks = tuple(_renamed_in_forks(folder, *urls))
    return ProjectMove(known.root, str(root), urls[1], forks)


def _found(environment: Mapping[str, str], old: Path) -> tuple[Path, Project]:
    """The folder of the project that was at a path, and its record."""
    names = {os.path.abspath(old), os.path.realpath(old)}
    every = list(projects.others(config.data_directory(environment, sys.platform) / "projects"))
    for folder, known in every:
        if known.root in names and known.store is None:
            return folder, known
    gone = gone_projects(environment)
    others = f"; gone from where they were: {', '.join(gone)}" if gone else ""
    raise NotFound(f"no project was saved at {os.path.abspath(old)}{others}")


def gone_projects(environment: Mapping[str, str]) -> list[str]:
    """The directories of projects that have a store, and are not where they were."""
    every = projects.others(config.data_directory(environment, sys.platform) / "projects")
    return sorted(
        known.root
        for _, known in every
        if known.store is None and not projects.is_still_there(known)
    )


def _rename(there: Path, folder: Path) -> None:
    from hardsave.stores import store_files

    with store_files.alone_with(str(there / config.STORE_FILE), "moved"):
        if folder.exists():  # without a store: of one that was to begin anew
            os.rename(folder, f"{folder}.{os.urandom(4).hex()}")
        os.rename(there, folder)


def _renamed_in_forks(own: Path, old: str, new: str) -> Iterator[str]:
    """Directories that were forked name the store that they go on with."""
    for folder, known in projects.others(own.parent):
        if known.store == old:
            projects.remember(OwnFolder(folder, known._replace(store=new)))
            yield known.root
