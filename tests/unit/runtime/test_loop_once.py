"""What a tool returns is read more than once, whatever it is made of."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ToolReturn
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

import hardsave
from hardsave.runtime import loop
from hardsave.runtime.loop.once import read_out

WORDS = ["one", "two"]


def words() -> Iterator[str]:
    yield from WORDS


def idle() -> str:
    return "idle"


@dataclass(frozen=True)
class Record:
    rows: Any
    name: str = "record"


class Shape(BaseModel):
    rows: Iterable[str]
    name: str = "shape"


class Pair(NamedTuple):
    left: Any
    right: Any


NESTED: list[tuple[Callable[[], Any], Any]] = [
    (lambda: (word for word in WORDS), WORDS),
    (lambda: map(str.upper, WORDS), ["ONE", "TWO"]),
    (lambda: {"rows": words()}, {"rows": WORDS}),
    (lambda: [words(), {"deeper": [words()]}], [WORDS, {"deeper": [WORDS]}]),
    (lambda: (1, words()), [1, WORDS]),
    (lambda: Pair(words(), 2), [WORDS, 2]),
    (lambda: (words() for _ in range(2)), [WORDS, WORDS]),
    (lambda: deque([words()]), [WORDS]),
    (lambda: {words()}, [WORDS]),
    (lambda: Record(words()), {"rows": WORDS, "name": "record"}),
    (lambda: {"in": Record([words()])}, {"in": {"rows": [WORDS], "name": "record"}}),
    (lambda: Shape(rows=words()), {"rows": WORDS, "name": "shape"}),
]


def told(messages: list[ModelMessage]) -> list[ToolReturnPart]:
    requests = [message for message in messages if isinstance(message, ModelRequest)]
    parts = [part for request in requests for part in request.parts]
    return [part for part in parts if isinstance(part, ToolReturnPart)]


def asked(tool: Callable[[], Any]) -> tuple[list[str], Any]:
    """What a model is told of a call, in the two requests that follow it; and what is saved."""
    heard: list[str] = []

    def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        heard.extend(part.model_response_str() for part in told(messages))
        if len(messages) == 5:
            return ModelResponse(parts=[TextPart("done")])
        name = "idle" if told(messages) else "tool"
        return ModelResponse(parts=[ToolCallPart(name, {}, name)])

    agent = Agent(FunctionModel(say))
    agent.tool_plain(name="tool")(tool)
    agent.tool_plain(idle)
    with hardsave.open("memory://") as vault:
        loop.run_sync(agent, "go", line=vault.timeline("x"))
        saved = vault.timeline("x").load()["messages"]
    return heard, saved[2]["parts"][0]["content"]


@pytest.mark.parametrize(("make", "expected"), NESTED)
def test_what_can_be_read_once_is_kept_and_told_again_and_again(
    make: Callable[[], Any], expected: Any
) -> None:
    (first, again, _), saved = asked(make)
    assert first == again
    assert first == ToolReturnPart("tool", expected, "tool").model_response_str()
    assert saved == expected


def test_a_rich_result_keeps_what_it_says_to_the_program() -> None:
    given = ToolReturn({"rows": words()}, content="more", metadata={"rows": words(), "at": Path()})
    read = read_out(given)
    assert read == ToolReturn(
        {"rows": WORDS}, content="more", metadata={"rows": WORDS, "at": Path()}
    )


def test_what_can_be_read_again_stays_the_same_object() -> None:
    value = {"a": [1, (2, {3})], "b": Record([4]), "c": Shape.model_construct(rows=["x"])}
    assert read_out(value) is value


def test_an_iterator_that_breaks_breaks_the_call() -> None:
    def half() -> Iterator[int]:
        yield 1
        raise LookupError("no more rows")

    with pytest.raises(LookupError, match="no more rows"):
        asked(lambda: {"rows": half()})


def test_what_holds_itself_or_is_too_deep_is_left_to_whoever_stores_it() -> None:
    knot: list[Any] = []
    knot += [knot, knot]
    assert read_out(knot) is knot
    deep: Any = [words()]
    for _ in range(2_000):
        deep = [deep]
    assert read_out(deep) is deep
    heard, _ = asked(lambda: knot)
    assert "could not be stored" in heard[0]


def test_an_output_that_can_be_read_once_is_handed_over_whole() -> None:
    def finish(count: int) -> Any:
        return (word for word in WORDS[:count])

    def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"count": 2}, "end")])

    agent: Agent[None, Any] = Agent(FunctionModel(say), output_type=finish)
    with hardsave.open("memory://") as vault:
        outcome = loop.run_sync(agent, "go", line=vault.timeline("x"))
        assert list(outcome.output) == WORDS
        assert vault.timeline("x").load()["output"] == {"content": WORDS}
