"""A graph of LangGraph's under our saver, beside its SqliteSaver and its delta channel."""

import json
from collections.abc import Sequence
from contextlib import ExitStack

from bench import graphs
from bench.companion import companion
from bench.graphs import Played
from bench.report import Row, Target, at_most, growth, size
from bench.setting import Setting


def langgraph(setting: Setting) -> list[Row]:
    """Disk, and time of the processor: puts run in threads beside the graph."""
    place, turns = setting.place / "frameworks", setting.choose(500, 60)
    ours, deltas, theirs, delta = _played(
        ("ours", "Plain", str(place / "ours"), str(turns)),
        ("ours", "Deltas", str(place / "our-deltas"), str(turns)),
        ("sqlite", "Plain", str(place / "theirs"), str(turns)),
        ("sqlite", "Deltas", str(place / "delta"), str(turns)),
    )
    bounds = {"put": 0.5, "invoke": 0.7, "history": 1 / 8, "get": 0.75, "fresh": 2.0}
    delta_bounds = {"invoke": 1.3, "history": 1 / 8}
    return [
        _disk("SqliteSaver", turns, ours, theirs, at_most(1 / 100)),
        *_times("SqliteSaver", ours, theirs, bounds),
        _disk("delta channel", turns, ours, delta, at_most(0.3)),
        *_times("delta channel", ours, delta, delta_bounds),
        _disk("delta channel, both with it", turns, deltas, delta),
        *_times("delta channel, both with it", deltas, delta, dict.fromkeys(delta_bounds)),
    ]


def _played(*plays: Sequence[str]) -> list[Played]:
    """Each in a process of its own; they take turns."""
    found: dict[int, Played] = {}
    with ExitStack() as stack:
        players = [stack.enter_context(companion("bench.graph_player", *each)) for each in plays]
        while len(found) < len(players):
            for at in {*range(len(players))} - found.keys():
                said = players[at].answer("next\n")
                if said != "more":
                    found[at] = Played(**json.loads(said))
    return [found[at] for at in range(len(players))]


CALLS = {
    "put": "put of a state of so many turns",
    "invoke": "invoke, at the end",
    "history": f"get_state_history(limit={graphs.HISTORY})",
    "get": "get_tuple, warm",
    "fresh": "get_tuple, a new process",
}


def _disk(name: str, turns: int, ours: Played, theirs: Played, target: Target | None = None) -> Row:
    figure = f"a graph of {turns} turns, disk, closed, beside the {name}"
    beside = f"and {size(ours.backup)} of a backup beside it"
    ratio = ours.disk / theirs.disk
    return Row(figure, size(ours.disk), size(theirs.disk), ratio, "×", target, beside)


def _times(
    name: str, ours: Played, theirs: Played, bounds: "dict[str, float] | dict[str, None]"
) -> list[Row]:
    return [
        growth(
            f"{CALLS[call]}, beside the {name}",
            getattr(ours, call),
            getattr(theirs, call),
            None if bound is None else at_most(bound),
            names=("", name),
        )
        for call, bound in bounds.items()
    ]
