"""Modules of the page that decide and touch nothing, called in the browser that runs them."""

from typing import Any

import pytest

from tests.integration.server.browser import NEEDS_CHROMIUM, Visitor
from tests.integration.server.session_story import NAME

pytestmark = NEEDS_CHROMIUM


@pytest.fixture
def page(visitor: Visitor) -> Visitor:
    visitor.go("session", timeline=NAME)
    return visitor


def called(page: Visitor, module: str, function: str, *given: Any) -> Any:
    """What a function of a module of the page gives."""
    return page.page.evaluate(
        "([path, name, given]) => import(path).then((module) => module[name](...given))",
        [f"./assets/{module}", function, list(given)],
    )


def test_lines_of_a_diff_are_told_by_the_counts_of_their_hunk(page: Visitor) -> None:
    patch = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n same\n--- gone\n+++ come\n@@ -1 +1 @@\n"
    lines = called(page, "patch.js", "parse", patch)
    assert [(each["kind"], each["text"]) for each in lines] == [
        ("hunk", "@@ -1,3 +1,3 @@"),
        ("same", "same"),
        ("removed", "-- gone"),
        ("added", "++ come"),
        ("same", "@ -1 +1 @@"),
    ]
    assert [(each.get("old"), each.get("new")) for each in lines[1:4]] == [
        (1, 1),
        (2, None),
        (None, 2),
    ]


def test_lines_side_by_side_are_those_that_took_the_place_of_others(page: Visitor) -> None:
    patch = "@@ -1,3 +1,2 @@\n-a\n-b\n+c\n same\n\\ No newline at end of file\n"
    pairs = called(page, "patch.js", "paired", called(page, "patch.js", "parse", patch))
    shown = [[each and each["text"] for each in pair] for pair in pairs]
    assert shown[1:] == [["a", "c"], ["b", None], ["same", "same"], ["No newline at end of file"]]


def step(messages: int, new: int, prompt: str = "") -> dict[str, Any]:
    return {"summary": {"messages": messages, "new_messages": new, "prompt": prompt}}


def test_a_conversation_that_was_written_anew_has_the_sections_since(page: Visitor) -> None:
    past = [step(1, 1, "one"), step(9, 8), step(10, 1, "two"), step(3, -7), step(4, 1, "three")]
    found = called(page, "sections.js", "sections", past[:3], 10)
    assert [(each["start"], each["count"], each["prompt"]) for each in found] == [
        (0, 9, "one"),
        (9, 1, "two"),
    ]
    found = called(page, "sections.js", "sections", past, 6)
    assert [(each["start"], each["count"], each["prompt"]) for each in found] == [
        (0, 3, ""),
        (3, 3, "three"),
    ]


def test_a_prompt_that_a_hook_tells_of_begins_at_the_message_that_follows(page: Visitor) -> None:
    """It is saved before the agent has written the prompt down."""
    asked = [
        {**step(0, 0, "one"), "description": "before: one"},
        step(7, 7),
        {**step(8, 1, "two"), "description": "answered; before: two"},
        step(12, 4),
    ]
    found = called(page, "sections.js", "sections", asked, 12)
    assert [(each["start"], each["count"], each["prompt"]) for each in found] == [
        (0, 8, "one"),
        (8, 4, "two"),
    ]
    assert called(page, "sections.js", "sections", asked[:1], 0) == []


def operation(kind: str, *, undone: bool = False) -> dict[str, Any]:
    return {"kind": kind, "is_undone": undone}


def test_undo_and_redo_are_offered_for_what_they_would_take(page: Visitor) -> None:
    def following(*operations: dict[str, Any]) -> tuple[Any, Any]:
        found = called(page, "operations.js", "next", operations)
        return tuple(each and each["kind"] for each in (found["undo"], found["redo"]))

    rewind, gone = operation("rewind"), operation("restore", undone=True)
    undo, redo = operation("undo"), operation("redo")
    assert following() == (None, None)
    assert following(rewind) == ("rewind", None)
    assert following(undo, gone, rewind) == ("rewind", "restore")
    assert following(redo, undo, rewind) == ("rewind", None)
    assert following(rewind, undo, gone) == ("rewind", None)
    assert following(redo, undo, undo, rewind, gone) == ("rewind", "restore")


def test_words_of_a_command_are_quoted_as_a_shell_needs_it(page: Visitor) -> None:
    for word, quoted in (
        ("a/b-c.d", "a/b-c.d"),
        ("a b", "'a b'"),
        ("it's; $(rm)", "'it'\"'\"'s; $(rm)'"),
    ):
        assert called(page, "copying.js", "quoted", word) == quoted


def test_branches_are_drawn_beside_what_the_head_stands_on(page: Visitor) -> None:
    drawn = page.page.evaluate(
        """() => import("./assets/history.js").then(({ lanes }) => {
          const node = (id, parent, current) =>
            ({ checkpoint: { id, parent }, is_current: current });
          const order = [node("5", "2", true), node("4", "3", false), node("3", "2", false),
            node("2", "1", true), node("1", null, true)];
          return lanes(new Map(order.map((each) => [each.checkpoint.id, each])), order, true);
        })"""
    )
    assert [each["column"] for each in drawn] == [0, 1, 1, 0, 0]
    assert drawn[3]["joins"] == [0, 1]  # the branch begins here
    assert [each["passes"] for each in drawn] == [[], [0], [0], [], []]
    assert [each["goesOn"] for each in drawn] == [True, True, True, True, False]


def test_a_new_folder_is_told_by_its_files(page: Visitor) -> None:
    odd = {"$text": "src/odd"}
    paths = ["empty", "new", "src", "src/a", "src/deep", "src/deep/b", "ne", "srcs", odd]
    assert called(page, "dom.js", "withoutFolders", paths) == [
        "empty",
        "new",
        "src/a",
        "src/deep/b",
        "ne",
        "srcs",
        odd,
    ]
