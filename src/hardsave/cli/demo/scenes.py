"""The scenes, in the order they are played. A new one is a module with `play`, and a line here."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from hardsave.cli.demo import crash, files, job, work
from hardsave.cli.demo.stage import Stage
from hardsave.tuples import NamedTuple


class Scene(NamedTuple):
    title: str
    play: Callable[[Stage], None]


SCENES = {
    "crash": Scene("An agent that is killed, and goes on", crash.play),
    "work": Scene("Tasks that survive their server", work.play),
    "job": Scene("A job that is killed, and resumed elsewhere", job.play),
    "files": Scene("A workspace that is deleted, and comes back", files.play),
}


def play(name: str, say: Callable[[str], None]) -> float:
    """Play one scene; how many seconds it took."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hardsave-demo-") as folder:
        SCENES[name].play(Stage(Path(folder), say))
    return time.monotonic() - begun
