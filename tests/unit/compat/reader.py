"""A reader who types the blocks of a page in, one after the other."""

import ast
import inspect
from typing import Any


class Reader:
    def __init__(self, /, **known: Any) -> None:
        self.names: dict[str, Any] = {"__name__": "page", **known}

    async def types(self, *blocks: str) -> None:
        for block in blocks:
            code = compile(block, "page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            waiting = eval(code, self.names)  # noqa: S307 # the blocks stand in the tests
            if inspect.isawaitable(waiting):
                await waiting
