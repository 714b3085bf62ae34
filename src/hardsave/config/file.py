"""Configuration files: what they may say, and what of it counts.

    store: sqlite:////srv/agents/store.db
    compress: false              # what is stored from now on; it is, by zstd
    strict: true                 # automatic saves that fail raise, instead of being reported
    recovery: manual             # tasks of dead processes wait for 'hardsave tasks recover'
    include: [.env, "*.sqlite"]  # saved although ignored, or although they look secret
    tasks:
      profile: production        # development, production or long-running
      max_attempts: 5            # each of these overrides the profile
      keep_completed: 1000
      cleanup_every: 10          # iterations; 0: never
    retention:
      automatic: false           # it is, once a day
      max_age_days: 30           # what has no name and is older goes
      max_per_timeline: 1000
      max_store_mb: 10240
      thin: 200                  # of a timeline with more: the first, the last 20, each name's last
    hooks:
      daemon: false              # hooks leave no process behind that answers the next ones
    server:                      # of 'hardsave serve'; in the user's own file alone
      host: 127.0.0.1
      port: 8765
      public_url: https://tools.example.com/hardsave
      all_projects: true
      open_loopback: false
      allow_agent: [coder]
      allow_workspace: [/srv/shop]

There are two: the user's own, and `hardsave.yaml` at the root of a project, which is more
specific and wins. A project's file comes with a clone and is a stranger's, or was changed by the
agent at work. So a key needs no trust only if no value of it can lead out of the project, remove
or replace anything, or let finished work run again: `retention.automatic`, which in a project's
file can only stop removals, `recovery`, which can only keep work from running again, `compress`,
`hooks.daemon` and `max_attempts`. `strict` is not among them: it could end an agent. All others
count once the user has looked at the file and run `hardsave trust` (see `config.trust`). Until then
they are left out, and that is reported. `server` never counts there, because it decides who may
reach this machine.

The section `server.checkpoint` of CodeAgent's configuration is understood too, here and in its own
file, `config/config.yaml`, of which nothing else is read. A key that is not known, a value that
cannot be, or a key that stands there twice is refused with its line: a setting that is silently
ignored is worse than none.
"""

import os
import stat
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardsave.config.nodes import composed
from hardsave.defaults import MAX_CONFIG_BYTES, MOST_ATTEMPTS
from hardsave.errors import Misuse
from hardsave.tuples import NamedTuple

if TYPE_CHECKING:
    import yaml

MAX_VALUE = 4096  # characters: the longest path there is
_NOTHING = "tag:yaml.org,2002:null"
_CONSTRUCTED = frozenset(f"tag:yaml.org,2002:{name}" for name in ("bool", "int", "str"))
_MOST_PATTERNS = 100
_MARKS = frozenset("._-")  # beside letters and digits, in the name of a file


class Said(NamedTuple):
    """One setting of a file: its value, and where it stands."""

    value: Any
    where: str  # the file, the line and the key, for people
    needs_trust: bool = False
    is_of_user: bool = False  # it counts in the user's own file alone


Found = dict[str, Said]
"""What a file says, by the name of the setting."""


class _Key(NamedTuple):
    """A key: the setting that it stands for, and what is wrong with a value, if anything."""

    setting: str
    objection: Callable[[Any], str]  # what a value should be; of a list, what an item does wrong
    needs_trust: bool = True
    list_of: str = ""  # what a list of it is called, with an example; empty: it is no list
    is_of_user: bool = False


def _number(low: int, high: int) -> Callable[[Any], str]:
    def objection(value: Any) -> str:
        is_one = isinstance(value, int) and not isinstance(value, bool)
        return "" if is_one and low <= value <= high else f"a number from {low} to {high}"

    return objection


def _one_of(*allowed: Any) -> Callable[[Any], str]:
    named = ", ".join(str(each).lower() for each in allowed)
    return lambda value: "" if value in allowed and type(value) is type(allowed[0]) else named


def _inner_path(value: Any) -> str:
    """It is written to: it leads neither out of the project nor into a repository's own files."""
    parts = value.split("/") if isinstance(value, str) and len(value) <= 200 else [""]
    is_one = all(_is_file_name(part) for part in parts)
    return "" if is_one else "a file inside of the project: names of letters, digits and ._-"


def _is_file_name(part: str) -> bool:
    is_plain = all(each.isalnum() or each in _MARKS for each in part)
    return is_plain and part.strip(".") != "" and part.lower() != ".git"


def _pattern(value: Any) -> str:
    """What is wrong with one of them, to be read behind it."""
    if not isinstance(value, str):
        return "is no text"
    parts = value.rstrip("/").split("/")
    if parts == ["*"]:
        return "would be every file, with all that is ignored"
    if value.startswith("/"):
        return f"begins with '/': {_INSIDE}"
    odd: list[str] = [each for each in (".", "..") if each in parts]
    odd += [each for each in ("//", "\0") if each in value]
    if odd:
        return f"has {odd[0]!r} in it: {_INSIDE}"
    return "" if value else "is empty"


_INSIDE = "each is a name or a pattern of files inside of the workspace, seen from its top"


_PATTERNS = "a list of names and patterns, seen from the workspace: [.env, '*.db']"


def _host(value: Any) -> str:
    return "" if isinstance(value, str) and value.strip() else "an address or a name"


def _address(value: Any) -> str:
    is_one = isinstance(value, str) and value.startswith(("http://", "https://"))
    return "" if is_one else "an address such as https://tools.example.com/hardsave"


def _name(value: Any) -> str:
    return "" if isinstance(value, str) and value.strip() else "is no name"


def _directory(value: Any) -> str:
    return "" if isinstance(value, str) and os.path.isabs(value) else "is no whole path"


def _store(value: Any) -> str:
    is_one = isinstance(value, str) and ("://" in value or os.path.isabs(value))
    return "" if is_one else "the URL of a store, or the whole path of its file"


def _of_user(setting: str, objection: Callable[[Any], str], list_of: str = "") -> _Key:
    """A key that decides who may reach this machine, and as what."""
    return _Key(setting, objection, list_of=list_of, is_of_user=True)


RECOVERY = ("auto", "manual")
PROFILES = ("development", "production", "long-running")
CODE_AGENT_SECTION = ("server", "checkpoint")
# Of failed work alone: no finished work runs again by it.
_ATTEMPTS = _Key("max_attempts", _number(1, MOST_ATTEMPTS), needs_trust=False)
_KEEP = _Key("keep_completed", _number(0, 1_000_000))  # forgotten work runs again when added again
SECTIONS: Mapping[tuple[str, ...], Mapping[str, _Key]] = {
    (): {
        "store": _Key("store", _store),
        "include": _Key(
            "include", _pattern, list_of=_PATTERNS
        ),  # what is secret leaves the project
        "compress": _Key("compress", _one_of(True, False), needs_trust=False),
        "strict": _Key("strict", _one_of(True, False)),  # a full disk would end an agent
        "recovery": _Key("recovery", _one_of(*RECOVERY), needs_trust=False),
    },
    ("tasks",): {
        "profile": _Key("profile", _one_of(*PROFILES)),
        "max_attempts": _ATTEMPTS,
        "keep_completed": _KEEP,
        "cleanup_every": _Key("cleanup_every", _number(0, 1_000_000)),
    },
    ("retention",): {
        "automatic": _Key("retain_automatically", _one_of(True, False), needs_trust=False),
        "max_age_days": _Key("retain_days", _number(1, 36_500)),
        "max_per_timeline": _Key("retain_per_timeline", _number(1, 1_000_000_000)),
        "max_store_mb": _Key("retain_mb", _number(1, 1 << 40)),
        "thin": _Key("retain_thin", _number(1, 1_000_000_000)),
    },
    ("hooks",): {"daemon": _Key("hooks_daemon", _one_of(True, False), needs_trust=False)},
    ("server",): {
        "host": _of_user("serve_host", _host),
        "port": _of_user("serve_port", _number(0, 65_535)),
        "public_url": _of_user("serve_public_url", _address),
        "all_projects": _of_user("serve_all_projects", _one_of(True, False)),
        "open_loopback": _of_user("serve_open_loopback", _one_of(True, False)),
        "allow_agent": _of_user("serve_agents", _name, "a list of names: [coder]"),
        "allow_workspace": _of_user("serve_workspaces", _directory, "a list of paths: [/srv/shop]"),
    },
    CODE_AGENT_SECTION: {
        "enabled": _Key("enabled", _one_of(True, False)),
        "checkpoint_file": _Key("checkpoint_file", _inner_path),
        "max_task_attempts": _ATTEMPTS,
        "keep_completed_tasks": _KEEP,
    },
}


def content(path: Path, limit: int = MAX_CONFIG_BYTES) -> bytes | None:
    """A file's bytes; None if there is none. Anything may lie there: nothing is waited for."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Misuse(f"{path} cannot be read: it is no file")
            data = file.read(limit + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Misuse(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > limit:
        raise Misuse(f"{path} is longer than {limit // 1024} KiB")
    return data


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read(data: bytes | str, name: str) -> Found:
    """What a file says. What is wrong is named with its line."""
    return _said_by(_parsed(data, name))


def read_code_agent(data: bytes | str, name: str) -> Found:
    """What CodeAgent's own file says in the one section that is ours."""
    return _said_by(_parsed(data, name, CODE_AGENT_SECTION))


def _said_by(parsed: Found | str) -> Found:
    if isinstance(parsed, str):
        raise Misuse(parsed)
    return dict(parsed)


@lru_cache(maxsize=16)  # one save asks several times, and a process of a day for each of its saves
def _parsed(data: bytes | str, name: str, section: tuple[str, ...] = ()) -> Found | str:
    """What a section says, or what is wrong with it: that takes as long to find out. The whole file
    is a section, too."""
    found: Found = {}
    try:
        top = composed(data, name)
        for node in [] if top is None else _inside(top, section):
            _read_section(node, section, name, found)
    except Misuse as error:
        return str(error)
    return found


def _inside(node: "yaml.Node", path: tuple[str, ...]) -> "list[yaml.Node]":
    """The nodes at a path. What lies beside it is another program's, and may be anything."""
    import yaml

    if not path:
        return [node]
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    found = [_inside(value, path[1:]) for key, value in pairs if _text(key) == path[0]]
    return [each for nodes in found for each in nodes]


def _read_section(node: "yaml.Node", path: tuple[str, ...], name: str, found: Found) -> None:
    keys = SECTIONS.get(path, {})
    deeper = {each[len(path)] for each in SECTIONS if each[: len(path)] == path != each}
    seen: set[str] = set()
    for key, line, value in _pairs(node, path, name):
        where = ".".join((*path, key))
        if key in seen:
            raise Misuse(f"{name}:{line}: {where} stands here for the second time")
        seen.add(key)
        if key in deeper:
            _read_section(value, (*path, key), name, found)
        elif key in keys:
            _set(keys[key], value, f"{name}:{line}: {where}", found)
        else:
            known = ", ".join(sorted({*keys, *deeper}))
            raise Misuse(f"{name}:{line}: {where} is not a setting; there are: {known}")


def _pairs(
    node: "yaml.Node", path: tuple[str, ...], name: str
) -> "list[tuple[str, int, yaml.Node]]":
    import yaml

    if node.tag == _NOTHING and node.value == "":  # all that it held is commented out
        return []
    if not isinstance(node, yaml.MappingNode):
        what = ".".join(path) or "the file"
        raise Misuse(f"{name}:{node.start_mark.line + 1}: {what} holds settings, one a line")
    return [(_text(key), key.start_mark.line + 1, value) for key, value in node.value]


def _set(key: _Key, node: "yaml.Node", where: str, found: Found) -> None:
    value = _items(key, node, where) if key.list_of else _plain(node, where)
    wanted = "" if key.list_of else key.objection(value)
    if wanted:
        raise Misuse(f"{where} is {wanted}, not {_briefly(node)}")
    if key.setting in found:
        raise Misuse(f"{where} says again what another key has said")
    found[key.setting] = Said(value, where, key.needs_trust, key.is_of_user)


def _items(key: _Key, node: "yaml.Node", where: str) -> tuple[Any, ...]:
    import yaml

    wanted = f"{where} is {key.list_of}"
    if not isinstance(node, yaml.SequenceNode):
        raise Misuse(f"{wanted}, not {_briefly(node)}")
    if not 0 < len(node.value) <= _MOST_PATTERNS:
        raise Misuse(f"{wanted}, not one of {len(node.value):,}: at most {_MOST_PATTERNS}")
    items = tuple(_plain(each, where) for each in node.value)
    for each, item in zip(node.value, items, strict=True):
        if why := key.objection(item):
            raise Misuse(f"{where}: {_briefly(each)} {why}")
    return items


def _plain(node: "yaml.Node", where: str) -> Any:
    """A text, a number or a truth; None for anything else."""
    import yaml

    is_plain = isinstance(node, yaml.ScalarNode) and node.tag in _CONSTRUCTED
    if not is_plain or len(node.value) > MAX_VALUE:
        return None
    try:
        return yaml.constructor.SafeConstructor().construct_object(node)
    except (yaml.YAMLError, ValueError, LookupError, AttributeError) as error:
        # A tag that does not fit its text raises what it likes: `!!bool maybe`, `!!int ""`.
        raise Misuse(f"{where}: {node.value[:40]!r} is no {node.tag[:40]!r}") from error


def _briefly(node: "yaml.Node") -> str:
    if not isinstance(node.value, str):
        return _text(node)
    return repr(node.value) if len(node.value) <= 80 else f"{node.value[:80]!r}…"


def _text(node: "yaml.Node") -> str:
    """Of a list or a mapping nothing is said: written out, it may be endless."""
    return node.value if isinstance(node.value, str) else f"a {node.id}"
