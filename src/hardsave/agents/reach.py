"""Whether what hooks call can load us: a Python may be there, and hardsave not in it any more.

That can only be found out by asking it. So this is for the settings of a user, whose agent calls it
at every step anyway; never for those of a project, which may have come from a stranger.
"""

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from hardsave.agents import settings

_LOADS = "import hardsave.daemon.hook"
_SECONDS = 10


def without_us(path: Path) -> list[str]:
    """The Pythons that hooks of ours in a user's settings call, and that do not find us."""
    calls = {tuple(_python(str(each.told["command"]))) for each in settings.places(_text(path))}
    strangers = sorted(call for call in calls if call and call[0] != sys.executable)
    return [call[0] for call in strangers if not _finds_us(call)]


def _python(command: str) -> Sequence[str]:
    """A Python and its options, as a command has them; nothing if it calls something else, or more
    than us."""
    if not settings.is_whole(command):
        return ()
    program, *words = shlex.split(command)
    flags = [word for word in words if word.startswith("-") and word not in ("-c", "-m")]
    return (program, *flags) if "-c" in words or "-m" in words else ()


def _finds_us(call: Sequence[str]) -> bool:
    """One that does not answer in time is not said to be wrong."""
    try:
        done = subprocess.run(
            [*call, "-c", _LOADS],
            cwd="/",  # nothing of a workspace shall be found there
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    except OSError:
        return False
    return done.returncode == 0


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
