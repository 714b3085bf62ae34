"""What Codex trusts, with hashes that version 0.166.0 wrote."""

import json

import pytest

from hardsave.agents.codex import hooks as codex_hooks
from hardsave.agents.settings import Place, places
from hardsave.errors import Misuse

RECORDED_COMMAND = "/opt/python -P -m hardsave.adapters.hook codex"  # what Codex has hashed
RECORDED = {
    "PreToolUse": "sha256:f671f413006a4f3ac2d08ef1118d7f3264d7b39993ce4734ddbb167c9b753ca9",
    "UserPromptSubmit": "sha256:5ca1ae80a6496e0fa6cf05882c7b8e5bd03eb9269c8940af3da2b3977f87d53c",
    "Stop": "sha256:d9171dcb42b29139db8e2c49f36a99c5c83d57bd6f4cd6545ae31d650ed4ca29",
    "SessionEnd": "sha256:e970a66f7e426f01599479cdf68f438054fd05bb32a4306306342e5f2bb1ffa3",
}
OURS = "/opt/python -P -m hardsave.daemon.hook codex"
HOOKS = json.dumps(
    {
        "hooks": {
            event: [{"matcher": "*", "hooks": [{"type": "command", "command": OURS, "timeout": 9}]}]
            for event in ("PreToolUse", "Stop")
        }
    }
)
PATH = "/home/me/.codex/hooks.json"


@pytest.mark.parametrize(("event", "expected"), RECORDED.items())
def test_the_fingerprint_is_the_one_that_codex_writes(event: str, expected: str) -> None:
    seconds = 3 if event == "SessionEnd" else 15
    told = {"type": "command", "command": RECORDED_COMMAND, "timeout": seconds}
    assert codex_hooks.fingerprint(Place(event, 0, 0, "*", told)) == expected


def config(*, enabled: str = "", hash: str | None = None) -> str:
    return "".join(
        f'[hooks.state."{codex_hooks.key(PATH, place)}"]\n'
        f'trusted_hash = "{hash or codex_hooks.fingerprint(place)}"\n{enabled}\n'
        for place in places(HOOKS)
    )


def test_a_hook_runs_if_it_is_the_one_that_was_trusted() -> None:
    assert codex_hooks.untrusted_events(HOOKS, ["/link/hooks.json", PATH], config()) == []


@pytest.mark.parametrize(
    "told",
    [
        "",
        "[hooks]\nstate = 7",
        config(hash="sha256:0"),
        config(enabled="enabled = false"),
    ],
)
def test_otherwise_it_is_idle(told: str) -> None:
    assert codex_hooks.untrusted_events(HOOKS, [PATH], told) == ["PreToolUse", "Stop"]


def test_all_are_idle_in_a_file_that_codex_does_not_take() -> None:
    hooks = json.dumps({**json.loads(HOOKS), "$schema": "x"})
    assert codex_hooks.untrusted_events(hooks, [PATH], config()) == ["PreToolUse", "Stop"]


def test_what_is_no_json_is_said() -> None:
    with pytest.raises(Misuse):
        codex_hooks.untrusted_events("{", [PATH], config())


def test_what_is_no_toml_is_said() -> None:
    with pytest.raises(Misuse):
        codex_hooks.untrusted_events(HOOKS, [PATH], "[[")
