"""Whether a project's files are trusted, and what of them counts if they are not: `hardsave.yaml`
at its root, and the `config/config.yaml` that CodeAgent's server keeps in it.

Trust is given to a file as it is, by the hash of its bytes: one that changes has to be looked
at again. It is kept among the user's own data, where no project reaches it.
"""

import json
import os
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from blake3 import blake3

from hardsave.config.file import Found, Said, content, read, read_code_agent
from hardsave.config.places import data_directory, make_folder, project_key
from hardsave.defaults import CODE_AGENT_FILE, MAX_CODE_AGENT_BYTES, PROJECT_FILE, USER_FILE
from hardsave.logs import log
from hardsave.tuples import NamedTuple

_reported: set[str] = set()  # once a process is enough

_STOPPED_BY: Mapping[str, tuple[str, Any]] = {
    **dict.fromkeys(
        ("retain_days", "retain_per_timeline", "retain_mb", "retain_thin"),
        ("retain_automatically", False),
    ),
    **dict.fromkeys(("profile", "keep_completed", "cleanup_every"), ("cleanup_every", 0)),
}
"""Of each setting about what is kept: with what nothing goes by itself."""


class ProjectFile(NamedTuple):
    """A project's file, as it lies there now."""

    folder: Path  # whose file it is
    path: Path
    found: Found
    digest: str

    @property
    def risky(self) -> Found:
        """What counts only if the file is trusted."""
        return {
            name: said
            for name, said in self.found.items()
            if said.needs_trust and not said.is_of_user
        }


def look(root: Path) -> ProjectFile | None:
    """The file of the project at `root`; None if it has none."""
    path = root / PROJECT_FILE
    data = content(path)
    if data is None:
        return None
    return ProjectFile(root, path, read(data, str(path)), blake3(data).hexdigest())


def look_code_agent(folder: Path) -> ProjectFile | None:
    """CodeAgent's file below a folder; None if it has none, or none that says anything of ours."""
    path = folder / CODE_AGENT_FILE
    data = content(path, MAX_CODE_AGENT_BYTES)
    found = {} if data is None else read_code_agent(data, str(path))
    return ProjectFile(folder, path, found, blake3(data or b"").hexdigest()) if found else None


def honoured(file: ProjectFile, *, is_trusted: bool) -> tuple[Found, Found]:
    """What counts, and what is left out. Pure.

    Where settings about what is kept are left out, nothing goes by itself. The file may have been
    trusted until an agent added a comment to it: with the defaults in place of a longer retention,
    that comment would remove checkpoints, and have finished tasks forgotten, which run again when
    they are added again.
    """
    held_back = {name: said for name, said in file.found.items() if said.is_of_user}
    held_back |= {} if is_trusted else file.risky
    counts = {name: said for name, said in file.found.items() if name not in held_back}
    return counts | _stopped({name: said.where for name, said in held_back.items()}), held_back


def unreadable(path: Path) -> Found:
    """What counts of a file that cannot be read: what it says of what is kept is not known."""
    return _stopped(dict.fromkeys(_STOPPED_BY, os.fspath(path)))


def _stopped(where_of: Mapping[str, str]) -> Found:
    stops = ((*_STOPPED_BY[name], where) for name, where in where_of.items() if name in _STOPPED_BY)
    return {setting: Said(value, where) for setting, value, where in stops}


def counting(file: ProjectFile | None, environment: Mapping[str, str], platform: str) -> Found:
    """What counts of a project's file; what does not is reported."""
    if file is None:
        return {}
    trusted = bool(file.risky) and is_trusted(file, environment, platform)
    counts, held_back = honoured(file, is_trusted=trusted)
    for said in [each for each in held_back.values() if each.where not in _reported]:
        _reported.add(said.where)
        log(__name__).warning(
            "%s is left out: this file came with the project. %s", said.where, _cure(said, file)
        )
    return counts


def _cure(said: Said, file: ProjectFile) -> str:
    if said.is_of_user:
        return f"It counts in your own {USER_FILE} alone"
    folder = shlex.quote(os.fspath(file.folder.absolute()))
    return f"To look at it and let it count, type: hardsave trust -C {folder}"


# The record


def is_trusted(file: ProjectFile, environment: Mapping[str, str], platform: str) -> bool:
    """Whether the user has trusted the file as it is now."""
    try:
        known = json.loads(_record(file, environment, platform).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(known, dict) and known.get("hash") == file.digest


def trust(file: ProjectFile, environment: Mapping[str, str], platform: str) -> None:
    """Let all of the file count, for as long as it stays as it is."""
    record = _record(file, environment, platform)
    make_folder(record.parent)
    with tempfile.NamedTemporaryFile("w", dir=record.parent, delete=False) as draft:
        json.dump({"file": os.fspath(file.path), "hash": file.digest}, draft)
    os.replace(draft.name, record)


def distrust(file: ProjectFile, environment: Mapping[str, str], platform: str) -> bool:
    """Take that back; whether there was anything to take back."""
    record = _record(file, environment, platform)
    was_trusted = record.exists()
    record.unlink(missing_ok=True)
    return was_trusted


def _record(file: ProjectFile, environment: Mapping[str, str], platform: str) -> Path:
    place = data_directory(environment, platform) / "trusted"
    key = project_key(file.folder)
    if file.path.name != PROJECT_FILE:  # of which a project has one; each folder may have another
        key += f".{blake3(os.fsencode(file.path.resolve())).hexdigest(8)}"
    return place / f"{key}.json"
