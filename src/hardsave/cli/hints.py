"""What is printed to be typed: it has to do what it says wherever whoever copies it stands. Pure.

Somebody who has said `-C DIR` or `--store URL` is elsewhere than what the command was about: the
next one without them would be about another project, which may have a timeline of the same name.
"""

import os
import re
from collections.abc import Collection

PROGRAM = "hardsave"


def quoted(word: str) -> str:
    """A word as a shell reads it; what cannot be shown as it is, by its bytes."""
    import shlex  # most commands print none

    from hardsave.cli.render import wording

    if wording.shown(word) == word:
        return shlex.quote(word)
    return f"$'{''.join(_spelt(each, wording.shown(each)) for each in word)}'"


def _spelt(character: str, shown: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if shown == character:
        return character
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(character))


class Place:
    """Where a command was told to be, as it was typed; and which words are commands of ours."""

    def __init__(self, commands: Collection[str] = (), start: str = "") -> None:
        self.start = start
        """Where it was typed; empty if that is not there any more."""
        self.directory = ""
        self.store: str | None = None
        names = "|".join(map(re.escape, sorted(commands)))
        self._named = re.compile(rf"(?<![\w/-]){PROGRAM} (?=(?:{names})\b)" if names else r"(?!)")

    def go(self, directory: str) -> None:
        """`-C` may be given before a command and behind it: the second is seen from the first."""
        self.directory = os.path.join(self.directory, directory)

    def command(self, *typed: str) -> str:
        """A command of ours, to be typed there where this one was."""
        return " ".join([self._program, *map(quoted, typed)])

    def there(self, directory: str | None, command: str) -> str:
        """A command of another program, which looks at where it is started."""
        if directory is None or os.path.realpath(directory) == os.path.realpath(self.start or "."):
            return command
        return f"cd {quoted(directory)} && {command}"

    def aimed(self, message: str) -> str:
        """A message with all the commands that it names led to where this one was."""
        return self._named.sub(lambda _: f"{self._program} ", message)

    @property
    def _program(self) -> str:
        directory = ["-C", quoted(self.directory)] if self.directory else []
        store = ["--store", quoted(self.store)] if self.store else []
        return " ".join([PROGRAM, *directory, *store])
