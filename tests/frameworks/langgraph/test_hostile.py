"""States that no graph has written: nothing is imported, constructed or run on reading them."""

from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.adapters.langgraph import HardsaveSaver
from hardsave.adapters.langgraph.values import Values
from tests.frameworks.audited import in_a_process, watched

CALL = {
    "lc": 1,
    "type": "constructor",
    "id": ["os", "system"],
    "kwargs": {"command": "touch owned"},
}
HOSTILE: list[Any] = [
    {"lc": "os.system", "value": "touch owned"},
    {"lc": "object", "name": "turtledemo.main", "fields": {}},  # which nothing else imports
    {"lc": 2, "type": "constructor", "id": ["turtledemo", "main"]},
    {"lc": "object", "name": "subprocess.Popen", "fields": {"args": ["touch", "owned"]}},
    {"lc": "enum", "name": "builtins.eval", "value": "open('owned', 'w')"},
    {"lc": 2, "type": "constructor", "id": ["os", "system"], "args": ["touch owned"]},
    CALL,
    {"lc": "dict", "value": CALL},
    {"lc": "AIMessage", "__class__": "os", "content": CALL, "lc_extra": {"__reduce__": CALL}},
    {"lc": "AIMessage", "content": "x", "__dict__": {"content": 1}, "model_post_init": CALL},
    {"lc": "Send", "node": CALL, "arg": CALL, "timeout": CALL},
    {"lc": "Command", "graph": CALL, "goto": [CALL]},
    {"lc": "Interrupt", "response_schema": "os.system"},
    {"lc": "deque", "value": "x", "maxlen": "y"},
    {"lc": "IPv4Address", "value": CALL},
    {"lc": "path"},
    {"lc": ["AIMessage"]},
    {"lc": "TimeoutPolicy", "run_timeout": CALL},
]


def read_all() -> None:
    with hardsave.open("sqlite:///store.db") as vault:
        saver = HardsaveSaver(vault)

        def read(thread: str) -> None:
            config: Any = {"configurable": {"thread_id": thread}}
            assert saver.get_tuple(config) is not None
            list(saver.list(config, filter={"source": "loop"}))

        watched(read, ["warm"], [f"t{number}" for number in range(len(HOSTILE))])


def test_nothing_is_imported_constructed_or_run(tmp_path: Path) -> None:
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        for number, value in enumerate([*HOSTILE, "warm"]):
            name = f"langgraph/t{number}" if value != "warm" else "langgraph/warm"
            state = {"messages": [value], "x": value, "__checkpoint__": {"v": 2, "ts": value}}
            about = {"id": "i", "parent": None, "metadata": {"source": "loop", "x": value}}
            notes = {"0 0 t": ["", "messages", value]}
            vault.timeline(name).save(state, name="root", metadata=about, notes=notes)
    in_a_process(__name__, "read_all()", tmp_path)


@pytest.mark.parametrize("value", HOSTILE, ids=str)
def test_a_users_dict_that_looks_like_ours_comes_back_as_it_was(value: Any) -> None:
    values = Values()
    assert values.revived(values.plain(value)) == value
    assert values.revived(values.plain([{"deep": value}])) == [{"deep": value}]
