"""The classes that a program can get hold of: what public methods return, and what that holds.

Annotations are read as a type checker reads them, with what is imported for type checking alone.
"""

import ast
import inspect
import sys
import types
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any

_ENTERED = ("__enter__", "__aenter__", "__await__", "__iter__", "__next__", "__getitem__")


def reachable(modules: dict[str, types.ModuleType]) -> dict[type, str]:
    """Every class of ours that can be reached from the exported names, and the way to it."""
    todo = [
        (getattr(module, name), f"{prefix}.{name}")
        for prefix, module in modules.items()
        for name in module.__all__
    ]
    found: dict[type, str] = {}
    while todo:
        what, way = todo.pop()
        if isinstance(what, type) and what not in found:
            found[what] = way
            todo += [(each, f"{way}.{name}") for name, each in _handed_out(what)]
        elif isinstance(what, types.FunctionType):
            todo += [(each, way) for each in _ours(_returned(what))]
    return found


def _handed_out(cls: type) -> Iterator[tuple[str, type]]:
    """The classes of ours that a public member of a class hands out, with the member's name."""
    for base in cls.__mro__:
        if not base.__module__.startswith("hardsave"):
            continue
        for name, member in vars(base).items():
            function = member.fget if isinstance(member, property) else member
            function = getattr(function, "__func__", function)
            is_public = not name.startswith("_") or name in _ENTERED
            if is_public and isinstance(function, types.FunctionType):
                yield from ((name, each) for each in _ours(_returned(function)))
        for name, field in inspect.get_annotations(base).items():
            if not name.startswith("_"):
                yield from ((name, each) for each in _ours(_meant(field, base.__module__)))


def _returned(function: types.FunctionType) -> Any:
    return _meant(function.__annotations__.get("return"), function.__module__)


def _meant(annotation: Any, module: str) -> Any:
    """What an annotation means, in quotes or not."""
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    return typing.get_type_hints(holder, globalns=_space(module))["it"]


@cache
def _space(module: str) -> dict[str, Any]:
    """The names of a module, with those that are imported for type checking alone."""
    there = sys.modules[module]
    space = dict(vars(there))
    for node in ast.parse(inspect.getsource(there)).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            imports: list[ast.stmt] = [
                each for each in node.body if isinstance(each, ast.Import | ast.ImportFrom)
            ]
            exec(compile(ast.Module(imports, []), module, "exec"), space)  # noqa: S102 # ours
    return space


def _ours(hint: Any) -> Iterator[type]:
    for each in (hint, typing.get_origin(hint)):
        if isinstance(each, type) and each.__module__.startswith("hardsave"):
            yield each
    for part in typing.get_args(hint):
        yield from _ours(part)
