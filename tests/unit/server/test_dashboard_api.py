"""What the dashboard asks for: health with its findings, the steps of tasks, choices."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import hardsave
from hardsave.daemon import spool
from tests.unit.server.job_server import LIMIT, OWN_TOKEN, Client, serving
from tests.unit.tasks import unknown_step


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    return f"sqlite:///{tmp_path / 's.db'}"


@pytest.fixture
def call(store: str, tmp_path: Path) -> Iterator[Client]:
    with serving(store, tmp_path) as client:
        yield client


def findings(call: Client) -> dict[str, Any]:
    status, told = call("GET", "api", "v1", "health")
    assert status == 200
    return {each["what"]: each for each in told["findings"]}


def sent(call: Client, method: str, path: str, **more: Any) -> httpx2.Response:
    """The answer to a request with a query, or to one that may be refused."""
    url = f"http://127.0.0.1:{call.port}/api/v1/{path}"
    headers = {"Authorization": f"Bearer {OWN_TOKEN}"}
    return httpx2.request(method, url, headers=headers, timeout=LIMIT, **more)


def test_health_tells_of_backup_disk_missed_saves_and_hooks(
    call: Client, store: str, tmp_path: Path
) -> None:
    with hardsave.open(store) as vault:
        vault.timeline("main").save({})
    found = findings(call)
    assert found.keys() == {"backup", "disk", "missed saves", "Claude Code", "Codex", "Qwen Code"}
    assert found["missed saves"]["level"] == "ok"
    assert "free" in found["disk"]["message"]
    assert (
        found["backup"]["message"] == "has everything"
    )  # the vault that was closed has seen to it


def test_a_save_that_was_missed_in_the_project_is_told_with_its_reason(
    call: Client, tmp_path: Path
) -> None:
    place = spool.folder(os.environ, tmp_path)
    place.mkdir(parents=True)
    (place / "1.json").write_text('{"hook": "Stop", "why": "the disk is full"}')
    missed = findings(call)["missed saves"]
    assert (missed["level"], missed["message"]) == ("warning", "1 save missed: the disk is full")
    assert missed["remedy"] == "hardsave doctor"
    assert call("GET", "api", "v1", "health")[1]["saves_missed"] == 1


def test_a_hook_that_calls_what_is_gone_is_told_with_its_remedy(
    call: Client, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    hook = {"type": "command", "command": "/gone/python -m hardsave.daemon.hook claude-code"}
    settings = {"hooks": {"Stop": [{"hooks": [hook]}]}}
    (tmp_path / "home" / "settings.json").write_text(json.dumps(settings))
    found = findings(call)["Claude Code"]
    assert (found["level"], found["remedy"]) == ("warning", "hardsave init")


def test_a_task_tells_its_steps_and_an_unknown_one_its_choices(call: Client, store: str) -> None:
    unknown_step.leave(store, "deploy")
    with hardsave.open(store) as vault:
        unknown_step.ask(vault, "deploy")
        vault.tasks.add("mail")
        with vault.tasks.attempt("mail") as attempt:
            attempt.ask("Send it?")
    _, waiting = call("GET", "api", "v1", "approvals")
    choices = {each["id"]: each["choices"] for each in waiting["items"]}
    assert choices == {"deploy": ["retry", "skip", "fail"], "mail": None}
    told = sent(call, "GET", "task?id=deploy").json()
    assert [(each["path"], each["state"], each["value"]) for each in told["steps"]] == [
        ("build#1", "done", "shop-1.2.tar"),
        ("push#1", "unknown", ""),
    ]


def test_long_texts_and_results_are_told_briefly_if_asked_so(call: Client, store: str) -> None:
    with hardsave.open(store) as vault:
        vault.tasks.add("long", "x" * 10_000, metadata={"note": "m" * 10_000, "few": 1})
        with vault.tasks.attempt("long") as attempt:
            attempt.complete({"many": list(range(10_000))})
        vault.tasks.add("asks", "short")
        with vault.tasks.attempt("asks") as attempt:
            attempt.ask("q" * 10_000)
    whole = sent(call, "GET", "task?id=long").json()
    brief = sent(call, "GET", "task?id=long&brief=true").json()
    assert whole["result"]["many"][-1] == 9_999
    assert brief["result"].startswith('{"many": [0, 1, 2')
    assert brief["metadata"] == {"note": "m" * 3_999 + "…", "few": 1}
    assert [len(brief[name]) for name in ("text", "result")] == [4_000, 4_000]
    assert len(json.dumps(brief)) < 30_000  # its history, too
    listed = sent(call, "GET", "tasks?brief=true").json()
    assert {each["id"]: len(each["text"]) for each in listed["items"]} == {"long": 4_000, "asks": 5}
    (asked,) = sent(call, "GET", "approvals?brief=true").json()["items"]
    assert (len(asked["question"]), len(asked["task"]["question"])) == (4_000, 4_000)


def test_a_question_of_any_length_is_answered_by_its_digest(call: Client, store: str) -> None:
    with hardsave.open(store) as vault:
        vault.tasks.add("asks")
        with vault.tasks.attempt("asks") as attempt:
            attempt.ask("first " * 50_000)
        (first,) = sent(call, "GET", "approvals?brief=true").json()["items"]
        answer = {"id": "asks", "answer": "yes", "question_digest": first["question_digest"]}
        assert sent(call, "POST", "tasks/answer", json=answer).status_code == 200
        with vault.tasks.attempt("asks") as attempt:
            assert attempt.ask("first " * 50_000) == "yes"
            attempt.ask("second?")
        for digest in (first["question_digest"], "question_0"):
            wrong = {**answer, "question_digest": digest}
            refused = sent(call, "POST", "tasks/answer", json=wrong)
            assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
        assert vault.tasks.get("asks").question == "second?"


def test_the_state_of_a_checkpoint_is_told_briefly_if_asked_so(call: Client, store: str) -> None:
    with hardsave.open(store) as vault:
        saved = vault.timeline("main").save({"calls": [{"value": "v" * 10_000, "n": 1}]})
    told = sent(call, "GET", f"state?ref={saved.id}&brief=true").json()
    assert told["value"] == {"calls": [{"value": "v" * 3_999 + "…", "n": 1}]}


def test_a_brief_graph_names_files_where_nothing_else_tells_what_was_done(
    call: Client, store: str, tmp_path: Path
) -> None:
    with hardsave.open(store) as vault:
        line = vault.timeline("main")
        work = tmp_path / "work"
        work.mkdir()
        for step in (None, None, hardsave.StepSummary(call="Bash(ls)")):
            (work / "a.txt").write_text(f"{line.head}")
            line.save({}, workspace=work, step=step)
    items = sent(call, "GET", "graph?timeline=main&brief=true").json()["items"]
    told = {each["checkpoint"]["seq"]: each["checkpoint"]["summary"] for each in items}
    assert [told[seq]["paths"] for seq in (2, 3)] == [["a.txt"], []]


def test_a_brief_graph_keeps_what_a_list_of_checkpoints_shows(call: Client, store: str) -> None:
    with hardsave.open(store) as vault:
        line = vault.timeline("main")
        for about in (hardsave.StepSummary(call="Bash(ls)", call_id="c1"), hardsave.StepSummary()):
            said = {"role": "assistant", "content": "I look"}
            line.append({"messages": [said]}, metadata={"agent": "coder"}, step=about)

    def nodes(query: str) -> list[dict[str, Any]]:
        items = sent(call, "GET", f"graph?timeline=main{query}").json()["items"]
        return [each["checkpoint"] for each in items]

    for whole, brief in zip(nodes(""), nodes("&brief=true"), strict=True):
        assert (whole["metadata"], brief["metadata"]) == ({"agent": "coder"}, {})
        told = brief["summary"]
        assert told["said"] == ("" if told["call"] else "I look")
        assert {**brief, "metadata": {}, "summary": {}} == {**whole, "metadata": {}, "summary": {}}
        assert told.keys() == whole["summary"].keys()
        assert told["messages"] == whole["summary"]["messages"]


def test_what_differs_in_a_state_is_told_with_what_is_in_it(call: Client, store: str) -> None:
    said = [{"role": "user", "content": text} for text in ("one", "two", "three")]
    with hardsave.open(store) as vault:
        line = vault.timeline("main")
        line.save({"messages": said[:2], "turn": 1, "plan": {"next": "x"}})
        line.save({"messages": said[1:], "turn": 2, "note": "n" * 20_000})
    told = sent(call, "GET", "diff/state?from=main:1&to=main:2").json()
    assert told["counts"] == {"added": 1, "changed": 0, "removed": 1}
    sides = [(each["change"], each["old"], each["new"]) for each in told["messages"]]
    assert [
        (c, o and (o["number"], o["text"]), n and (n["number"], n["text"])) for c, o, n in sides
    ] == [
        ("removed", (0, "one"), None),
        ("added", None, (1, "three")),
    ]
    values = {each["path"]: each for each in told["values"]}
    assert (values["turn"]["old"], values["turn"]["new"]) == ("1", "2")
    assert (values["plan"]["new"], values["plan"]["change"]) == (None, "removed")
    assert '"next": "x"' in values["plan"]["old"]
    assert (len(values["note"]["new"]), values["note"]["is_cut"]) == (10_000, True)
    assert not told["is_cut"]
    some = sent(call, "GET", "diff/state?from=main:1&to=main:2&limit=1").json()
    assert (len(some["messages"]), len(some["values"]), some["is_cut"]) == (1, 1, True)
    refused = sent(call, "GET", "diff/state?from=main:1&to=now")
    assert refused.status_code == 400
    assert "compare two checkpoints" in refused.json()["detail"]
