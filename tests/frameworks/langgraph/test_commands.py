"""What the commands and the page show of a thread: channels by their names, messages as said."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from playwright.sync_api import expect

import hardsave
from hardsave.adapters.langgraph import HardsaveSaver
from tests.integration.server.browser import NEEDS_CHROMIUM, launched, visiting
from tests.integration.server.conftest import environment, starting
from tests.integration.server.session_page import at, said

THREAD: Any = {"configurable": {"thread_id": "fix/parser"}}


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    plan: str


def a_graph(saver: HardsaveSaver) -> Any:
    def work(state: State) -> dict[str, Any]:
        number = len(state["messages"])
        assert saver.workspace is not None
        (saver.workspace.path / "page").write_text(f"page {number}\n")
        call: Any = {"name": "write", "args": {"number": number}, "id": f"call-{number}"}
        return {"messages": [AIMessage("I write.", tool_calls=[call])], "plan": f"plan {number}"}

    builder = StateGraph(State)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    builder.add_edge("work", END)
    return builder.compile(checkpointer=saver)


def a_story(vault: hardsave.Vault, work: Path) -> str:
    """Two turns; the timeline of the thread."""
    work.mkdir()
    saver = HardsaveSaver(vault, workspace=work)
    graph = a_graph(saver)
    for asked in ("repair the parser", "and the printer"):
        graph.invoke({"messages": [HumanMessage(asked)]}, THREAD, durability="sync")
    return saver.timeline("fix/parser")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (made := tmp_path / "project").mkdir()
    return made


def test_commands_name_the_channels_of_a_thread_and_take_it_back(
    folder: Path, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    with hardsave.open(store) as vault:
        name = a_story(vault, folder / "site")

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "hardsave", *words, "--store", store]
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    log = run("log", "--timeline", name)
    for number, asked in ((2, "repair the parser"), (5, "and the printer")):
        assert re.search(rf"{re.escape(name)}:{number} .*{asked}", log), log
    diff = run("diff", f"{name}:2", f"{name}:6")
    assert "messages 1 → 4" in diff
    assert 'plan: "plan 3"' in diff
    assert "+page 3" in diff
    assert '▸ write {"number": 1}' in run("show", f"{name}:3")
    run("rewind", f"{name}:3", "--yes")
    assert (folder / "site/page").read_text() == "page 1\n"
    with hardsave.open(store) as vault:
        state = a_graph(HardsaveSaver(vault, workspace=folder / "site")).get_state(THREAD).values
    assert (len(state["messages"]), state["plan"]) == (2, "plan 1")


@NEEDS_CHROMIUM
def test_the_page_names_the_channels_of_a_thread(tmp_path: Path) -> None:
    with starting(tmp_path) as start, launched() as browser:
        server = start()
        with server.vault() as vault:
            name = a_story(vault, server.folder / "site")
        with visiting(browser, server) as visitor:
            visitor.go("session", timeline=name)
            at(visitor, 6)
            expect(said(visitor)).to_have_count(4)
            visitor.see(".conversation .message", has_text="and the printer")
            visitor.go("diff", timeline=name, **{"from": ":2", "to": ":6"})
            entries = visitor.page.get_by_role("treeitem")
            expect(entries.filter(has_text="Messages")).to_be_visible()
            entries.filter(has_text=re.compile(r"State: \d+ values")).click()
            expect(visitor.page.get_by_text("plan", exact=True)).to_be_visible()
