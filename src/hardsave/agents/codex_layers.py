"""What keeps Codex from running any hook in a project, whatever its user has trusted.

Besides its user's own, Codex heeds a project's configuration, which may have come with a clone,
those of directories in it down to where it is started, and those of the machine. A file of hooks
that it cannot read it leaves out as a whole.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hardsave.agents import codex_trust
from hardsave.errors import Misuse

MACHINE = Path("/etc/codex")
_CONFIG = "config.toml"


def why_off(
    folder: Path, hooks: Path, project: Path, here: Path, *, machine: Path = MACHINE
) -> str:
    """The file that does it, and how; empty if there is none. `folder` is the user's own, and
    Codex is started `here`."""
    required = machine / "requirements.toml"
    with suppress(Misuse):  # what is no TOML Codex itself complains about
        if not codex_trust.allows_ours(_text(required)):
            return f"{required} allows no hooks of yours"
    for path in _layers(folder, project, here, machine):
        with suppress(Misuse):
            is_on = codex_trust.switched_on(_text(path))
            if is_on is False:
                return f"{path} switches hooks off"
            if is_on:  # the first that says anything counts
                break
    with suppress(Misuse):
        if refused := codex_trust.refusal(_text(hooks)):
            return f"{hooks} {refused}"
    return ""


def _layers(folder: Path, project: Path, here: Path, machine: Path) -> Iterator[Path]:
    """The configurations that count in a project, the strongest first."""
    yield machine / "managed_config.toml"
    own = folder / _CONFIG
    try:
        is_heeded = not codex_trust.is_distrusted(_text(own), str(project))
    except Misuse:
        is_heeded = True
    if is_heeded:
        yield from (place / ".codex" / _CONFIG for place in _down_from(project, here))
    yield own
    yield machine / _CONFIG


def _down_from(project: Path, here: Path) -> list[Path]:
    """The directories from where Codex is started up to the project's."""
    return [each for each in (here, *here.parents) if each.is_relative_to(project)] or [project]


def _text(path: Path) -> str:
    """What cannot be read for us says nothing: it need not be there at all."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        return ""
