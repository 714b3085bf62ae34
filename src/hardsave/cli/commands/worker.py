"""`hardsave worker`: runs the jobs of a store, on this host beside workers on others."""

from typing import TYPE_CHECKING, Any

import click

from hardsave import wording
from hardsave.cli.agent_loader import AGENTS, load_agents, load_dict
from hardsave.cli.arguments import LEASE
from hardsave.cli.command import command
from hardsave.cli.render import job_lines
from hardsave.cli.render.output import stdout_is_stderr
from hardsave.cli.session import Session
from hardsave.cli.task_status import Status, telling
from hardsave.defaults import GRACE_SECONDS
from hardsave.errors import Misuse

if TYPE_CHECKING:
    from hardsave import Job
    from hardsave.runtime import Worker

_KINDS = ("claimed", "handed_back", "interrupted")  # how an attempt has ended is told by its job


@command(
    "worker",
    examples="""
        hardsave worker --agents agents.py:AGENTS
        hardsave worker --agents agents.py:AGENTS --until-idle --concurrency 4
        hardsave worker --agents agents.py:AGENTS --store postgresql://db.example/agents
        hardsave worker --agents agents.py:AGENTS --periodic agents.py:EVERY_NIGHT
    """,
)
@AGENTS
@click.option(
    "--models", metavar="WHERE:NAME", help="Models that jobs may name: a dict, as the agents are."
)
@click.option(
    "--periodic",
    metavar="WHERE:NAME",
    help="Jobs that come again: a dict of a cron line and the rest of each. On PostgreSQL.",
)
@click.option("--session", "name", default="worker", show_default=True, help="What it is called.")
@click.option("--concurrency", type=click.IntRange(1), default=1, show_default=True)
@click.option("--until-idle", is_flag=True, help="End when nothing is left to do.")
@LEASE
@click.option(
    "--grace-seconds",
    type=click.FloatRange(0),
    default=GRACE_SECONDS,
    show_default=True,
    help="What runs when it is stopped has so long to end.",
)
@click.option(
    "--log", "status_log", metavar="FILE", help="Append what begins, ends and is recovered."
)
@click.option("--allow-private-callbacks", is_flag=True, help="Callbacks may go to this network.")
@click.option("--take-over", is_flag=True, help="Take sessions on other machines for dead.")
def worker(
    session: Session,
    agents: str | None,
    models: str | None,
    periodic: str | None,
    name: str,
    status_log: str | None,
    allow_private_callbacks: bool,
    **terms: Any,
) -> None:
    """Run the jobs that are queued, with agents of your own.

    Agents are those of Pydantic AI, or functions that make one for a job. Jobs that need an agent
    or a model which this worker was not given are left to workers that have it. Any number of
    workers, on any number of hosts, may share a store on PostgreSQL: each job runs once, and goes
    on at another worker when its own dies, three times at least.

    Ctrl-C and SIGTERM stop it: what does not end in time is handed back, and goes on elsewhere.
    """
    status = Status(session, status_log)
    made = _made(
        session,
        load_agents(agents),
        models={} if models is None else load_dict(models, "--models", "models"),
        allow_private_callbacks=allow_private_callbacks,
    )
    ended: list[Job] = []

    def told(job: "Job") -> None:
        ended.append(job)
        end = job.error or job.question or job.output
        status.say(f"{wording.shown(job.id)}: {job.state}, {wording.line(str(end or ''), 200)}")

    again = {} if periodic is None else load_dict(periodic, "--periodic", "jobs")
    with stdout_is_stderr(), telling(session.vault, status, _KINDS):  # agents may print
        made.run(name, told=told, periodic=again, **terms)
    session.out.result(
        lambda: [job_lines.as_data(job) for job in ended],
        lambda: [f"{wording.count(len(ended), 'attempt')} ended"],
    )


def _made(session: Session, agents: dict[str, Any], **given: Any) -> "Worker":
    try:
        from hardsave.runtime import Worker
    except ImportError as error:
        raise Misuse(
            f"a worker needs Pydantic AI ({error}); install it with: pip install 'hardsave[agents]'"
        ) from error
    return Worker(session.vault, agents, **given)


COMMANDS = {"worker": worker}
