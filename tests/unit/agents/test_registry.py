"""Which agent CLIs are known, and what is loaded to know it."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hardsave
from hardsave.agents import registry
from hardsave.agents.spec import AgentSpec
from hardsave.errors import Misuse
from tests.integration.agents.parrot import Parrot

SOURCE = Path(hardsave.__file__).parent
OWN = (SOURCE / "agents/claude_code", SOURCE / "agents/codex", SOURCE / "agents/qwen_code")


@pytest.fixture(autouse=True)
def unchanged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_registered", {})
    registry._installed.cache_clear()
    yield
    registry._installed.cache_clear()


def test_one_that_was_registered_is_found_by_its_name_and_by_what_is_typed() -> None:
    assert registry.named("parrot") is None
    spec = Parrot()
    registry.register(spec)
    assert registry.named("parrot") is spec
    assert registry.typed("/opt/bin/parrot") is spec
    assert registry.of_hook(["parrot", "more"]) is spec
    assert registry.every()[-1] is spec


def test_a_hook_that_names_no_agent_that_is_known_is_taken_for_the_first_one() -> None:
    assert registry.of_hook([]) is registry.every()[0]
    assert registry.of_hook(["unheard-of"]) is registry.every()[0]
    assert registry.named(None) is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"name": "Parrot One"}, "is named in small letters"),
        ({"name": "codex"}, "comes with Hardsave"),
        ({"project_variable": "PARROT_WHERE"}, "ends with _PROJECT_DIR"),
    ],
)
def test_a_spec_that_others_could_not_rely_on_is_refused(change: dict[str, str], why: str) -> None:
    with pytest.raises(Misuse, match=why):
        registry.register(type("Odd", (Parrot,), change)())
    assert registry.typed("parrot") is None


def test_a_spec_that_leaves_something_out_is_refused_by_what_it_lacks() -> None:
    class Half(AgentSpec):
        name = "half"
        resume_words = Parrot.resume_words
        transcripts = Parrot.transcripts
        original = Parrot.original
        copy_path = Parrot.copy_path

    with pytest.raises(Misuse, match="Half says nothing of title, program, folder_variable"):
        registry.register(Half())


@pytest.mark.parametrize(("folder", "is_found"), [("site-packages", True), ("src", False)])
def test_packages_are_looked_for_where_they_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, is_found: bool
) -> None:
    """A workspace may be on the path, too, and an agent writes there."""
    about = tmp_path / folder / "hardsave_odd-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: hardsave-odd\nVersion: 1\n")
    (about / "entry_points.txt").write_text(
        "[hardsave.agents]\nparrot = tests.integration.agents.parrot:SPEC\n"
    )
    monkeypatch.syspath_prepend(tmp_path / folder)
    assert (registry.named("parrot") is not None) == is_found


def test_to_ask_for_one_loads_no_other() -> None:
    script = "import sys; from hardsave.agents import registry; registry.of_hook(['claude-code'])\n"
    script += "print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    loaded = done.stdout.decode().split()
    assert "hardsave.agents.claude_code.lines" in loaded
    assert not [name for name in loaded if name.startswith("hardsave.agents.codex")]
    assert not {"importlib.metadata", "hardsave.agents.settings"} & set(loaded)


def test_nothing_of_an_agent_stands_outside_of_its_folder() -> None:
    """Titles in texts for people apart: a constant, a variable of the environment, a folder."""
    named = re.compile(r"\b(CLAUDE|CODEX)(_|\b)|\.codex\b|\.claude/settings")
    others = (path for path in SOURCE.rglob("*.py") if not set(OWN) & set(path.parents))
    found = {str(path.relative_to(SOURCE)) for path in others if named.search(path.read_text())}
    assert found == {"agents/registry.py"}
