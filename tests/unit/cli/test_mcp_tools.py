import json
from typing import Any

import pytest

from hardsave.cli.mcp_server import answers, tools
from hardsave.cli.mcp_server.tools import Common, Tool
from hardsave.errors import Misuse
from hardsave.values.text import dumps

GARBAGE: list[Any] = [
    *(3, -1, 1.5, 10**30, "", "a\0b", "\ud800", "x" * 20_000),
    *([], {}, [[]], ["a"] * 101, [1]),
]
ALLOWED = {each.name: each for each in tools.offered(Common(allow_rewind=True))}


def words(tool: Tool, **given: Any) -> list[str]:
    return tool.words(given, Common())


def test_what_a_model_passes_never_becomes_an_option() -> None:
    assert words(tools.SAVE, name="--help", message="--json") == [
        *("save", "--json", "--message=--json", "--", "--help")
    ]
    assert words(tools.DIFF, old="-C", new="/", paths=["--stat"]) == [
        *("diff", "--files", "--json", "--path=--stat", "--", "-C", "/")
    ]


def test_a_rewind_is_a_preview_of_ones_own_files_unless_it_is_to_be_applied() -> None:
    asked = ["rewind", "--files", "--mine", "--this-timeline"]
    assert words(tools.REWIND, ref="a") == [*asked, "--json", "--dry-run", "--", "a"]
    assert words(tools.REWIND, ref="a", apply=None) == [*asked, "--json", "--dry-run", "--", "a"]
    assert words(tools.REWIND, ref="a", apply=True) == [*asked, "--json", "--yes", "--", "a"]
    assert words(tools.PREVIEW, ref="a") == [*asked, "--dry-run", "--json", "--", "a"]
    with pytest.raises(Misuse, match="start the server with --allow-rewind"):
        words(tools.PREVIEW, ref="a", apply=True)


def test_store_and_timeline_are_those_that_the_server_was_told() -> None:
    common = Common(store="s.db", timeline="t")
    told = ["--store=s.db", "--timeline=t"]
    assert tools.SAVE.words({}, common) == ["save", "--json", *told, "--"]
    for tool, given in ((tools.UNDO, {}), (tools.REWIND, {"ref": "x:1"})):
        words = tool.words(given, common)
        assert {*told, "--this-timeline"} <= {*words}
        with pytest.raises(Misuse, match="takes no 'timeline'"):
            tool.words({**given, "timeline": "x"}, common)


def test_a_search_without_a_hit_says_so() -> None:
    assert answers.answer('{"hits": [], "next": null}', "") == {"result": {"hits": []}}


@pytest.mark.parametrize("tool", ALLOWED.values(), ids=ALLOWED)
def test_values_of_another_type_or_size_are_refused_by_name(tool: Tool) -> None:
    """What fits is a number within its bounds, or an empty list."""
    needed: dict[str, Any] = {each.name: "a" for each in tool.parameters if each.is_needed}
    for each in tool.parameters:
        for value in GARBAGE:
            fits = (each.kind == "number" and value == 3) or (each.kind == "texts" and value == [])
            if not fits:
                with pytest.raises(Misuse, match=f"'{each.name}' must be"):
                    tool.words({**needed, each.name: value}, Common())


def test_an_argument_that_is_not_known_or_missing_is_refused() -> None:
    with pytest.raises(Misuse, match="rewind takes no 'path'; it takes ref, paths, apply"):
        words(tools.REWIND, ref="a", path="b", apply=True)
    with pytest.raises(Misuse, match="rewind needs 'ref'"):
        words(tools.REWIND, ref=None)


def test_only_a_server_that_may_rewind_has_tools_that_destroy() -> None:
    plain = tools.offered(Common())
    assert [each.name for each in plain] == ["save", "log", "show", "diff", "search", "rewind"]
    assert [each.name for each in plain if each.writes] == ["save"]
    assert [name for name, each in ALLOWED.items() if each.is_destructive] == ["rewind", "undo"]


def test_an_answer_has_nothing_that_is_empty_but_which_files_have_changed() -> None:
    files = {"added": [], "changed": ["a.py"]}
    printed = {"id": "a", "seq": 1, "name": None, "git": {"a": []}, "files": files}
    assert answers.answer(json.dumps(printed), " \n") == {"result": {"id": "a", "files": files}}


@pytest.mark.parametrize(
    "printed",
    [
        {"patches": {"a.py": "x" * 1_000_000}},
        [{"id": "a" * 50, "paths": ["p" * 50] * 500}] * 3_000,
        {f"key {number}": "v" * 100 for number in range(10_000)},
        [[[["x" * 100] * 30] * 30] * 30] * 30,
        "x" * 100_000,
    ],
)
def test_a_long_answer_is_cut_and_says_so(printed: Any) -> None:
    found = answers.answer(json.dumps(printed), "y" * 10_000)
    assert len(json.dumps(found, ensure_ascii=False)) < answers.LONGEST + 3_000
    assert "ask for less" in found["cut"]
    assert found["said"].endswith("(10,000 characters in all)")


def test_of_a_list_that_is_too_long_the_first_stay_whole() -> None:
    rows = [{"ref": f"main:{number}", "step": "s" * 150} for number in range(1_000)]
    found = answers.answer(json.dumps(rows), "")["result"]
    assert found[0] == rows[0]
    assert found[-1].startswith("… and ")


def test_an_answer_has_all_that_users_have_saved() -> None:
    saved: dict[str, Any] = {
        "task": None,
        "seq": [],
        "parent": {"$tuple": []},
        "n": {"$int": "9007199254740993"},
    }
    printed = {"seq": 1, "metadata": saved, "messages": [{"input": saved}]}
    expected = {"metadata": saved, "messages": [{"input": saved}]}
    assert answers.answer(json.dumps(printed), "") == {"result": expected}


def test_an_error_about_a_name_that_is_no_text_can_be_sent() -> None:
    printed = dumps({"error": {"message": "'caf\udce9' is not here"}})
    assert answers.error(printed, "", 3) == "'caf\\xe9' is not here"


def test_an_error_is_the_sentence_of_the_command() -> None:
    told = json.dumps({"error": {"kind": "misuse", "exit": 2, "message": "not so"}})
    assert answers.error(told, "noise", 2) == "not so"
    assert answers.error('{"files": {}}', "1 path could not be brought back", 1).startswith("1 pa")
    assert answers.error("", "", -9) == "the command has ended with -9"
