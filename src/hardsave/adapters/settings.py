"""An agent's settings with our hooks in them, or without. Pure: from text to text.

Other people's hooks are not touched, and whatever is not as we know it is refused: settings are
the user's own, and a file that we do not understand is not ours to rewrite.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hardsave.errors import Misuse
from hardsave.objects import depth

PROGRAM = "from hardsave.adapters.entry import main; main()"
"""For `python -c`: `-m` loads a dozen modules more, which takes longer than what they are for."""
_OURS = re.compile(
    rf"(^|\s)-c '{re.escape(PROGRAM)}'(\s|$)|(^|\s)-m hardsave\.adapters\.(entry|hook)(\s|$)"
    r"|(^|[/\s\"'])hardsave-hook([\s\"']|$)"
)


def with_hooks(text: str, command: str, events: Mapping[str, int]) -> str:
    """These settings with our hooks, once each: where they are already, or behind everybody else's.

    The events come with the seconds that the agent shall wait. Nobody's hook gets another place:
    Codex knows by its place what it may run.
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
    return _as_before(text, {**settings, "hooks": {**kept, **added}})


def without_hooks(text: str) -> str:
    """These settings without ours; the very same text if there were none."""
    settings = _parsed(text)
    after = _without(settings)
    return text if after == settings else _as_before(text, after)


class Place(NamedTuple):
    """Where a hook of ours stands: the event, its group, and which of the group's hooks it is."""

    event: str
    group: int
    hook: int
    matcher: str | None
    told: Mapping[str, Any]


def places(text: str) -> list[Place]:
    """Every hook of ours."""
    hooks = _parsed(text).get("hooks", {})
    return [
        Place(event, at, number, group.get("matcher"), hook)
        for event, groups in hooks.items()
        for at, group in enumerate(groups)
        if _has_ours(group)
        for number, hook in enumerate(group["hooks"])
        if _is_ours(hook)
    ]


def installed(text: str) -> list[str]:
    """The events that call us."""
    return list(dict.fromkeys(place.event for place in places(text)))


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
    if at is None:
        return [*groups, {"matcher": "*", "hooks": [own]}]
    hooks = groups[at]["hooks"]
    first = next(at for at, hook in enumerate(hooks) if _is_ours(hook))
    rest = [hook for hook in hooks[first + 1 :] if not _is_ours(hook)]
    renewed = {**groups[at], "hooks": [*hooks[:first], own, *rest]}
    return [*groups[:at], renewed, *_others(groups[at + 1 :])]


def _others(groups: Sequence[Any]) -> list[Any]:
    return [kept for group in groups if (kept := _other(group)) is not None]


def _other(group: Any) -> Any:
    """What of a group is not ours; None if nothing."""
    if not _has_ours(group):
        return group
    others = [each for each in group["hooks"] if not _is_ours(each)]
    return {**group, "hooks": others} if others else None


def _has_ours(group: Any) -> bool:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return isinstance(hooks, list) and any(map(_is_ours, hooks))


def _is_ours(hook: Any) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and _OURS.search(command) is not None


def _as_before(text: str, settings: dict[str, Any]) -> str:
    """Set as the text was: its indentation, its last newline."""
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    indent = found[1] if found else "  "
    end = "" if text.strip() and not text.endswith("\n") else "\n"
    return json.dumps(settings, indent=indent, ensure_ascii=False) + end
