"""`hardsave run -- CMD`: any agent, with its workspace watched and saved."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import click

from hardsave import config, wording
from hardsave.cli import arguments, waiting
from hardsave.cli.command import command
from hardsave.cli.session import Session
from hardsave.errors import HardsaveError, Misuse, NotFound
from hardsave.stores.registry import is_on_server, shown
from hardsave.vault.workspaces import projects


@command(
    "run",
    examples="""
        hardsave run -- claude
        hardsave run -- codex
        hardsave run --timeline refactor -- aider --model o3
    """,
    takes=("--store", "--timeline", "-C"),
    timeline_help="The timeline, by its name, which may be new. Else a new one.",
)
@click.argument("cmd", nargs=-1, type=arguments.PROGRAM, required=True)
def run(session: Session, cmd: tuple[str, ...]) -> None:
    """Run any agent, with its workspace watched and saved.

    The files are saved after every burst of changes, by any process; of Claude Code, Codex and Qwen
    Code the conversation is saved, too. The agent runs as without us: its terminal, its signals
    and its exit code are its own. Each run has a timeline of its own, called after the command,
    unless one is named; so does a run inside of another.
    """
    _check_program(cmd[0])
    _ignore_outer_store(session)
    if session.store_path is None and not is_on_server(session.url):
        raise Misuse(f"'run' needs a store that stays, not {shown(session.url)!r}")
    from hardsave.agents import registry
    from hardsave.daemon import election, launch, protocol, restart, running_agents, server

    session.may_save_here()
    url = session.url
    path = session.store_path or Path(election.host_path(os.environ, url))
    timeline, directory = _where(session)
    timeline = timeline or timeline_name(cmd[0], session.now, random_suffix())
    session.close()
    config.make_folder(path.parent)
    prefix = Path(f"{path.absolute()}{protocol.SOCKET_INFIX}")
    server.remove_stale_sockets(prefix)
    task = launch.Task(
        store=url,
        timeline=timeline,
        workspace=str(directory),
        agent=os.getpid(),
        command=list(cmd),
        ready=-1,
        log=f"{path}-run.log",
        socket=election.new_socket_path(str(path.absolute())),
    )
    daemon = launch.start(task)
    where = wording.shown(str(directory))
    what = f"saving {where} on timeline {timeline!r}; see 'hardsave log'"
    with suppress(OSError):  # a closed terminal keeps no agent from its work
        session.out.say(what, *_other_runs(prefix, directory), *_advice(cmd[0], directory))
    told = {
        "HARDSAVE_TIMELINE": timeline,
        "HARDSAVE_STORE": url,
        protocol.SOCKET_VARIABLE: task.socket,
        running_agents.RUN_VARIABLE: running_agents.Run(os.getpid(), timeline).dump(),
    }
    environment = launch.without_coercion({**os.environ, **told})
    environment.pop(restart.VARIABLE, None)  # of a run around us
    agent = registry.typed(cmd[0])
    if agent is None or launch.must_stay() or not restart.can_stay():
        launch.become(cmd, environment, daemon)
    launch.become(cmd, environment, daemon, (agent, restart.socket_path(task.socket)))


# What follows the agent's name is the agent's, and so is each '--'. Ours come before.
run.allow_interspersed_args = False


def _where(session: Session) -> tuple[str | None, Path]:
    """The timeline that was named, and the directory. No agent waits until a server is back."""
    outbox = waiting.outbox(session.url)
    if outbox is None or not (why := outbox.why_away(is_patient=True)):
        return timeline_named(session), session.directory
    session.out.say(f"{why}; until it answers, what is saved waits on this host")
    return session.settings.timeline or _of_run(session), projects.root(os.environ, Path.cwd())


def _check_program(name: str) -> None:
    """Refuse a program that cannot be run, before anything is saved for it."""
    if shutil.which(name) is not None:
        return
    if os.path.isfile(name) and os.path.dirname(name):
        raise Misuse(
            f"{name!r} may not be executed; 'chmod +x' changes that, or name the program that runs "
            "it before it"
        )
    raise NotFound(
        f"there is no command {name!r} here; if it is an alias or a function of your shell, "
        "write what it stands for"
    )


def _ignore_outer_store(session: Session) -> None:
    """In another project than that of a run around us, its store is not ours, though it was told:
    the user would not look for this project's saves there."""
    from hardsave.daemon import running_agents

    if session.settings.store or running_agents.run_around(os.environ) is None:
        return
    if running_agents.is_of_another(os.environ, Path.cwd()):
        os.environ.pop(config.STORE_VARIABLE)


def timeline_named(session: Session) -> str | None:
    """The timeline that was named; not the one that was told to the agent of a run around us."""
    typed = session.settings.timeline
    if typed:
        session.may_make_timeline = True
        return session.whole_name(typed)
    return _of_run(session)


def _of_run(session: Session) -> str | None:
    """The timeline that the environment names, unless a run around us has told it."""
    from hardsave.daemon import running_agents

    given = session.settings.timeline_of_run
    around = running_agents.run_around(os.environ)
    return None if around is not None and given == around.timeline else given


def _other_runs(prefix: Path, directory: Path) -> Iterator[str]:
    """Agents that are saved here at the same time. What changes is seen, and not which agent
    changed it."""
    from hardsave.daemon import processes, protocol

    found = processes.with_variable(protocol.SOCKET_VARIABLE, str(prefix), is_prefix=True)
    waiting = processes.ancestors()
    here = [each for each in found if each.pid not in waiting and each.works_in(directory)]
    if here:
        yield f"{wording.shown(str(here[0]))} works here too, under another 'hardsave run':"
        yield "both timelines get what either changes, and cannot tell the two apart;"
        yield "'hardsave fork @ DIR' gives an agent a directory of its own"


def _advice(program: str, directory: Path) -> Iterator[str]:
    """The conversation of an agent that we know is saved by its hooks, if they call us."""
    from hardsave.agents import install, registry

    agent = registry.typed(program)
    if agent is None:
        return
    try:
        why = install.why_silent(agent, os.environ, directory)
        some = install.settings_file(agent, os.environ, None)
        if not why and some is not None and agent.untrusted_hooks(some):
            yield f"{agent.title} leaves some of our hooks out; see 'hardsave doctor'"
    except HardsaveError as error:  # settings that we cannot read are no reason not to start
        why = str(error)
    if why and _is_beside_another(agent.program):
        yield f"the conversation is NOT saved: another {agent.title} works here, and their"
        yield f"transcripts cannot be told apart; {why}"
    elif why:
        yield f"the conversation is saved as {agent.title} writes it down; {why}"


def _is_beside_another(program: str) -> bool:
    from hardsave.daemon import running_agents
    from hardsave.daemon.running_agents import Others

    directory = os.path.realpath(os.getcwd())
    return running_agents.others(os.getpid(), program, directory) is Others.SOME


def random_suffix() -> str:
    """By which runs of one second are told apart. Not the number of the process: in containers,
    that is the same for all, and they may share a store."""
    return os.urandom(3).hex()


def timeline_name(program: str, moment: datetime, random_suffix: str) -> str:
    """The name of a run's timeline: what runs, since when, and which of those that were started in
    the same second. Nothing is saved yet by which another would know it as taken."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", os.path.basename(program)).strip("-.") or "run"
    return f"{plain}-{moment:%Y%m%d-%H%M%S}-{random_suffix}"


COMMANDS = {"run": run}
