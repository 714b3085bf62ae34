"""Workflows as files say them."""

import json
from typing import Any

import pytest

from hardsave.errors import Misuse
from hardsave.runtime.plan import SCHEMA, filled, read, references
from tests.docs.pages import DOCS

WHOLE = """
workflow:
  name: release
  checkpoint: false
steps:
  - name: plan
    agent: Planner
    inputs: {goal: "${inputs.goal}"}
    checkpoint: true
  - name: code
    agent: Coder
    inputs:
      plan: ${plan}
      note: "by ${plan.author}, ${plan.parts.first}"
    retry: 2
    on_error: skip
"""


def test_a_whole_workflow_is_read() -> None:
    found = read(WHOLE)
    assert found.name == "release"
    plan, code = found.steps
    assert (plan.agent, plan.checkpoint, plan.retry, plan.on_error) == ("Planner", True, 0, "fail")
    assert (code.checkpoint, code.retry, code.on_error) == (False, 2, "skip")


def test_without_more_every_step_is_saved_and_the_file_names_it() -> None:
    found = read("steps: [{name: a, agent: A}]", "jobs/nightly.yaml")
    assert found.name == "nightly"
    assert found.steps[0].checkpoint


def test_a_step_that_stands_in_another_line_is_the_same() -> None:
    here, there = read(WHOLE), read("\n\n" + WHOLE)
    assert here == there
    assert [step.key for step in here.steps] == [step.key for step in there.steps]
    assert [step.line for step in here.steps] == [7, 11]
    assert there.where(there.steps[1]) == "workflow:13: step 'code'"


A = "steps:\n  - name: a\n    agent: A\n    "


LAUGHS = A + "inputs:\n      a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
LAUGHS += "".join(
    f"      a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 9)}]\n"
    for number in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "w is empty"),
        ("a: [", "w:1: this is not YAML"),
        ("- a", "w:1: the file is a mapping of workflow, steps"),
        ("workflow: {}", "w:1: there are no steps"),
        ("steps: []", "w:1: steps is a list"),
        ("steps: {a: 1}", "w:1: steps is a list"),
        ("steps:\n  - x", "w:2: a step is a mapping"),
        ("steps:\n  - agent: A", "w:2: a step has no name"),
        ("steps:\n  - name: a", "w:2: a step has no agent"),
        (A + "retrys: 1", "w:4: a step takes no 'retrys'"),
        ("steps:\n  - name: a b\n    agent: A", "w:2: name is letters"),
        ("steps:\n  - name: inputs\n    agent: A", "w:2: name is letters"),
        ("steps:\n  - name: 3\n    agent: A", "w:2: name is a text, not 3"),
        ("steps:\n  - name: a\n    agent: ''", "w:3: agent is a text"),
        ("steps:\n  - {name: a, agent: A}\n  - {name: a, agent: B}", "w:3: name is used once"),
        (
            "steps:\n  - name: a\n    agent: A\n    agent: B",
            "w:4: agent stands here for the second",
        ),
        (
            "steps:\n  - name: a\n    agent: A\n    retry: -1",
            "w:4: retry is a number from 0 to 100",
        ),
        (A + "retry: true", "w:4: retry is a number"),
        (A + "on_error: panic", "w:4: on_error is fail, skip"),
        (A + "inputs: [1]", "w:4: inputs is a mapping"),
        (
            "steps:\n  - name: a\n    agent: A\n    checkpoint: yes please",
            "w:4: checkpoint is true",
        ),
        (
            "steps:\n  - name: a\n    agent: A\n    inputs: {x: '${b}'}",
            "w:4: ${b} is no step before",
        ),
        (
            "steps:\n  - name: a\n    agent: A\n    inputs: {x: '${a}'}",
            "w:4: ${a} is no step before",
        ),
        ("workflow: {nam: x}\nsteps: []", "w:1: workflow takes no 'nam'"),
        ("workflow: {checkpoint: 3}\nsteps: []", "w:1: checkpoint is true or false"),
        ("steps: [{name: a, agent: !!python/object:os.system x}]", "could not determine"),
        (A + "inputs: {x: !!bool maybe}", "w:4: this cannot be read"),
        (A + "inputs: {x: {[1]: 2}}", "w:4: this cannot be read"),
        (A + "[1]: 2", "w:4: a step takes no key that is a sequence"),
        (A + "inputs: &r {x: *r}", "w:4: this is nested too deeply"),
        (A + "inputs: {x: &r [*r]}", "w:4: this is nested too deeply"),
        (A + f"inputs: {{x: {'[' * 200}{']' * 200}}}", "w:4: this is nested too deeply"),
        ("steps: " + "[" * 100_000, "w: this is nested too deeply"),
        (LAUGHS, "w: this stands for more than 100,000 values"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, says: str) -> None:
    with pytest.raises(Misuse) as caught:
        read(text, "w")
    assert says in str(caught.value)


def test_a_key_changes_with_what_could_change_the_answer_and_nothing_else() -> None:
    def key(text: str) -> str:
        return read(f"steps: [{{name: a, agent: A{text}}}]").steps[0].key

    assert key("") == key(", retry: 3, checkpoint: false, on_error: skip")
    assert len({key(""), key(", inputs: {x: 1}"), key(", inputs: {x: true}")}) == 3


def test_inputs_are_filled_with_answers_of_their_own_type() -> None:
    answers: dict[str, Any] = {"plan": {"n": 3, "who": {"name": "ada"}}, "inputs": {"goal": "g"}}
    given = {"whole": "${plan}", "deep": ["${plan.n}", "by ${plan.who.name}"], "raw": 7}
    assert filled(given, answers) == {
        "whole": {"n": 3, "who": {"name": "ada"}}, "deep": [3, "by ada"], "raw": 7,
    }  # fmt: skip
    assert sorted(set(references(given))) == ["plan"]
    with pytest.raises(Misuse, match=r"\$\{plan.nothing\} leads nowhere"):
        filled("${plan.nothing}", answers)


def test_the_published_schema_is_this_one() -> None:
    assert json.loads((DOCS / "workflow.schema.json").read_text()) == SCHEMA
