"""Lines of transcripts that are JSON objects, as several agent CLIs write them. Pure."""

import json
import re
from collections.abc import Container
from typing import Any

from hardsave.agents.spec import Line, Unknown
from hardsave.objects import depth


def parsed(text: str, types: Container[str]) -> Line:
    """A line of one of these types; `Unknown` if it is anything else."""
    try:
        line = depth.loads(text)
    except ValueError as error:
        raise Unknown(f"a line is not JSON: {error}") from error
    kind = line.get("type") if isinstance(line, dict) else type(line).__name__
    if not isinstance(line, dict) or not isinstance(kind, str) or kind not in types:
        raise Unknown(f"lines of type {kind!r} are not known")
    return line


def loaded(text: str | bytes) -> dict[str, Any]:
    """What stands there; nothing if that is no object."""
    try:
        told = depth.loads(text)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def dumped(line: Line) -> str:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def check_version(version: object, oldest: tuple[int, int], agent: str) -> None:
    """`Unknown` unless it is at least the oldest, and has the same first number."""
    numbers = re.match(r"(\d+)\.(\d+)\.", str(version))
    if numbers is None or not oldest <= (int(numbers[1]), int(numbers[2])) < (oldest[0] + 1,):
        raise Unknown(f"version {str(version)!r} of {agent} is not known")


def moment(line: bytes) -> str | None:
    """When it was written, if it says so."""
    found = loaded(line).get("timestamp")
    return found if isinstance(found, str) and found else None


def directory(line: Line) -> str | None:
    """Where it was said, if it says so."""
    found = line.get("cwd")
    return found if isinstance(found, str) else None


def moved(text: str, old: str, new: str) -> str:
    """A line that was said in one directory as if it had been said in another. One that was said
    there comes in our spelling also where both are the same, so that two can be compared."""
    line = loaded(text)
    if not _is_inside(line.get("cwd"), old):
        return text
    return dumped({**line, "cwd": inside(line["cwd"], old, new)})


def inside(path: Any, old: str, new: str) -> Any:
    """A path in one directory as it is in another; any other stays."""
    return new + path[len(old) :] if _is_inside(path, old) else path


def _is_inside(path: Any, directory: str) -> bool:
    return isinstance(path, str) and (path == directory or path.startswith(f"{directory}/"))
