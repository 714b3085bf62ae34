"""`hardsave workflow …`: several agents, one after the other, as a file says."""

import asyncio
from typing import TYPE_CHECKING, Any

import click

from hardsave import wording
from hardsave.cli.agent_loader import AGENTS, load_agents
from hardsave.cli.command import command
from hardsave.cli.errors import Exit
from hardsave.cli.render.output import stdout_is_stderr
from hardsave.cli.session import Session
from hardsave.errors import Misuse
from hardsave.values.spelling import to_json

if TYPE_CHECKING:
    from hardsave.runtime.plan import Workflow
    from hardsave.runtime.workflow import Outcome, Run


FILE = click.argument("file", type=click.Path())


@command(
    "check",
    examples="""
        hardsave workflow check release.yaml
    """,
    takes=("--json", "-C"),
)
@FILE
def check(session: Session, file: str) -> None:
    """Check a workflow's file, and list its steps."""
    from hardsave.runtime.plan import read_file

    plan = read_file(file)
    session.out.result(lambda: _plan(plan), lambda: _plan_lines(plan))


@command(
    "run",
    examples="""
        hardsave workflow run release.yaml --agents agents.py:AGENTS --input goal=tidy
        hardsave workflow run release.yaml --agents agents.py:AGENTS --from run-1234
    """,
)
@FILE
@AGENTS
@click.option("--from", "ref", metavar="RUN|REF", help="Go on with a run, or from a checkpoint.")
@click.option("--input", "inputs", multiple=True, metavar="KEY=TEXT", help="For ${inputs.KEY}.")
@click.option("--accept-changes", is_flag=True, help="Run steps again that the file has changed.")
def run(
    session: Session,
    file: str,
    agents: str | None,
    ref: str | None,
    inputs: tuple[str, ...],
    accept_changes: bool,
) -> Exit | None:
    """Run the agents that a file names, one after the other.

    Every finished step is saved. After a crash or a failure --from goes on where it was: steps
    that are finished do not run again. An agent is a function, or a coroutine function,
    that takes the inputs of its step as a dict and returns its answer; or a StandardAgent.

    \b
    workflow:
      name: release
    steps:
      - name: plan
        agent: planner
        inputs: {goal: "${inputs.goal}"}
      - name: code
        agent: coder
        inputs: {plan: "${plan}"}
    """
    from hardsave.runtime.plan import read_file

    given = _inputs(inputs) or None
    return _run(session, read_file(file), agents, ref, given, accept_changes=accept_changes)


def _run(
    session: Session,
    plan: "Workflow",
    agents: str | None,
    ref: str | None,
    inputs: dict[str, str] | None,
    *,
    accept_changes: bool,
) -> Exit | None:
    from hardsave.runtime.workflow import StepFailed, WorkflowExecutor

    session.may_create_store = ref is None
    executor = WorkflowExecutor(load_agents(agents), vault=session.vault)
    start = None if ref is None else _start(session, ref)
    failed: str | None = None
    with stdout_is_stderr():  # agents may print
        try:
            run = asyncio.run(
                executor.run(
                    plan,
                    inputs=inputs,
                    checkpoint_id=start,
                    accept_changes=accept_changes,
                    begun=lambda run: session.out.say(
                        f"{run.id} begins; should it be interrupted, --from {run.id} goes on"
                    ),
                )
            )
        except StepFailed as error:
            run, failed = error.run, str(error)
    session.out.result(lambda: _data(run, failed), lambda: _lines(run))
    if failed is not None:
        session.out.say(f"{wording.line(failed, 500)}; --from {run.id} goes on")
        return Exit.FAILED
    return None


def _start(session: Session, ref: str) -> str:
    """A run goes on from its latest checkpoint."""
    head = next((line.head for line in session.vault.timelines() if line.name == ref), None)
    return session.find(ref).id if head is None else head.id


def _inputs(given: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in given:
        key, sign, text = each.partition("=")
        if not sign or not key:
            raise Misuse(f"--input is KEY=TEXT, not {each!r}")
        found[key] = text
    return found


def _plan(plan: "Workflow") -> dict[str, Any]:
    steps = [{"name": step.name, "agent": step.agent} for step in plan.steps]
    return {"workflow": plan.name, "steps": steps}


def _plan_lines(plan: "Workflow") -> list[str]:
    count = wording.count(len(plan.steps), "step")
    lines = [f"  {wording.shown(step.name)}: {wording.shown(step.agent)}" for step in plan.steps]
    return [f"{wording.shown(plan.name)}, {count}", *lines]


def _data(run: "Run", failed: str | None) -> dict[str, Any]:
    return {
        "run": run.id,
        "workflow": run.workflow,
        "ok": run.ok,
        "checkpoint": run.checkpoint_id,
        "failed": failed,
        "steps": {name: to_json(step.to_dict()) for name, step in run.steps.items()},
    }


def _lines(run: "Run") -> list[str]:
    steps = [
        f"  {wording.shown(name)}: {step.status}  {wording.line(_said(step), 100)}"
        for name, step in run.steps.items()
    ]
    return [f"{run.id} of {wording.shown(run.workflow)}", *steps]


def _said(step: "Outcome") -> str:
    return str(step.answer) if step.status == "completed" else step.error


COMMANDS = {"run": run, "check": check}
