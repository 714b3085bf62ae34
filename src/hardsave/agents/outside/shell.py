"""A shell's text as the commands in it: quotes taken off, substitutions found, comments and here
documents apart. Pure, and never raises: a text that no shell accepts gives what can be read of it.

Nothing is expanded: `$HOME` stays as it is, and a substitution leaves an empty place in its word.
"""

import re
from collections.abc import Iterator

LONGEST = 20_000  # characters that are looked at; what follows is the content of a file
_PLAIN = re.compile(r"[^\s'\"\\$`#;&|()<>]+")
_QUOTED = r'[^"\\$`]+'
_HERE = r"<<(?P<dash>-?)[ \t]*(?P<word>'[^'\n]*'|\"[^\"\n]*\"|\\?[^\s;&|()<>]+)"
_NESTS = {"(": 1, ")": -1}
_REDIRECTION = r"<<<|&>>?|[<>]+[&|]?"


class Command:
    """One simple command: its words, and what a here document gives it to read."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.document = ""


class _Level:
    """The text itself, or a substitution in it: what has been read of its present command."""

    def __init__(self, ends_with: str = "") -> None:
        self.ends_with = ends_with  # ")" or "`"; nothing: the text's end
        self.is_quoted = False  # inside of double quotes
        self.command = Command()
        self.word: str | None = None  # None: between words
        self.is_redirected = False  # the next word names a file, and is no argument
        self.subshells = 0  # parentheses that are open here


def commands(text: str) -> list[Command]:
    """The commands of a text, also those in its substitutions, as they end."""
    return [each for each in _Reader(text[:LONGEST]).read() if each.words]


class _Reader:
    """Reads a text from left to right. Substitutions are levels of a list, not calls: any number
    of them may lie in each other."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._levels = [_Level()]
        self._awaited: list[tuple[Command, str, bool]] = []  # here documents of this line

    @property
    def _level(self) -> _Level:
        return self._levels[-1]

    def read(self) -> Iterator[Command]:
        while self._at < len(self._text):
            character = self._text[self._at]
            if self._opens():
                continue
            if self._closes(character):
                yield self._closed()
            elif self._level.is_quoted:
                self._inside_quotes(character)
            elif character in "\n;&|()":
                yield from self._separated(character)
            else:
                self._outside_quotes(character)
        while len(self._levels) > 1:
            yield self._closed()
        yield self._ended()

    def _opens(self) -> bool:
        """Begin a substitution, if one is here."""
        is_backtick = self._text[self._at] == "`" and self._level.ends_with != "`"
        if not is_backtick and not self._text.startswith("$(", self._at):
            return False
        self._add("")
        self._at += 1 if is_backtick else 2
        self._levels.append(_Level(ends_with="`" if is_backtick else ")"))
        return True

    def _closes(self, character: str) -> bool:
        """Whether the present substitution ends here."""
        level = self._level
        return character == level.ends_with and not level.is_quoted and not level.subshells

    def _closed(self) -> Command:
        done = self._ended()
        self._levels.pop()
        self._at += 1
        return done

    def _inside_quotes(self, character: str) -> None:
        if character == '"':
            self._level.is_quoted = False
            self._at += 1
        elif character == "\\":
            self._add(self._text[self._at + 1 : self._at + 2])
            self._at += 2
        else:
            self._take(re.compile(_QUOTED))

    def _outside_quotes(self, character: str) -> None:
        if character.isspace():
            self._end_word()
            self._at += 1
        elif character == "'":
            end = self._text.find("'", self._at + 1)
            end = len(self._text) if end < 0 else end
            self._add(self._text[self._at + 1 : end])
            self._at = end + 1
        elif character == '"':
            self._add("")
            self._level.is_quoted = True
            self._at += 1
        elif character == "\\":
            follows = self._text[self._at + 1 : self._at + 2]
            if follows != "\n":  # else the line goes on below
                self._add(follows)
            self._at += 2
        elif character == "#" and self._level.word is None:
            end = self._text.find("\n", self._at)
            self._at = len(self._text) if end < 0 else end
        elif character in "<>":
            self._redirect()
        else:
            self._take(_PLAIN)

    def _separated(self, character: str) -> Iterator[Command]:
        if self._text.startswith("&>", self._at):
            self._redirect()
            return
        yield self._ended()
        self._at += 1
        self._level.subshells = max(0, self._level.subshells + _NESTS.get(character, 0))
        if character == "\n":
            self._read_documents()

    def _redirect(self) -> None:
        level = self._level
        if level.word is not None and level.word.isdigit():
            level.word = None  # 2>: the number of a descriptor
        self._end_word()
        here = re.compile(_HERE).match(self._text, self._at)
        if here is not None and not self._text.startswith("<<<", self._at):
            word = here["word"].lstrip("\\").strip("'\"")
            self._awaited.append((level.command, word, here["dash"] == "-"))
            self._at = here.end()
            return
        found = re.compile(_REDIRECTION).match(self._text, self._at)
        assert found is not None  # the text is at < or > or &>
        self._at = found.end()
        level.is_redirected = not self._text.startswith("(", self._at)  # <(…) holds a command

    def _read_documents(self) -> None:
        for command, word, may_indent in self._awaited:
            lines = []
            while self._at < len(self._text):
                end = self._text.find("\n", self._at)
                end = len(self._text) if end < 0 else end
                line = self._text[self._at : end]
                self._at = end + 1
                if (line.lstrip("\t") if may_indent else line) == word:
                    break
                lines.append(line)
            command.document = "\n".join(lines)
        self._awaited.clear()

    def _take(self, pattern: re.Pattern[str]) -> None:
        """Add what the pattern finds here, or else one character."""
        found = pattern.match(self._text, self._at)
        taken = self._text[self._at] if found is None else found[0]
        self._add(taken)
        self._at += len(taken)

    def _add(self, text: str) -> None:
        self._level.word = (self._level.word or "") + text

    def _end_word(self) -> None:
        level = self._level
        if level.word is None:
            return
        if not level.is_redirected:
            level.command.words.append(level.word)
        level.word, level.is_redirected = None, False

    def _ended(self) -> Command:
        self._end_word()
        level = self._level
        done, level.command, level.is_redirected = level.command, Command(), False
        return done
