import json
import shlex
from typing import Any

import pytest

from hardsave.agents.claude_code.spec import CLAUDE_CODE
from hardsave.agents.codex.spec import CODEX
from hardsave.agents.settings import (
    PROGRAM,
    commands,
    is_whole,
    places,
    with_hooks,
    without_hooks,
)
from hardsave.errors import Misuse

HOOKS = CLAUDE_CODE.hooks
COMMAND = f"'/opt/a b/python' -P -c {shlex.quote(PROGRAM)}"
THEIRS = {"matcher": "Bash", "hooks": [{"type": "command", "command": "say -m hardsave"}]}
ODD = [
    {},
    {"model": "opus"},
    {"hooks": {}},
    {"hooks": {"Stop": []}},
    {
        "hooks": {"Stop": [THEIRS], "Other": [THEIRS, 7, None, {"hooks": "odd"}]},
        "x": {"é": [1.5, None]},
    },
]


@pytest.mark.parametrize("before", ODD)
def test_ours_come_behind_and_go_without_a_trace(before: dict[str, Any]) -> None:
    text = json.dumps(before, indent=2, ensure_ascii=False) + "\n"
    after = with_hooks(text, COMMAND, HOOKS)
    assert sorted(dict(commands(after))) == sorted(HOOKS)
    for event, groups in before.get("hooks", {}).items():
        assert json.loads(after)["hooks"][event][: len(groups)] == groups
    if before.get("hooks") == {"Stop": []} or before.get("hooks") == {}:
        return  # what was empty before is left out afterwards: nothing tells who made it
    assert without_hooks(after) == text


@pytest.mark.parametrize(
    "old", ["/old/bin/hardsave-hook", "python3 -P -m hardsave.daemon.hook", COMMAND]
)
def test_installing_twice_installs_once_and_takes_the_new_command(old: str) -> None:
    again = with_hooks(with_hooks("{}", old, CODEX.hooks), COMMAND, HOOKS)
    assert json.loads(again) == json.loads(with_hooks("{}", COMMAND, HOOKS))
    assert with_hooks(again, COMMAND, HOOKS) == again


def test_no_hook_gets_another_place_when_ours_are_renewed() -> None:
    first = json.loads(
        with_hooks(json.dumps({"hooks": {"Stop": [THEIRS]}}), "hardsave-hook", HOOKS)
    )
    twice = first["hooks"]["Stop"][1]
    first["hooks"]["Stop"] += [THEIRS, {**twice, "hooks": [*twice["hooks"], *THEIRS["hooks"]]}]
    after = json.loads(with_hooks(json.dumps(first), COMMAND, HOOKS))["hooks"]["Stop"]
    assert (after[0], after[2]) == (THEIRS, THEIRS)
    assert after[1]["hooks"][0]["command"] == COMMAND
    assert after[3:] == [{"matcher": "*", "hooks": THEIRS["hooks"]}]


def test_a_group_that_was_given_ours_by_hand_keeps_its_own() -> None:
    (ours,) = json.loads(with_hooks("{}", COMMAND, HOOKS))["hooks"]["Stop"]
    mixed = {"matcher": "*", "hooks": [*THEIRS["hooks"], *ours["hooks"]]}
    after = without_hooks(json.dumps({"hooks": {"Stop": [mixed]}}))
    assert json.loads(after) == {"hooks": {"Stop": [{"matcher": "*", "hooks": THEIRS["hooks"]}]}}


@pytest.mark.parametrize(
    "command",
    [
        "hardsave-hook; notify-send done",
        "hardsave-hook;notify-send done",
        "cd /srv && /opt/bin/hardsave-hook codex",
        f"{COMMAND} | tee /tmp/log",
        f"{COMMAND} > /dev/null",
        "hardsave-hook\nnotify",
        "hardsave-hook # mine",
        "hardsave-hook 'it",
        "HARDSAVE_TIMELINE=work hardsave-hook",
        "timeout 5 hardsave-hook claude-code",
        "(hardsave-hook)",
    ],
)
def test_a_command_that_does_more_than_to_call_us_stays_as_it_is(command: str) -> None:
    theirs = {"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}
    text = json.dumps({"hooks": {"Stop": [theirs]}}, indent=2) + "\n"
    after = with_hooks(text, COMMAND, HOOKS)
    assert json.loads(after)["hooks"]["Stop"] == [theirs]  # ours would save everything twice
    assert sorted(dict(commands(after))) == sorted(HOOKS)
    assert [each for _, each in commands(after) if not is_whole(each)] == [command]
    assert without_hooks(after) == text


def test_a_hook_of_ours_is_found_by_its_place() -> None:
    text = with_hooks(json.dumps({"hooks": {"Stop": [THEIRS]}}), COMMAND, {"Stop": 7})
    (found,) = places(text)
    assert (found.event, found.group, found.hook, found.matcher) == ("Stop", 1, 0, "*")
    assert found.told["timeout"] == 7


@pytest.mark.parametrize("text", ['{"hooks":{"Stop":[]},\n\n  "a":1}', '{ "hooks":{} }', "{}", ""])
def test_removing_what_is_not_there_changes_no_byte(text: str) -> None:
    assert without_hooks(text) == text


@pytest.mark.parametrize("indent", ["  ", "    ", "\t"])
def test_a_file_stays_set_as_it_was(indent: str) -> None:
    text = json.dumps({"model": "opus", "x": {"y": 1}}, indent=indent)
    assert without_hooks(with_hooks(text, COMMAND, HOOKS)) == text


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1} // a comment',
        '{"a": 1,}',
        "[]",
        '{"hooks": []}',
        '{"hooks": {"Stop": {}}}',
        '{"a": 1, "a": 2}',
        "nonsense",
        pytest.param('{"a":' * 50_000, id="deep"),
    ],
)
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(Misuse):
        with_hooks(text, COMMAND, HOOKS)
    with pytest.raises(Misuse):
        without_hooks(text)
