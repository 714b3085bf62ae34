"""Commands that are printed, to be copied: they must work from any directory. Pure.

A user who typed `-C DIR` or `--store URL` is in another project than the command was about, which
may have a timeline of the same name: the printed command repeats these options. So it does with
`--server URL`, if that command has it; all others are about the machine of the server.
"""

import os
import re
from collections.abc import Callable, Collection

from hardsave.stores.registry import shown

PROGRAM = "hardsave"
_REMOTE = ("jobs",)  # commands that ask a server as they ask a store


def quoted(word: str) -> str:
    """A word as a shell reads it; what cannot be shown as it is, by its bytes."""
    import shlex  # most commands print none

    from hardsave import wording

    if wording.shown(word) == word:
        return shlex.quote(word)
    return f"$'{''.join(_spelt(each, wording.shown(each)) for each in word)}'"


def _spelt(character: str, shown: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if shown == character:
        return character
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(character))


class Invocation:
    """How this process was called: from where, and with which -C, --store and --server."""

    def __init__(self, commands: Collection[str] = (), start: str = "") -> None:
        self.start = start
        """The working directory then; empty if it was removed."""
        self.directory = ""
        self.store: str | None = None
        self.server: str | None = None
        self.short_name: Callable[[str], str] = str
        """From the name of a timeline to what is printed; any other text stays as it is."""
        names = "|".join(map(re.escape, sorted(commands)))
        self._named = re.compile(rf"(?<![\w/-]){PROGRAM} (?=({names})\b)" if names else r"(?!)()")

    def change_directory(self, directory: str) -> None:
        """`-C` may be given before a command and behind it: the second is seen from the first."""
        self.directory = os.path.join(self.directory, directory)

    def command(self, *typed: str) -> str:
        """A command of ours that works where this one was typed."""
        words = [self._shortened(word) for word in typed]
        for at, word in enumerate(typed[:-1]):
            if word == "--timeline":
                words[at + 1] = self.short_name(typed[at + 1])
        return " ".join([self._program(*typed[:1]), *map(quoted, words)])

    def from_directory(self, directory: str | None, command: str) -> str:
        """A command of another program, to be started in this directory."""
        if directory is None or os.path.realpath(directory) == os.path.realpath(self.start or "."):
            return command
        return f"cd {quoted(directory)} && {command}"

    def in_context(self, message: str) -> str:
        """A message whose commands have the -C, --store and --server of this one, with short
        names."""
        return self._named.sub(
            lambda found: f"{self._program(found[1])} ", self._shortened(message)
        )

    def _shortened(self, text: str) -> str:
        from hardsave.cli.render.refs import with_short_names  # --help prints no names

        return with_short_names(text, self.short_name)

    def _program(self, command: str = "") -> str:
        """What stands before a command."""
        if self.server:
            return f"{PROGRAM} --server {quoted(self.server)}" if command in _REMOTE else PROGRAM
        directory = ["-C", quoted(self.directory)] if self.directory else []
        store = ["--store", quoted(shown(self.store))] if self.store else []
        return " ".join([PROGRAM, *directory, *store])
