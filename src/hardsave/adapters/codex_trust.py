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

from hardsave.adapters import settings
from hardsave.adapters.settings import Place
from hardsave.errors import Misuse

_WITHOUT_MATCHER = frozenset({"stop", "user_prompt_submit"})  # theirs counts for nothing


def idle(hooks: str, paths: Sequence[str], config: str) -> list[str]:
    """The events of our hooks in a file, by whatever path, that Codex would leave out."""
    told = _parsed(config)
    if _table(told, "features").get("hooks") is False:
        return [place.event for place in settings.places(hooks)]
    states = _table(_table(told, "hooks"), "state")
    return [
        place.event
        for place in settings.places(hooks)
        if not any(_runs(_table(states, key(path, place)), place) for path in paths)
    ]


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
    except tomllib.TOMLDecodeError as error:
        raise Misuse(f"it is not TOML ({error})") from error


def _table(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = holder.get(name)
    return found if isinstance(found, Mapping) else {}


def _snake(event: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower()
