"""What a tool call did beyond the files here, as far as its input shows it. Pure, never raises.

reached("Bash", {"command": "make && git push origin main"})    ("git push",)

A rewind brings files and conversation back; a push, a request or an installation stays done. So
each checkpoint keeps these short phrases, and a preview counts them. Only what is recognised is
named: a script may do anything. Reading (`git fetch`, `curl URL`, `kubectl get`) is no effect.

shell       a shell's text as the commands in it
wrappers    the command behind `sudo`, `timeout 5`, `env A=b`
programs    which commands have effects: a table of programs and their verbs
requests    programs that say it in other ways: curl, ssh, psql, aws

Patterns are compiled where they are first used: a hook that works alone pays for all that it loads.
"""

import re
from collections.abc import Iterator, Sequence
from posixpath import basename

from hardsave.agents import tools
from hardsave.agents.outside import programs, shell, wrappers

MOST = 5  # phrases of one call
LONGEST = 60  # characters of one
_MOST_WORDS = 1_000  # of a list that is looked at
_DEEPEST = 4  # shells that are told to run a text: bash -c "sh -c '…'"


def reached(tool_name: str, tool_input: object) -> tuple[str, ...]:
    """Short phrases for the effects of a call outside, in its order, each once."""
    found = dict.fromkeys(_of_call(tool_name, tool_input))
    return tuple(each[:LONGEST] for each in found)[:MOST]


def _of_call(tool_name: object, tool_input: object) -> Iterator[str]:
    if isinstance(tool_name, str) and tool_name.startswith(_MCP):
        yield from _of_server(tool_name)
        return
    given = tools.arguments(tool_input)
    for key in ("command", "cmd"):
        command = given.get(key)
        if isinstance(command, str) and not command.lstrip().startswith("*** Begin Patch"):
            yield from _of_text(command, _DEEPEST)
        elif isinstance(command, Sequence) and not isinstance(command, str | bytes):
            words = [each for each in command[:_MOST_WORDS] if isinstance(each, str)]
            yield from _of_words(words, "", _DEEPEST)


def _of_text(text: str, depth: int) -> Iterator[str]:
    for command in shell.commands(text):
        yield from _of_words(command.words, command.document, depth)


def _of_words(words: Sequence[str], document: str, depth: int) -> Iterator[str]:
    words = wrappers.unwrapped(words)
    if not words or depth == 0:
        return
    program, given = basename(words[0]), words[1:]
    text = wrappers.text_to_run(program, given, document)
    if text is not None:
        yield from _of_text(text, depth - 1)
    elif phrase := programs.phrase(program, given):
        yield phrase


# Tools of MCP servers: mcp__SERVER__TOOL

_MCP = "mcp__"
_LOCAL = frozenset({"filesystem", "ide", "sequential-thinking", "sequentialthinking", "hardsave"})
_READS = wrappers.words_of(
    "get list read search find fetch describe show view query lookup look check count browse"
    " inspect resolve think preview validate explain ask analyze analyse summarize status"
    " snapshot screenshot navigate wait diff compare download"
)
_WORD = r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+"


def _of_server(tool_name: str) -> Iterator[str]:
    """What it did is known to the server alone: all but what is named as reading counts. Servers
    about the files here and those without effects do not."""
    server, _, tool = tool_name.removeprefix(_MCP).partition("__")
    words = [each.lower() for each in re.findall(_WORD, tool)]
    own = {each.lower() for each in re.findall(_WORD, server)}
    verb = next((each for each in words if each not in own), "")
    if tool and server.lower() not in _LOCAL and verb not in _READS:
        yield f"{server} {tool}"
