"""Settings with our hooks in them, or without: a `SettingsFormat`, the JSON that Claude Code and
Codex share; and the command that hooks call. From text to text, but for `read`.

Hooks of others are not touched, and what is not as it is known is refused: settings are the user's
own, and a file that is not understood is not ours to rewrite. A command that calls us among other
things is its author's: it stays, and takes the place of ours.
"""

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hardsave.agents.json_edit import edited
from hardsave.errors import HardsaveError, Misuse
from hardsave.objects import depth
from hardsave.tuples import NamedTuple

PROGRAM = "from hardsave.daemon.hook import main; main()"
"""For `python -c`: `-m` loads a dozen modules more, which takes longer than what they are for."""
_CALLS_US = re.compile(
    rf"(^|\s)-c '{re.escape(PROGRAM)}'(\s|$)|(^|\s)-m hardsave\.daemon\.hook(\s|$)"
    r"|(^|[/\s\"';&|(])hardsave-hook([\s\"';&|)<>]|$)"
)
_CALLS = (["-c", PROGRAM], ["-m", "hardsave.daemon.hook"])
_AGENT = re.compile("[a-z][a-z0-9-]*")  # the argument that names one


def read(path: Path) -> str:
    """The text of a file of settings; empty if there is none."""
    with errors_name(path):
        try:
            return path.read_bytes().decode()
        except FileNotFoundError:
            return ""


@contextmanager
def errors_name(path: Path) -> Iterator[None]:
    """What is wrong with a text is said of its file."""
    try:
        yield
    except UnicodeError as error:  # bytes that are none, or an escape for half a character
        raise Misuse(f"{path} was left as it is: it is not UTF-8; mend it first") from error
    except HardsaveError as error:
        raise Misuse(f"{path} was left as it is: {error}; mend it first") from error


def with_hooks(text: str, command: str, events: Mapping[str, int]) -> str:
    """These settings with our hooks, once each: where they are already, or behind all others.

    The events come with the seconds that the agent shall wait. No hook gets another place: an agent
    may know by its place what it may run.
    """
    settings = _parsed(text)
    hooks = settings.get("hooks", {})
    own = {
        event: {"type": "command", "command": command, "timeout": seconds}
        for event, seconds in events.items()
    }
    after = {
        event: _with(groups, own[event]) if event in own else _others(groups)
        for event, groups in hooks.items()
    }
    kept = {event: groups for event, groups in after.items() if groups or not hooks[event]}
    added = {event: _with([], hook) for event, hook in own.items() if event not in hooks}
    return edited(text, {**settings, "hooks": {**kept, **added}})


def without_hooks(text: str) -> str:
    """These settings without ours; the very same text if there were none."""
    settings = _parsed(text)
    after = _without(settings)
    return edited(text, after)


def is_ours_alone(text: str) -> bool:
    """Whether nothing stands there but our hooks, set as we set them where there was no file, or
    one that said nothing."""
    settings = _parsed(text)
    return bool(settings) and not _without(settings) and text == edited("", settings)


class Place(NamedTuple):
    """Where a hook of ours stands: the event, its group, and which of the group's hooks it is."""

    event: str
    group: int
    hook: int
    matcher: str | None
    told: Mapping[str, Any]


def places(text: str) -> list[Place]:
    """Every hook that calls us."""
    hooks = _parsed(text).get("hooks", {})
    return [
        Place(event, at, number, group.get("matcher"), hook)
        for event, groups in hooks.items()
        for at, group in enumerate(groups)
        for number, hook in enumerate(_hooks_of(group))
        if _calls_us(hook)
    ]


def commands(text: str) -> list[tuple[str, str]]:
    """The events that call us, each with its command."""
    return [(place.event, str(place.told["command"])) for place in places(text)]


def switch(text: str, key: str) -> bool | None:
    """Whether these settings switch something on or off; None if they do not say."""
    found = _parsed(text).get(key)
    return found if isinstance(found, bool) else None


def _parsed(text: str) -> dict[str, Any]:
    try:
        depth.check(text)
        settings = json.loads(text, object_pairs_hook=_once) if text.strip() else {}
    except ValueError as error:
        raise Misuse(f"it is not plain JSON ({error})") from error
    if not isinstance(settings, dict) or not isinstance(settings.get("hooks", {}), dict):
        raise Misuse("it does not hold settings as they are known")
    for event, groups in settings.get("hooks", {}).items():
        if not isinstance(groups, list):
            raise Misuse(f"its hooks of {event!r} are not a list")
    return settings


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """To write a key once that stood there twice would lose something."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands there twice")
    return found


def _without(settings: dict[str, Any]) -> dict[str, Any]:
    hooks = settings.get("hooks", {})
    left = {event: _others(groups) for event, groups in hooks.items()}
    # What we have emptied goes; what was empty before stays as it was.
    left = {event: groups for event, groups in left.items() if groups or not hooks[event]}
    after = {**settings, "hooks": left}
    if not left and hooks:
        del after["hooks"]
    return after if "hooks" in settings else settings.copy()


def _with(groups: Sequence[Any], own: Mapping[str, Any]) -> list[Any]:
    at = next((at for at, group in enumerate(groups) if _has_ours(group)), None)
    if at is None and any(_calls_us(hook) for group in groups for hook in _hooks_of(group)):
        return list(groups)
    if at is None:
        return [*groups, {"matcher": "*", "hooks": [own]}]
    hooks = groups[at]["hooks"]
    first = next(at for at, hook in enumerate(hooks) if _is_ours(hook))
    rest = [hook for hook in hooks[first + 1 :] if not _is_ours(hook)]
    renewed = {**groups[at], "hooks": [*hooks[:first], own, *rest]}
    return [*groups[:at], renewed, *_others(groups[at + 1 :])]


def _others(groups: Sequence[Any]) -> list[Any]:
    return [kept for group in groups for kept in _other(group)]


def _other(group: Any) -> list[Any]:
    """What of a group is not ours, if anything."""
    if not _has_ours(group):
        return [group]
    others = [each for each in group["hooks"] if not _is_ours(each)]
    return [{**group, "hooks": others}] if others else []


def _has_ours(group: Any) -> bool:
    return any(map(_is_ours, _hooks_of(group)))


def _hooks_of(group: Any) -> list[Any]:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return hooks if isinstance(hooks, list) else []


def _calls_us(hook: Any) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and calls_us(command)


def _is_ours(hook: Any) -> bool:
    return _calls_us(hook) and is_whole(hook["command"])


# The command


def calls_us(command: str) -> bool:
    """Whether a command calls us, among other things perhaps."""
    return _CALLS_US.search(command) is not None


def is_whole(command: str) -> bool:
    """Whether a command that calls us does nothing else, and says it as we would."""
    if "\n" in command.strip():  # which ends a command, to a shell
        return False
    found = shlex.shlex(command, posix=True, punctuation_chars=True)  # `;` is a word of its own
    found.whitespace_split, found.commenters = True, ""
    try:
        program, *words = found
    except ValueError:  # a quote too many
        return False
    if words and _AGENT.fullmatch(words[-1]):
        words.pop()
    if os.path.basename(program) == "hardsave-hook":
        return not words
    return words[-2:] in _CALLS and all(re.fullmatch("-[A-Z]", word) for word in words[:-2])
