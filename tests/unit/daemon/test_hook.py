import errno
import io
import json
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave import config
from hardsave.agents import events, install
from hardsave.agents.claude_code.spec import CLAUDE_CODE
from hardsave.agents.codex.spec import CODEX
from hardsave.daemon import client, hook, protocol, save, spool, standalone
from hardsave.defaults import HOOK_BUDGET_SECONDS
from hardsave.errors import Unavailable
from hardsave.stores.host import processes
from tests.unit.agents.conftest import said

SESSION = "claude-s-1"
NOT_FOR_HOOKS = (  # as long as the agent waits
    "daemon.attribution",
    "daemon.calls",
    "daemon.main",
    "daemon.server",
    "objects.redaction",
    "objects.shadow",
    "daemon.election",
    "daemon.lifecycle",
    "stores.sqlite.daemon_lock",
    "vault.ahead",
    "vault.search_index",
    "workspace.ignore.globs",
    "workspace.git.objects",
)


def told(transcript: Path, event: str = "Stop", **more: Any) -> bytes:
    about = {"session_id": "s-1", "hook_event_name": event, "transcript_path": str(transcript)}
    return json.dumps({**about, "cwd": os.getcwd(), **more}).encode()


def place(project: Path) -> Path:
    return spool.folder(os.environ, project)


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "claude" / "s-1.jsonl"
    path.parent.mkdir()
    path.write_text(said("user", "hello") + "\n")
    return path


def test_a_hook_saves_files_and_conversation(project: Path, transcript: Path) -> None:
    call = {"tool_name": "Edit", "tool_input": {"file_path": f"{project}/a.txt"}}
    save.work(told(transcript, "PostToolUse", tool_use_id="t1", **call), os.environ)
    with hardsave.open() as vault:
        head = vault.timeline(SESSION).head
        assert head is not None
        assert head.description == "after Edit: a.txt"
        assert head.read("messages") == [{"role": "user", "content": "hello"}]
        assert head.read("transcript")["pending"] == "t1"
        assert head.read("transcript")["offset"] == transcript.stat().st_size
        assert head.metadata["tool_use_id"] == "t1"
        assert head.files is not None
        assert head.files.read("a.txt") == b"one\n"
    assert list(place(project).iterdir()) == []


def test_a_checkpoint_of_a_hook_tells_of_prompt_and_call(project: Path, transcript: Path) -> None:
    call = {"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "git push"}}
    save.work(told(transcript, "UserPromptSubmit", prompt="push\nit"), os.environ)
    save.work(told(transcript, "PreToolUse", **call), os.environ)
    (project / "b.txt").write_text("new\n")
    save.work(told(transcript, "PostToolUse", **call), os.environ)
    save.work(told(transcript, "UserPromptSubmit", prompt="and again"), os.environ)
    with hardsave.open() as vault:
        (session,) = vault.sessions(workspace=project)
        found = [each.summary for each in vault.moments(project)][::-1]
    assert session.title == "push it"
    steps = [each for each in found if each is not None]
    assert [each.prompt for each in steps] == ["push\nit", "", "", "and again"]
    assert [(each.phase, each.call, each.call_id) for each in steps[1:3]] == [
        ("before", "Bash(git push)", "t1"),
        ("after", "Bash(git push)", "t1"),
    ]
    assert [each.outside for each in steps] == [(), (), ("git push",), ()]
    assert [each.paths for each in steps] == [(), (), ("b.txt",), ()]
    assert [each.messages for each in steps] == [1] * 4


def test_the_next_hook_adds_only_what_is_new(project: Path, transcript: Path) -> None:
    save.work(told(transcript), os.environ)
    with transcript.open("a") as file:
        file.write(said("assistant", "hi") + "\n")
        file.write("no json at all\n")
        file.write('{"half')
    save.work(told(transcript), os.environ)
    with hardsave.open() as vault:
        state = vault.timeline(SESSION).load()
    assert [each["content"] for each in state["messages"]] == ["hello", "hi"]
    assert b"\n".join(state["lines"]) + b'\n{"half' == transcript.read_bytes()


CLEARED = said("user", "<command-name>/clear</command-name>") + "\n"


@pytest.mark.parametrize("content", [None, "", CLEARED], ids=["missing", "empty", "cleared"])
def test_a_session_in_which_nothing_was_asked_leaves_the_last_one_the_newest(
    project: Path, transcript: Path, tmp_path: Path, content: str | None
) -> None:
    save.work(told(transcript), os.environ)
    other = tmp_path / "other.jsonl"
    if content is not None:
        other.write_text(content)
    assert save.work(told(other, "SessionEnd", session_id="s-2"), os.environ)
    with hardsave.open() as vault:
        assert [line.name for line in vault.timelines()] == [SESSION]
        last = vault.workspace(project).last
        assert last is not None
        assert last.timeline == SESSION
    assert spool.missed(place(project)) == []


def test_where_nothing_was_ever_asked_there_is_no_store(project: Path, tmp_path: Path) -> None:
    called: list[bytes] = []
    standalone.work(
        told(tmp_path / "none.jsonl", "SessionEnd"),
        [],
        protocol.new_id(),
        time.time_ns(),
        (os.getppid(), os.getsid(0)),
        called.append,
    )
    signal.alarm(0)
    assert not (spool.folder(os.environ, project).parents[1] / "projects").exists()
    assert spool.missed(place(project)) == []


def test_a_session_whose_end_is_all_that_hooks_were_told_is_saved_if_it_was_answered(
    project: Path, transcript: Path
) -> None:
    transcript.write_text(said("user", "hello") + "\n" + said("assistant", "hi") + "\n")
    assert save.work(told(transcript, "SessionEnd"), os.environ)  # hooks came later than it began
    with hardsave.open() as vault:
        assert len(vault.timeline(SESSION).load()["messages"]) == 2


def test_the_end_of_a_session_that_could_not_be_saved_before_is_saved(
    project: Path, transcript: Path
) -> None:
    transcript.unlink()
    broken = {**os.environ, "HARDSAVE_TIMELINE": "not:a:name"}
    assert not save.work(told(transcript, "UserPromptSubmit", prompt="hello"), broken)
    assert save.work(told(transcript, "SessionEnd"), os.environ)
    with hardsave.open() as vault:
        head = vault.timeline(SESSION).head
        assert head is not None
        assert head.metadata["missed_count"] == 1


def test_a_conversation_that_an_earlier_version_has_saved_goes_on(
    project: Path, transcript: Path
) -> None:
    save.work(told(transcript), os.environ)
    with hardsave.open() as vault:
        line = vault.timeline(SESSION)
        state = line.load()
        del state["transcript"]["blake3"]
        state["transcript"]["sha256"] = sha256(transcript.read_bytes()).hexdigest()
        line.save(state)
    with transcript.open("a") as file:
        file.write(said("assistant", "hi") + "\n")
    save.work(told(transcript), os.environ)
    with hardsave.open() as vault:
        now = vault.timeline(SESSION).load()
    assert [message["content"] for message in now["messages"]] == ["hello", "hi"]
    assert now["transcript"].keys() & {"blake3", "sha256"} == {"blake3"}


def test_a_transcript_that_was_written_anew_is_saved_anew(project: Path, transcript: Path) -> None:
    save.work(told(transcript), os.environ)
    transcript.write_text(said("user", "something else") + "\n")
    save.work(told(transcript), os.environ)
    with hardsave.open() as vault:
        state = vault.timeline(SESSION).load()
    assert [each["content"] for each in state["messages"]] == ["something else"]


def test_another_writer_in_between_costs_nothing(project: Path, transcript: Path) -> None:
    save.work(told(transcript), os.environ)
    with hardsave.open() as vault:
        vault.timeline(SESSION).save_files(project)  # as a daemon does
    with transcript.open("a") as file:
        file.write(said("assistant", "hi") + "\n")
    save.work(told(transcript), os.environ)
    with hardsave.open() as vault:
        state = vault.timeline(SESSION).load()
    assert [each["content"] for each in state["messages"]] == ["hello", "hi"]


def test_what_could_not_be_saved_is_noted_and_the_next_checkpoint_tells_it(
    project: Path, transcript: Path, tmp_path: Path
) -> None:
    broken = {**os.environ, "HARDSAVE_TIMELINE": "not:a:name"}
    save.work(told(transcript, "PostToolUse", tool_name="Bash", tool_use_id="t7"), broken)
    (note,) = spool.missed(place(project))
    assert "not:a:name" in note.about["why"]
    save.work(told(transcript), os.environ)
    with hardsave.open() as vault:
        head = vault.timeline(SESSION).head
    assert head is not None
    (missed,) = head.metadata["missed"]
    assert (missed["tool_use_id"], missed["why"]) == ("t7", note.about["why"])
    assert spool.missed(place(project)) == []


def called(data: bytes, environment: Mapping[str, str]) -> bytes:
    """What a hook prints that finds no daemon."""
    own = {key: value for key, value in environment.items() if key != protocol.SOCKET_VARIABLE}
    command = [sys.executable, "-P", "-m", "hardsave.daemon.hook"]
    own[protocol.SWITCH] = protocol.OFF
    done = subprocess.run(command, input=data, env=own, capture_output=True, check=True)
    assert done.stderr == b""
    return done.stdout


def test_where_a_turn_begins_and_ends_the_user_is_told_that_nothing_is_saved(
    project: Path, transcript: Path
) -> None:
    broken = {**os.environ, "HARDSAVE_TIMELINE": "not:a:name"}
    tool = told(transcript, "PostToolUse", tool_name="Bash", tool_use_id="t7")
    assert called(tool, broken) == b""
    answer = json.loads(called(told(transcript), broken))
    assert answer.keys() == {"systemMessage"}
    assert "the last 2 steps are NOT saved" in answer["systemMessage"]
    assert "not:a:name" in answer["systemMessage"]
    assert called(told(transcript, "UserPromptSubmit", agent_id="a1"), broken) == b""  # a subagent
    assert called(told(transcript), os.environ) == b""  # it works again
    assert called(tool, broken) == b""
    told_again = called(told(transcript, "UserPromptSubmit", prompt="go on"), broken)
    assert b"the last 2 steps" in told_again


def test_a_warning_is_one_line_for_every_reason() -> None:
    event = events.parse(b'{"session_id": "s", "hook_event_name": "Stop"}')
    for why in ("two\nlines", "\ud83d half", "\0\x1b" * 2_000, "😀" * 2_000):
        said = CLAUDE_CODE.warning(save.warning(event, why, 1))
        assert b"\n" not in said
        assert len(said) < 4_000  # what is handed over in one answer
        assert "the last step is NOT saved" in json.loads(said)["systemMessage"]


def test_a_transcript_that_never_ends_is_not_waited_for_and_files_are_saved(
    project: Path, transcript: Path, tmp_path: Path
) -> None:
    save.work(told(transcript), os.environ)
    (project / "new.txt").write_text("precious")
    os.mkfifo(tmp_path / "pipe")
    assert not save.work(told(tmp_path / "pipe"), os.environ)
    (note,) = spool.missed(place(project))
    assert "only files were saved" in note.about["why"]
    assert "not a file" in note.about["why"]
    with hardsave.open() as vault:
        head = vault.timeline(SESSION).head
        assert head is not None
        assert head.files is not None
        assert head.files.read("new.txt") == b"precious"
        assert [each["content"] for each in head.state["messages"]] == ["hello"]


def test_a_call_that_another_has_seen_to_ends_no_notes_and_is_not_late(
    project: Path, transcript: Path
) -> None:
    """As a daemon that was stopped does it, after the hook has saved by itself."""
    called = save.Called(project, time.time_ns() - 60 * 10**9, "chk_" + "0" * 24)
    with hardsave.open() as vault:
        vault.timeline(SESSION).save({}, id=called.id)
    spool.fail(spool.begin(place(project), "1", {"hook": "Stop"}), "a full disk")
    assert save.work(told(transcript), os.environ, called=called)
    (note,) = spool.missed(place(project))
    assert note.about["why"] == "a full disk"


def test_what_is_no_hook_is_noted(project: Path) -> None:
    save.work(b"nonsense", os.environ)
    (note,) = spool.missed(place(project))
    assert "not the input of a hook" in note.about["why"]


def test_work_that_goes_on_is_not_missed(project: Path) -> None:
    folder = place(project)
    spool.begin(folder, "1", {"hook": "Stop"})
    assert spool.missed(folder) == []
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (folder / "2.json").write_text(json.dumps({"pid": ended.pid, "began": 1}))
    assert [note.path.name for note in spool.missed(folder)] == ["2.json"]


def test_a_long_outage_leaves_few_notes_and_all_of_them_are_counted(project: Path) -> None:
    folder = place(project)
    run = spool.begin(folder, f"{0:06}-run", {"hook": spool.RUN, "at": 0.0})
    for call in range(1, 500):
        about = {"hook": "Stop", "at": float(call), "tool_use_id": str(call)}
        spool.fail(spool.begin(folder, f"{call:06}-call", about), f"why {call}")
        assert len(list(folder.iterdir())) <= 70
    notes = spool.missed(folder)
    assert spool.count(notes) == 499
    assert [note.why for note in notes[-20:]] == [f"why {call}" for call in range(480, 500)]
    assert notes[0].about["since"] == 1.0
    told = spool.listed(notes)
    assert (told["missed_count"], len(told["missed"])) == (499, 20)
    for note in [*notes, run]:
        spool.end(note)
    assert spool.missed(folder) == []


def test_notes_that_a_checkpoint_is_just_telling_take_no_other_along(project: Path) -> None:
    """Those that are gathered meanwhile are told once more, and none is lost."""
    folder = place(project)

    def fail(calls: range) -> None:
        for call in calls:
            spool.fail(spool.begin(folder, f"{call:06}-call", {"at": float(call)}), str(call))

    fail(range(100))
    telling = spool.to_tell(folder)
    assert spool.count(telling) == 100
    fail(range(100, 200))
    for note in telling:
        spool.end(note)
    assert 100 <= spool.count(spool.missed(folder)) <= 200


def test_hooks_that_fail_at_once_are_all_counted(project: Path) -> None:
    folder = place(project)
    script = (
        "import sys; from pathlib import Path; from hardsave.daemon import spool\n"
        "for call in range(80):\n"
        "    name = f'{call:06}-{sys.argv[2]}'\n"
        "    spool.fail(spool.begin(Path(sys.argv[1]), name, {'at': 1.0}), 'why')"
    )
    hooks = [subprocess.Popen([sys.executable, "-c", script, folder, str(n)]) for n in range(4)]
    assert [hook.wait(60) for hook in hooks] == [0] * 4
    assert spool.count(spool.missed(folder)) == 320


def test_a_job_that_takes_too_long_is_not_waited_for(tmp_path: Path) -> None:
    done = tmp_path / "done"

    def job(_: object) -> None:
        while not (tmp_path / "go").exists():
            time.sleep(0.01)
        done.touch()

    assert hook.detached(job, seconds=0.05) is None
    assert not done.exists()
    (tmp_path / "go").touch()
    while not done.exists():  # it goes on by itself
        time.sleep(0.01)


@pytest.mark.parametrize("has_proc", [True, False])
def test_a_job_holds_nothing_open_that_an_agent_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_proc: bool
) -> None:
    """As an agent waits for the end of all that it has let its hook inherit."""
    reads, writes = os.pipe()
    listed = os.listdir

    def without_proc(folder: str) -> list[str]:
        if folder.startswith("/proc"):
            raise FileNotFoundError(folder)
        return listed(folder)

    if not has_proc:  # as on macOS
        monkeypatch.setattr(os, "listdir", without_proc)

    def job(let_go: Callable[[bytes], None]) -> None:
        let_go(b"done")
        while not (tmp_path / "end").exists():
            time.sleep(0.01)

    assert hook.detached(job, seconds=30) == b"done"
    os.close(writes)
    try:
        assert select.select([reads], [], [], 60)[0] == [reads]
        assert os.read(reads, 1) == b""
    finally:
        (tmp_path / "end").touch()
        os.close(reads)


def test_the_agent_does_not_wait_for_what_a_job_does_after_it_has_let_go(tmp_path: Path) -> None:
    done = tmp_path / "done"

    def job(let_go: Callable[[bytes], None]) -> None:
        let_go(b"done")
        while not (tmp_path / "go").exists():
            time.sleep(0.01)
        let_go(b"more")  # the hook is gone by now
        done.touch()

    assert hook.detached(job, seconds=30) == b"done"
    assert not done.exists()
    (tmp_path / "go").touch()
    while not done.exists():
        time.sleep(0.01)


def test_a_hook_that_is_killed_leaves_its_note(project: Path, transcript: Path) -> None:
    def dies() -> bool:
        os.kill(os.getpid(), signal.SIGKILL)
        return False

    def job(_: object) -> None:
        save.save = lambda *_, **__: dies()  # in the child alone
        save.work(told(transcript), os.environ)

    assert hook.detached(job, seconds=30) == b""
    (note,) = spool.missed(place(project))
    assert note.about["hook"] == "Stop"
    assert "why" not in note.about


def test_a_hook_is_let_go_as_soon_as_its_checkpoint_is_there(
    project: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []
    close = hardsave.Vault.close

    def closed(vault: hardsave.Vault) -> None:
        happened.append("closed")
        close(vault)

    def let_go(said: bytes) -> None:
        assert list(place(project).iterdir()) == []  # nothing is left to tell
        with monkeypatch.context() as looking:
            looking.setattr(hardsave.Vault, "close", close)
            with hardsave.open() as vault:
                assert vault.timeline(SESSION).head is not None
        happened.append(f"let go, with {said!r}")

    monkeypatch.setattr(hardsave.Vault, "close", closed)
    standalone.work(told(transcript), [], protocol.new_id(), time.time_ns(), (0, 0), let_go)
    signal.alarm(0)
    assert happened == ["let go, with b''", "closed"]


def test_where_process_1_reaps_no_orphans_a_hook_waits_for_the_end_of_its_child(
    project: Path, transcript: Path
) -> None:
    happened: list[str] = []

    def work() -> None:
        happened.clear()
        origin = (os.getppid(), os.getsid(0))
        standalone.work(
            told(transcript), [], protocol.new_id(), time.time_ns(), origin, let_go=note_down
        )
        signal.alarm(0)

    def note_down(said: bytes) -> None:
        happened.append("let go")

    def last() -> Path:
        (found,) = (project.parent / "data" / "hardsave").glob("last-orphan")
        return found

    work()
    assert happened == ["let go"]
    assert last().read_text().split()[0] == str(os.getpid())
    dead = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    began = processes.started(dead.pid)
    last().write_text(f"{dead.pid} {began} 7")
    work()
    assert last().read_text().split()[2] == "7"  # it lives, which says nothing
    assert dead.stdin is not None
    dead.stdin.close()
    os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
    for before in (standalone.MOST_ORPHANS - 2, standalone.MOST_ORPHANS - 1):
        last().write_text(f"{dead.pid} {began} {before}")
        work()
        assert happened == (["let go"] if before + 1 < standalone.MOST_ORPHANS else [])
    assert last().read_text() == f"{dead.pid} {began} {before}"
    dead.wait()
    work()
    assert happened == ["let go"]
    assert last().read_text().split()[2] == "0"


@pytest.mark.parametrize("data", [b"", b"nonsense"])
def test_the_program_is_silent_and_ends_with_0(project: Path, data: bytes) -> None:
    command = shlex.split(install.command(CLAUDE_CODE))
    done = subprocess.run(command, input=data, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_program_without_any_input_leaves_a_note(project: Path) -> None:
    command = f"exec {install.command(CLAUDE_CODE)} <&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (note,) = spool.missed(place(project))
    assert "not the input of a hook" in note.about["why"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(2), MemoryError()])
def test_the_program_ends_with_0_for_every_error(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise error

    monkeypatch.setattr(hook, "take", fails)
    pid = os.fork()
    if pid == 0:
        try:
            hook.main()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_who_waits_for_the_work_loads_nothing_of_it() -> None:
    """The agent waits for that process: to start, to be forked and to end."""
    script = "import sys; before = set(sys.modules); from hardsave.daemon import hook\n"
    script += "hook.detached = lambda job, *, seconds: None\nhook.take()\n"
    script += "print(*sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        check=True,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={key: value for key, value in os.environ.items() if key != protocol.SOCKET_VARIABLE},
    )
    theirs = [name for name in done.stdout.split() if not name.startswith("hardsave")]
    assert set(theirs) <= {"_socket", "gc", "select"}
    assert "hardsave.daemon.save" not in done.stdout.split()


def test_a_hook_that_is_alone_loads_nothing_that_it_could_do_without(
    project: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them takes its time, and the agent waits."""
    monkeypatch.setenv("HARDSAVE_DAEMON", "off")
    script = "import sys; from hardsave.daemon import standalone; at = int(sys.argv[1])\n"
    script += "standalone.work(sys.stdin.buffer.read(), [], sys.argv[2], at, (0, 0),\n"
    script += "    lambda _: print(*sys.modules))"
    found: set[str] = set()
    for number in range(2):  # the second finds out what has changed
        (project / "a.txt").write_text(f"{number}\n")
        done = subprocess.run(
            [sys.executable, "-c", script, str(time.time_ns()), protocol.new_id()],
            input=told(transcript, "PostToolUse", tool_use_id=f"t{number}"),
            capture_output=True,
            check=True,
        )
        found = set(done.stdout.decode().split())
    assert {"apsw", "ormsgpack"} <= found
    assert not found & {"asyncio", "ctypes", "decimal", "hashlib", "heapq", "logging", "_socket"}
    assert not found & {f"hardsave.{name}" for name in NOT_FOR_HOOKS}


def test_a_daemon_that_dies_late_leaves_its_hook_no_second_budget(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def takes_its_time(*_: object) -> None:
        now[0] += HOOK_BUDGET_SECONDS - 1

    now, given = [100.0], []
    monkeypatch.setattr(client, "ask", takes_its_time)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(hook, "detached", lambda job, *, seconds: given.append(seconds))
    monkeypatch.setenv(protocol.SOCKET_VARIABLE, str(tmp_path / "socket"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    hook.take()
    assert given == [pytest.approx(1)]


def test_a_stream_that_is_kept_open_is_not_waited_for_longer_than_the_budget() -> None:
    script = "from hardsave.daemon import hook\n"
    script += "hook.HOOK_BUDGET_SECONDS = 0.5\n"
    script += "hook.detached = lambda job, *, seconds: print(hook._read_input(0), seconds)\n"
    script += "hook.take()"
    reads, writes = os.pipe()
    os.write(writes, b"half of what")
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        stdin=reads,
        stdout=subprocess.PIPE,
        env={key: value for key, value in os.environ.items() if key != protocol.SOCKET_VARIABLE},
        check=True,
        timeout=60,
    )
    os.close(reads)
    os.close(writes)
    assert done.stdout == b"b'' 0\n"  # all was read, and the time is over


def test_all_of_a_long_input_is_heard() -> None:
    script = "from hardsave.daemon import hook; import time\n"
    script += "print(len(hook._read_input(time.monotonic() + 60)))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        input=b"x" * (3 << 20),
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"%d\n" % (3 << 20)


def test_the_store_is_kept_up_after_a_session_and_not_before(
    project: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []

    def upkeep(store: hardsave.VaultStore) -> None:
        happened.append(f"kept up after {name}")
        raise hardsave.Unavailable("the disk is full")  # no fault of the hook's

    monkeypatch.setattr(hardsave.VaultStore, "upkeep", upkeep)
    for name in ("PostToolUse", "Stop", "SessionEnd"):
        data, at = told(transcript, name), time.time_ns()

        def let_go(said: bytes) -> None:
            happened.append(f"let go, with {said!r}")

        standalone.work(data, [], protocol.new_id(), at, (os.getppid(), os.getsid(0)), let_go)
    signal.alarm(0)
    assert save.work(told(transcript, "SessionEnd"), os.environ)  # as a daemon does
    assert happened == ["let go, with b''"] * 3 + ["kept up after SessionEnd"]
    assert list(place(project).iterdir()) == []


@pytest.mark.parametrize("cwd", ["a\0b", "/half/\ud800", "", 5])
def test_a_directory_that_is_none_is_where_the_hook_was_called(
    project: Path, transcript: Path, cwd: object
) -> None:
    assert save.work(told(transcript, cwd=cwd), os.environ)
    with hardsave.open() as vault:
        head = vault.timeline(SESSION).head
        assert head is not None
        assert head.files is not None
        assert head.files.workspace == str(project)


@pytest.mark.parametrize("path", ["a\0b", "/half/\ud800.jsonl"])
def test_files_are_saved_where_the_transcript_has_no_path(project: Path, path: str) -> None:
    data = json.dumps(
        {"session_id": "s-1", "hook_event_name": "Stop", "transcript_path": path, "cwd": "."}
    )
    assert not save.work(data.encode(), os.environ)
    with hardsave.open() as vault:
        head = vault.timeline(SESSION).head
        assert head is not None
        assert head.files is not None
    (note,) = spool.missed(place(project))
    assert "only files were saved" in note.about["why"]


def test_two_who_take_up_one_call_note_it_once(
    project: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one comes in the middle of our writing, under the same name."""
    dump, pid = json.dump, os.getpid()

    def both(about: Any, file: Any) -> None:
        monkeypatch.setattr(json, "dump", dump)
        monkeypatch.setattr(os, "getpid", lambda: pid + 1)
        spool.begin(place(project), "1-chk", {"hook": "Stop"})
        monkeypatch.setattr(os, "getpid", lambda: pid)
        dump(about, file)

    monkeypatch.setattr(json, "dump", both)
    note = spool.begin(place(project), "1-chk", {"hook": "Stop"})
    (path,) = place(project).glob("*.json")
    assert path == note.path
    assert json.loads(path.read_bytes())["pid"] == pid


def test_what_cannot_be_noted_is_saved_all_the_same(
    project: Path, transcript: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARDSAVE_STORE", f"sqlite:///{tmp_path}/elsewhere.db")
    folder = place(project)
    folder.parent.mkdir(parents=True)
    folder.write_text("in the way")
    assert save.work(told(transcript), os.environ)
    with hardsave.open() as vault:
        assert vault.timeline(SESSION).head is not None


# Where no note can be written


def test_who_may_not_look_at_the_notes_either_is_told_that_nothing_is_saved(
    project: Path, transcript: Path
) -> None:
    folder = place(project)
    folder.parent.mkdir(parents=True)
    folder.write_text("in the way")
    broken = {**os.environ, "HARDSAVE_TIMELINE": "not:a:name"}
    assert b"the last step is NOT saved" in called(told(transcript), broken)


def nowhere(*given: object) -> Path:
    raise Unavailable("your home is unknown")


def test_who_has_no_home_is_saved_in_a_store_that_was_named(
    project: Path, transcript: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARDSAVE_STORE", f"sqlite:///{tmp_path}/elsewhere.db")
    monkeypatch.setattr("hardsave.config.data_directory", nowhere)
    assert save.work(told(transcript), os.environ)
    with hardsave.open() as vault:
        assert vault.timeline(SESSION).head is not None


def test_who_has_no_home_is_told_that_nothing_is_saved(
    project: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hardsave.config.data_directory", nowhere)
    monkeypatch.setattr("hardsave.config.places.data_directory", nowhere)
    outcomes: list[save.Outcome] = []
    assert not save.work(told(transcript), os.environ, afterwards=outcomes.append)
    assert b"NOT saved. your home is unknown" in outcomes[0].warning
    assert not save.work(b"nonsense", os.environ)


def test_what_cannot_be_noted_is_counted_and_told_once(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place(project)
    spool.end(spool.begin(folder, "0", {}))  # while there was room
    with monkeypatch.context() as full:
        full.setattr(spool, "_write", no_room)
        for at in (5.0, 7.0):
            note = spool.begin(folder, "1", {"hook": "Stop", "at": at})
            spool.fail(note, "no space left")
    (counted,) = spool.missed(folder)
    assert counted.about == {"since": 5.0, "count": 2, "at": 7.0, "why": "no space left"}
    assert spool.count([counted]) == 2
    assert spool.reserve_path(folder).stat().st_size == 4096
    spool.end(counted)
    assert spool.missed(folder) == []
    assert spool.reserve_path(folder).stat().st_size == 4096, "for the next time"


def test_a_call_that_two_have_taken_up_in_vain_is_counted_once(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place(project)
    spool.end(spool.begin(folder, "0", {}))  # while there was room
    monkeypatch.setattr(spool, "_write", no_room)
    for at in (5.0, 5.0, 7.0):  # a daemon, its hook; another call
        spool.fail(spool.begin(folder, "1", {"hook": "Stop", "at": at}), "no space left")
    assert spool.count(spool.missed(folder)) == 2


def test_what_can_be_noted_nowhere_is_missed_without_a_fault(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "_write", no_room)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    spool.fail(spool.begin(place(project), "1", {}), "no space left")
    assert spool.missed(place(project)) == []


def no_room(note: spool.Note) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_in_a_home_directory_nothing_is_saved_and_no_store_is_made(
    project: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project))
    outcomes: list[save.Outcome] = []
    assert not save.work(told(transcript), os.environ, afterwards=outcomes.append)
    assert b"a whole home directory" in outcomes[0].warning
    assert list(config.data_directory(os.environ, sys.platform).rglob("store.db*")) == []


def test_a_directory_that_json_cannot_name_is_where_the_hook_was_called(
    project: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = Path(os.fsdecode(os.fsencode(project) + b"-\xff"))
    odd.mkdir()
    (odd / "b.txt").write_text("two\n")
    monkeypatch.chdir(odd)
    cwd = os.fsencode(odd).decode(errors="replace")  # as agents spell it
    assert save.work(told(transcript, cwd=cwd), os.environ, CODEX)
    with hardsave.open() as vault:
        head = vault.timeline("codex-s-1").head
        assert head is not None
        assert head.files is not None
        assert head.files.read("b.txt") == b"two\n"
