"""Commands as processes: how they start, what they load, how they end."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.cli.conftest import HARDSAVE, Project
from tests.unit.repositories import begin_repository


def loaded(project: Project, *arguments: str) -> set[str]:
    """The modules that a command loads."""
    script = (
        "import sys; from hardsave.cli.main import main; main(sys.argv[1:]); "
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=project.path,
        env={"PATH": os.environ["PATH"], **project.environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(done.stderr.split())


def test_help_loads_no_command_no_store_and_nothing_to_draw_with(project: Project) -> None:
    found = loaded(project, "--help")
    assert "click" in found
    assert not {name for name in found if name.startswith("hardsave.cli.commands")}
    assert not found & {"rich", "apsw", "asyncio", "difflib", "json.tool", "hardsave.cli.session"}


def test_answers_in_json_load_nothing_to_draw_with(project: Project) -> None:
    for command in (["log"], ["show", "@"], ["status"], ["store", "stats"], ["undo", "--list"]):
        found = loaded(project, *command, "--json")
        assert "rich" not in found, command
        assert not {name for name in found if name.startswith("prompt")}


def test_a_reader_that_has_had_enough_ends_it_quietly(project: Project) -> None:
    piped = subprocess.run(
        ["sh", "-c", f"{' '.join(HARDSAVE)} show @ --full | true"],
        cwd=project.path,
        env={"PATH": os.environ["PATH"], **project.environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert piped.stderr == ""


@pytest.mark.parametrize("module", ["click", "rich"])
def test_an_interruption_while_it_is_loaded_is_told_as_any_other(
    project: Project, tmp_path: Path, module: str
) -> None:
    (tmp_path / f"{module}.py").write_text("raise KeyboardInterrupt")
    first = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            first + "from hardsave.__main__ import main; sys.exit(main())",
            "log",
        ],
        cwd=project.path,
        env={"PATH": os.environ["PATH"], **project.environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 130
    assert "Traceback" not in done.stderr


def shell(project: Project, script: str) -> "subprocess.CompletedProcess[str]":
    """A line of a shell, in which `hardsave` is ours."""
    return subprocess.run(
        ["sh", "-c", f'hardsave() {{ {" ".join(HARDSAVE)} "$@"; }}; {script}'],
        cwd=project.path,
        env={"PATH": os.environ["PATH"], **project.environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("hardsave log >&-", 0),
        ("hardsave log --json 2>&-", 0),
        ("hardsave log <&- >&- 2>&-", 0),
        ("hardsave show @ --file a.txt >&-", 3),
        ("hardsave rewind @~1 <&-", 2),
        ("hardsave log >/dev/full", 1),
        ("hardsave log --json >/dev/full", 1),
        ("hardsave show nothing --json >/dev/full", 3),
        ("hardsave log >/dev/full 2>/dev/full", 1),
    ],
)
def test_streams_that_are_closed_or_full_are_no_fault_of_ours(
    project: Project, script: str, code: int
) -> None:
    done = shell(project, script)
    assert done.returncode == code, done
    assert "Traceback" not in done.stderr
    assert "fault of hardsave" not in done.stderr
    assert "Errno" not in done.stderr
    assert project.run("store", "verify").returncode == 0


@pytest.mark.parametrize("form", ["", " --json"])
def test_a_save_whose_answer_finds_no_room_is_not_said_to_have_found_none(
    project: Project, form: str
) -> None:
    done = shell(project, f"hardsave save kept{form} >/dev/full")
    assert done.returncode == 1
    assert "the answer, on stdout: No space left on device" in done.stderr
    assert project.run("show", "kept").returncode == 0


def test_a_followed_log_is_one_json_document_a_line(project: Project) -> None:
    with subprocess.Popen(
        [*HARDSAVE, "log", "--follow", "--json"],
        cwd=project.path,
        env={"PATH": os.environ["PATH"], **project.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as following:
        assert following.stdout is not None
        saved = 0
        line = ""
        while not line:  # it may not have begun to look yet
            saved += 1
            assert project.run("save", f"try-{saved}").returncode == 0
            os.set_blocking(following.stdout.fileno(), False)
            line = following.stdout.readline()
        following.terminate()
        event = json.loads(line)
    assert event["kind"] == "checkpoint_saved"
    assert event["checkpoint"]["name"].startswith("try-")


def test_letters_are_drawn_where_the_terminal_has_no_others(project: Project) -> None:
    done = subprocess.run(
        [*HARDSAVE, "log"],
        cwd=project.path,
        env={"PATH": os.environ["PATH"], **project.environment, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=60,
        check=True,
    )
    done.stdout.decode("ascii")
    assert b"* " in done.stdout


def test_a_shell_completes_commands_timelines_and_refs(project: Project) -> None:
    def completed(*words: str) -> list[str]:
        environment = {
            **project.environment,
            "PATH": os.environ["PATH"],
            "_HARDSAVE_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(["hardsave", *words]),
            "COMP_CWORD": str(len(words)),
        }
        done = subprocess.run(
            HARDSAVE,
            cwd=project.path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.stderr == ""
        return [line.partition(",")[2] for line in done.stdout.splitlines() if line]

    assert completed("rew") == ["rewind"]
    assert completed("log", "-t", "ses") == ["session-1"]
    assert completed("show", "plan") == ["plan-ready"]
    assert completed("rewind", "session-1:") == [f"session-1:{n}" for n in (5, 4, 3, 2, 1)]
    assert completed("show", "--store", "/nonsense/x.db", "plan") == []


def test_who_only_looks_or_saves_loads_nothing_of_tasks_and_no_other_programs(
    project: Project,
) -> None:
    """Each of these takes a person's time, at every command."""
    for command in (["log"], ["status"], ["show", "@"], ["timelines"], ["save"]):
        found = loaded(project, *command)
        assert not found & {"asyncio", "subprocess", "hardsave.tasks.ledger", "hardsave.aio"}, (
            command
        )


def test_a_report_about_a_file_writes_nothing_to_the_terminal_but_text(project: Project) -> None:
    folder = project.path / "a\x1b]0;title\x07b\u202e"
    begin_repository(folder)
    (folder / "hardsave.yaml").write_text("store: /elsewhere.db\n")
    done = project._replace(path=folder).run("log")
    assert r"a\x1b]0;title\x07b\u202e/hardsave.yaml:1: store is left out" in done.stderr
    assert "\x1b" not in done.stderr


def test_a_fault_of_ours_writes_nothing_to_the_terminal_but_text(project: Project) -> None:
    script = (
        "from hardsave.cli import main\n"
        "def fail(*args, **more): raise ZeroDivisionError('a\\x1bb')\n"
        "main.cli.main = fail\n"
        "main.main([])"
    )
    call = [sys.executable, "-c", script]
    done = subprocess.run(call, capture_output=True, timeout=60, check=False)
    assert b"ZeroDivisionError: a\\x1bb\n" in done.stderr
    assert b"\x1b" not in done.stderr


def test_a_diff_into_a_pipe_is_a_patch_byte_for_byte(project: Project) -> None:
    before = b"a\r\nb\r\n\x1b[1m\x0c\xe2\x80\xae\xe9\n"
    after = before.replace(b"b\r\n", b"B\r\n").replace(b"\xe9", b"\xe9\xe9")
    file = project.path / "parser.py"
    file.write_bytes(before)
    assert project.run("save").returncode == 0
    file.write_bytes(after)
    for given in ((), ("@~1", "@")):
        written = subprocess.run(
            [*HARDSAVE, "diff", *given],
            cwd=project.path,
            env={"PATH": os.environ["PATH"], **project.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        ).stdout
        file.write_bytes(before)
        subprocess.run(["git", "apply"], cwd=project.path, input=written, check=True)
        assert file.read_bytes() == after
        assert project.run("save").returncode == 0
    with project.screen("diff", "@~2", HARDSAVE_PAGER="cat") as seen:
        assert seen.ended() == 0
        assert b"\x1b[1m\x0c" not in seen.raw
        assert "\\x1b[1m\\x0c\\u202e\\xe9" in seen.text
