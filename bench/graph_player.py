"""A process that plays a graph under one saver: `python -m bench.graph_player SAVER SCHEMA FOLDER
TURNS`. For every line that it is sent it takes one step and prints `more`; after the last one it
prints what all of them took, as JSON.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from bench import graphs

SAVERS = {each.__name__: each for each in (graphs.ours, graphs.sqlite)}
SCHEMAS = {each.__name__: each for each in (graphs.Plain, graphs.Deltas)}


def main() -> None:
    saver, schema, folder, turns = sys.argv[1:]
    steps = graphs.play(SAVERS[saver], SCHEMAS[schema], Path(folder), int(turns))
    print("ready", flush=True)
    for _ in sys.stdin:
        played = next(steps)
        print("more" if played is None else json.dumps(asdict(played)), flush=True)


if __name__ == "__main__":
    main()
