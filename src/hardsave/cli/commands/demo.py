"""`hardsave demo`: see it survive."""

import sys

import click

from hardsave.cli.command import command
from hardsave.cli.demo.scenes import SCENES, play
from hardsave.cli.session import Session


@command(
    "demo",
    examples="""
        hardsave demo
        hardsave demo files
    """,
    takes=("--json",),
)
@click.argument("scene", type=click.Choice([*SCENES]), required=False)
def demo(session: Session, scene: str | None) -> None:
    """Show agents that are really killed, and go on.

    Plays in folders of its own, touches nothing of yours, and checks what it shows: exit code 1
    if something does not hold.
    """
    names = [scene] if scene else [*SCENES]
    seconds: dict[str, float] = {}
    for name in names:
        say = _to_stderr if session.out.as_json else _to_stdout
        if len(names) > 1:
            say(f"{SCENES[name].title}\n")
        seconds[name] = play(name, say)
        if len(names) > 1:
            say("")
    data = [{"scene": name, "seconds": round(took, 3)} for name, took in seconds.items()]
    end = [] if scene else [f"all as it should be, in {sum(seconds.values()):.1f} s"]
    session.out.result(lambda: data, lambda: end)


def _to_stdout(text: str) -> None:
    print(text, flush=True)


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


COMMANDS = {"demo": demo}
