"""Tab in real shells: commands, options, timelines and refs."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.integration.cli.conftest import Project
from tests.integration.cli.screen import Screen

PROGRAM = Path(sys.executable).with_name("hardsave")
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="hardsave is not installed here")


def shell(project: Project, *words: str) -> Screen:
    path = shutil.which(words[0])
    if path is None:
        pytest.skip(f"there is no {words[0]} here")
    found = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**project.environment, "PATH": found, "PS1": "ask> "}
    return Screen([path, *words[1:]], cwd=project.path, environment=environment)


def test_bash_completes_commands_names_and_numbers(project: Project) -> None:
    with shell(project, "bash", "--norc", "-i") as seen:
        seen.wait_for("ask>")
        seen.type("eval \"$(hardsave completion bash)\"; clear; echo re''ady\n")
        seen.wait_for("ready")
        seen.type("hardsave bis\t")
        seen.wait_for("hardsave bisect")
        seen.type("\x15hardsave show pl\t")
        seen.wait_for("hardsave show plan-ready")
        seen.type("\x15hardsave show session-1:\t\t")
        shown = seen.wait_for("session-1:5")
        assert "session-1:1" in shown
        seen.type("\x15hardsave log -t sess\t")
        seen.wait_for("hardsave log -t session-1")
        seen.type("\x15hardsave rewind --dry\t")
        seen.wait_for("hardsave rewind --dry-run")


@pytest.mark.parametrize(
    ("begun", "whole"),
    [
        ("two\\ w", "two\\ words"),
        ("'two w", "'two words'"),
        pytest.param("tw", "two\\ words", marks=pytest.mark.torture),
        pytest.param('"tw', '"two words"', marks=pytest.mark.torture),
    ],
)
def test_bash_completes_names_with_spaces_so_that_they_can_be_run(
    project: Project, begun: str, whole: str
) -> None:
    assert project.run("save", "two words").returncode == 0
    with shell(project, "bash", "--norc", "-i") as seen:
        seen.wait_for("ask>")
        seen.type("eval \"$(hardsave completion bash)\"; clear; echo re''ady\n")
        seen.wait_for("ready")
        seen.type(f"hardsave show {begun}\t")
        seen.wait_for(f"hardsave show {whole}")
        seen.type("| grep -c 'session-1:6 .*two words'; echo do''ne\n")
        assert "\n1\ndone" in seen.wait_for("done")


def test_zsh_completes_commands_and_names(project: Project) -> None:
    with shell(project, "zsh", "-f", "-i") as seen:
        seen.wait_for("ask>")
        seen.type('autoload -Uz compinit; compinit -u -D; eval "$(hardsave completion zsh)"\n')
        seen.type("clear; echo re''ady\n")
        seen.wait_for("ready")
        seen.type("hardsave bis\t")
        seen.wait_for("hardsave bisect")
        seen.type("\x15hardsave show pl\t")
        seen.wait_for("hardsave show plan-ready")
        seen.type("\x15hardsave show session-1:\t")
        shown = seen.wait_for("session-1:5")
        assert "session-1:1" in shown
        seen.type("\x15hardsave log -t sess\t")
        seen.wait_for("hardsave log -t session-1")


def test_nothing_is_said_in_the_middle_of_a_prompt(project: Project) -> None:
    (project.path / "hardsave.yaml").write_text("store: sqlite:///elsewhere.db\n")
    asked = {"_HARDSAVE_COMPLETE": "bash_complete", "COMP_CWORD": "2"}
    environment = {**project.environment, **asked, "COMP_WORDS": "hardsave show pl"}
    done = Project(project.path, environment).run()
    assert (done.stdout, done.stderr) == ("plain,plan-ready\n", "")
