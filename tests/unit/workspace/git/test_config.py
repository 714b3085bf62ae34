"""Git's configuration, as git reads it; and the excludes file that it names."""

import logging
import os
import time
from pathlib import Path

import pytest

from hardsave.workspace.git.config import Setting, global_excludes, parse, read
from tests.unit.workspace.repository import Repository

TEXTS = (
    b"[core]\n\texcludesFile = ~/x\n",
    b"[CORE]EXCLUDESFILE=a b  c   # comment\n",
    b'[core]\n\ta = " b " ; comment\n\tb = "x#y" z\n',
    b'[core]\r\n\ta = b\r\n[remote "O\\"r\\\\igin"]\r\n\turl=x\r\n',
    b"[a] b = c\\\n  d\n[a.B]\nx\n",
    b'\xef\xbb\xbf[a]\nb = \\t\\"\\\\\\n.\n',
    b"# c\n; d\n[a]\n\n  b-c = 1\n  b2\n  d=\n",
    b'[a "b c"] d = e\n[a]d="one"two" three"\n',
    b"[a]\nb = x\\\n\n[c]\nd = y",
)


@pytest.mark.parametrize("text", TEXTS)
def test_settings_are_those_that_git_reads(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "config").write_bytes(text)
    listed = Repository(tmp_path / "r").git("config", "--file", "../config", "--list", "-z")
    assert listed != b""
    expected = []
    for entry in listed.split(b"\0")[:-1]:
        key, equals, value = entry.partition(b"\n")
        expected.append(Setting(key, value if equals else None))
    assert [spaced(setting) for setting in parse(text)] == [spaced(each) for each in expected]


def spaced(setting: Setting) -> Setting:
    """Git has changed its mind about tabs in the middle of a value."""
    return setting._replace(value=setting.value and setting.value.replace(b"\t", b" "))


@pytest.mark.parametrize("text", [b"[", b"[a", b'[a "', b"= x", b"[a]\n=\n", b"\0\n[a", b"[a]b=\\"])
def test_what_git_refuses_does_no_harm(text: bytes) -> None:
    assert [setting for setting in parse(text) if setting.value] == []


def test_a_file_that_includes_another_is_read_with_it(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("[include]\npath = more/config\npath = ~/home\n[a]\nb = 1\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "config").write_text("[a]\nb = 2\n[include]\npath = config\n")
    (tmp_path / "home").write_text("[a]\nb = 3\n")
    values = [
        value for key, value in read(tmp_path / "config", home=tmp_path, seen=[]) if key == b"a.b"
    ]
    assert set(values) == {b"1", b"2", b"3"}  # and the one that includes itself comes to an end
    assert values[-2:] == [b"3", b"1"]


# The excludes file


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".config" / "git").mkdir(parents=True)
    (tmp_path / ".config" / "git" / "ignore").write_text("by default\n")
    (tmp_path / "excludes").write_text("chosen\n")
    return tmp_path


def test_without_a_setting_the_default_file_counts(home: Path) -> None:
    assert global_excludes({}, home, []) == b"by default\n"
    assert global_excludes({"XDG_CONFIG_HOME": ""}, home, []) == b"by default\n"
    assert global_excludes({"XDG_CONFIG_HOME": str(home / "nowhere")}, home, []) == b""
    elsewhere = {"XDG_CONFIG_HOME": str(home / ".config")}
    assert global_excludes(elsewhere, home / "nowhere", []) == b"by default\n"


@pytest.mark.parametrize("value", ["~/excludes", "{home}/excludes", '"{home}/excludes" ; comment'])
def test_the_setting_names_another(home: Path, value: str) -> None:
    (home / ".gitconfig").write_text(f"[core]\nexcludesfile = {value.format(home=home)}\n")
    assert global_excludes({}, home, []) == b"chosen\n"


@pytest.mark.parametrize("value", ["", "~/nowhere", "~other/x", "excludes", "~/.config"])
def test_a_setting_that_leads_nowhere_means_no_excludes(home: Path, value: str) -> None:
    (home / ".gitconfig").write_text(f"[core]\nexcludesFile = {value}\n")
    assert global_excludes({}, home, []) == b""


def test_the_file_in_the_home_directory_decides_over_the_other(home: Path) -> None:
    (home / ".config" / "git" / "config").write_text("[core]\nexcludesfile = ~/excludes\n")
    assert global_excludes({}, home, []) == b"chosen\n"
    (home / ".gitconfig").write_text("[core]\nexcludesfile = ~/other\n")
    assert global_excludes({}, home, []) == b""


def test_one_file_for_all_may_be_named_by_the_environment(home: Path) -> None:
    (home / ".gitconfig").write_text("[core]\nexcludesfile = ~/other\n")
    (home / "config").write_text("[core]\nexcludesfile = ~/excludes\n")
    assert global_excludes({"GIT_CONFIG_GLOBAL": str(home / "config")}, home, []) == b"chosen\n"


def test_a_pipe_or_a_file_without_permission_is_not_waited_for(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    os.mkfifo(home / ".gitconfig")
    assert global_excludes({}, home, []) == b"by default\n"
    (home / ".config" / "git" / "ignore").unlink()
    (home / ".config" / "git" / "ignore").symlink_to("ignore")
    with caplog.at_level(logging.WARNING):
        assert global_excludes({}, home, []) == b""
    assert "left out of the ignore rules" in caplog.text


def test_many_spaces_in_a_value_take_no_time() -> None:
    spaces = b" " * 400_000
    started = time.process_time()
    assert list(parse(b"[a]\nb = x" + spaces + b"y" + spaces)) == [(b"a.b", b"x" + spaces + b"y")]
    assert time.process_time() - started < 4


def test_a_value_may_be_long() -> None:
    long = b"x" * (1 << 20)
    assert list(parse(b"[a]\nb = " + long + b"\nc = d")) == [
        (b"a.b", long),
        (b"a.c", b"d"),
    ]


def test_a_configuration_that_is_none_is_nothing_to_warn_of(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert global_excludes({"GIT_CONFIG_GLOBAL": os.devnull}, home, []) == b"by default\n"
        (home / ".gitconfig").write_text(f"[core]\nexcludesfile = {os.devnull}\n")
        assert global_excludes({}, home, []) == b""
    assert caplog.text == ""
