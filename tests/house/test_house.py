"""What holds for the repository as a whole: its files, its locks, its declared dependencies."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = {path.stem: path.read_text() for path in sorted((ROOT / "requirements").glob("*.txt"))}

# Put together from pieces, so that this file does not contain what it looks for.
PACKAGE_HOSTS = tuple(
    ".".join(pieces)
    for pieces in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("anaconda", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("deb", "debian", "org"),
        ("security", "debian", "org"),
        ("archive", "ubuntu", "com"),
        ("crates", "io"),
        ("rubygems", "org"),
        ("proxy", "golang", "org"),
        ("repo1", "maven", "org"),
    )
)
HOST = re.compile("|".join(re.escape(host) for host in PACKAGE_HOSTS), re.IGNORECASE)
PLAIN_NAME = re.compile(r"[\w./+-]+", re.ASCII)
PICTURES = {".png"}
# Stores as earlier versions wrote them are kept packed, and the repository stays light.
FIXTURES = re.compile(r"tests/fixtures/schema\d+/[a-z-]+\.tar\.xz")
MOST_FIXTURE_BYTES = 3 << 20
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:work|root)/")

# In the standard library of a newer Python than the oldest that we support.
NEWER_STANDARD_LIBRARY = {"compression"}
# hardsave.testing is for people who run tests; it may expect these to be there.
TEST_LIBRARIES = {"hypothesis", "pytest"}

# Distributions that are not called like their module, or that come with another one's version.
RENAMED = {
    "agent_framework": "agent-framework-core",
    "agents": "openai-agents",
    "pydantic_ai": "pydantic-ai-slim",
    "pydantic_graph": "pydantic-ai-slim",
    "yaml": "pyyaml",
}
# Packages that several distributions share: what follows their first name tells which it is.
SHARED = {
    "backports.zstd": "backports-zstd",
    "google.adk": "google-adk",
    "langgraph.checkpoint": "langgraph-checkpoint",
}


# The files


def files_of_the_project() -> list[Path]:
    """Return what is tracked or would be; without git, everything that is not hidden or cached."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
        paths = [ROOT / os.fsdecode(name) for name in listed.split(b"\0") if name]
    except (OSError, subprocess.CalledProcessError):
        paths = list(walk(ROOT))
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def walk(root: Path) -> Iterator[Path]:
    for directory, subdirectories, names in os.walk(root):
        subdirectories[:] = [
            name
            for name in subdirectories
            if name not in {".git", ".hypothesis", "__pycache__", "build", "dist"}
            and not name.startswith(".venv")
            and not name.endswith(("_cache", ".egg-info"))
        ]
        yield from (Path(directory, name) for name in names)


def mentions(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files_of_the_project()
        for number, line in enumerate(path.read_bytes().decode(errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_names_a_package_host() -> None:
    assert mentions(HOST) == []


def test_no_file_names_a_path_of_one_machine() -> None:
    assert mentions(MACHINE_PATH) == []


def test_the_search_for_hosts_and_paths_can_find_some() -> None:
    assert HOST.search(f"https://files.{PACKAGE_HOSTS[1].upper()}/packages")
    assert MACHINE_PATH.search("see /" + "root/notes.txt")
    assert MACHINE_PATH.search("file:///" + "work/notes.txt")
    assert not MACHINE_PATH.search("docs/" + "work/notes.txt")


def is_stray(path: Path) -> bool:
    """Whether a file can be none that was written by hand: what a program left behind, say."""
    name = str(path.relative_to(ROOT))
    if not PLAIN_NAME.fullmatch(name):
        return True
    if FIXTURES.fullmatch(name):
        return False
    try:
        path.read_bytes().decode()
    except UnicodeDecodeError:
        return path.suffix not in PICTURES
    return False


def test_no_file_is_there_by_mistake() -> None:
    assert [path for path in files_of_the_project() if is_stray(path)] == []


def test_the_fixtures_are_small() -> None:
    fixtures = (ROOT / "tests/fixtures").rglob("*")
    sizes = [path.stat().st_size for path in fixtures if path.suffix in {".xz", ".json"}]
    assert 0 < sum(sizes) < MOST_FIXTURE_BYTES


@pytest.mark.parametrize(
    ("name", "data", "stray"),
    [
        ("a.py", b"x = 1\n", False),
        (".ci", b"", False),
        ("store.db", b"SQLite format 3\0\xff", True),
        ("<Vault object at 0x7f>-lock", b"", True),
        ("picture.svg", b"<svg/>", False),
        ("tests/fixtures/schema6/many.tar.xz", b"\xfd7zXZ\0", False),
        ("tests/many.tar.xz", b"\xfd7zXZ\0", True),
    ],
)
def test_what_is_there_by_mistake_is_noticed(
    name: str, data: bytes, stray: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(data)
    assert is_stray(tmp_path / name) is stray


def test_the_walk_without_git_misses_no_file() -> None:
    assert set(files_of_the_project()) <= set(walk(ROOT))


# The locks


def requirements(lock: str) -> Iterator[tuple[str, str, int]]:
    """Yield each requirement's name, version and number of hashes; refuse what is not pinned."""
    logical_lines = lock.replace("\\\n", " ").splitlines()
    for line in logical_lines:
        if not line or line.startswith("#"):
            continue
        pinned = re.match(r"([a-z0-9-]+)==([^ ;]+)", line)
        if not pinned:
            raise ValueError(f"not a pinned requirement: {line[:80]!r}")
        yield pinned[1], pinned[2], len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", line))


def versions(lock: str) -> dict[str, set[str]]:
    """Return the versions by name; there are several where they depend on Python or system."""
    found: dict[str, set[str]] = {}
    for name, version, _ in requirements(lock):
        found.setdefault(name, set()).add(version)
    return found


def disagreements(one: str, other: str) -> list[str]:
    ours, theirs = versions(one), versions(other)
    return sorted(name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name])


def test_there_is_a_lock_for_every_group_that_is_installed() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    assert LOCKS.keys() == (groups.keys() - {"build"}) | {"core"}


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_requirement_has_hashes(name: str) -> None:
    counts = {requirement: hashes for requirement, _, hashes in requirements(LOCKS[name])}
    assert counts
    assert [requirement for requirement, hashes in counts.items() if not hashes] == []


@pytest.mark.parametrize("name", LOCKS)
def test_every_lock_agrees_with_the_others_about_versions(name: str) -> None:
    found = {other: disagreements(LOCKS[name], LOCKS[other]) for other in LOCKS}
    assert {other: names for other, names in found.items() if names} == {}


@pytest.mark.parametrize("name", sorted(LOCKS.keys() - {"core", "uv"}))
def test_every_lock_contains_the_core(name: str) -> None:
    assert versions(LOCKS["core"]).keys() <= versions(LOCKS[name]).keys()


def test_every_declared_dependency_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert core_dependencies() <= versions(LOCKS["core"]).keys()
    for group in LOCKS.keys() - {"core"}:
        plain = [entry for entry in project["dependency-groups"][group] if isinstance(entry, str)]
        assert {distribution(entry) for entry in plain} <= versions(LOCKS[group]).keys()


def test_the_reading_of_locks_can_fail() -> None:
    assert list(requirements("apsw==3.54.1 ; python_version < '4'\n")) == [("apsw", "3.54.1", 0)]
    assert list(requirements(f"apsw==3 \\\n    --hash=sha256:{'0' * 64}\n")) == [("apsw", "3", 1)]
    assert disagreements("apsw==1\nblake3==1\n", "apsw==2\nblake3==1\n") == ["apsw"]
    with pytest.raises(ValueError, match="not a pinned requirement"):
        list(requirements("apsw>=3\n"))


# The dependencies


def distribution(requirement: str) -> str:
    """Return the normalised name of the distribution that a requirement asks for."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def core_dependencies() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {distribution(requirement) for requirement in project["dependencies"]}


def extra_dependencies() -> set[str]:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    return {distribution(requirement) for extra in extras.values() for requirement in extra}


def dependencies_of_frameworks() -> set[str]:
    """Return what only adapters import: it is tested in an environment of its own."""
    adapters = ROOT / "src/hardsave/adapters"
    elsewhere = set().union(
        *(
            third_party(path.read_text())
            for path in (ROOT / "src").rglob("*.py")
            if adapters not in path.parents
        )
    )
    return extra_dependencies() - elsewhere


def third_party(source: str) -> set[str]:
    """Return the distributions whose modules are imported anywhere in the source."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            modules.update(f"{node.module}.{alias.name}" for alias in node.names)
    ours = {"hardsave", *sys.stdlib_module_names, *NEWER_STANDARD_LIBRARY}
    return {provider(module) for module in modules if module.partition(".")[0] not in ours}


def provider(module: str) -> str:
    """Return the distribution of a module: its first name, except in a shared namespace."""
    first, *rest = module.split(".")
    if first in RENAMED:
        return RENAMED[first]
    return SHARED.get(f"{first}.{rest[0]}" if rest else first, distribution(first))


def test_the_dependencies_are_exactly_what_the_source_imports() -> None:
    imported: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        allowed = TEST_LIBRARIES if "testing" in path.parts else set()
        imported |= third_party(path.read_text()) - allowed
    assert imported == core_dependencies() | extra_dependencies()


def test_every_extra_is_tested() -> None:
    of_frameworks = dependencies_of_frameworks()
    assert extra_dependencies() - of_frameworks <= versions(LOCKS["test"]).keys()
    assert of_frameworks <= versions(LOCKS["frameworks"]).keys()


def test_adapters_are_type_checked_as_strictly_as_the_rest() -> None:
    def rules(path: str) -> dict[str, object]:
        found: dict[str, object] = tomllib.loads((ROOT / path).read_text())["tool"]["mypy"]
        where = {"mypy_path", "exclude", "overrides"}
        return {name: value for name, value in found.items() if name not in where}

    assert rules("tests/frameworks/mypy.toml") == rules("pyproject.toml")


@pytest.mark.parametrize("module", ["hardsave", "hardsave.cli.main", "hardsave.runtime.agent"])
def test_what_needs_no_extra_loads_none(module: str) -> None:
    program = f"import sys, {module}; print(*sorted(sys.modules))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    loaded = {distribution(name) for name in run.stdout.decode().split() if "." not in name}
    assert loaded & {"pydantic-ai", "pydantic", "openai", "anthropic"} == set()


def test_the_search_for_imports_looks_into_functions_and_namespaces() -> None:
    source = "import os.path\ndef f():\n    from backports import zstd\n    import blake3\n"
    assert third_party(source) == {"backports-zstd", "blake3"}
    assert third_party("from backports.zstd import compress") == {"backports-zstd"}
    assert third_party("from . import codec\nimport hardsave") == set()
    assert third_party("from compression import zstd") == set()
    assert third_party("import msgspec, pydantic.main") == {"msgspec", "pydantic"}
    assert third_party("from langgraph.checkpoint import base") == {"langgraph-checkpoint"}
    assert third_party("from langgraph.types import Send") == {"langgraph"}


def test_the_package_is_marked_as_typed() -> None:
    assert (ROOT / "src/hardsave/py.typed").is_file()
