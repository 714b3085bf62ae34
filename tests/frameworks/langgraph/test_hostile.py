"""States that no graph has written: nothing is imported, constructed or run on reading them."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import hardsave
import hardsave.stores.compression  # a read loads it if a pack happens to be compressed by then
from hardsave.adapters.langgraph import HardsaveSaver
from hardsave.adapters.langgraph.values import Values

CALL = {
    "lc": 1,
    "type": "constructor",
    "id": ["os", "system"],
    "kwargs": {"command": "touch owned"},
}
HOSTILE: list[Any] = [
    {"lc": "os.system", "value": "touch owned"},
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


def read_all(folder: Path) -> None:
    """In a process of its own: an audit hook stays for good."""
    with hardsave.open(f"sqlite:///{folder}/store.db") as vault:
        saver = HardsaveSaver(vault)
        config: Any = {"configurable": {"thread_id": "warm"}}
        saver.get_tuple(config)  # all that reading loads by itself
        loaded = set(sys.modules)
        watched = (
            "import",
            "exec",
            "compile",
            "os.system",
            "subprocess.Popen",
            "os.exec",
            "marshal",
        )
        seen: list[str] = []

        def hook(event: str, given: object) -> None:
            if event.startswith(watched):
                seen.append(f"{event} {given!r:.80} in {threading.current_thread().name}")

        sys.addaudithook(hook)
        for number in range(len(HOSTILE)):
            config = {"configurable": {"thread_id": f"t{number}"}}
            try:
                found = saver.get_tuple(config)
                assert found is not None
                list(saver.list(config, filter={"source": "loop"}))
            except hardsave.HardsaveError:
                continue
        assert seen == [], seen
        assert set(sys.modules) == loaded


def test_nothing_is_imported_constructed_or_run(tmp_path: Path) -> None:
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        for number, value in enumerate([*HOSTILE, "warm"]):
            name = f"langgraph/t{number}" if value != "warm" else "langgraph/warm"
            state = {"messages": [value], "x": value, "__checkpoint__": {"v": 2, "ts": value}}
            about = {"id": "i", "parent": None, "metadata": {"source": "loop", "x": value}}
            notes = {"0 0 t": ["", "t", 0, "messages", value]}
            vault.timeline(name).save(state, name="root", metadata=about, notes=notes)
    program = f"from pathlib import Path\nfrom {__name__} import read_all\nread_all(Path('.'))"
    root = Path(__file__).parents[3]
    subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env={"PYTHONPATH": str(root)}, check=True
    )
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("value", HOSTILE, ids=str)
def test_a_users_dict_that_looks_like_ours_comes_back_as_it_was(value: Any) -> None:
    values = Values()
    assert values.revived(values.plain(value)) == value
    assert values.revived(values.plain([{"deep": value}])) == [{"deep": value}]
