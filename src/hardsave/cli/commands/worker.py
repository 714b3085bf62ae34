"""`hardsave worker`: runs the jobs that are queued."""

from typing import TYPE_CHECKING

import click

from hardsave.cli import jobs, words
from hardsave.cli.agents import AGENTS, loaded
from hardsave.cli.command import command
from hardsave.cli.output import stdout_is_stderr
from hardsave.cli.session import Session
from hardsave.errors import Misuse

if TYPE_CHECKING:
    from hardsave.runtime.jobs import Job


@command(
    "worker",
    examples="""
        hardsave worker --agents agents.py:AGENTS
        hardsave worker --agents agents.py:AGENTS --until-idle --concurrency 4
    """,
)
@AGENTS
@click.option("--session", "name", default="worker", show_default=True, help="What it is called.")
@click.option("--concurrency", type=click.IntRange(1), default=1, show_default=True)
@click.option("--until-idle", is_flag=True, help="End when nothing is left to do.")
@click.option("--allow-private-callbacks", is_flag=True, help="Callbacks may go to this network.")
def worker(
    session: Session,
    agents: str | None,
    name: str,
    concurrency: int,
    until_idle: bool,
    allow_private_callbacks: bool,
) -> None:
    """Run the jobs that are queued, with agents of your own.

    Agents are those of Pydantic AI, or functions that make one for a job. It ends with Ctrl-C.
    """
    try:
        from hardsave.runtime.jobs import Jobs
        from hardsave.runtime.jobs.worker import Worker
    except ImportError as error:
        raise Misuse(
            f"a worker needs Pydantic AI ({error}); install it with: pip install 'hardsave[agents]'"
        ) from error
    made = Worker(
        Jobs(session.vault), loaded(agents), allow_private_callbacks=allow_private_callbacks
    )
    ended: list[Job] = []

    def told(job: "Job") -> None:
        ended.append(job)
        end = job.error or job.question or job.output
        session.out.say(f"{words.shown(job.id)}: {job.state}, {words.line(str(end or ''), 200)}")

    with stdout_is_stderr():  # agents may print
        made.run(name, concurrency=concurrency, until_idle=until_idle, told=told)
    session.out.result(
        lambda: [jobs.as_data(job) for job in ended],
        lambda: [f"{words.count(len(ended), 'attempt')} ended"],
    )


COMMANDS = {"worker": worker}
