"""Which of our hooks Codex would run. Pure: from the texts of its files.

Codex runs a hook only after its user has trusted it, and says nothing about the others. It keeps
what was trusted in `config.toml`, by the place of the hook and a hash of what would be run: a hook
that has changed has to be trusted again. To trust is the user's decision, which we only read.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from hardsave.agents import settings
from hardsave.agents.settings import Place
from hardsave.errors import Misuse

_WITHOUT_MATCHER = frozenset({"stop", "user_prompt_submit"})  # theirs counts for nothing
_KINDS = frozenset({"agent", "command", "mcp_tool", "prompt"})


def idle(hooks: str, paths: Sequence[str], config: str) -> list[str]:
    """The events of our hooks in a file, by whatever path, that Codex would leave out, if it lets
    hooks run at all: that other configurations have a say in."""
    states = _table(_table(_parsed(config), "hooks"), "state")
    if refusal(hooks):
        return [place.event for place in settings.places(hooks)]
    return [
        place.event
        for place in settings.places(hooks)
        if not any(_runs(_table(states, key(path, place)), place) for path in paths)
    ]


def switched_on(config: str) -> bool | None:
    """Whether a configuration lets hooks run at all; None if it does not say."""
    told = _table(_parsed(config), "features")
    found = told.get("hooks", told.get("codex_hooks"))  # what it was called before
    return found if isinstance(found, bool) else None


def allows_ours(requirements: str) -> bool:
    """Whether whoever looks after the machine lets its users have hooks of their own."""
    is_theirs_alone = _parsed(requirements).get("allow_managed_hooks_only") is True
    return not is_theirs_alone and switched_on(requirements) is not False


def is_distrusted(config: str, project: str) -> bool:
    """Whether Codex was told not to heed what a project itself says."""
    told = _table(_table(_parsed(config), "projects"), project)
    return told.get("trust_level") == "untrusted"


def refusal(hooks: str) -> str:
    """What of a file is not as Codex wants it, which then takes none of it, whoever wrote the rest;
    empty if it takes it."""
    settings.places(hooks)  # `Misuse` if it is nothing that anybody could take
    told = json.loads(hooks) if hooks.strip() else {}
    if strange := [name for name in told if name not in ("description", "hooks")]:
        return f"has {strange[0]!r} beside 'hooks'"
    if not isinstance(told.get("description"), str | None):
        return "has a 'description' that is no text"
    for event, groups in told.get("hooks", {}).items():
        if not all(map(_is_group, groups)):
            return f"has something in its hooks of {event!r} that Codex does not know"
    return ""


def _is_group(group: Any) -> bool:
    if not isinstance(group, dict) or not isinstance(group.get("matcher"), str | None):
        return False
    hooks = group.get("hooks", [])
    return isinstance(hooks, list) and all(map(_is_hook, hooks))


def _is_hook(hook: Any) -> bool:
    if not isinstance(hook, dict) or hook.get("type") not in _KINDS:
        return False
    seconds = hook.get("timeout", 0)
    is_whole = seconds is None or (type(seconds) is int and seconds >= 0)
    return is_whole and (hook["type"] != "command" or isinstance(hook.get("command"), str))


def key(path: str, place: Place) -> str:
    """What Codex calls a hook."""
    return f"{path}:{_snake(place.event)}:{place.group}:{place.hook}"


def fingerprint(place: Place) -> str:
    """What Codex compares, to know a hook that was trusted."""
    event = _snake(place.event)
    told = {
        "type": "command",
        "command": place.told["command"],
        "timeout": place.told.get("timeout", 600),
        "async": False,
    }
    identity: dict[str, Any] = {"event_name": event, "hooks": [told]}
    if place.matcher is not None and event not in _WITHOUT_MATCHER:
        identity["matcher"] = place.matcher
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{sha256(text.encode()).hexdigest()}"


def _runs(state: Mapping[str, Any], place: Place) -> bool:
    is_on = state.get("enabled", True) is not False
    return is_on and state.get("trusted_hash") == fingerprint(place)


def _parsed(config: str) -> dict[str, Any]:
    try:
        return tomllib.loads(config)
    except (ValueError, RecursionError) as error:  # too long a number, too many brackets
        raise Misuse(f"it is not TOML ({error})") from error


def _table(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = holder.get(name)
    return found if isinstance(found, Mapping) else {}


def _snake(event: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower()
