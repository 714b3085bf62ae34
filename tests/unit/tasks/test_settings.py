"""What a project's hardsave.yaml may say, and what is refused."""

import contextlib
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hardsave
from hardsave import config
from hardsave.config import file, trust
from hardsave.config.nodes import composed
from hardsave.defaults import MAX_CONFIG_BYTES
from hardsave.errors import Misuse
from hardsave.tasks import settings
from hardsave.tasks.settings import DEFAULT, TaskSettings, combined
from tests.unit.repositories import begin_repository

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
            r"f.yaml:1: task is not a setting; .*: compress, hooks, .*, store, strict, tasks",
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
        ("store: !!timestamp soon", r"f.yaml:1: store is the URL of a store, .*, not 'soon'"),
        ("tasks: {max_attempts: 1" + ":1" * 400 + ".0}", r"f.yaml:1: tasks.max_attempts is a num"),
        ('store: "\\UFFFFFFFF"', r"f.yaml: this is not YAML"),
        ("tasks: {max_attempts: 1" + ":1" * 100_000 + "}", r"from 1 to 100, not '1[:1]{79}'…$"),
        ("tasks:\n  max_attempts: !!python/object:os.system 3", r"f.yaml:2: .*"),
        ("store: elsewhere.db", r"f.yaml:1: store is the URL of a store, or the whole path"),
        (
            "stores: /elsewhere.db",
            r"f.yaml:1: stores is not a setting; there are: compress, hooks, include, recovery, ",
        ),
        ("server:\n  checkpoint:\n    enabled: 1", r"f.yaml:3: .*is true, false"),
        (
            "server:\n  checkpoint:\n    checkpoint_file: ../x",
            r"f.yaml:3: .*a file inside of the project",
        ),
        (
            "server:\n  checkpoint:\n    checkpoint_file: '*'",
            r"f.yaml:3: .*a file inside of the project",
        ),
        (
            'server:\n  checkpoint:\n    checkpoint_file: "x\\n*"',
            r"f.yaml:3: .*a file inside of the project",
        ),
        (
            'server:\n  checkpoint:\n    checkpoint_file: "x\\0"',
            r"f.yaml:3: .*a file inside of the project",
        ),
        (
            "server:\n  checkpoint:\n    checkpoint_file: ..",
            r"f.yaml:3: .*a file inside of the project",
        ),
        (
            "server:\n  checkpoint:\n    checkpoint_file: /x",
            r"f.yaml:3: .*a file inside of the project",
        ),
        ("server:\n  checkpoint:\n    checkpoint_file: a/.GIT/x", r"f.yaml:3: .*a file inside of"),
        ("server:\n  checkpoint:\n    checkpoint_file: a//x", r"f.yaml:3: .*a file inside of"),
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


ANYTHING = st.text(st.sampled_from("tasks:max_ep{}[]&*!|>%@`'\"\\U0F1.:- \n#~?,")) | st.text()


@given(ANYTHING)
def test_no_text_is_worse_than_refused(text: str) -> None:
    with contextlib.suppress(Misuse):
        read(f"tasks: {{max_attempts: {text}}}", "f")
    with contextlib.suppress(Misuse):
        read(text, "f")


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """What is reported, as if this process had not reported anything before."""
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(config, "_reported", set())
    return lambda: caplog.text


def test_a_file_that_cannot_be_read_is_reported_and_nothing_is_forgotten(
    tmp_path: Path, told: Callable[[], str]
) -> None:
    (tmp_path / config.PROJECT_FILE).write_text("tasks:\n  keep_completed: many\n")
    assert settings.of_project(tmp_path, {}) == TaskSettings(cleanup_every=0)
    assert f"{tmp_path}/hardsave.yaml:2: tasks.keep_completed is a number from 0 to" in told()


def test_a_file_that_is_none_or_too_long_is_reported(
    tmp_path: Path, told: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / config.PROJECT_FILE).mkdir()
    assert settings.of_project(tmp_path, {}).max_attempts == 3
    assert "hardsave.yaml cannot be read" in told()
    (tmp_path / config.PROJECT_FILE).rmdir()
    (tmp_path / config.PROJECT_FILE).write_bytes(b"#" * (MAX_CONFIG_BYTES + 1))
    monkeypatch.setattr(config, "_reported", set())
    assert settings.of_project(tmp_path, {}).max_attempts == 3
    assert "is longer than 32 KiB" in told()


def test_a_pipe_in_place_of_the_file_is_not_waited_for(
    tmp_path: Path, told: Callable[[], str]
) -> None:
    os.mkfifo(tmp_path / config.PROJECT_FILE)
    assert settings.of_project(tmp_path, {}).max_attempts == 3
    assert "it is no file" in told()


@pytest.mark.parametrize("text", ["tasks: {max_attempts: 5}\n", "tasks: {\n"])
def test_a_file_is_parsed_once_a_process(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def counted(data: bytes | str, name: str) -> object:
        parsed.append(name)
        return composed(data, name)

    monkeypatch.setattr(file, "composed", counted)
    for _ in range(3):
        with contextlib.suppress(Misuse):
            read(text, f"once/{len(text)}.yaml")
    assert parsed == [f"once/{len(text)}.yaml"]


def test_a_file_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(Misuse, match="nested too deeply"):
        read("tasks: " + "[" * 100_000, "f")


def test_a_vault_heeds_the_file_of_its_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_repository(tmp_path)
    (tmp_path / "below").mkdir()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    text = "tasks:\n  max_attempts: 9\n  keep_completed: 2\n  cleanup_every: 3\n"
    trusted(tmp_path, text)
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


def trusted(project: Path, text: str) -> None:
    """A project's file that says this, and that its user has trusted."""
    (project / config.PROJECT_FILE).write_text(text)
    found = trust.look(project)
    assert found is not None
    trust.trust(found, os.environ, sys.platform)


@pytest.mark.parametrize(
    "text",
    [
        "tasks: {keep_completed: 0, cleanup_every: 1}",
        "tasks: {profile: development}",
        "server: {checkpoint: {keep_completed_tasks: 0}}",
    ],
)
def test_a_stranger_s_file_lets_no_finished_task_run_again(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / config.PROJECT_FILE).write_text(text)
    monkeypatch.chdir(tmp_path)
    with hardsave.open("memory://") as vault:
        for number in range(102):
            vault.tasks.add(f"t{number}")
            with vault.tasks.attempt(f"t{number}"):
                pass
        for _ in range(20):
            vault.tasks.iterate()
        assert not vault.tasks.add("t0").is_new


def test_a_comment_in_a_trusted_file_has_no_finished_task_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    trusted(tmp_path, "tasks: {keep_completed: 1000}\n")
    assert settings.of_project(tmp_path, os.environ) == TaskSettings(keep_completed=1000)
    with (tmp_path / config.PROJECT_FILE).open("a") as written:
        written.write("# of an agent\n")
    assert settings.of_project(tmp_path, os.environ) == TaskSettings(cleanup_every=0)


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
