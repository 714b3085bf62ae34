"""Classes that a state may hold, and a registry that knows them all."""

import dataclasses
import enum
from typing import Any, NamedTuple

import msgspec
import pydantic

from hardsave.objects.types import Types


class Colour(enum.Enum):
    RED = "red"
    BLUE = ("b", 3)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2**70


class Mood(enum.StrEnum):
    CALM = "calm"
    WILD = "wild"


class Right(enum.Flag):
    READ = 1
    WRITE = 2
    RUN = 4


@dataclasses.dataclass
class Record:
    """The plain case: whatever it holds comes back unconverted."""

    content: Any = None
    note: Any = None


@dataclasses.dataclass(frozen=True)
class Point:
    x: int = 0
    y: int = 0


@dataclasses.dataclass(slots=True)
class Slotted:
    content: Any


@dataclasses.dataclass(frozen=True, slots=True)
class Counted:
    """Its length is not an argument, and is not what `__post_init__` would make of it."""

    content: Any
    length: int = dataclasses.field(init=False, default=0)

    def with_length(self, length: int) -> "Counted":
        object.__setattr__(self, "length", length)
        return self


@dataclasses.dataclass
class Shape:
    """Typed fields of every form that has to be filled with built values."""

    centre: Point
    corners: list[Point]
    named: dict[str, tuple[Point, ...]]
    maybe: Point | None = None
    colour: Colour = Colour.RED


class Note(pydantic.BaseModel):
    content: Any = None
    title: str = pydantic.Field(default="", alias="Title")


class Open(pydantic.BaseModel):
    """A model that keeps what it does not know."""

    model_config = pydantic.ConfigDict(extra="allow")
    content: Any = None


class Packet(msgspec.Struct):
    content: Any = None
    size: int = 0


class Pair(NamedTuple):
    left: Any
    right: Any


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Ratio(float):
    pass


class Blob(bytes):
    pass


class Table(dict[str, Any]):
    pass


class Row(list[Any]):
    pass


CLASSES: tuple[type, ...] = (
    Colour,
    Level,
    Mood,
    Right,
    Record,
    Point,
    Slotted,
    Counted,
    Shape,
    Note,
    Open,
    Packet,
)


def registry() -> Types:
    """All classes above under short names."""
    types = Types()
    for cls in CLASSES:
        types.register(cls, cls.__name__)
    return types
