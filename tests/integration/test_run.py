"""`hardsave run -- CMD` with real processes: what the agent notices of us, and what is saved."""

import json
import os
import pty
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import hardsave
from hardsave.daemon import launch, processes, protocol
from hardsave.daemon.launch import Task
from hardsave.errors import Misuse, Unavailable
from tests.unit.vault.secrets_scanner import found

LIMIT = 60.0


class Stage:
    """A workspace and a store of its own."""

    def __init__(self, base: Path) -> None:
        self.work = base / "work"
        self.work.mkdir()
        self.store = base / "store.db"
        self.surroundings = dict(os.environ)
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, script: str, *options: str, given: int = 0) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "hardsave", "run", *options, "--", "bash", "-c", script]
        environment = {**self.surroundings, "HARDSAVE_STORE": str(self.store)}
        made = subprocess.Popen(
            command,
            cwd=self.work,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(given,),
        )
        self._running.append(made)
        return made

    def run(self, script: str, *options: str) -> "subprocess.CompletedProcess[bytes]":
        process = self.start(script, *options)
        out, err = process.communicate(timeout=LIMIT)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def rewound(self) -> "subprocess.CompletedProcess[str]":
        """To where it began, with what other people see."""
        with hardsave.open(f"sqlite:///{self.store}") as vault:
            (line,) = vault.timelines()
        return self.hardsave("rewind", f"{line.name}:1", "--yes")

    def hardsave(self, *command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "hardsave", *command, "--store", str(self.store)],
            cwd=self.work,
            env=self.surroundings,
            capture_output=True,
            text=True,
            check=True,
            timeout=LIMIT,
        )

    def statuses(self) -> list[str]:
        with hardsave.open(f"sqlite:///{self.store}") as vault:
            return [cp.status for line in vault.timelines() for cp in line.checkpoints()][::-1]

    def snapshots(self) -> list[dict[str, bytes]]:
        """What each checkpoint holds, oldest first."""
        with hardsave.open(f"sqlite:///{self.store}") as vault:
            lines = [*vault.timelines()]
            assert len(lines) <= 1
            found = []
            for checkpoint in (each for line in lines for each in reversed(line.checkpoints())):
                files = checkpoint.files
                assert files is not None
                names = [file.path for file in files.list() if file.kind == "file"]
                found.append({name: files.read(name) for name in names})
            return found

    def wait_for(self, is_true: Callable[[], bool]) -> None:
        end = time.monotonic() + LIMIT
        while not is_true():
            assert time.monotonic() < end, "it never happened"
            time.sleep(0.05)

    def wait_for_the_end(self) -> None:
        self.wait_for(lambda: "saves," in self.log())

    def log(self) -> str:
        path = Path(f"{self.store}-run.log")
        return path.read_text() if path.exists() else ""

    def daemons(self) -> list[int]:
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    words = (folder / "cmdline").read_bytes()
                except OSError:
                    continue
                if b"hardsave.daemon.main" in words and bytes(self.store) in words:
                    found.append(int(folder.name))
        return found

    def end_of(self, command: str | None) -> None:
        """Of what agents have left behind, or of one such."""
        for each in processes.with_variable("HARDSAVE_STORE", f"sqlite:///{self.store}"):
            if command in (None, each.command):
                with suppress(ProcessLookupError):
                    os.kill(each.pid, signal.SIGKILL)

    def end(self) -> None:
        for process in self._running:
            if process.poll() is None:
                process.kill()
                process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        for pid in self.daemons():
            os.kill(pid, signal.SIGKILL)
        self.end_of(None)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))  # for what a test starts, too
    made = Stage(tmp_path)
    yield made
    made.end()


def test_every_settled_burst_is_there_and_comes_back(stage: Stage) -> None:
    """It has settled when a checkpoint holds it. A slow machine may rest in the middle of one, so
    that others hold parts of it."""
    saved = "until [ -e ../saved-{0} ]; do sleep 0.05; done; "
    agent = stage.start(
        "echo one > a; "
        + saved.format(1)
        + "echo two > a; mkdir d; echo x > d/x; "
        + saved.format(2)
        + "rm -rf a d; "
        + saved.format(3)
        + "exit 7"
    )
    bursts = [{"a": b"one\n"}, {"a": b"two\n", "d/x": b"x\n"}, {}]
    stage.wait_for(lambda: stage.statuses() != [])
    for number, burst in enumerate(bursts, 1):
        stage.wait_for(lambda burst=burst: stage.snapshots()[-1:] == [burst])  # type: ignore[misc] # bound to the loop
        (stage.work.parent / f"saved-{number}").touch()
    assert agent.wait(timeout=LIMIT) == 7
    stage.wait_for_the_end()
    snapshots = stage.snapshots()
    assert snapshots[0] == {}
    assert snapshots[-1] == {}
    assert stage.statuses()[-1] == "ended"
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        (line,) = vault.timelines()
        line.rewind(f"{line.name}:{snapshots.index(bursts[1]) + 1}")
        assert (stage.work / "d/x").read_text() == "x\n"
        assert vault.store.verify().ok


def test_killing_the_daemon_leaves_the_agent_running(stage: Stage) -> None:
    agent = stage.start("touch on; while [ ! -e go ]; do sleep 0.05; done; echo done > out; exit 3")
    stage.wait_for((stage.work / "on").exists)
    stage.wait_for(lambda: bool(stage.daemons()))
    for pid in stage.daemons():
        os.kill(pid, signal.SIGKILL)
    stage.wait_for(lambda: stage.daemons() == [])
    (stage.work / "go").touch()
    assert agent.wait(timeout=LIMIT) == 3
    assert (stage.work / "out").read_text() == "done\n"
    told = "is NOT saved: the process beside the agent was killed"
    assert told in stage.hardsave("log").stderr
    assert told in stage.hardsave("status").stderr
    assert stage.run("true").returncode == 0  # the next one has it all, and says so
    stage.wait_for_the_end()
    assert told not in stage.hardsave("log", "--all").stderr
    saved = json.loads(stage.hardsave("log", "--json").stdout)
    ((missed,),) = (each["metadata"]["missed"] for each in saved if "missed" in each["metadata"])
    assert missed["why"] == "the process beside the agent was killed"


def test_log_status_and_doctor_tell_the_same_of_an_agent_that_goes_on_alone(stage: Stage) -> None:
    agent = stage.start("touch on; while [ ! -e ../go ]; do sleep 0.05; done; echo late > out")
    stage.wait_for((stage.work / "on").exists)
    stage.wait_for(lambda: stage.snapshots()[-1] == {"on": b""})
    for pid in stage.daemons():
        os.kill(pid, signal.SIGKILL)
    stage.wait_for(lambda: stage.daemons() == [])
    alone = f"the agent, process {agent.pid}, goes on without it"
    whole = f"was killed, and {alone}"

    def told(command: str) -> str:
        done = stage.hardsave(command)
        return " ".join((done.stdout + done.stderr).split())

    for command in ("log", "status", "doctor"):  # nothing is lost yet
        assert whole in told(command)
        assert "NOT saved" not in told(command)
    stage.hardsave("save", "--timeline", "by-hand")  # which leaves the agent as it is
    (stage.work / "more").touch()
    for command in ("log", "status", "doctor"):
        assert f"since by-hand:1 is NOT saved: the process beside the agent {whole}" in told(
            command
        )
    (stage.work.parent / "go").touch()
    assert agent.wait(timeout=LIMIT) == 0
    for command in ("log", "status", "doctor"):
        assert "since by-hand:1 is NOT saved: the process beside" in told(command)
        assert alone not in told(command)
    stage.hardsave("save", "--timeline", "by-hand")  # has it all, and tells of it
    for command in ("log", "status", "doctor"):
        assert "was killed" not in told(command)
    newest, *_ = json.loads(stage.hardsave("log", "--timeline", "by-hand", "--json").stdout)
    assert newest["metadata"]["missed"][0]["why"] == "the process beside the agent was killed"


def test_what_cannot_be_saved_is_told_by_the_next_command(stage: Stage) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, before[1]))  # no file may grow beyond that
    try:
        done = stage.run("for i in 1 2 3 4; do head -c 1500000 /dev/urandom > $i; done")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert done.returncode == 0
    stage.wait_for_the_end()
    assert "could not be saved" in stage.log()
    for command in ("log", "status"):
        assert ":1 is NOT saved: " in stage.hardsave(command).stderr
    assert json.loads(stage.hardsave("status", "--json").stdout)["missed"][0]["hook"] == "run"
    stage.hardsave("save")
    assert "NOT saved" not in stage.hardsave("status").stderr


def cut(store: Path) -> None:
    os.truncate(store, 8192)


def remove(store: Path) -> None:
    for path in store.parent.glob("store.db*"):
        if path.is_file() and path.suffix != ".log":
            path.unlink()


@pytest.mark.parametrize(("strike", "oldest"), [(cut, []), (remove, ["one", "two"])])
def test_a_store_that_is_lost_in_the_middle_of_a_run_is_opened_anew(
    stage: Stage, strike: Callable[[Path], None], oldest: list[str]
) -> None:
    """Else all that an agent does from there on would be lost."""
    base = stage.work.parent
    wait = "until [ -e ../{0} ]; do sleep 0.05; done; echo {0} > {0}; "
    agent = stage.start("".join(map(wait.format, ("one", "two", "three"))))
    (base / "one").touch()
    stage.wait_for(Path(f"{stage.store}-backup").exists)
    stage.wait_for(lambda: len(stage.statuses()) == 2)
    strike(stage.store)
    (base / "two").touch()
    stage.wait_for(lambda: "was opened anew" in stage.log())
    stage.wait_for(lambda: {"one", "two"} in [each.keys() for each in stage.snapshots()])
    (base / "three").touch()
    agent.wait(LIMIT)
    stage.wait_for_the_end()
    seen = [sorted(each) for each in stage.snapshots()]
    assert (seen[0], seen[-1]) == (oldest, ["one", "three", "two"])
    assert stage.statuses()[-1] == "ended"


def test_a_store_that_comes_within_reach_again_is_gone_on_with(stage: Stage) -> None:
    """A share that is away for a while cannot even be closed in order."""
    base = stage.work.parent
    folder, aside = base / "share", base / "away"
    folder.mkdir()
    stage.store = folder / "store.db"
    wait = "until [ -e ../{0} ]; do sleep 0.05; done; echo {0} > {0}; "
    agent = stage.start("".join(map(wait.format, ("one", "two", "three"))))
    (base / "one").touch()
    stage.wait_for(lambda: len(stage.statuses()) == 2)
    folder.rename(aside)
    folder.touch()  # "not a directory" is the answer to every look
    (base / "two").touch()
    log = aside / "store.db-run.log"
    stage.wait_for(lambda: "cannot be opened anew" in log.read_text())
    folder.unlink()
    aside.rename(folder)
    stage.wait_for(lambda: "was opened anew" in stage.log())
    (base / "three").touch()
    agent.wait(LIMIT)
    stage.wait_for_the_end()
    seen = [sorted(each) for each in stage.snapshots()]
    assert (seen[:2], seen[-1]) == ([[], ["one"]], ["one", "three", "two"])
    assert stage.statuses()[-1] == "ended"


def test_killing_the_agent_leaves_a_clean_store(stage: Stage) -> None:
    agent = stage.start("echo work > f; exec sleep 600")
    written = stage.work / "f"
    stage.wait_for(lambda: written.exists() and written.read_text() == "work\n")
    agent.kill()
    assert agent.wait(timeout=LIMIT) == -signal.SIGKILL
    stage.wait_for_the_end()
    assert stage.snapshots()[-1] == {"f": b"work\n"}
    assert stage.statuses()[-1] == "ended"
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        assert vault.store.verify().ok
    stage.wait_for(lambda: stage.daemons() == [])


def test_what_outlives_a_killed_agent_is_saved_too(stage: Stage) -> None:
    work = "(until [ -e ../go ]; do sleep 0.05; done; echo late > f) & "
    agent = stage.start(f"{work} touch g ../begun; sleep 600")
    stage.wait_for((stage.work.parent / "begun").exists)
    agent.kill()
    agent.wait(timeout=LIMIT)
    stage.wait_for(lambda: "the agent has ended; still running: " in stage.log())
    assert "may write meanwhile: (until" in stage.rewound().stderr
    (stage.work.parent / "go").touch()
    stage.wait_for(lambda: stage.snapshots()[-1].get("f") == b"late\n")
    stage.end_of("sleep 600")
    stage.wait_for_the_end()
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        (line,) = vault.timelines()
        assert line.get().status == "ended"
        assert "left_running" not in line.get().metadata
    assert "may write" not in stage.rewound().stderr


def test_each_of_two_agents_has_every_burst_on_its_own_timeline(stage: Stage) -> None:
    stage.start("until [ -e ../end ]; do sleep 0.05; done", "--timeline", "a")
    stage.start("until [ -e ../end ]; do sleep 0.05; done", "--timeline", "b")
    stage.wait_for(lambda: len(stage.statuses()) >= 2)
    (stage.work / "f").write_text("one")

    def both_have_it() -> bool:
        with hardsave.open(f"sqlite:///{stage.store}") as vault:
            heads = [vault.timeline(name).head for name in ("a", "b")]
            files = [None if head is None else head.files for head in heads]
            return all(each is not None and [*each.list()] for each in files)

    stage.wait_for(both_have_it)
    (stage.work.parent / "end").touch()


def test_a_daemon_that_is_told_to_end_names_who_goes_on(stage: Stage) -> None:
    agent = stage.start(": > ../begun; exec sleep 600")  # it has started no process
    stage.wait_for((stage.work.parent / "begun").exists)
    for pid in stage.daemons():
        os.kill(pid, signal.SIGTERM)
    stage.wait_for_the_end()
    assert agent.poll() is None
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        (line,) = vault.timelines()
        last = line.get()
    assert last.status == "ended"
    (left,) = last.metadata["left_running"]
    assert left["pid"] == agent.pid
    assert last.description == f"still running: {left['command']} ({agent.pid})"


def test_the_agent_has_signals_and_surroundings_as_without_us(stage: Stage) -> None:
    script = (
        "trap 'echo caught; exit 5' TERM; "
        "grep SigIgn /proc/self/status; pwd; echo $HARDSAVE_TIMELINE; kill -TERM $$; sleep 5"
    )
    done = stage.run(script, "--timeline", "mine")
    assert done.returncode == 5
    ignored, where, timeline, caught = done.stdout.decode().splitlines()
    assert int(ignored.split()[1], 16) & (1 << (signal.SIGPIPE - 1)) == 0
    assert (where, timeline, caught) == (str(stage.work), "mine", "caught")
    stage.wait_for_the_end()


@pytest.mark.parametrize("language", [{}, {"LC_CTYPE": "C.UTF-8"}, {"LANG": "C"}])
def test_an_agent_is_told_what_was_told_to_us(stage: Stage, language: dict[str, str]) -> None:
    """Where there is no language, Python sets one for itself."""
    kept = {name: told for name, told in os.environ.items() if name[:3] not in ("LC_", "LAN")}
    stage.surroundings = kept | language
    told = stage.run("exec env -0").stdout.decode().split("\0")
    found = dict(each.split("=", 1) for each in told if each)
    assert {name: found[name] for name in found if name[:3] in ("LC_", "LAN")} == language
    stage.wait_for_the_end()


def test_what_an_agent_is_given_is_held_by_no_other_process(stage: Stage) -> None:
    """A lock would stay taken, and a pipe would not end, until the last save is there."""
    reads, writes = os.pipe()
    agent = stage.start("touch ../begun; exec sleep 600", given=writes)
    os.close(writes)
    stage.wait_for((stage.work.parent / "begun").exists)
    (daemon,) = stage.daemons()
    os.kill(daemon, signal.SIGSTOP)
    agent.kill()
    agent.wait()
    assert select.select([reads], [], [], LIMIT)[0]
    os.close(reads)
    os.kill(daemon, signal.SIGCONT)
    stage.wait_for_the_end()


@pytest.mark.parametrize("ending", ["2>/dev/full", "2> >(exec true)"])
def test_an_agent_is_started_though_no_terminal_can_be_told(stage: Stage, ending: str) -> None:
    command = f"{sys.executable} -m hardsave run -- echo works {ending}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=stage.work,
        env={**os.environ, "HARDSAVE_STORE": str(stage.store)},
        stdout=subprocess.PIPE,
        check=True,
        timeout=LIMIT,
    )
    assert done.stdout == b"works\n"
    stage.wait_for_the_end()


def typed(stage: Stage, *words: str) -> "subprocess.CompletedProcess[bytes]":
    """A run, word by word."""
    return subprocess.run(
        [sys.executable, "-m", "hardsave", "run", *words],
        cwd=stage.work,
        env={**os.environ, "HARDSAVE_STORE": str(stage.store)},
        capture_output=True,
        check=False,
        timeout=LIMIT,
    )


def test_what_follows_the_agents_name_is_the_agents(stage: Stage) -> None:
    words = ["-n", "-C", "/", "--timeline", "x", "--json", "--", "y", "--"]
    for ours in (["--timeline", "t"], ["--timeline", "t", "--"]):
        done = typed(stage, *ours, sys.executable, "-c", "import sys; print(*sys.argv)", *words)
        assert done.stdout.decode().split() == ["-c", *words]
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        assert [line.name for line in vault.timelines()] == ["t"]


def test_a_command_may_be_as_long_as_the_system_allows(stage: Stage) -> None:
    """As with a prompt of many pages: one argument holds 128 KiB."""
    prompt = "\N{CYRILLIC SMALL LETTER YA}\n" * 30_000
    done = typed(stage, "printf", "%s", prompt, prompt)
    assert done.stdout.decode() == 2 * prompt
    stage.wait_for_the_end()
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        (line,) = vault.timelines()
        *words, cut = line.get(f"{line.name}:1").metadata["command"]
    assert words == ["printf", "%s"]
    assert cut == f"{prompt[:7990]}… and {2 * len(prompt) - 7990} characters more"


def test_a_script_that_names_no_interpreter_is_the_shells(stage: Stage) -> None:
    script = stage.work / "agent"
    script.write_text("echo $1; exit 7\n")
    done = typed(stage, "./agent", "works")
    assert done.returncode == 2
    assert b"'./agent' may not be executed" in done.stderr
    script.chmod(0o755)
    done = typed(stage, "./agent", "works")
    assert (done.returncode, done.stdout) == (7, b"works\n")


def test_a_command_that_is_not_there_starts_nothing(stage: Stage) -> None:
    done = typed(stage, "--", "no-such-agent")
    assert done.returncode == 3
    assert b"there is no command 'no-such-agent'" in done.stderr
    assert b"alias" in done.stderr
    assert stage.daemons() == []


def test_where_nothing_can_be_saved_no_agent_is_started(stage: Stage) -> None:
    """As in a home directory, which is not saved by accident."""
    environment = {**os.environ, "HARDSAVE_STORE": str(stage.store), "HOME": str(stage.work)}
    done = subprocess.run(
        [sys.executable, "-m", "hardsave", "run", "--", "touch", "../started"],
        cwd=stage.work,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    assert done.returncode == 2, done
    assert "holds a whole home directory" in done.stderr
    assert not (stage.work.parent / "started").exists()
    stage.wait_for(lambda: stage.daemons() == [])


def test_what_a_daemon_cannot_do_is_told_with_the_reason(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", stage.surroundings["XDG_DATA_HOME"])
    task = Task(
        store=f"sqlite:///{stage.store}",
        timeline="t",
        workspace=str(stage.work / "nothing"),
        agent=os.getpid(),
        command=[],
        ready=-1,
        log=f"{stage.store}-run.log",
        socket=f"{stage.store}-run.sock",
    )
    with pytest.raises(Misuse, match="is no directory; name one that is"):
        launch.start(task)
    with pytest.raises(Unavailable, match="was not saved within 0 s"):
        launch.start(task, seconds=0)
    (stage.work / "nothing").mkdir()
    with pytest.raises(Unavailable, match=r"cannot be saved: .*; see .*run\.log"):
        launch.start(task._replace(store="sqlite:////dev/null/store.db"))
    monkeypatch.setattr(sys, "executable", "/gone/python")
    with pytest.raises(Unavailable, match="cannot be saved: /gone/python: No such file"):
        launch.start(task)


UNSHARE = ["unshare", "--pid", "--fork", "--mount-proc"]  # as in a container
CAN_UNSHARE = shutil.which("unshare") is not None and (
    subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0
)


@pytest.mark.skipif(not CAN_UNSHARE, reason="no process here may be process 1")
@pytest.mark.parametrize("init", ["", "sh -c '\"$@\"; exit $?' init"], ids=["alone", "under one"])
@pytest.mark.parametrize(
    ("script", "code"), [("exit 7", 7), ("kill -9 $$", 137), ("kill -STOP $$; exit 3", 3)]
)
def test_the_last_save_is_there_when_a_container_ends(
    stage: Stage, init: str, script: str, code: int
) -> None:
    run = f"{sys.executable} -m hardsave run -- sh -c 'echo last > f; {script}'"
    done = subprocess.run(
        [*UNSHARE, "sh", "-c", f"exec {init} {run}"],
        cwd=stage.work,
        env={**stage.surroundings, "HARDSAVE_STORE": str(stage.store)},
        capture_output=True,
        check=False,
        timeout=LIMIT,
    )
    assert done.returncode == code, done
    assert stage.statuses()[-1] == "ended"
    assert stage.snapshots()[-1] == {"f": b"last\n"}


@pytest.mark.skipif(not CAN_UNSHARE, reason="no process here may be process 1")
def test_what_process_1_is_told_the_agent_is_told(stage: Stage) -> None:
    agent = "trap 'echo told > f; exit 5' TERM; touch begun; while :; do sleep 0.05; done"
    command = [*UNSHARE, "--kill-child=TERM", sys.executable, "-m", "hardsave", "run", "--"]
    container = subprocess.Popen(
        [*command, "sh", "-c", agent],
        cwd=stage.work,
        env={**stage.surroundings, "HARDSAVE_STORE": str(stage.store)},
        stderr=subprocess.DEVNULL,
    )
    stage.wait_for((stage.work / "begun").exists)
    container.kill()  # upon which its process 1 gets SIGTERM
    container.wait()
    stage.wait_for(lambda: stage.statuses()[-1] == "ended")
    assert stage.snapshots()[-1]["f"] == b"told\n"


@pytest.mark.skipif(not CAN_UNSHARE, reason="no process here may be process 1")
@pytest.mark.parametrize(
    ("script", "typed", "said"),
    [
        ("{run} true; echo now; read x; echo got $x", [(b"now", b"it\n")], b"got it"),
        (
            "set -m; {run} true & wait; echo now; read x; echo got $x",
            [(b"now", b"it\n")],
            b"got it",
        ),
        (
            "exec {run} sh -c 'echo now; cat; echo end'",
            [(b"now", b"a\n"), (b"a\r\na", b"\x1a"), (b"^Z", b"it\n"), (b"it\r\nit", b"\x04")],
            b"end",
        ),
    ],
    ids=["given back", "left to others", "goes on with all of its group"],
)
def test_the_terminal_of_a_container_is_whose_turn_it_is(
    stage: Stage, script: str, typed: list[tuple[bytes, bytes]], said: bytes
) -> None:
    script = script.format(run=f"{sys.executable} -m hardsave run --")
    ours, theirs = pty.openpty()
    container = subprocess.Popen(
        [*UNSHARE, "setsid", "--ctty", "sh", "-c", script],
        cwd=stage.work,
        env={**stage.surroundings, "HARDSAVE_STORE": str(stage.store)},
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(theirs)
    seen, end = b"", time.monotonic() + LIMIT
    try:
        for awaited, answer in [*typed, (said, b"")]:
            while awaited not in seen and time.monotonic() < end:
                if select.select([ours], [], [], 0.1)[0]:
                    try:
                        seen += os.read(ours, 4096)
                    except OSError:  # everybody has gone
                        break
            assert awaited in seen, seen
            os.write(ours, answer)
        container.wait(LIMIT)
    finally:
        container.kill()
        container.wait()
        os.close(ours)


def test_an_agent_that_does_not_call_us_is_said_to_be_read_along(
    stage: Stage, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 4\n")
    program.chmod(0o755)
    home = tmp_path / "codex"
    home.mkdir()

    def said(config: str, command: str) -> str:
        (home / "hooks.json").write_text(config)
        done = subprocess.run(
            [sys.executable, "-m", "hardsave", "run", "--", command],
            cwd=stage.work,
            env={
                **stage.surroundings,
                "HARDSAVE_STORE": str(stage.store),
                "CODEX_HOME": str(home),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )
        assert done.returncode == (4 if command == str(program) else 0)
        return done.stderr

    assert "as Codex writes it down; 'hardsave init' saves" in said("{}", str(program))
    ours = {"hooks": [{"type": "command", "command": "hardsave-hook codex"}]}
    assert "leaves our hooks out" in said(json.dumps({"hooks": {"Stop": [ours]}}), str(program))
    assert "as Codex writes it down; " in said("nonsense", str(program))
    assert "writes it down" not in said("{}", "true")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process is found")
def test_a_second_agent_in_one_workspace_is_told_that_it_is_not_alone(stage: Stage) -> None:
    first = stage.start("touch ../begun; sleep 60", "--timeline", "one")
    stage.wait_for((stage.work.parent / "begun").exists)
    told = stage.run("true", "--timeline", "two").stderr.decode()
    assert "works here too" in told
    assert "hardsave fork @ DIR" in told
    (stage.work.parent / "elsewhere").mkdir()
    other = stage.run("true", "--timeline", "three", "-C", str(stage.work.parent / "elsewhere"))
    assert "works here too" not in other.stderr.decode(), "each has a directory of its own"
    first.kill()


def test_a_daemon_inside_of_a_run_is_none_of_its_agents(stage: Stage) -> None:
    inner = f"{sys.executable} -m hardsave run --timeline inner -- sh -c 'touch ../begun; sleep 60'"
    stage.start(inner, "--timeline", "outer")
    stage.wait_for((stage.work.parent / "begun").exists)
    daemons = stage.daemons()
    assert len(daemons) == 2
    beside = f"{stage.store}{protocol.SOCKET_INFIX}"
    agents = processes.with_variable(protocol.SOCKET_VARIABLE, beside, is_prefix=True)
    assert agents
    assert not {each.pid for each in agents}.intersection(daemons)


def test_a_purge_reaches_what_a_run_keeps_in_memory(stage: Stage) -> None:
    """Its command, which it says with its first save."""
    os.mkfifo(stage.work / "go")
    running = stage.start("true sesame-opens; touch begun; read < go; touch ended; sleep 0.5")
    stage.wait_for(lambda: len(stage.statuses()) >= 2 and (stage.work / "begun").exists())
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        assert vault.store.purge(text="sesame-opens").rewritten >= 1
    (stage.work / "go").write_bytes(b"\n")
    assert running.wait(LIMIT) == 0
    stage.wait_for_the_end()
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        (line,) = vault.timelines()
        commands = [str(each.metadata.get("command", "")) for each in line.checkpoints()]
        assert line.head is not None
        assert line.head.status == "ended"
    assert "[purged]" in commands.pop()
    assert set(commands) == {""}
    assert found(stage.store.parent, ["sesame-opens"]) == set()
