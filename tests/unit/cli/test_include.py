"""Files that settings ask for are saved although they are ignored; what is left out is said."""

from pathlib import Path

import pytest

import hardsave
from hardsave.config import file
from hardsave.errors import Misuse
from tests.unit.cli.conftest import Run


@pytest.fixture
def ignoring(project: Path) -> Path:
    (project / ".gitignore").write_text(".env\n*.sqlite\n")
    (project / ".env").write_text("KEY=1")
    (project / "local.sqlite").write_text("rows")
    return project


def settings(project: Path, text: str) -> Path:
    path = project.parent / "config" / "hardsave" / "config.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def saved(project: Path) -> set[str]:
    """As hooks and runs save: by the library, with no word of what to include."""
    with hardsave.open() as vault:
        files = vault.timeline("hook").save_files(project).files
        assert files is not None
        return {each.path for each in files.list()}


def test_what_the_users_settings_include_is_saved_by_every_save(ignoring: Path, run: Run) -> None:
    assert saved(ignoring) == {".gitignore", "a.txt"}
    settings(ignoring, "include: [.env]\n")
    assert saved(ignoring) == {".gitignore", ".env", "a.txt"}
    run("save", "--include", "*.sqlite")
    assert "+ local.sqlite" in run("show", "@").out  # and .env is there as before
    (ignoring / ".env").unlink()
    run("rewind", "@", "--files", "--yes")
    assert (ignoring / ".env").read_text() == "KEY=1"


def test_a_projects_file_includes_nothing_before_it_is_trusted(ignoring: Path, run: Run) -> None:
    (ignoring / "hardsave.yaml").write_text("include: [.env]\n")
    assert ".env" not in saved(ignoring)
    assert run("trust", "--yes").code == 0
    assert ".env" in saved(ignoring)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (".env", "include is a list of names and patterns, .*, not '.env'"),
        ("[]", "include is a list of names and patterns, .*, not one of 0"),
        (f"[{'a, ' * 101}]", "not one of 101: at most 100"),
        ("[.env, ../other]", r"include: '../other' has '\.\.' in it: .* inside of the workspace"),
        ("[/etc/passwd]", "include: '/etc/passwd' begins with '/'"),
        ("[a//b]", "include: 'a//b' has '//' in it"),
        ("['']", "include: '' is empty"),
        ("[3]", "include: '3' is no text"),
        ("[[.env]]", "include: a sequence is no text"),
        ("['*']", r"include: '\*' would be every file"),
    ],
)
def test_patterns_that_cannot_be_are_refused_with_the_reason(value: str, why: str) -> None:
    with pytest.raises(Misuse, match=f"config.yaml:1: .*{why}"):
        file.read(f"include: {value}\n", "config.yaml")


def test_a_save_names_once_what_is_left_out(ignoring: Path, run: Run) -> None:
    said = run("save").err
    assert "not saved, because ignored: .env, local.sqlite" in said
    assert "include: ['.env']" in said
    assert "ignored" not in run("save").err


def test_doctor_tells_what_is_left_out_and_what_matches_nothing(ignoring: Path, run: Run) -> None:
    run("save")
    found = {each["what"]: each for each in run("doctor", "--json").data}["left out"]
    assert (found["level"], ".env, local.sqlite" in found["message"]) == ("ok", True)
    path = settings(ignoring, "include: [.env, nosuch]\n")
    run("save")
    found = {each["what"]: each for each in run("doctor", "--json").data}["left out"]
    assert found["level"] == "warning"
    assert found["message"] == "no file is matched by include: nosuch"
    assert str(path) in found["remedy"]
