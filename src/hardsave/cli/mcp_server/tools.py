"""The tools: what a model may pass, and the command that each becomes. Pure.

What a model passes is checked here, and never becomes an option: an option has its value behind a
`=`, and what stands alone stands behind `--`. The descriptions are what the model knows of a tool.
"""

from collections.abc import Mapping
from typing import Any, Literal

from hardsave.errors import Misuse
from hardsave.tuples import NamedTuple

_LONGEST_NAME = 300  # characters of a name, a ref or a time
_LONGEST_PATH = 1_000
_LONGEST_TEXT = 10_000
_MOST_PATHS = 100  # with that, all of them fit into one command line

_REF = (
    "A checkpoint: its name ('before-refactor'), 'TIMELINE:N', ':N' or an id as in log; '@' is the "
    "last save of this session, '@~2' two before it."
)


class Parameter(NamedTuple):
    """One thing that a model may pass. `option` is what it becomes; empty: it stands alone."""

    name: str
    kind: Literal["text", "texts", "number", "flag"]
    about: str
    option: str = ""
    is_needed: bool = False
    most: int = _LONGEST_NAME  # characters of a text, or the highest number
    otherwise: str = ""  # what a flag becomes that is not set

    def schema(self) -> dict[str, Any]:
        """As JSON Schema says it."""
        text = {"type": "string", "minLength": 1, "maxLength": self.most}
        found: dict[str, Any] = {
            "text": text,
            "texts": {"type": "array", "items": text, "maxItems": _MOST_PATHS},
            "number": {"type": "integer", "minimum": 1, "maximum": self.most},
            "flag": {"type": "boolean", "default": False},
        }[self.kind]
        return {**found, "description": self.about}

    def words(self, value: Any) -> list[str]:
        """What it becomes in a command; `Misuse` if it is of another type or size."""
        if self.kind == "flag":
            self._check(isinstance(value, bool), "true or false")
            word = self.option if value else self.otherwise
            return [word] if word else []
        if self.kind == "number":
            is_number = isinstance(value, int) and not isinstance(value, bool)
            is_fine = is_number and 1 <= value <= self.most
            self._check(is_fine, f"a whole number from 1 to {self.most}")
            return [f"{self.option}={value}"]
        texts = value if self.kind == "texts" else [value]
        is_list = isinstance(texts, list) and len(texts) <= _MOST_PATHS
        self._check(is_list, f"a list of at most {_MOST_PATHS} texts")
        wanted = f"text of 1 to {self.most} characters, without NUL"
        self._check(all(_is_text(each, self.most) for each in texts), wanted)
        return [f"{self.option}={each}" if self.option else each for each in texts]

    def _check(self, is_fine: bool, wanted: str) -> None:
        if not is_fine:
            raise Misuse(f"{self.name!r} must be {wanted}")


def _is_text(value: object, most: int) -> bool:
    """Whether it can be a word of a command."""
    if not isinstance(value, str) or not 0 < len(value) <= most or "\0" in value:
        return False
    return value == value.encode(errors="replace").decode()


class Tool(NamedTuple):
    """A tool: the command that it runs, with words that a model cannot change."""

    name: str
    title: str
    about: str
    command: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    writes: bool = False
    is_destructive: bool = False
    is_of_timeline: bool = True  # whether the timeline that the server was told counts
    hint: str = ""  # for a model that wants more than there is

    def schema(self) -> dict[str, Any]:
        """What a model may pass, as JSON Schema says it."""
        return {
            "type": "object",
            "properties": {each.name: each.schema() for each in self.parameters},
            "required": [each.name for each in self.parameters if each.is_needed],
            "additionalProperties": False,
        }

    def words(self, given: Mapping[str, Any], common: "Common") -> list[str]:
        """The command, without the program. `Misuse` says what is wrong with what was given: an
        argument that is not known may be meant to make a rewind smaller."""
        known = {each.name for each in self.parameters}
        for name in given:
            if name not in known:
                takes = ", ".join(each.name for each in self.parameters) or "no argument"
                wrong = f"{self.name} takes no {name[:_LONGEST_NAME]!r}; it takes {takes}"
                raise Misuse(f"{wrong}{self.hint}")
        options: list[str] = []
        alone: list[str] = []
        for each in self.parameters:
            value = given.get(each.name)
            if value is None and each.is_needed:
                raise Misuse(f"{self.name} needs {each.name!r}")
            if value is not None or each.otherwise:
                (options if each.option else alone).extend(
                    each.words(False if value is None else value)
                )
        return [*self.command, "--json", *self._told(common), *options, "--", *alone]

    def _told(self, common: "Common") -> list[str]:
        timeline = common.timeline if self.is_of_timeline else None
        told = {"--store": common.store, "--timeline": timeline}
        return [f"{option}={value}" for option, value in told.items() if value is not None]


class Common(NamedTuple):
    """What the server was told when it was started, or by the address of a request."""

    store: str | None = None
    timeline: str | None = None
    allow_rewind: bool = False
    how_to_tell: str = "with 'hardsave mcp --timeline T'"
    """Where a person names the timeline: a tool takes none."""


_TIMELINE = Parameter("timeline", "text", "Only this timeline (a session), by name.", "--timeline")

SAVE = Tool(
    "save",
    "Save a checkpoint",
    "Save all files of the project as a named checkpoint. Call this BEFORE a risky step: a large "
    "refactoring, a migration, deleting or moving files, a command whose effect you cannot "
    "foresee; and when tests are green. Takes well under a second, changes no file, and touches "
    "no git history. Returns the ref to go back to.",
    ("save",),
    (
        Parameter("name", "text", "A short name to find it by, as 'before-refactor'."),
        Parameter(
            "message", "text", "What is about to be done, or why.", "--message", most=_LONGEST_TEXT
        ),
    ),
    writes=True,
)
LOG = Tool(
    "log",
    "List checkpoints",
    "List what was saved in this project, newest first, in all sessions: each step with its ref, "
    "its files, and its name if it has one. Use it to find a moment to compare with or go back to.",
    ("log", "--steps"),
    (
        Parameter("limit", "number", "How many steps; 30 if it is left out.", "--limit", most=200),
        Parameter("name", "text", "Only checkpoints of this name.", "--name"),
        Parameter("since", "text", "Not before: '2h', '14:00', '2026-01-31T14:00'.", "--since"),
        Parameter("until", "text", "Not after: as since.", "--until"),
        _TIMELINE,
    ),
    is_of_timeline=False,
)
SHOW = Tool(
    "show",
    "Show one checkpoint",
    "Show one checkpoint: when and why it was saved, which files changed in it, and the last "
    "messages of its conversation.",
    ("show",),
    (
        Parameter("ref", "text", _REF, is_needed=True),
        Parameter(
            "messages", "number", "How many messages; 10 if left out.", "--messages", most=100
        ),
    ),
)
DIFF = Tool(
    "diff",
    "Compare files",
    "Show which files changed, as patches: between two checkpoints, or between a checkpoint and "
    "the files as they are now. Without arguments: what changed since the last save.",
    ("diff", "--files"),
    (
        Parameter("old", "text", f"{_REF} 'now' stands for the files as they are."),
        Parameter("new", "text", "The same; the last save if it is left out."),
        Parameter(
            "paths", "texts", "Only these files or directories.", "--path", most=_LONGEST_PATH
        ),
        Parameter("stat", "flag", "Only which files and how many lines.", "--stat"),
    ),
)
SEARCH = Tool(
    "search",
    "Search the past",
    "Find words in what was said and saved in this project, and in names of files that changed. "
    'All words must be there; "a phrase" stands in quotes; begin* means words that begin so.',
    ("search",),
    (
        Parameter("text", "text", "The words.", is_needed=True, most=_LONGEST_NAME),
        Parameter("limit", "number", "How many hits; 20 if left out.", "--limit", most=50),
        Parameter("after", "text", "Go on behind a page: the 'next' of its result.", "--after"),
        _TIMELINE,
    ),
    is_of_timeline=False,
)
_WHAT_A_REWIND_DOES = (
    "Bring files back as a checkpoint has them. The conversation goes on: only files change, and "
    "only those that this session has changed, not the work of other agents; 'kept' in the result "
    "lists what stays, and why. "
)
_ONLY_PREVIEW = (
    "this server may do no more: the user can type 'hardsave rewind REF --files --mine', or start "
    "the server with --allow-rewind"
)
_REWIND = (
    Parameter("ref", "text", _REF, is_needed=True),
    Parameter("paths", "texts", "Only these files or directories.", "--path", most=_LONGEST_PATH),
)
_APPLY = Parameter(
    "apply", "flag", "Do it. Look at the preview first.", "--yes", otherwise="--dry-run"
)
PREVIEW = Tool(
    "rewind",
    "Preview going back",
    _WHAT_A_REWIND_DOES + f"This is a preview that changes nothing; {_ONLY_PREVIEW}.",
    ("rewind", "--files", "--mine", "--this-timeline", "--dry-run"),
    _REWIND,
    hint=f"; {_ONLY_PREVIEW}",
)
REWIND = Tool(
    "rewind",
    "Go back to a checkpoint",
    _WHAT_A_REWIND_DOES + "Without apply it is a preview that changes nothing; look "
    "at that first. What is there now is saved before, and undo brings it back.",
    ("rewind", "--files", "--mine", "--this-timeline"),
    (*_REWIND, _APPLY),
    writes=True,
    is_destructive=True,
)
UNDO = Tool(
    "undo",
    "Take back a rewind",
    "Take back the last rewind of this session: the files are again as they were before it. What "
    "is there now is saved first. What other sessions did is left alone.",
    ("undo", "--this-timeline"),
    (),
    writes=True,
    is_destructive=True,
)


def offered(common: Common) -> tuple[Tool, ...]:
    """The tools of a server: one that may not rewind previews only, and has nothing to undo."""
    back = (REWIND, UNDO) if common.allow_rewind else (PREVIEW,)
    return (SAVE, LOG, SHOW, DIFF, SEARCH, *back)
