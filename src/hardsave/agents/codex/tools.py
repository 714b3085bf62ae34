"""What the tools of Codex are to do: a patch names its files in its text. Pure."""

from typing import Any

from hardsave.agents import tools
from hardsave.agents.tools import Work

_PATCH = "*** Begin Patch"
_PATCHED = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")
_HOLDERS = ("command", "cmd", "input")  # of the text of a patch, where there are arguments


def work(given: Any) -> Work:
    """Some models hand a patch over as it is, some as an argument, some as a command's word."""
    named = tools.arguments(given)
    texts = [tools.words(named.get(key)) for key in _HOLDERS] if named else [tools.words(given)]
    patched = [path for text in texts for path in _patched(text)]
    return tools.edits(patched) if patched else tools.by_keys(named)


def _patched(text: str) -> list[str]:
    """The files that a patch names."""
    lines = text.splitlines() if _PATCH in text else []
    return [
        line.removeprefix(begin) for line in lines for begin in _PATCHED if line.startswith(begin)
    ]
