"""The page of all public names is what the code says today."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import hardsave
from tests.docs import reference
from tests.docs.pages import PAGES, ROOT, blocks

EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))


def test_the_page_is_as_the_code_is() -> None:
    again = "write it anew with: python -m tests.docs.reference"
    assert reference.PAGE.read_text() == reference.page(), again


def test_every_name_of_the_front_door_is_explained() -> None:
    page = reference.PAGE.read_text()
    rest = set(hardsave.__all__) - reference.named()
    assert {name for name in rest if f"`hardsave.{name}`" not in page} == set()


def test_every_class_has_a_heading_of_its_own() -> None:
    page = reference.PAGE.read_text()
    classes = [name for part in reference.PARTS for _, name in part.names if name[0].isupper()]
    titles = [part.title for part in reference.PARTS if part.title == part.names[0][1]]
    for name in {*classes} - {"Types.register"}:
        assert f"\n{'##' if name in titles else '###'} {name}\n" in page, name


PUBLIC = re.compile(
    r"hardsave(\.aio|\.client|\.runtime(\.loop|\.scripted)?|\.(adapters|compat)\.\w+)?"
)


@pytest.mark.parametrize("page", [*PAGES, *EXAMPLES], ids=lambda page: str(page.relative_to(ROOT)))
def test_what_pages_import_is_public(page: Path) -> None:
    programs = [page.read_text()] if page.suffix == ".py" else blocks(page, "python")
    for program in programs:
        for module, names in imported(program):
            assert PUBLIC.fullmatch(module), f"{module} is not public"
            assert set(names) <= set(public_names(module)), f"{names} of {module}"


def public_names(module: str) -> list[str]:
    """What a module lists as public. Adapters are read: frameworks are installed elsewhere."""
    if not module.startswith("hardsave.adapters."):
        return list(importlib.import_module(module).__all__)
    path = ROOT / "src" / module.replace(".", "/")
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    assigned = [node for node in ast.parse(source.read_text()).body if isinstance(node, ast.Assign)]
    (found,) = [each.value for each in assigned if ast.unparse(each.targets[0]) == "__all__"]
    return list(ast.literal_eval(found))


def imported(program: str) -> Iterator[tuple[str, list[str]]]:
    """The modules of ours that a program imports, and the names that it takes from each."""
    for node in ast.walk(ast.parse(program)):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if is_ours(module):
                yield module, [each.name for each in names]
            case ast.Import(names=names):
                yield from ((each.name, []) for each in names if is_ours(each.name))


def is_ours(module: str) -> bool:
    return module.partition(".")[0] == "hardsave"
