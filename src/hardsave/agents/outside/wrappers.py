"""The command that is run in the end: behind `sudo`, `timeout 5`, `env A=b`, `python -m`. Pure."""

import re
from collections.abc import Sequence
from posixpath import basename


def words_of(text: str) -> frozenset[str]:
    """A set of words, as it is easily read in a table."""
    return frozenset(text.split())


_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "fish"})
_KEYWORDS = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{", "time"})
_ASSIGNMENT = r"[A-Za-z_]\w*\+?="
_PYTHON = r"python[0-9.]*"
_RUNNERS = {("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("pdm", "run"), ("hatch", "run")}
_RUNNER_VALUES = frozenset({"--with", "--extra", "--group", "--python", "-p"})
_VALUES: dict[str, frozenset[str]] = {
    # options whose next word is their value
    "sudo": words_of("-u -g -h -p -C -T -R -D --user --group --host --chdir"),
    "doas": frozenset({"-u", "-C"}),
    "env": frozenset({"-u", "--unset", "-C", "--chdir"}),
    "timeout": frozenset({"-k", "--kill-after", "-s", "--signal"}),
    "gtimeout": frozenset({"-k", "--kill-after", "-s", "--signal"}),
    "nice": frozenset({"-n", "--adjustment"}),
    "ionice": frozenset({"-c", "-n"}),
    "stdbuf": frozenset({"-i", "-o", "-e"}),
    "xargs": words_of("-n -I -P -L -d -a -E -s"),
    "exec": frozenset({"-a"}),
    "caffeinate": frozenset({"-t", "-w"}),
    "nohup": frozenset(),
    "setsid": frozenset(),
    "command": frozenset(),
    "builtin": frozenset(),
}
_ARGUMENTS = {"timeout": 1, "gtimeout": 1}  # words of its own behind the options


def unwrapped(words: Sequence[str]) -> Sequence[str]:
    """The words of the command itself, without all that stands before it."""
    while words:
        rest = _without_first(words)
        if rest is None:
            break
        words = rest
    return words


def _without_first(words: Sequence[str]) -> Sequence[str] | None:
    """What the first word runs; None if it is the command itself."""
    first, program = words[0], basename(words[0])
    if first in _KEYWORDS or ("=" in first and re.match(_ASSIGNMENT, first)):
        return words[1:]
    if program == "command" and words[1:2] in (["-v"], ["-V"]):
        return ()  # it says where a command is
    if program in _VALUES:
        return after_options(words[1:], _VALUES[program])[_ARGUMENTS.get(program, 0) :]
    if (program, *words[1:2]) in _RUNNERS:
        return after_options(words[2:], _RUNNER_VALUES)
    if words[1:2] == ["-m"] and re.fullmatch(_PYTHON, program):
        return words[2:]  # a module is called as its program: pip, twine
    return None


def after_options(words: Sequence[str], with_value: frozenset[str]) -> Sequence[str]:
    """What follows the options that words begin with."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "--":
            return words[at + 1 :]
        at += 2 if words[at] in with_value else 1
    return words[at:]


def text_to_run(program: str, given: Sequence[str], document: str) -> str | None:
    """What a shell is told to run: behind -c, or what it reads. None: it is no shell."""
    if program == "eval":
        return " ".join(given)
    if program not in _SHELLS:
        return None
    for at, word in enumerate(given):
        if not word.startswith("-"):
            return ""  # a script: what it does is not seen
        if word.endswith("c") and not word.startswith("--"):
            return next((each for each in given[at + 1 :] if not each.startswith("-")), "")
    return document
