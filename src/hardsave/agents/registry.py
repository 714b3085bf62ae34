"""The agent CLIs that are known, by name or by what is typed. Each is loaded when it is asked for.

A hook is a process that an agent waits for: it loads the one agent that has called it. Agents of
other packages are looked for only where none of ours is meant, and only in packages whose names
begin with `hardsave-`: to read what all packages say of themselves takes longer than a save.
"""

import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from hardsave.agents.spec import PROJECT_SUFFIX, AgentSpec
from hardsave.errors import Misuse
from hardsave.logs import log

GROUP = "hardsave.agents"
"""Of entry points."""
_PACKAGES = "hardsave-"
_SITES = ("site-packages", "dist-packages")
_NAME = "[a-z][a-z0-9]*(-[a-z0-9]+)*"  # hooks need not compile it


def _claude_code() -> AgentSpec:
    from hardsave.agents.claude_code.spec import CLAUDE_CODE

    return CLAUDE_CODE


def _codex() -> AgentSpec:
    from hardsave.agents.codex.spec import CODEX

    return CODEX


def _qwen_code() -> AgentSpec:
    from hardsave.agents.qwen_code.spec import QWEN_CODE

    return QWEN_CODE


_OURS: dict[str, Callable[[], AgentSpec]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "qwen-code": _qwen_code,
}
_registered: dict[str, AgentSpec] = {}


def register(spec: AgentSpec) -> None:
    """Make an agent CLI known to this process."""
    check(spec)
    _registered[spec.name] = spec


def check(spec: AgentSpec) -> None:
    """`Misuse` if a spec breaks what others rely on."""
    if missing := [name for name in AgentSpec.__annotations__ if not hasattr(spec, name)]:
        raise Misuse(f"{type(spec).__name__} says nothing of {', '.join(missing)}; see AgentSpec")
    if not re.fullmatch(_NAME, spec.name):
        raise Misuse(f"an agent CLI is named in small letters, digits and '-', not {spec.name!r}")
    if spec.name in _OURS:
        raise Misuse(f"an agent CLI {spec.name!r} comes with Hardsave; choose another name")
    variable = spec.project_variable
    if variable is not None and not variable.endswith(PROJECT_SUFFIX):
        raise Misuse(f"{spec.name}: project_variable ends with {PROJECT_SUFFIX}, not {variable!r}")


def named(name: object) -> AgentSpec | None:
    """The agent CLI by this name; None if none is known."""
    if not isinstance(name, str):
        return None
    if name in _OURS:
        return _OURS[name]()
    return _registered.get(name) or _installed().get(name)


def typed(program: str) -> AgentSpec | None:
    """The agent CLI that is started by typing this."""
    wanted = Path(program).name
    return next((spec for spec in every() if spec.program == wanted), None)


def every() -> tuple[AgentSpec, ...]:
    """All that are known: ours, then those of other packages."""
    others = _installed() | _registered
    return (*(load() for load in _OURS.values()), *others.values())


def of_hook(words: Sequence[str]) -> AgentSpec:
    """The agent CLI that the first argument of a hook names. Without one it is the first of ours:
    a save with what all of them are told is better than none."""
    found = named(words[0]) if words else None
    return next(iter(_OURS.values()))() if found is None else found


@cache
def _installed() -> dict[str, AgentSpec]:
    """What other packages offer. They are looked for where packages are installed, and not in a
    workspace that happens to be on the path."""
    folders = [each for each in sys.path if os.path.basename(each) in _SITES and _has_any(each)]
    if not folders:
        return {}
    from importlib.metadata import distributions  # takes longer to load than all of ours

    entries = [
        (found.name, entry)
        for found in distributions(path=folders)
        for entry in found.entry_points.select(group=GROUP)
        if found.name.lower().replace("_", "-").startswith(_PACKAGES)
    ]
    loaded = (_loaded(package, entry.load) for package, entry in entries)
    return {spec.name: spec for spec in loaded if spec is not None}


def _has_any(folder: str) -> bool:
    begins = _PACKAGES.replace("-", "_")  # as the folders of installed packages are named
    with suppress(OSError):
        names = os.listdir(folder)
        return any(each.startswith(begins) and each.endswith(".dist-info") for each in names)
    return False


def _loaded(package: str, load: Callable[[], object]) -> AgentSpec | None:
    """The spec of a package. One that fails must not keep other agents from saving."""
    try:
        spec = load()
        if not isinstance(spec, AgentSpec):
            raise Misuse(f"{spec!r} is no AgentSpec")
        check(spec)
    except Exception as error:  # noqa: BLE001 # the package's own code
        log(__name__).warning("the agent CLI of %s cannot be loaded: %r", package, error)
        return None
    return spec
