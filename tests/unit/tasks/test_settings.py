"""What a project's hardsave.yaml may say, and what is refused."""

import os
from pathlib import Path

import pytest

import hardsave
from hardsave import config
from hardsave.config import file
from hardsave.config.file import MAX_BYTES
from hardsave.errors import Misuse
from hardsave.tasks import settings
from hardsave.tasks.settings import DEFAULT, TaskSettings, combined

CODE_AGENT = """
server:
  checkpoint:
    enabled: false
    checkpoint_file: ".mirror.json"
    max_task_attempts: 7
    keep_completed_tasks: 20
"""


def read(text: str | bytes, name: str) -> TaskSettings:
    """The settings of one file's content."""
    return combined([file.read(text, name)])


def test_an_empty_file_changes_nothing() -> None:
    assert read("", "f") == read("# only a comment\n", "f") == read("tasks: {}", "f") == DEFAULT


def test_a_section_whose_settings_are_commented_out_changes_nothing() -> None:
    found = read("tasks:\n  # max_attempts: 5\nserver:\n  checkpoint:\n", "f")
    assert found == DEFAULT
    assert read("tasks: !!null\n  max_attempts: 5\n", "f").max_attempts == 5


def test_the_section_of_code_agent_is_understood() -> None:
    assert read(CODE_AGENT, "f") == TaskSettings(
        enabled=False, checkpoint_file=".mirror.json", max_attempts=7, keep_completed=20
    )


@pytest.mark.parametrize(
    ("profile", "attempts", "kept"),
    [("development", 1, 50), ("production", 3, 200), ("long-running", 5, 500)],
)
def test_a_profile_sets_what_is_not_said(profile: str, attempts: int, kept: int) -> None:
    found = read(f"tasks:\n  profile: {profile}\n", "f")
    assert (found.max_attempts, found.keep_completed, found.cleanup_every) == (attempts, kept, 10)
    other = read(f"tasks:\n  keep_completed: 7\n  profile: {profile}\n", "f")
    assert (other.max_attempts, other.keep_completed) == (attempts, 7)


# A few lines that stand for 9 ** 12 values.
LAUGHS = "&a0 [x, x, x, x, x, x, x, x, x]" + "".join(
    f", &a{number} [{', '.join([f'*a{number - 1}'] * 9)}]" for number in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "task:\n  max_attempts: 3",
            r"f.yaml:1: task is not a setting; .*: hooks, retention, server, store, tasks",
        ),
        ("tasks:\n\n  max_atempts: 3", r"f.yaml:3: tasks.max_atempts is not a setting"),
        ("tasks:\n  max_attempts: 0", r"f.yaml:2: tasks.max_attempts is a number from 1 to 100"),
        ("tasks:\n  max_attempts: 101", r"f.yaml:2: .*from 1 to 100, not '101'"),
        ("tasks:\n  max_attempts: true", r"f.yaml:2: .*from 1 to 100, not 'true'"),
        ("tasks:\n  max_attempts: '3'", r"f.yaml:2: .*from 1 to 100"),
        ("tasks:\n  max_attempts: [3]", r"f.yaml:2: .*from 1 to 100, not a sequence"),
        (f"tasks: {{profile: {'[' * 300}{']' * 300}}}", r"f.yaml:1: .*, not a sequence"),
        ("tasks: {profile: &r [*r]}", r"f.yaml:1: .*, not a sequence"),
        ("tasks: {profile: [" + LAUGHS + "]}", r"f.yaml:1: .*, not a sequence"),
        ("tasks: {? [" + LAUGHS + "] : 3}", r"f.yaml:1: tasks.a sequence is not a setting"),
        ("tasks:\n  profile: fast", r"f.yaml:2: .*development, production, long-running"),
        ("tasks:\n  keep_completed: -1", r"f.yaml:2: .*from 0"),
        ('tasks: ""', r"f.yaml:1: tasks holds settings"),
        ("tasks:\n  - 3", r"f.yaml:2: tasks holds settings"),
        ("- tasks", r"f.yaml:1: the file holds settings"),
        ("tasks:\n  max_attempts: 3\n  max_attempts: 4", r"f.yaml:3: .*for the second time"),
        ("tasks: {\n", r"f.yaml:2: this is not YAML"),
        ("tasks: {max_attempts: !!bool maybe}", r"f.yaml:1: tasks.max_attempts: 'maybe' is no '"),
        ('tasks: {max_attempts: !!int ""}', r"f.yaml:1: tasks.max_attempts: '' is no '"),
        ("store: !!timestamp soon", r"f.yaml:1: store: 'soon' is no '"),
        ("tasks: {max_attempts: 1" + ":1" * 100_000 + "}", r"from 1 to 100, not '1[:1]{79}'…$"),
        ("tasks:\n  max_attempts: !!python/object:os.system 3", r"f.yaml:2: .*"),
        ("store: elsewhere.db", r"f.yaml:1: store is the URL of a store, or the whole path"),
        (
            "stores: /elsewhere.db",
            r"f.yaml:1: stores is not a setting; there are: hooks, retention, server, store",
        ),
        ("server:\n  checkpoint:\n    enabled: 1", r"f.yaml:3: .*is true, false"),
        ("server:\n  checkpoint:\n    checkpoint_file: ../x", r"f.yaml:3: .*without folders"),
        ("server:\n  checkpoint:\n    checkpoint_file: '*'", r"f.yaml:3: .*without folders"),
        ('server:\n  checkpoint:\n    checkpoint_file: "x\\n*"', r"f.yaml:3: .*without folders"),
        ('server:\n  checkpoint:\n    checkpoint_file: "x\\0"', r"f.yaml:3: .*without folders"),
        ("server:\n  checkpoint:\n    checkpoint_file: ..", r"f.yaml:3: .*without folders"),
        (
            "tasks:\n  max_attempts: 3\nserver:\n  checkpoint:\n    max_task_attempts: 4",
            r"f.yaml:5: .*says again",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, said: str) -> None:
    with pytest.raises(Misuse, match=said):
        read(text, "f.yaml")


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(Misuse, match="not YAML"):
        read(b"\xff\xfe\x00\xd8", "f")


def test_a_file_that_cannot_be_read_is_an_error_not_a_default(tmp_path: Path) -> None:
    (tmp_path / config.PROJECT_FILE).mkdir()
    with pytest.raises(Misuse, match="cannot be read"):
        settings.of_project(tmp_path, {})
    (tmp_path / config.PROJECT_FILE).rmdir()
    (tmp_path / config.PROJECT_FILE).write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(Misuse, match="longer than"):
        settings.of_project(tmp_path, {})


def test_a_file_that_nobody_writes_to_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / config.PROJECT_FILE)
    with pytest.raises(Misuse, match="it is no file"):
        settings.of_project(tmp_path, {})


def test_a_file_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(Misuse, match="nested too deeply"):
        read("tasks: " + "[" * 100_000, "f")


def test_a_vault_heeds_the_file_of_its_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "below").mkdir()
    text = "tasks:\n  max_attempts: 9\n  keep_completed: 2\n  cleanup_every: 3\n"
    (tmp_path / config.PROJECT_FILE).write_text(text)
    monkeypatch.chdir(tmp_path / "below")
    with hardsave.open("memory://") as vault:
        assert vault.tasks.add("t").max_attempts == 9
        for number in range(5):
            vault.tasks.add(f"t{number}")
            with vault.tasks.attempt(f"t{number}"):
                pass
        assert [vault.tasks.iterate() for _ in range(2)] == [1, 2]
        assert vault.tasks.stats().completed == 5
        assert vault.tasks.iterate() == 3
        assert [task.id for task in vault.tasks.find(state="completed")] == ["t3", "t4"]


def test_ten_iterations_clean_up_by_default() -> None:
    with hardsave.open("memory://") as vault:
        for number in range(103):
            vault.tasks.add(f"t{number}")
            with vault.tasks.attempt(f"t{number}"):
                pass
        for _ in range(10):
            vault.tasks.iterate()
        assert vault.tasks.stats().completed == 100


def test_a_directory_that_is_gone_has_no_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "gone"
    place.mkdir()
    monkeypatch.chdir(place)
    place.rmdir()
    with hardsave.open("memory://") as vault:
        assert vault.tasks.add("t").max_attempts == 3


def test_a_project_s_file_is_more_specific_than_the_user_s() -> None:
    user = file.read("tasks:\n  max_attempts: 7\n  cleanup_every: 3\n", "user")
    project = file.read("tasks:\n  keep_completed: 5\n", "project")
    assert combined([user, project]) == TaskSettings(
        max_attempts=7, cleanup_every=3, keep_completed=5
    )
    profile = file.read("tasks:\n  profile: development\n", "project")
    assert combined([user, profile]).max_attempts == 1
    assert combined([profile, user]).max_attempts == 7
