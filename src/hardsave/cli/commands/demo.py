"""`hardsave demo`: plays the scenes of `cli/demo`. A new one: a module with `play`, named here."""

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import click

from hardsave.cli.command import command
from hardsave.cli.demo import crash, files, job, tasks
from hardsave.cli.demo.stage import Stage
from hardsave.cli.demo.viewer import Left, Viewer, at_terminal
from hardsave.cli.session import Session
from hardsave.errors import Misuse
from hardsave.tuples import NamedTuple


class Scene(NamedTuple):
    title: str
    play: Callable[[Stage], None]


SCENES = {
    "crash": Scene("An agent that is killed, and goes on", crash.play),
    "tasks": Scene("Tasks that survive their server", tasks.play),
    "job": Scene("A job that is killed, and resumed elsewhere", job.play),
    "files": Scene("A workspace that is deleted, and comes back", files.play),
}


@command(
    "demo",
    examples="""
        hardsave demo
        hardsave demo files
        hardsave demo --interactive
    """,
    takes=("--json",),
)
@click.argument("scene", type=click.Choice([*SCENES]), required=False)
@click.option("--interactive", is_flag=True, help="Go on, and kill the agents, with a key.")
def demo(session: Session, scene: str | None, interactive: bool) -> None:
    """Show agents that are really killed, and go on.

    Plays in folders of its own, touches nothing of yours, and checks what it shows: exit code 1
    if something does not hold.
    """
    names = [scene] if scene else [*SCENES]
    if interactive:
        _for_viewer(session, names)
        return
    seconds: dict[str, float] = {}
    for name in names:
        say = _to_stderr if session.out.as_json else _to_stdout
        if len(names) > 1:
            say(f"{SCENES[name].title}\n")
        seconds[name] = _play(name, say)
        if len(names) > 1:
            say("")
    data = [{"scene": name, "seconds": round(took, 3)} for name, took in seconds.items()]
    end = [] if scene else [_closing(sum(seconds.values()))]
    session.out.result(lambda: data, lambda: end)


def _for_viewer(session: Session, names: Sequence[str]) -> None:
    """The scenes in slow motion; a key begins each, and kills its agent."""
    if session.out.as_json:
        raise Misuse("--interactive is for people, --json for programs; leave one out")
    seconds = 0.0
    with at_terminal() as viewer, suppress(Left):
        for number, name in enumerate(names, 1):
            _to_stdout(f"{SCENES[name].title} ({number} of {len(names)})")
            _to_stdout("any key: begin   q: leave\n")
            viewer.wait()
            seconds += _play(name, _to_stdout, viewer)
            _to_stdout("")
        if len(names) > 1:
            _to_stdout(_closing(seconds))


def _closing(seconds: float) -> str:
    return f"all as it should be, in {seconds:.1f} s"


def _play(name: str, say: Callable[[str], None], viewer: Viewer | None = None) -> float:
    """Play one scene; how many seconds it took."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hardsave-demo-") as folder:
        SCENES[name].play(Stage(Path(folder), say, viewer))
    return time.monotonic() - begun


def _to_stdout(text: str) -> None:
    print(text, flush=True)


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


COMMANDS = {"demo": demo}
