"""What a user reads of an error that ended an attempt. Pure.

An error of ours is a sentence that names its cause and the next step. Any other is a traceback of
the user's own code: an agent's tool is called through more than a hundred frames of this package
and of libraries, and the two that matter would not be found among them.
"""

import os
import traceback
from collections.abc import Iterable
from typing import Any

from hardsave.errors import HardsaveError
from hardsave.wording import count

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_STANDARD_LIBRARY = os.path.dirname(os.path.abspath(os.__file__))
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def brief(error: BaseException) -> str:
    """The sentence of an error of ours; the traceback of any other, and of what it was raised
    from, without the frames of libraries. Neither has the values of variables."""
    if isinstance(error, HardsaveError):
        return str(error)
    found = traceback.TracebackException.from_exception(error)
    _shorten(found, error)
    return "".join(found.format()).rstrip()


def full(error: BaseException) -> str:
    """The traceback with every frame."""
    return "".join(traceback.format_exception(error)).rstrip()


def is_library(path: str) -> bool:
    """Whether a frame of this file is none of the user's own code."""
    inside = (_PACKAGE + os.sep, _STANDARD_LIBRARY + os.sep, "<frozen ")
    return path.startswith(inside) or any(part in path for part in _INSTALLED)


def _shorten(whole: traceback.TracebackException, raised: BaseException) -> None:
    """The traceback of an error, and of all that it was raised from. Such a chain may be longer
    than calls can be deep; where it leads back to its beginning, Python has cut it."""
    left: list[tuple[traceback.TracebackException | None, BaseException | None]]
    left = [(whole, raised)]
    while left:
        found, error = left.pop()
        if found is None or error is None:
            continue
        if isinstance(error, HardsaveError):
            found.stack = None  # type: ignore[assignment] # `format` leaves out the heading, too
            found.__cause__ = found.__context__ = None
            continue
        found.stack = _OwnFrames(found.stack)
        left += [(found.__cause__, error.__cause__), (found.__context__, error.__context__)]
        if isinstance(error, BaseExceptionGroup):
            left += zip(found.exceptions or (), error.exceptions, strict=False)


class _OwnFrames(traceback.StackSummary):
    """The frames of the user's own code and the innermost of all, with the number of the rest."""

    def __init__(self, frames: Iterable[traceback.FrameSummary]) -> None:
        every = list(frames)
        own = [each for each in every[:-1] if not is_library(each.filename)]
        super().__init__([*own, *every[-1:]])
        self._left_out = len(every) - len(self)

    def format(self, **options: Any) -> list[str]:
        lines = super().format(**options)
        if self._left_out:
            lines.insert(0, f"  ({count(self._left_out, 'frame')} of libraries left out)\n")
        return lines
