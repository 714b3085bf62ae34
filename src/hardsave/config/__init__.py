"""Settings, and where things lie. Only `hardsave.open()` and the command line
ask; the rest is told. The more specific wins: what is said to a call, the environment, the
project's file, the user's file.
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardsave.config.places import (
    canonical,
    data_directory,
    file_url,
    folder_of,
    has_repository,
    home,
    make_folder,
    project_key,
    project_root,
    store_folder,
    url_of,
    user_file,
)
from hardsave.defaults import CODE_AGENT_FILE, PROJECT_FILE, STORE_FILE
from hardsave.errors import Misuse, Unavailable
from hardsave.logs import log
from hardsave.tuples import NamedTuple

if TYPE_CHECKING:
    from hardsave.config.file import Found

__all__ = [
    "CODE_AGENT_FILE",
    "PROJECT_FILE",
    "STORE_FILE",
    "STORE_VARIABLE",
    "canonical",
    "data_directory",
    "file_url",
    "files",
    "folder_of",
    "has_repository",
    "home",
    "included",
    "leaves_daemon",
    "make_folder",
    "named_store",
    "project_key",
    "project_root",
    "readable",
    "saving",
    "serving",
    "store_folder",
    "url_of",
    "user_file",
]

STORE_VARIABLE = "HARDSAVE_STORE"


class Saving(NamedTuple):
    """What the files say of every save."""

    compress: bool
    strict: bool


_reported: set[Path] = set()  # once a process is enough


def named_store(environment: Mapping[str, str], directory: Path) -> str | None:
    """The store that the environment names, or else a configuration file, as a URL."""
    chosen = environment.get(STORE_VARIABLE)
    if not chosen:
        counting = readable(environment, project_root(directory))
        said = [found["store"] for found in counting if "store" in found]
        chosen = said[-1].value if said else None
    if not chosen:
        return None
    return url_of(chosen)


def leaves_daemon(environment: Mapping[str, str], directory: Path) -> bool:
    """Whether hooks may leave a process behind that answers the next ones. Once a file says no,
    no other says otherwise."""
    counting = readable(environment, project_root(directory))
    return all(found["hooks_daemon"].value for found in counting if "hooks_daemon" in found)


def saving(environment: Mapping[str, str], directory: Path | None) -> Saving:
    """How saves are made where a caller says nothing else."""
    root = None if directory is None else project_root(directory)
    counting = readable(environment, root)
    said = {name: each.value for found in counting for name, each in found.items()}
    return Saving(compress=said.get("compress", True), strict=said.get("strict", False))


def included(environment: Mapping[str, str], directory: Path) -> tuple[str, ...]:
    """Patterns of files that are saved although they are ignored, or look secret: those of the
    user's file, and those of the project's, if that is trusted."""
    counting = readable(environment, project_root(directory))
    said = [found["include"].value for found in counting if "include" in found]
    return tuple(dict.fromkeys(pattern for patterns in said for pattern in patterns))


def serving(environment: Mapping[str, str]) -> dict[str, Any]:
    """What the user's own file says of `hardsave serve`, by the names of its settings. A project's
    file says nothing of it."""
    found = _of_user(environment, sys.platform)
    said = {name: each.value for file in found for name, each in file.items() if each.is_of_user}
    return {name.removeprefix("serve_"): value for name, value in said.items()}


def readable(
    environment: Mapping[str, str], project: Path | None, *, code_agent: Path | None = None
) -> "list[Found]":
    """The same as `files`, but a project's file that cannot be read is reported and left out. It
    was never trusted as it is, so little of it would count: it must not keep a program from
    saving or working, whether it came with a clone or an agent has just written it.

    `code_agent` is a folder whose `config/config.yaml` counts, too; the project's own file is the
    more specific.
    """
    found = _of_user(environment, sys.platform)
    if code_agent is not None:
        found += _or_left_out(code_agent / CODE_AGENT_FILE, _of_code_agent, environment, code_agent)
    if project is not None:
        found += _or_left_out(project / PROJECT_FILE, _of_project, environment, project)
    return found


def _or_left_out(
    path: Path,
    read: "Callable[[Mapping[str, str], Path, str], list[Found]]",
    environment: Mapping[str, str],
    folder: Path,
) -> "list[Found]":
    try:
        return read(environment, folder, sys.platform)
    except Misuse as error:
        from hardsave.config.trust import unreadable

        if path not in _reported:
            _reported.add(path)
            log(__name__).warning(
                "%s is left out, because it cannot be read: %s. Saving does not depend on it; "
                "until it can be read, and 'hardsave trust' was run if it asks for that, "
                "no finished tasks and old checkpoints are removed by themselves",
                path,
                error,
            )
        return [unreadable(path)]


def files(
    environment: Mapping[str, str], project: Path | None, platform: str = sys.platform
) -> "list[Found]":
    """What counts of the user's file and of the project's, if there is one: it is the more
    specific. `Misuse` if one cannot be read: for callers that remove what the files let go."""
    user = _of_user(environment, platform)
    return user if project is None else user + _of_project(environment, project, platform)


def _of_user(environment: Mapping[str, str], platform: str) -> "list[Found]":
    try:
        user = user_file(environment, platform)
    except Unavailable:  # who has no home keeps no files there
        return []
    if not os.path.exists(user):
        return []
    from hardsave.config.file import content, read  # few have such files

    return [read(content(user) or b"", str(user))]


def _of_project(environment: Mapping[str, str], project: Path, platform: str) -> "list[Found]":
    if not os.path.lexists(project / PROJECT_FILE):
        return []
    from hardsave.config.trust import counting, look

    return [counting(look(project), environment, platform)]


def _of_code_agent(environment: Mapping[str, str], folder: Path, platform: str) -> "list[Found]":
    if not os.path.lexists(folder / CODE_AGENT_FILE):
        return []
    from hardsave.config.trust import counting, look_code_agent

    return [counting(look_code_agent(folder), environment, platform)]
