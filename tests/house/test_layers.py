"""Imports point down only. The picture below is the one of the architecture page."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"

# From top to bottom; names on one row are strangers to each other.
FRONT_DOOR = "hardsave"
ROWS = (
    ("cli",),
    ("server",),
    ("daemon",),
    ("adapters", "agents", "compat"),
    ("runtime",),
    (FRONT_DOOR,),
    ("aio", "client"),
    ("vault",),
    ("timeline", "workspace", "tasks"),
    ("stores", "config", "values"),
    ("objects", "actor", "progress"),
    ("defaults", "errors", "logs", "page", "record", "tuples", "wording"),
)
ROW_OF = {room: number for number, row in enumerate(ROWS) for room in row}

# What these are made of is known to stores alone: the registry opens them, `on_disk` and
# `store_files` answer for files. What is derived from any store has rooms below `local`.
KINDS_OF_STORES = ("sqlite",)
OF_THEIR_FILES = ("stores.sqlite", "sqlite_path", "SQLite format", "-wal", "-shm", ".damaged-")

# The same inside of workspace; its plain words are in the modules beside the sub-packages.
PLAIN = ""
WORKSPACE_ROWS = (
    ("restore", "git_restore"),
    ("snapshot", "watch"),
    ("scan",),
    ("git", "ignore"),
    ("filesystem",),
    (PLAIN,),
)
WORKSPACE_ROW_OF = {part: number for number, row in enumerate(WORKSPACE_ROWS) for part in row}

# A homeless function shows a missing concept. One of the APIs in compat has a manager of its own.
HOMELESS = {"utils", "helpers", "common", "manager"}


@dataclass(frozen=True)
class Import:
    """One module uses another; `lazy` if that does not happen while the first one is loaded."""

    importer: str
    imported: str
    lazy: bool = False

    def __str__(self) -> str:
        return f"{self.importer} -> {self.imported}"


# Reading


def modules(source: Path = SOURCE) -> dict[str, Path]:
    """Return every module of the package by its dotted name."""
    found = {}
    for path in sorted((source / "hardsave").rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(importer: str, tree: ast.Module, known: Iterable[str], package: str) -> set[Import]:
    """Return what the module uses of its own package, inside functions and for typing too."""
    names = set(known)
    found = set()
    for node, lazy in nodes(tree):
        for target in targets(node, package):
            imported = target if target in names else target.rpartition(".")[0]
            if imported in names and imported != importer:
                found.add(Import(importer, imported, lazy))
    return found


def nodes(tree: ast.AST, lazy: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Yield all nodes, and whether they are reached only later or only by a type checker."""
    for node in ast.iter_child_nodes(tree):
        yield node, lazy
        yield from nodes(node, lazy or is_function(node) or is_for_typing(node))


def is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def is_for_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def targets(node: ast.AST, package: str) -> Iterator[str]:
    """Yield the dotted names that an import statement, or import_module("..."), asks for."""
    match node:
        case ast.Import(names=aliases):
            yield from (alias.name for alias in aliases)
        case ast.ImportFrom(module=module, names=aliases, level=level):
            above = package.split(".")[: len(package.split(".")) - level + 1] if level else []
            base = ".".join([*above, *([module] if module else [])])
            yield from (f"{base}.{alias.name}" for alias in aliases)
        case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]):
            if ast.unparse(function).endswith("import_module"):
                yield f"{package}{name}" if name.startswith(".") else name


@cache
def imports_of_the_source() -> set[Import]:
    paths = modules()
    found: set[Import] = set()
    for name, path in paths.items():
        package = name if path.stem == "__init__" else name.rpartition(".")[0]
        found |= imports_of(name, ast.parse(path.read_text()), paths, package)
    return found


# Judging


def room(module: str) -> str:
    """Return the room of a module; `python -m hardsave` is the command line's door."""
    _, _, inside = module.partition(".")
    return inside.partition(".")[0].replace("__main__", "cli") or FRONT_DOOR


def wrong_directions(imports: Iterable[Import]) -> list[str]:
    """Return a sentence for each import that the picture does not allow."""
    judged = ((used, objection(used)) for used in imports)
    return sorted(f"{used}: {why}" for used, why in judged if why)


def objection(used: Import) -> str:
    above, below = room(used.importer), room(used.imported)
    if above == below:
        return ""
    if below == "testing":
        return "nothing imports testing"
    unknown = {above, below} - ROW_OF.keys() - {"testing"}
    if unknown:
        return f"{', '.join(sorted(unknown))} is not in the picture"
    if above == "testing":
        return "" if ROW_OF[below] >= ROW_OF["stores"] else "testing sees stores and below"
    if above == FRONT_DOOR and below == "aio" and not used.lazy:
        return "the front door loads aio lazily"
    if ROW_OF[above] == ROW_OF[below]:
        return f"{above} and {below} are strangers"
    return "" if ROW_OF[above] < ROW_OF[below] else f"{above} is below {below}"


def knows_a_kind_of_store(used: Import) -> bool:
    """Whether a module above stores uses what only one kind of store is made of."""
    return room(used.importer) not in ("stores", "testing") and any(
        f"{used.imported}.".startswith(f"hardsave.stores.{kind}.") for kind in KINDS_OF_STORES
    )


def part_of_workspace(module: str) -> str | None:
    """Return the sub-package of a module of workspace; None if it is of another room."""
    if room(module) != "workspace":
        return None
    part = module.removeprefix("hardsave.workspace").removeprefix(".").partition(".")[0]
    return part if part in WORKSPACE_ROW_OF else PLAIN


def wrong_directions_in_workspace(imports: Iterable[Import]) -> list[str]:
    """Return the imports between its parts that do not point down."""
    found = []
    for used in imports:
        above, below = part_of_workspace(used.importer), part_of_workspace(used.imported)
        if above is None or below is None or above == below:
            continue
        if WORKSPACE_ROW_OF[above] >= WORKSPACE_ROW_OF[below]:
            found.append(str(used))
    return sorted(found)


def cycle(imports: Iterable[Import]) -> list[str]:
    """Return the modules of one import cycle, or nothing if there is none."""
    uses: dict[str, set[str]] = {}
    for used in imports:
        uses.setdefault(used.importer, set()).add(used.imported)
    done: set[str] = set()

    def search(module: str, trail: list[str]) -> list[str]:
        if module in trail:
            return [*trail[trail.index(module) :], module]
        if module in done:
            return []
        for imported in sorted(uses.get(module, ())):
            if found := search(imported, [*trail, module]):
                return found
        done.add(module)
        return []

    return next((found for module in sorted(uses) if (found := search(module, []))), [])


def is_homeless(module: str) -> bool:
    name = module.rpartition(".")[2]
    return name in HOMELESS and not (name == "manager" and room(module) == "compat")


def empty_packages(paths: dict[str, Path]) -> list[str]:
    """Return the packages that hold no module beside their own __init__."""
    packages = {name for name, path in paths.items() if path.stem == "__init__"}
    inhabited = {name.rpartition(".")[0] for name in paths}
    return sorted(packages - inhabited - {FRONT_DOOR})


# The house


def test_imports_point_down_only() -> None:
    assert wrong_directions(imports_of_the_source()) == []


def test_nothing_above_stores_knows_what_a_store_is_made_of() -> None:
    assert [str(used) for used in imports_of_the_source() if knows_a_kind_of_store(used)] == []


def test_nothing_above_stores_names_the_files_that_a_store_is_made_of() -> None:
    above = {name: path for name, path in modules().items() if room(name) in ROW_OF}
    found = [
        f"{name}: {word}"
        for name, path in above.items()
        for word in OF_THEIR_FILES
        if ROW_OF[room(name)] < ROW_OF["stores"] and word in path.read_text()
    ]
    assert found == []


def test_imports_inside_of_workspace_point_down_only() -> None:
    assert wrong_directions_in_workspace(imports_of_the_source()) == []


def test_every_part_of_workspace_is_in_its_picture() -> None:
    packages = {path.parent.name for path in (SOURCE / "hardsave/workspace").glob("*/__init__.py")}
    assert packages == WORKSPACE_ROW_OF.keys() - {PLAIN}


def test_every_module_has_a_room_in_the_picture() -> None:
    assert {room(module) for module in modules()} <= ROW_OF.keys() | {"testing"}


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert cycle(imports_of_the_source()) == []


def test_no_package_is_empty() -> None:
    assert empty_packages(modules()) == []


def test_no_module_is_a_placeholder() -> None:
    def has_code(path: Path) -> bool:
        body = ast.parse(path.read_text()).body
        return any(not isinstance(node, ast.Expr | ast.Pass) for node in body)

    rooms = {name: path for name, path in modules().items() if path.stem != "__init__"}
    assert [name for name, path in rooms.items() if not has_code(path)] == []


def test_no_module_is_named_after_nothing() -> None:
    assert [module for module in modules() if is_homeless(module)] == []


# The checks themselves can fail


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("cli.main", "server.app"),
        ("server.metrics", "daemon.spool"),
        ("cli.main", "errors"),
        ("compat.skill", "vault.vault"),
        ("vault.gc", "timeline.retention"),
        ("tasks.ledger", "stores.base"),
        ("objects.codec", "objects.hashing"),
        ("stores.sqlite", "stores.base"),
        ("testing.contract", "stores.base"),
        ("testing.contract", "objects.records"),
    ],
)
def test_an_import_downwards_is_fine(importer: str, imported: str) -> None:
    assert wrong_directions([Import(f"hardsave.{importer}", f"hardsave.{imported}")]) == []


@pytest.mark.parametrize(
    ("importer", "imported", "why"),
    [
        ("objects.codec", "stores.base", "objects is below stores"),
        ("errors", "objects.hashing", "errors is below objects"),
        ("vault.vault", "aio", "vault is below aio"),
        ("runtime.loop", "agents.spec", "runtime is below agents"),
        ("timeline.diff", "workspace.scan", "timeline and workspace are strangers"),
        ("stores.sqlite", "config", "stores and config are strangers"),
        ("compat.skill", "agents.spec", "compat and agents are strangers"),
        ("stores.memory", "testing.contract", "nothing imports testing"),
        ("testing.contract", "vault.vault", "testing sees stores and below"),
        ("attic.box", "errors", "attic is not in the picture"),
    ],
)
def test_any_other_import_is_reported(importer: str, imported: str, why: str) -> None:
    used = Import(f"hardsave.{importer}", f"hardsave.{imported}", lazy=True)
    assert wrong_directions([used]) == [f"hardsave.{importer} -> hardsave.{imported}: {why}"]


def test_an_import_of_what_a_store_is_made_of_is_reported() -> None:
    def found(importer: str, imported: str) -> bool:
        return knows_a_kind_of_store(Import(f"hardsave.{importer}", f"hardsave.{imported}"))

    assert found("vault.search_index", "stores.sqlite.connection")
    assert found("cli.commands.doctor", "stores.sqlite")
    assert not found("vault.search_index", "stores.local.database")
    assert not found("stores.registry", "stores.sqlite")


def test_an_import_upwards_inside_of_workspace_is_reported() -> None:
    def found(importer: str, imported: str) -> list[str]:
        return wrong_directions_in_workspace(
            [Import(f"hardsave.{importer}", f"hardsave.{imported}")]
        )

    assert found("workspace.restore.plan", "workspace.snapshot.compare") == []
    assert found("workspace.scan.walk", "workspace.entries") == []
    assert found("vault.files", "workspace.restore.plan") == []
    assert found("workspace.scan.walk", "workspace.snapshot.builder") != []
    assert found("workspace.git.index", "workspace.ignore.globs") != []
    assert found("workspace.entries", "workspace.filesystem.stamps") != []


def test_the_front_door_opens_to_the_vault_and_lazily_to_aio() -> None:
    def objections(imported: str, lazy: bool) -> int:
        return len(wrong_directions([Import("hardsave", imported, lazy)]))

    assert objections("hardsave.vault.vault", lazy=False) == 0
    assert objections("hardsave.aio", lazy=True) == 0
    assert objections("hardsave.aio", lazy=False) == 1
    assert objections("hardsave.runtime.loop", lazy=True) == 1
    assert wrong_directions([Import("hardsave.vault.vault", "hardsave")]) != []
    assert wrong_directions([Import("hardsave.cli.main", "hardsave")]) == []


def test_a_circle_of_imports_is_found() -> None:
    down = [Import("a", "b"), Import("b", "c"), Import("a", "c")]
    assert cycle(down) == []
    assert cycle([*down, Import("c", "b")]) == ["b", "c", "b"]


@pytest.mark.parametrize(
    ("line", "imported"),
    [
        ("import hardsave.errors", "hardsave.errors"),
        ("from hardsave import errors", "hardsave.errors"),
        ("from hardsave.errors import Conflict", "hardsave.errors"),
        ("from hardsave.objects import tree", "hardsave.objects.tree"),
        ("from hardsave.objects import encode", "hardsave.objects"),
        ("from . import sqlite", "hardsave.stores.sqlite"),
        ("from .sqlite import SQLiteStore", "hardsave.stores.sqlite"),
        ("from ..objects import tree", "hardsave.objects.tree"),
        ("from .. import open", "hardsave"),
        ("importlib.import_module('hardsave.errors')", "hardsave.errors"),
        ("import_module('.sqlite', __package__)", "hardsave.stores.sqlite"),
    ],
)
def test_every_way_to_import_is_seen(line: str, imported: str) -> None:
    known = [
        "hardsave",
        "hardsave.errors",
        "hardsave.objects",
        "hardsave.objects.tree",
        "hardsave.stores",
        "hardsave.stores.sqlite",
    ]
    for source, lazy in [
        (line, False),
        (f"def f():\n    {line}", True),
        (f"if typing.TYPE_CHECKING:\n    {line}", True),
    ]:
        found = imports_of("hardsave.stores.base", ast.parse(source), known, "hardsave.stores")
        assert found == {Import("hardsave.stores.base", imported, lazy)}


def test_empty_packages_and_homeless_names_are_noticed() -> None:
    paths = {
        "hardsave": Path("hardsave/__init__.py"),
        "hardsave.attic": Path("hardsave/attic/__init__.py"),
        "hardsave.objects": Path("hardsave/objects/__init__.py"),
        "hardsave.objects.tree": Path("hardsave/objects/tree.py"),
    }
    assert empty_packages(paths) == ["hardsave.attic"]
    assert is_homeless("hardsave.objects.utils")
    assert is_homeless("hardsave.stores.manager")
    assert not is_homeless("hardsave.compat.manager")
