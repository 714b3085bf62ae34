"""Who has called a hook, over plain processes and one real chain of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hardsave.daemon.processes import Origin, agent_among, agent_of, sees_the_same_files
from hardsave.stores.host import processes
from hardsave.stores.host.processes import Process

PROGRAM = "from hardsave.daemon.hook import main; main()"
HOOK = Process(40, 400, 30, 1000, ("/venv/bin/python", "-P", "-c", PROGRAM))
CLAUDE = Process(10, 100, 5, 1000, ("claude", "-p", "do it"))
SHELL = Process(5, 50, 1, 1000, ("-bash",))
INIT = Process(1, 1, 0, 0, ("/sbin/init",))


def between(*words: str) -> Process:
    return Process(30, 390, 10, 1000, words)


def test_the_parent_of_a_hook_is_its_agent() -> None:
    assert agent_among(HOOK, [CLAUDE, SHELL, INIT], "claude") == CLAUDE


@pytest.mark.parametrize(
    "words",
    [
        ("/bin/sh", "-c", f"/venv/bin/python -P -c '{PROGRAM}'"),
        ("bash", "-lc", f"/venv/bin/python -P -c '{PROGRAM}' codex"),
        ("timeout", "10", *HOOK.words),
        ("env", "A=1", *HOOK.words),
    ],
)
def test_who_only_runs_the_hook_is_not_the_agent(words: tuple[str, ...]) -> None:
    assert agent_among(HOOK, [between(*words), CLAUDE], "claude") == CLAUDE
    assert agent_among(HOOK, [between(*words), between(*words), CLAUDE], "claude") == CLAUDE


def test_a_script_is_known_by_its_name() -> None:
    hook = HOOK._replace(words=("/usr/bin/python", "/home/me/bin/hardsave-hook", "codex"))
    assert (
        agent_among(hook, [between("sh", "-c", "hardsave-hook codex"), CLAUDE], "claude") == CLAUDE
    )


@pytest.mark.parametrize(
    "words",
    [
        ("claude", "-p", f"what does {PROGRAM!r} do?"),  # an agent that is asked about us
        ("bash", "-c", "./my-agent --forever"),  # a shell that is the agent
        ("python3", "-c", f"while True: run('python -c {PROGRAM}')"),
        ("sh",),
        (),
    ],
)
def test_a_process_that_does_more_is_the_agent(words: tuple[str, ...]) -> None:
    assert agent_among(HOOK, [between(*words), CLAUDE], "claude") == between(*words)


def test_in_a_container_the_agent_may_be_the_first_process() -> None:
    first = Process(1, 1, 0, 1000, ("claude",))
    assert agent_among(HOOK._replace(parent=1), [first], "claude") == first


def test_a_hook_whose_agent_has_died_has_none() -> None:
    assert agent_among(HOOK, [INIT], "claude") is None  # another user's
    assert (
        agent_among(HOOK, [CLAUDE._replace(began=401)], "claude") is None
    )  # its number is used again
    assert agent_among(HOOK, [], "claude") is None


def test_the_process_that_adopts_orphans_is_no_agent_although_it_is_the_same_users() -> None:
    reaper = Process(1, 1, 0, 1000, ("/lib/systemd/systemd", "--user"), session=1)
    assert agent_among(HOOK._replace(session=10), [reaper], "claude") is None
    assert agent_among(HOOK._replace(session=40), [reaper], "claude") is None
    detached = HOOK._replace(session=40)  # some agents give each hook a session of its own
    assert agent_among(detached, [CLAUDE._replace(session=10)], "claude") is not None
    unnamed = Process(10, 100, 5, 1000, ("my-agent",), session=10)
    assert agent_among(HOOK._replace(session=10), [unnamed], "claude") == unnamed


def test_a_real_chain_is_read(tmp_path: Path) -> None:
    """This process is the agent; a shell that waits, and a hook that tells its number."""
    script = "import os; print(os.getpid(), flush=True); input()"
    command = f"{sys.executable} -c '{script}'; exit"
    shell = subprocess.Popen(["sh", "-c", command], stdin=-1, stdout=-1, text=True)
    assert shell.stdout is not None
    hook = int(shell.stdout.readline())
    try:
        found = agent_of(hook, "claude")
        assert found is not None
        assert found.pid == os.getpid()
        assert agent_of(hook, "claude", Origin(shell.pid, os.getsid(0))) == found
        assert sees_the_same_files(hook)
    finally:
        shell.communicate("\n")
    assert agent_of(hook, "claude") is None
    assert processes.look(hook) is None
    assert not sees_the_same_files(hook)
    assert not sees_the_same_files(0)  # as the kernel calls one of another container
