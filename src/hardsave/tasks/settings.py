"""What a project's `hardsave.yaml` says about tasks. Local policy only, and nothing is guessed.

    tasks:
      profile: production        # development, production or long-running
      max_attempts: 5            # each of these overrides the profile
      keep_completed: 1000
      cleanup_every: 10          # iterations; 0: never

The section `server.checkpoint` of CodeAgent's configuration is understood too. A key that is not
known, a value that cannot be, or a key that stands there twice is refused with its line: a
setting that is silently ignored is worse than none.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hardsave.errors import Misuse

if TYPE_CHECKING:
    import yaml

FILE = "hardsave.yaml"
MAX_BYTES = 256 * 1024


@dataclass(frozen=True, kw_only=True)
class TaskSettings:
    """How tasks are run where nothing else is said."""

    max_attempts: int = 3
    keep_completed: int = 100
    """How many completed tasks are kept when old ones are forgotten."""
    cleanup_every: int = 10
    """After so many iterations old ones are forgotten; 0: never."""
    enabled: bool = True
    """Of CodeAgent's section: whether its manager writes anything."""
    checkpoint_file: str = ".codeagent_checkpoint.json"
    """Of CodeAgent's section: where its manager mirrors the ledger."""


DEFAULT = TaskSettings()
PROFILES: Mapping[str, TaskSettings] = {
    "development": replace(DEFAULT, max_attempts=1, keep_completed=50),
    "production": replace(DEFAULT, max_attempts=3, keep_completed=200),
    "long-running": replace(DEFAULT, max_attempts=5, keep_completed=500),
}


class _Key(NamedTuple):
    """A key: the setting that it stands for, and what is wrong with a value, if anything."""

    setting: str
    objection: Callable[[Any], str]


def _number(low: int, high: int) -> Callable[[Any], str]:
    def objection(value: Any) -> str:
        is_one = isinstance(value, int) and not isinstance(value, bool)
        return "" if is_one and low <= value <= high else f"a number from {low} to {high}"

    return objection


def _one_of(*allowed: Any) -> Callable[[Any], str]:
    named = ", ".join(str(each).lower() for each in allowed)
    return lambda value: "" if value in allowed and type(value) is type(allowed[0]) else named


def _file_name(value: Any) -> str:
    is_one = isinstance(value, str) and value not in ("", ".", "..") and "/" not in value
    return "" if is_one else "the name of a file, without folders"


_ATTEMPTS = _Key("max_attempts", _number(1, 100))
_KEEP = _Key("keep_completed", _number(0, 1_000_000))
SECTIONS: Mapping[tuple[str, ...], Mapping[str, _Key]] = {
    ("tasks",): {
        "profile": _Key("profile", _one_of(*PROFILES)),
        "max_attempts": _ATTEMPTS,
        "keep_completed": _KEEP,
        "cleanup_every": _Key("cleanup_every", _number(0, 1_000_000)),
    },
    ("server", "checkpoint"): {
        "enabled": _Key("enabled", _one_of(True, False)),
        "checkpoint_file": _Key("checkpoint_file", _file_name),
        "max_task_attempts": _ATTEMPTS,
        "keep_completed_tasks": _KEEP,
    },
}


def of_project(root: Path) -> TaskSettings:
    """The settings of the project at `root`; the default if it has no file."""
    path = root / FILE
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return DEFAULT
    except OSError as error:
        raise Misuse(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise Misuse(f"{path} is longer than {MAX_BYTES // 1024} KiB")
    return read(data, str(path))


def read(data: bytes | str, name: str = FILE) -> TaskSettings:
    """The settings of a file's content. What is wrong is named with its line."""
    import yaml  # only whoever has such a file needs it

    try:
        top = yaml.compose(data, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f":{mark.line + 1}"
        raise Misuse(f"{name}{line}: this is not YAML: {error}") from error
    found: dict[str, Any] = {}
    if top is not None:
        _read_section(top, (), name, found)
    profile = PROFILES[found.pop("profile")] if "profile" in found else DEFAULT
    return replace(profile, **found)


def _read_section(
    node: "yaml.Node", path: tuple[str, ...], name: str, found: dict[str, Any]
) -> None:
    keys = SECTIONS.get(path, {})
    deeper = {each[len(path)] for each in SECTIONS if each[: len(path)] == path != each}
    seen: set[str] = set()
    for key, line, value in _pairs(node, path, name):
        where = ".".join((*path, key))
        if key in seen:
            raise Misuse(f"{name}:{line}: {where} stands here for the second time")
        seen.add(key)
        if key in deeper:
            _read_section(value, (*path, key), name, found)
        elif key in keys:
            _set(keys[key], value, f"{name}:{line}: {where}", found)
        else:
            known = ", ".join(sorted({*keys, *deeper}))
            raise Misuse(f"{name}:{line}: {where} is not a setting; there are: {known}")


def _pairs(
    node: "yaml.Node", path: tuple[str, ...], name: str
) -> "list[tuple[str, int, yaml.Node]]":
    import yaml

    if not isinstance(node, yaml.MappingNode):
        what = ".".join(path) or "the file"
        raise Misuse(f"{name}:{node.start_mark.line + 1}: {what} holds settings, one a line")
    return [(str(key.value), key.start_mark.line + 1, value) for key, value in node.value]


def _set(key: _Key, node: "yaml.Node", where: str, found: dict[str, Any]) -> None:
    import yaml

    value: Any = None
    if isinstance(node, yaml.ScalarNode):
        try:
            value = yaml.constructor.SafeConstructor().construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            raise Misuse(f"{where}: {error}") from error
    wanted = key.objection(value)
    if wanted:
        raise Misuse(f"{where} is {wanted}, not {getattr(node, 'value', None)!r}")
    if key.setting in found:
        raise Misuse(f"{where} says again what another key has said")
    found[key.setting] = value
