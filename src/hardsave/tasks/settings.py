"""How tasks are run where nothing else is said: what the configuration files say about them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args

from hardsave import config
from hardsave.config.file import Found
from hardsave.defaults import CLEANUP_EVERY, KEEP_COMPLETED, MAX_ATTEMPTS
from hardsave.errors import Misuse

Recovery = Literal["auto", "manual"]


@dataclass(frozen=True, kw_only=True)
class TaskSettings:
    """How tasks are run where nothing else is said."""

    max_attempts: int = MAX_ATTEMPTS
    keep_completed: int = KEEP_COMPLETED
    """How many completed tasks are kept when old ones are forgotten."""
    cleanup_every: int = CLEANUP_EVERY
    """After so many iterations old ones are forgotten; 0: never."""
    recovery: Recovery = "auto"
    """Whether tasks of dead processes are put back to work when a runner starts, and while it runs;
    `manual`: only by `tasks.recover()`. Once a file says so, no other says otherwise."""
    enabled: bool = True
    """Of CodeAgent's section: whether its manager writes anything."""
    checkpoint_file: str = ".codeagent_checkpoint.json"
    """Of CodeAgent's section: where its manager mirrors the ledger."""


DEFAULT = TaskSettings()


def checked_recovery(given: Any) -> Recovery:
    """What a caller says of it, if that is one of the two."""
    if given not in get_args(Recovery):
        raise Misuse(f"recovery is 'auto' or 'manual', not {given!r}")
    return cast(Recovery, given)


PROFILES: Mapping[str, TaskSettings] = {
    "development": replace(DEFAULT, max_attempts=1, keep_completed=50),
    "production": replace(DEFAULT, max_attempts=3, keep_completed=200),
    "long-running": replace(DEFAULT, max_attempts=5, keep_completed=500),
}


def of_project(
    root: Path, environment: Mapping[str, str], *, code_agent: Path | None = None
) -> TaskSettings:
    """The settings in force for the project at `root`: the user's, and over them its own. Between
    them stand those of the `config/config.yaml` in the folder `code_agent`."""
    return combined(config.readable(environment, root, code_agent=code_agent))


def combined(files: Iterable[Found]) -> TaskSettings:
    """Settings of files, each more specific than those before it. A profile sets all that its own
    file does not."""
    made = DEFAULT
    for found in files:
        values = {name: said.value for name, said in found.items() if name in _NAMES}
        if "profile" in found:
            made = replace(PROFILES[found["profile"].value], recovery=made.recovery)
        if made.recovery == "manual" and values.get("recovery") == "auto":
            del values["recovery"]
        made = replace(made, **values)
    return made


_NAMES = TaskSettings.__dataclass_fields__.keys()
