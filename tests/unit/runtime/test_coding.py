"""The tools of an agent that codes: what they do, and that nothing leads out of the workspace."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import hardsave
from hardsave.runtime import loop
from hardsave.runtime.coding import shell
from hardsave.runtime.coding.files import MAX_FILE, MAX_MATCHES, Files
from hardsave.runtime.coding.text import MAX_SHOWN, Refused, both_ends, replaced, window
from hardsave.runtime.coding.tools import coding_tools
from hardsave.stores.host import processes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    inside = tmp_path / "workspace"
    inside.mkdir()
    (tmp_path / "secret").write_text("secret")
    return inside


@pytest.fixture
def files(root: Path) -> Files:
    return Files(root)


# Texts


def test_a_window_says_what_it_leaves_out() -> None:
    text = "a\nb\nc\nd\n"
    assert window(text, 1, 10) == text
    assert window(text, 2, 2) == "b\nc\n\n[lines 2 to 3 of 4]"
    assert window("", 1, 10) == ""


@pytest.mark.parametrize(("start", "count"), [(0, 1), (1, 0), (-1, 5), (6, 1)])
def test_lines_that_are_not_there_are_refused(start: int, count: int) -> None:
    with pytest.raises(Refused):
        window("a\nb\n", start, count)


def test_a_long_text_is_cut() -> None:
    assert len(window("x" * (MAX_SHOWN + 5), 1, 1)) < MAX_SHOWN + 100


def test_a_text_is_replaced_if_it_is_there_exactly_once() -> None:
    assert replaced(b"one two", b"two", b"three") == b"one three"
    for old in (b"four", b"o", b""):
        with pytest.raises(Refused):
            replaced(b"one two", old, b"x")


def test_an_output_shows_both_ends() -> None:
    assert both_ends(b"all", b" of it", 0) == "all of it"
    assert "5 bytes left out" in both_ends(b"begin", b"end", 5)


# Files


def test_what_was_written_is_read(files: Files, root: Path) -> None:
    files.write("new/folder/a.txt", "héllo\n")
    assert files.read("new/folder/a.txt") == "héllo\n"
    assert files.read(str(root / "new" / "folder" / "a.txt")) == "héllo\n"
    assert (root / "new" / "folder" / "a.txt").read_bytes() == "héllo\n".encode()


def test_an_edit_keeps_mode_and_odd_bytes(files: Files, root: Path) -> None:
    path = root / "run.sh"
    path.write_bytes(b"echo one \xff\r\n")
    path.chmod(0o750)
    files.edit("run.sh", "one", "two")
    assert path.read_bytes() == b"echo two \xff\r\n"
    assert path.stat().st_mode & 0o777 == 0o750
    assert os.listdir(root) == ["run.sh"]


def test_a_directory_is_listed_with_what_its_entries_are(files: Files, root: Path) -> None:
    (root / "folder").mkdir()
    (root / "file").touch()
    (root / "link").symlink_to("file")
    assert files.list() == "file\nfolder/\nlink@"
    assert files.list("folder") == "[empty]"


def test_lines_are_found_with_their_place(files: Files) -> None:
    files.write("src/a.py", "import os\nimport re\n")
    files.write("src/b.txt", "import os\n")
    files.write("c.py", "nothing")
    assert files.search("import os") == "src/a.py:1: import os\nsrc/b.txt:1: import os"
    assert files.search("import os", "src", "*.py") == "src/a.py:1: import os"
    assert files.search("absent") == "[nothing found]"


def test_too_many_lines_are_cut(files: Files) -> None:
    files.write("many", "x\n" * (MAX_MATCHES + 10))
    found = files.search("x").splitlines()
    assert (len(found), found[-1]) == (MAX_MATCHES + 1, "[and more]")


@pytest.mark.parametrize(
    "path", ["../secret", "a/../../secret", "/etc/passwd", "x\x00y", "..", "/"]
)
def test_no_path_leads_out(files: Files, path: str) -> None:
    for call in (
        files.read,
        files.list,
        lambda p: files.write(p, "x"),
        lambda p: files.search("s", p),
    ):
        with pytest.raises(Refused):
            call(path)


def test_no_link_leads_out(files: Files, root: Path, tmp_path: Path) -> None:
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "folder").symlink_to(tmp_path)
    for path in ("link", "folder/secret"):
        for call in (files.read, lambda p: files.write(p, "x"), lambda p: files.edit(p, "s", "x")):
            with pytest.raises(Refused):
                call(path)
    with pytest.raises(Refused):
        files.list("folder")
    assert files.search("secret") == "[nothing found]"
    assert (tmp_path / "secret").read_text() == "secret"


@pytest.mark.parametrize(
    "path",
    [".git/hooks/pre-commit", "sub/.GIT/config", ".git", ".g\u200cit/config", "GIT~1/config"],
)
def test_what_is_gits_own_is_not_written(files: Files, path: str) -> None:
    with pytest.raises(Refused, match="git"):
        files.write(path, "x")


@pytest.mark.parametrize("path", ["", ".", "folder", "folder/", "pipe", "missing", "binary", "big"])
def test_what_is_no_text_file_is_refused_at_once(files: Files, root: Path, path: str) -> None:
    (root / "folder").mkdir()
    os.mkfifo(root / "pipe")
    (root / "binary").write_bytes(b"a\x00b")
    (root / "big").write_bytes(b"x" * (MAX_FILE + 1))
    with pytest.raises(Refused):
        files.read(path)


def test_a_workspace_behind_a_link_has_two_absolute_names(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    behind = Files(tmp_path / "link")
    behind.write(f"{tmp_path}/link/a.txt", "one")
    assert behind.read(f"{root}/a.txt") == "one"
    for outside in (f"{tmp_path}/secret", f"{tmp_path}/link/../secret", f"{root}/../secret"):
        with pytest.raises(Refused, match=f"{outside} is outside"):
            behind.read(outside)


def test_a_path_that_is_no_text_is_refused(files: Files) -> None:
    with pytest.raises(Refused, match="no path"):
        files.read("a\ud800")


def test_a_file_with_a_name_that_is_no_text_is_found(files: Files, root: Path) -> None:
    (root / "a.txt").write_text("needle")
    try:
        Path(os.fsdecode(os.fsencode(root) + b"/b\xff.txt")).write_text("needle")
    except OSError:
        pytest.skip("this file system has no such names")
    assert files.search("needle") == "a.txt:1: needle\nb\ufffd.txt:1: needle"


def test_a_lone_surrogate_is_refused_and_nothing_is_written(files: Files, root: Path) -> None:
    with pytest.raises(Refused):
        files.write("a", "\ud800")
    assert os.listdir(root) == []


def test_what_somebody_leaves_who_is_killed_while_writing_is_not_captured(root: Path) -> None:
    killed = """
import os, signal
from hardsave.runtime.coding.files import Files
os.rename = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
Files(".").write("a.txt", "one")
"""
    subprocess.run([sys.executable, "-c", killed], cwd=root, check=False)
    assert len(list(root.iterdir())) == 1
    with hardsave.open("memory://") as vault:
        saved = vault.timeline("t").save({}, workspace=root)
        assert saved.files is not None
        assert not list(saved.files.list())


# The shell


def run(command: str, root: Path, **options: Any) -> shell.Ended:
    given = {"timeout_seconds": 60.0, "keep": 1000, **options}
    return shell.run(command, directory=str(root), env=dict(os.environ), **given)


@pytest.mark.parametrize("command", ["echo a\x00b", "echo \ud800", "echo " + "x" * 5_000_000])
def test_a_command_that_cannot_be_begun_is_refused(root: Path, command: str) -> None:
    with pytest.raises(Refused, match="cannot be run"):
        run(command, root)


def test_a_command_where_no_directory_is_is_told_the_model(root: Path) -> None:
    """An agent may have removed its workspace; it can make another."""
    root.rmdir()
    model = _asking("shell", {"command": "ls"})
    agent = Agent(FunctionModel(model), toolsets=[coding_tools(root)])
    with hardsave.open("memory://") as vault:
        outcome = loop.run_sync(agent, "hi", line=vault.timeline("job"))
    assert outcome.output == "done"
    assert "the command cannot be run: No such file or directory" in repr(outcome.messages)


@pytest.mark.parametrize(
    ("options", "command", "told"),
    [
        ({"env": {"COLOUR": "blue"}}, "echo $COLOUR", "blue\\n\\n[exit code 0]"),
        ({"output_bytes": 10}, "echo 0123456789abcdefghijklmnopqrstuvwxyz", "bytes left out"),
        ({"timeout_seconds": 0.1}, "sleep 60", "stopped after 0.1 seconds"),
    ],
)
def test_the_options_of_the_tools_reach_the_shell(
    root: Path, options: dict[str, Any], command: str, told: str
) -> None:
    model = _asking("shell", {"command": command})
    agent = Agent(FunctionModel(model), toolsets=[coding_tools(root, **options)])
    with hardsave.open("memory://") as vault:
        outcome = loop.run_sync(agent, "hi", line=vault.timeline("job"))
    assert told in repr(outcome.messages)


def test_a_command_reads_nothing(root: Path) -> None:
    assert run("cat; echo $0 $#", root).head == b"/bin/sh 0\n"


def test_a_command_does_not_begin_before_it_is_watched(
    root: Path,
) -> None:
    """Whoever is killed in between leaves nothing that works on."""
    alone = """
import os, signal, sys
from hardsave.runtime.coding import shell
def killed(session):
    os.kill(os.getpid(), signal.SIGKILL)
shell._watched = killed
shell.run("echo begun > begun", directory=".", env={}, timeout_seconds=60, keep=100)
"""
    subprocess.run([sys.executable, "-c", alone], cwd=root, check=False)
    time.sleep(0.3)
    assert not (root / "begun").exists()


def _asking(tool: str, args: dict[str, Any]) -> Callable[..., ModelResponse]:
    """A model that calls one tool, and is done."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(tool, args)])

    return answer


def test_a_command_runs_in_the_workspace_and_says_how_it_ended(root: Path) -> None:
    ended = run("echo out; echo err >&2; touch made; exit 3", root)
    assert (ended.code, ended.head) == (3, b"out\nerr\n")
    assert (root / "made").exists()


def test_much_output_is_kept_at_both_ends(root: Path) -> None:
    ended = run("echo begin; yes | head -c 100000; echo end", root, keep=100)
    assert ended.head.startswith(b"begin\n")
    assert ended.tail.endswith(b"end\n")
    assert len(ended.head) + len(ended.tail) + ended.left_out == 100010


def test_what_a_command_has_said_is_kept_however_late_it_is_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine that does something else for a second, each time that somebody looks."""
    clock = SimpleNamespace(monotonic=partial(next, itertools.count()))
    monkeypatch.setattr(shell, "time", clock)
    monkeypatch.setattr(shell, "_PIECE", 2)
    monkeypatch.setattr(shell, "_open_gate", _opened_and_ended)
    assert run("echo 0123456789", root, timeout_seconds=1000).head == b"0123456789\n"


def _opened_and_ended(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None
    with process.stdin as gate:
        gate.write(b"\n")
    process.wait()


def test_a_command_that_takes_too_long_is_stopped_with_its_children(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = itertools.count()

    def clock() -> float:  # its time is over as soon as it has begun, however slow the machine is
        return 100.0 if next(looks) and (root / "pid").exists() else 0.0

    monkeypatch.setattr(shell, "time", SimpleNamespace(monotonic=clock))
    command = "echo $$ > pid.new; mv pid.new pid; sleep 100 & sleep 100"
    ended = run(command, root, timeout_seconds=0.5)
    assert ended.code is None
    _gone(int((root / "pid").read_text()))


def test_what_a_command_leaves_behind_is_ended(root: Path) -> None:
    ended = run("sleep 100 & echo $! > pid", root)
    assert ended.code == 0
    _gone(int((root / "pid").read_text()))


def test_a_command_can_be_stopped_from_outside(root: Path) -> None:
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    assert run("sleep 100", root, stop=stop).code is None


def test_a_command_that_closes_its_output_is_still_waited_for(root: Path) -> None:
    assert run("exec >&- 2>&-; sleep 0.2; exit 4", root).code == 4


KILLED = """
import sys
from hardsave.runtime.coding import shell
shell.run(sys.argv[1], directory=".", env={}, timeout_seconds=60, keep=100)
"""


def test_a_command_does_not_outlive_whoever_runs_it(root: Path) -> None:
    command = "sleep 60 & echo $! > child; echo $$ > own.new; mv own.new own; sleep 60; true"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, command], cwd=root, start_new_session=True
    ) as runner:
        while not (root / "own").exists():
            time.sleep(0.01)
        os.killpg(runner.pid, signal.SIGKILL)
    for name in ("own", "child"):
        _gone(int((root / name).read_text()))


def _gone(pid: int) -> None:
    for _ in range(6000):
        if processes.started(pid) is None:
            return
        time.sleep(0.01)
    raise AssertionError(f"{pid} is still there")


def test_a_command_gets_no_keys_of_ours() -> None:
    given = {"PATH": "/bin", "OPENAI_API_KEY": "secret", "HOME": "/h"}
    assert shell.environment(given, {"MORE": "1"}) == {"PATH": "/bin", "HOME": "/h", "MORE": "1"}


# Together


def test_an_agent_uses_them_and_is_told_what_is_refused(root: Path) -> None:
    wanted = [
        ("write", {"path": "a.txt", "content": "one\n"}),
        ("edit", {"path": "a.txt", "old": "one", "new": "two"}),
        ("shell", {"command": "cat a.txt"}),
        ("read", {"path": "../secret"}),
        ("search", {"text": "two"}),
        ("list", {}),
    ]

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        if turn == len(wanted):
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(*wanted[turn], tool_call_id=f"c{turn}")])

    agent = Agent(FunctionModel(model), toolsets=[coding_tools(root)])
    with hardsave.open("memory://") as vault:
        outcome = loop.run_sync(agent, "go", line=vault.timeline("t"))
    told = [str(message.parts[0]) for message in outcome.messages[2::2]]
    assert "wrote 4 bytes" in told[0]
    assert "edited a.txt" in told[1]
    assert "two\\n\\n[exit code 0]" in told[2]
    assert "outside of the workspace" in told[3]
    assert "a.txt:1: two" in told[4]
    assert (root / "a.txt").read_text() == "two\n"


def test_what_is_asked_for_at_once_happens_in_order_and_nothing_of_it_is_lost(root: Path) -> None:
    steps = [("write", {"path": "a", "content": "0"})]
    steps += [("edit", {"path": "a", "old": f"{n}", "new": f"{n + 1}"}) for n in range(9)]

    def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart("done")])
        calls = [ToolCallPart(tool, args, f"id-{n}") for n, (tool, args) in enumerate(steps)]
        return ModelResponse(parts=calls)

    with hardsave.open("memory://") as vault:
        agent = Agent(FunctionModel(say), toolsets=[coding_tools(root)])
        loop.run_sync(agent, "count", line=vault.timeline("x"))
    assert (root / "a").read_text() == "9"


def test_edits_of_several_agents_at_once_are_all_there(root: Path, files: Files) -> None:
    words = [f"<{number}>" for number in range(40)]
    files.write("a", " ".join(words))
    agents = [Files(root), Files(root.parent)]
    paths = ["a", f"{root.name}/a"]

    def edit(at: int) -> None:
        for number in range(at, 40, 4):
            agents[at % 2].edit(paths[at % 2], f"<{number}>", "done")

    threads = [threading.Thread(target=edit, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (root / "a").read_text() == " ".join(["done"] * 40)


def test_without_a_shell_there_is_none(root: Path) -> None:
    assert set(coding_tools(root, shell=False).tools) == {"read", "write", "edit", "list", "search"}
