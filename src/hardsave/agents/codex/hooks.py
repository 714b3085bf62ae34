"""Which of our hooks Codex runs, and what keeps it from running any in a project.

Codex runs a hook only after its user has trusted it, and says nothing about the others. It keeps
what was trusted in `config.toml`, by the place of the hook and a hash of what would be run: a hook
that has changed has to be trusted again. To trust is the user's decision, which is only read here.

Besides its user's own, Codex heeds a project's configuration, which may have come with a clone,
those of directories in it down to where it is started, and those of the machine. A file of hooks
that it cannot read it leaves out as a whole.
"""

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from hardsave.agents import settings
from hardsave.agents.settings import Place
from hardsave.errors import Misuse

MACHINE = Path("/etc/codex")
_CONFIG = "config.toml"
_WITHOUT_MATCHER = frozenset({"stop", "user_prompt_submit"})  # theirs counts for nothing
_KINDS = frozenset({"agent", "command", "mcp_tool", "prompt"})


def untrusted(hooks: Path) -> list[str]:
    """The events of our hooks in a file that Codex leaves out until its user trusts them, if it
    lets hooks run at all: that other configurations have a say in."""
    config = hooks.with_name(_CONFIG)
    text, trusted = settings.read(hooks), settings.read(config)
    # Codex names a hook by the path of its folder as it was given, or without links.
    paths = (str(hooks), os.path.realpath(hooks))
    with settings.errors_name(config):
        return untrusted_events(text, paths, trusted)


def untrusted_events(hooks: str, paths: Sequence[str], config: str) -> list[str]:
    """The same of texts: of a file of hooks, by each of its paths, and of the configuration."""
    states = _table(_table(_parsed(config), "hooks"), "state")
    if _refusal(hooks):
        return [place.event for place in settings.places(hooks)]
    return [
        place.event
        for place in settings.places(hooks)
        if not any(_runs(_table(states, key(path, place)), place) for path in paths)
    ]


def why_off(
    folder: Path, hooks: Path, project: Path, here: Path, *, machine: Path = MACHINE
) -> str:
    """The file that does it, and how; empty if there is none. `folder` is the user's own, and
    Codex is started `here`."""
    required = machine / "requirements.toml"
    with suppress(Misuse):  # what is no TOML Codex itself complains about
        if not _allows_ours(_text(required)):
            return f"{required} allows no hooks of yours"
    for path in _layers(folder, project, here, machine):
        with suppress(Misuse):
            is_on = _switched_on(_text(path))
            if is_on is False:
                return f"{path} switches hooks off"
            if is_on:  # the first that says anything counts
                break
    with suppress(Misuse):
        if refused := _refusal(_text(hooks)):
            return f"{hooks} {refused}"
    return ""


def _layers(folder: Path, project: Path, here: Path, machine: Path) -> Iterator[Path]:
    """The configurations that count in a project, the strongest first."""
    yield machine / "managed_config.toml"
    own = folder / _CONFIG
    try:
        is_heeded = not _is_distrusted(_text(own), str(project))
    except Misuse:
        is_heeded = True
    if is_heeded:
        yield from (place / ".codex" / _CONFIG for place in _down_from(project, here))
    yield own
    yield machine / _CONFIG


def _down_from(project: Path, here: Path) -> list[Path]:
    """The directories from where Codex is started up to the project's."""
    return [each for each in (here, *here.parents) if each.is_relative_to(project)] or [project]


def _text(path: Path) -> str:
    """What cannot be read for us says nothing: it need not be there at all."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        return ""


def _switched_on(config: str) -> bool | None:
    """Whether a configuration lets hooks run at all; None if it does not say."""
    told = _table(_parsed(config), "features")
    found = told.get("hooks", told.get("codex_hooks"))  # what it was called before
    return found if isinstance(found, bool) else None


def _allows_ours(requirements: str) -> bool:
    """Whether the machine's administrator lets its users have hooks of their own."""
    is_theirs_alone = _parsed(requirements).get("allow_managed_hooks_only") is True
    return not is_theirs_alone and _switched_on(requirements) is not False


def _is_distrusted(config: str, project: str) -> bool:
    """Whether Codex was told not to heed what a project itself says."""
    told = _table(_table(_parsed(config), "projects"), project)
    return told.get("trust_level") == "untrusted"


def _refusal(hooks: str) -> str:
    """What of a file is not as Codex wants it, which then takes none of its hooks, ours included;
    empty if it takes them."""
    settings.places(hooks)  # `Misuse` if these are no settings at all
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
