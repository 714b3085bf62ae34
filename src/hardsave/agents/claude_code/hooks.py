"""What keeps Claude Code from running any hook in a project, installed or not.

Settings of a project count before its user's own, and those of the machine, which its administrator
writes, before all others. Of several files of these the last counts.
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hardsave.agents import settings
from hardsave.errors import HardsaveError

_SYSTEM: str = sys.platform  # a plain string: what is for other systems is checked, too
MACHINE = Path(
    "/Library/Application Support/ClaudeCode" if _SYSTEM == "darwin" else "/etc/claude-code"
)


def why_off(folder: Path, project: Path, machine: Path = MACHINE) -> str:
    """The file that does it, and how; empty if there is none. `folder` is the user's own."""
    further = sorted(machine.glob("managed-settings.d/*.json"), reverse=True)
    managed = [*further, machine / "managed-settings.json"]
    theirs = project / ".claude"
    own = [theirs / "settings.local.json", theirs / "settings.json", folder / "settings.json"]
    if path := _says("allowManagedHooksOnly", managed):
        return f"{path} allows no hooks of yours"
    if path := _says("disableAllHooks", [*managed, *own]):
        return f"{path} has disableAllHooks"
    return ""


def _says(key: str, paths: Sequence[Path]) -> Path | None:
    """The first file that says anything of a switch, if that is that it is on."""
    for path in paths:
        with suppress(OSError, UnicodeError, HardsaveError):  # Claude Code leaves such a file out
            found = settings.switch(path.read_text(encoding="utf-8"), key)
            if found is not None:
                return path if found else None
    return None
