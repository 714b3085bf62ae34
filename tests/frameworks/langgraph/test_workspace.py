"""Graphs that work in a directory: files and state of one checkpoint belong together."""

import operator
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from deepagents import create_deep_agent
from deepagents.backends import LocalShellBackend
from deepagents.backends.protocol import BackendProtocol
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.graph import END, START, StateGraph

import hardsave
from hardsave.adapters.deepagents import HardsaveBackend
from hardsave.adapters.langgraph import HardsaveSaver
from tests.frameworks.langgraph.scripted_agent import THREAD, Scripted, agent, written


class State(TypedDict):
    done: Annotated[list[int], operator.add]


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[hardsave.Vault]:
    (tmp_path / "work").mkdir()
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as made:
        yield made


class Late(HardsaveSaver):
    """Its puts begin only when the next step has written."""

    def __init__(self, *args: Any, **rest: Any) -> None:
        super().__init__(*args, **rest)
        self.may_put = threading.Semaphore(0)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        assert self.may_put.acquire(timeout=60)
        return super().put(config, checkpoint, metadata, new_versions)


def a_graph(saver: HardsaveSaver, work: Path, steps: int) -> Any:
    def write(state: State) -> State:
        number = len(state["done"])
        (work / "log").write_text("".join(f"{n}\n" for n in range(number + 1)))
        if isinstance(saver, Late):
            saver.may_put.release()  # of the step before
        return {"done": [number]}

    builder = StateGraph(State)
    builder.add_node("write", write)
    builder.add_edge(START, "write")
    builder.add_conditional_edges(
        "write", lambda state: "write" if len(state["done"]) < steps else END
    )
    return builder.compile(checkpointer=saver)


def lines(found: hardsave.Checkpoint | None) -> int:
    assert found is not None
    assert found.files is not None
    here = {each.path for each in found.files.directory()}
    return len(found.files.read("log").splitlines()) if here else 0


def test_files_are_those_of_the_step_although_its_put_comes_late(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    saver = Late(vault, workspace=tmp_path / "work")
    graph = a_graph(saver, tmp_path / "work", 5)
    for _ in range(3):
        saver.may_put.release()  # of the input, and two that no step waits for
    graph.invoke({"done": []}, THREAD, durability="async")
    found = list(saver.list(THREAD))
    assert len(found) == 7
    for one in found:
        done = one.checkpoint["channel_values"].get("done", [])
        assert lines(saver.checkpoint(one.config)) == len(done)


def test_a_rewind_takes_back_state_and_files_and_the_graph_goes_on_from_there(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    saver = HardsaveSaver(vault, workspace=work)
    graph = a_graph(saver, work, 4)
    graph.invoke({"done": []}, THREAD)
    line = vault.timeline(saver.timeline("t"))
    target = next(each for each in line.checkpoints() if each.read().get("done") == [0, 1])
    line.rewind(target)
    assert (work / "log").read_text() == "0\n1\n"
    state = graph.get_state(THREAD)
    assert state.values == {"done": [0, 1]}
    assert [task.result for task in state.tasks] == [None]  # what it wrote before does not count
    assert graph.invoke(None, THREAD) == {"done": [0, 1, 2, 3]}
    assert (work / "log").read_text() == "0\n1\n2\n3\n"
    line.rewind(target)
    (work / "log").write_text("")
    graph.invoke(None, THREAD)
    assert (work / "log").read_text() == "0\n1\n2\n3\n"
    line.undo()


def test_an_older_checkpoint_is_restored_by_its_config(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    saver = HardsaveSaver(vault, workspace=work)
    graph = a_graph(saver, work, 4)
    graph.invoke({"done": []}, THREAD)
    second = next(each for each in graph.get_state_history(THREAD) if each.values["done"] == [0])
    found = saver.checkpoint(second.config)
    assert found is not None
    assert saver.workspace is not None
    saver.workspace.restore(found)
    assert (work / "log").read_text() == "0\n"


def test_files_of_a_deep_agent_are_committed_with_its_state(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    saver = HardsaveSaver(vault, workspace=tmp_path / "work")
    graph = agent(saver, 3)
    graph.invoke({"messages": [("user", "begin")]}, THREAD)
    found = list(saver.list(THREAD))
    assert len(found) > 8
    for one in found:
        saved = saver.checkpoint(one.config)
        assert saved is not None
        assert saved.files is not None
        messages = graph.get_state(one.config).values.get("messages", [])
        assert {each.path for each in saved.files.directory()} == written(messages)


class Typing(Scripted):
    """Types one command into a shell, and is done."""

    command: str

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        typed: Any = {"name": "execute", "args": {"command": self.command}, "id": "typed"}
        is_done = isinstance(messages[-1], ToolMessage)
        said = AIMessage("done") if is_done else AIMessage("", tool_calls=[typed])
        return ChatResult(generations=[ChatGeneration(message=said)])


def test_what_a_command_of_a_deep_agent_did_goes_back_with_its_state(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    (work / "old").write_text("old")
    saver = HardsaveSaver(vault, workspace=work)
    shell = LocalShellBackend(work, virtual_mode=True, inherit_env=True)
    model = Typing(turns=1, command="rm old && echo made > new")
    graph: Any = create_deep_agent(model, backend=shell, checkpointer=saver)
    graph.invoke({"messages": [("user", "begin")]}, THREAD)
    assert sorted(each.name for each in work.iterdir()) == ["new"]
    line = vault.timeline(saver.timeline("t"))
    last = next(iter(saver.list(THREAD)))
    typed = next(
        one
        for one in saver.list(THREAD)
        if len(graph.get_state(one.config).values["messages"]) == 2
    )
    found = saver.checkpoint(typed.config)
    assert found is not None
    line.rewind(found)
    assert sorted(each.name for each in work.iterdir()) == ["old"]
    ended = saver.checkpoint(last.config)
    assert ended is not None
    assert ended.files is not None
    assert ended.files.read("new") == b"made\n"


def test_the_backend_does_what_its_protocol_asks_for(vault: hardsave.Vault, tmp_path: Path) -> None:
    work = tmp_path / "work"
    backend: BackendProtocol = HardsaveBackend(HardsaveSaver(vault, workspace=work))
    assert backend.write("/src/a.txt", "one\ntwo\n").error is None
    assert backend.edit("/src/a.txt", "two", "2").error is None
    read = backend.read("/src/a.txt").file_data
    assert read is not None
    assert read["content"].splitlines() == ["one", "2"]
    assert [each["path"] for each in backend.ls("/").entries or []] == ["/src/"]
    assert [each["path"] for each in backend.grep("one").matches or []] == ["/src/a.txt"]
    assert [each["path"] for each in backend.glob("**/*.txt").matches or []] == ["/src/a.txt"]
    assert [each.error for each in backend.upload_files([("/b", b"\0")])] == [None]
    assert [each.content for each in backend.download_files(["/b"])] == [b"\0"]
    assert backend.delete("/b").error is None
    assert sorted(each.name for each in work.rglob("*")) == ["a.txt", "src"]


@pytest.mark.parametrize("path", ["/../out", "../out", "/link/out", "~/out"])
def test_no_path_leads_out_of_the_workspace(
    path: str, vault: hardsave.Vault, tmp_path: Path
) -> None:
    (tmp_path / "work/link").symlink_to(tmp_path)
    backend = HardsaveBackend(HardsaveSaver(vault, workspace=tmp_path / "work"))
    with suppress(ValueError):
        backend.write(path, "x")
    assert not (tmp_path / "out").exists()


def test_a_backend_needs_a_workspace(vault: hardsave.Vault) -> None:
    with pytest.raises(hardsave.Misuse, match="the saver has no workspace"):
        HardsaveBackend(HardsaveSaver(vault))
