"""A workflow as a file says it: read with line numbers, judged, and nothing run.

    workflow:
      name: release            # optional
      checkpoint: true         # after every step, unless the step says otherwise
    steps:
      - name: plan
        agent: Planner         # a name that the caller has registered
        inputs: {goal: "write a parser"}
      - name: code
        agent: Coder
        inputs: {plan: "${plan}"}   # what an earlier step has answered
        checkpoint: false
        retry: 2               # so often again if it fails
        on_error: skip         # or fail (the default), or continue

A key that is not known, a value that cannot be, a step that stands there twice or an input from
a step that does not come before is refused with its line.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hardsave.config.nodes import composed
from hardsave.errors import Misuse
from hardsave.objects.codec import Codec
from hardsave.objects.hashing import digest
from hardsave.objects.types import Types
from hardsave.tuples import NamedTuple

if TYPE_CHECKING:
    import yaml

MAX_BYTES = 1 << 20
MOST_RETRIES = 100
MOST_NESTED = 100
MOST_VALUES = 100_000
OnError = Literal["fail", "skip", "continue"]
REFERENCE = re.compile(r"\$\{([A-Za-z_][\w-]*)((?:\.[\w-]+)*)\}")
INPUTS = "inputs"  # `${inputs.goal}` is what the caller has handed in

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A workflow of agents",
    "type": "object",
    "required": ["steps"],
    "additionalProperties": False,
    "properties": {
        "workflow": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "name": {"type": "string", "minLength": 1},
                "checkpoint": {"type": "boolean", "default": True},
            },
        },
        "steps": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["name", "agent"],
                "additionalProperties": False,
                "properties": {
                    "name": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_-]*$"},
                    "agent": {"type": "string", "minLength": 1},
                    "inputs": {"type": "object"},
                    "checkpoint": {"type": "boolean"},
                    "retry": {"type": "integer", "minimum": 0, "maximum": MOST_RETRIES},
                    "on_error": {"enum": ["fail", "skip", "continue"], "default": "fail"},
                },
            },
        },
    },
}
"""The same for editors, in their own words."""

_CODEC = Codec(Types())


def check_storable(value: Any, what: str) -> None:
    """`Unstorable`, with the path to it, if it cannot be saved: better now than with a later
    step."""
    _CODEC.encode(value, what)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One agent's part."""

    name: str
    agent: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: bool = True
    retry: int = 0
    on_error: OnError = "fail"
    line: int | None = field(default=None, compare=False)
    """Where the file names its agent; None if it comes from no file."""

    @property
    def key(self) -> str:
        """Another one if anything changes that could change what it answers."""
        plain = asdict(self)
        for name in ("checkpoint", "retry", "on_error", "line"):
            del plain[name]
        return digest(_CODEC.encode(plain)).hex()


@dataclass(frozen=True)
class Workflow:
    """Steps, in order."""

    name: str
    steps: tuple[Step, ...]
    source: str = field(default="workflow", compare=False)
    """The file, for messages about it."""

    def where(self, step: Step) -> str:
        """A step, and where it stands."""
        named = f"step {step.name!r}"
        return named if step.line is None else f"{self.source}:{step.line}: {named}"


def read_file(path: str | Path) -> Workflow:
    """The workflow in a file."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Misuse(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise Misuse(f"{path} is longer than {MAX_BYTES // 1024} KiB; that is no workflow")
    return read(data, str(path))


def read(data: bytes | str, source: str = "workflow") -> Workflow:
    """The workflow in these bytes. What is wrong is named with its line."""
    top = composed(data, source)
    if top is None:
        raise Misuse(f"{source} is empty; a workflow has steps")
    _check_size(top, source)
    return _Reading(source).workflow(top)


def _check_size(top: "yaml.Node", source: str) -> None:
    """A file of a few lines is endless, written out, if an alias leads to what it stands in, or
    many lead to what has many."""
    sizes: dict[int, int] = {}

    def size(node: "yaml.Node", depth: int) -> int:
        if depth > MOST_NESTED:
            raise Misuse(f"{source}:{node.start_mark.line + 1}: this is nested too deeply")
        if isinstance(node.value, str):
            return 1
        if id(node) not in sizes:
            parts = (each for part in node.value for each in _nodes(part))
            sizes[id(node)] = 1 + sum(size(part, depth + 1) for part in parts)
        return sizes[id(node)]

    if size(top, 0) > MOST_VALUES:
        raise Misuse(f"{source}: this stands for more than {MOST_VALUES:,} values")


def _nodes(part: Any) -> "tuple[yaml.Node, ...]":
    """A list has nodes, a mapping pairs of them."""
    return part if isinstance(part, tuple) else (part,)


class _Value(NamedTuple):
    """A value of a mapping, and where it stands."""

    line: int
    node: "yaml.Node"


class _Reading:
    """Reads one file."""

    def __init__(self, source: str) -> None:
        self._source = source

    def workflow(self, top: "yaml.Node") -> Workflow:
        keys = self._keys(top, "the file", ("workflow", "steps"))
        if "steps" not in keys:
            raise self._wrong(top, "there are no steps")
        about = self._about(keys["workflow"].node) if "workflow" in keys else {}
        steps = list(self._steps(keys["steps"].node, about.get("checkpoint", True)))
        name = about.get("name") or Path(self._source).stem
        return Workflow(name, tuple(steps), self._source)

    def _about(self, node: "yaml.Node") -> dict[str, Any]:
        keys = self._keys(node, "workflow", ("name", "checkpoint"))
        found = {key: self._plain(value.node) for key, value in keys.items()}
        self._check(keys, found, "name", lambda v: isinstance(v, str) and v, "a text")
        self._check(keys, found, "checkpoint", lambda v: isinstance(v, bool), "true or false")
        return found

    def _steps(self, node: "yaml.Node", checkpoint: bool) -> Iterator[Step]:
        import yaml

        if not isinstance(node, yaml.SequenceNode) or not node.value:
            raise self._wrong(node, "steps is a list of steps, each with a name and an agent")
        before: list[str] = []
        for each in node.value:
            step = self._step(each, checkpoint, before)
            before.append(step.name)
            yield step

    def _step(self, node: "yaml.Node", checkpoint: bool, before: list[str]) -> Step:
        allowed = ("name", "agent", "inputs", "checkpoint", "retry", "on_error")
        keys = self._keys(node, "a step", allowed)
        found = {key: self._plain(value.node) for key, value in keys.items()}
        for key in ("name", "agent"):
            if key not in found:
                raise self._wrong(node, f"a step has no {key}")
            self._check(keys, found, key, lambda v: isinstance(v, str) and v, "a text")
        self._check(keys, found, "name", _is_name, "letters, digits, '_' and '-'")
        self._check(keys, found, "name", lambda v: v not in before, "used once, and stands above")
        self._check(keys, found, "inputs", lambda v: isinstance(v, dict), "a mapping")
        self._check(keys, found, "checkpoint", lambda v: isinstance(v, bool), "true or false")
        self._check(keys, found, "retry", _is_count, f"a number from 0 to {MOST_RETRIES}")
        self._check(keys, found, "on_error", _is_way, "fail, skip or continue")
        self._check_references(keys, found.get("inputs", {}), before)
        return Step(**{"checkpoint": checkpoint, "line": keys["agent"].line, **found})

    def _check_references(
        self, keys: dict[str, _Value], inputs: Mapping[str, Any], before: list[str]
    ) -> None:
        for name in references(inputs):
            if name != INPUTS and name not in before:
                line = keys["inputs"].line
                known = ", ".join([INPUTS, *before])
                raise Misuse(
                    f"{self._source}:{line}: ${{{name}}} is no step before this one; "
                    f"there are: {known}"
                )

    def _keys(self, node: "yaml.Node", what: str, allowed: tuple[str, ...]) -> dict[str, _Value]:
        import yaml

        if not isinstance(node, yaml.MappingNode):
            raise self._wrong(node, f"{what} is a mapping of {', '.join(allowed)}")
        found: dict[str, _Value] = {}
        for key, value in node.value:
            name = key.value
            if name not in allowed:
                known = ", ".join(allowed)
                said = repr(name) if isinstance(name, str) else f"key that is a {key.id}"
                raise self._wrong(key, f"{what} takes no {said}; there are: {known}")
            if name in found:
                raise self._wrong(key, f"{name} stands here for the second time")
            found[name] = _Value(key.start_mark.line + 1, value)
        return found

    def _plain(self, node: "yaml.Node") -> Any:
        import yaml

        try:
            return yaml.constructor.SafeConstructor().construct_document(node)
        except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
            # A tag that does not fit its text raises what it likes: `!!bool maybe`, `!!int ""`.
            raise self._wrong(node, f"this cannot be read: {error}") from error

    def _check(
        self, keys: dict[str, _Value], found: dict[str, Any], key: str, is_right: Any, wanted: str
    ) -> None:
        if key in found and not is_right(found[key]):
            said = f"{key} is {wanted}, not {found[key]!r}"
            raise Misuse(f"{self._source}:{keys[key].line}: {said}")

    def _wrong(self, node: "yaml.Node", what: str) -> Misuse:
        return Misuse(f"{self._source}:{node.start_mark.line + 1}: {what}")


def _is_name(value: Any) -> bool:
    return bool(re.fullmatch(r"[A-Za-z_][\w-]*", value)) and value != INPUTS


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MOST_RETRIES


def _is_way(value: Any) -> bool:
    return value in ("fail", "skip", "continue")


# Inputs


def references(value: Any) -> Iterator[str]:
    """The names of steps that inputs speak of."""
    yield from (found.group(1) for found in _references(value))


def asked_inputs(value: Any) -> Iterator[str]:
    """What they ask of the caller's own inputs, by its first name: all of `${inputs}` asks for
    none."""
    for found in _references(value):
        if found.group(1) == INPUTS and found.group(2):
            yield found.group(2).split(".")[1]


def _references(value: Any) -> "Iterator[re.Match[str]]":
    if isinstance(value, str):
        yield from REFERENCE.finditer(value)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


def filled(value: Any, answers: Mapping[str, Any]) -> Any:
    """Inputs with what they speak of in its place. A text that is one reference becomes the
    answer itself, of any type."""
    if isinstance(value, str):
        whole = REFERENCE.fullmatch(value)
        if whole is not None:
            return _looked_up(whole, answers)
        return REFERENCE.sub(lambda found: str(_looked_up(found, answers)), value)
    if isinstance(value, Mapping):
        return {key: filled(each, answers) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, answers) for each in value]
    return value


def _looked_up(found: re.Match[str], answers: Mapping[str, Any]) -> Any:
    value: Any = answers.get(found.group(1))
    for name in found.group(2).split(".")[1:]:
        if not isinstance(value, Mapping) or name not in value:
            raise Misuse(f"{found.group(0)} leads nowhere: there is no {name!r}")
        value = value[name]
    return value
