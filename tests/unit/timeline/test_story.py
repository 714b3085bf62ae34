from datetime import UTC, datetime, timedelta
from typing import Any

from hardsave.timeline import story
from hardsave.timeline.story import Head, Prompt, Row, Step, Story, Told
from hardsave.timeline.telling import tell

NOTHING = Told()
NOON = datetime(2026, 6, 15, 12, tzinfo=UTC)


class Store:
    """Makes rows, each on top of the one before it on its timeline, unless told otherwise."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.heads: dict[str, Head] = {}
        self._seqs: dict[str, int] = {}

    def save(self, told: Told = NOTHING, timeline: str = "s", **fields: Any) -> Row:
        number = len(self.rows) + 1
        seq = self._seqs[timeline] = self._seqs.get(timeline, 0) + 1
        parent = self.heads[timeline].id if timeline in self.heads else None
        at = NOON + timedelta(seconds=number)
        fields = {"parent": parent, **fields}
        row = Row(f"{timeline}{seq}", timeline, seq, number, at, told=told, **fields)
        self.rows.append(row)
        self.heads[timeline] = Head(row.id, number)
        return row

    def rewind(self, row: Row, timeline: str = "s") -> None:
        self.heads[timeline] = Head(row.id, row.number)

    def tell(self) -> Story:
        return tell(reversed(self.rows), self.heads)


def prompted(text: str) -> Told:
    return Told(prompt=text, phase="prompt")


def call(id: str, phase: story.Phase = "after", text: str = "Bash(make)") -> Told:
    return Told(call=text, call_id=id, phase=phase)


def drawn(told: Story) -> list[tuple[str, list[tuple[str, int]]]]:
    return [(p.text, [(s.text, s.newest.seq) for s in p.steps]) for p in told.prompts]


def a_session(store: Store) -> None:
    store.save(prompted("Fix the parser"), description="before: Fix the parser")
    store.save(call("1", "before"))
    store.save(call("1", "during"), files={"+": 1}, is_counted=True)
    store.save(call("1"), new_messages=2, is_counted=True)
    store.save(Told(call="Bash(make)", phase="after"), is_counted=True)
    store.save(Told(phase="answer"), said="All is well.", new_messages=1, is_counted=True)
    store.save(Told(phase="end"), status="ended", is_counted=True)


def test_a_call_is_one_step_with_what_was_saved_before_it_while_it_ran_and_after_it() -> None:
    store = Store()
    a_session(store)
    (prompt,) = store.tell().prompts
    answer, step = prompt.steps
    assert [row.seq for row in step.rows] == [2, 3, 4, 5]
    assert (step.text, step.newest.seq, step.files) == ("Bash(make)", 5, {"+": 1})
    assert (answer.text, answer.newest.seq, answer.is_head) == ("All is well.", 7, True)
    assert prompt.before is not None
    assert prompt.before.seq == 1


def test_two_calls_that_run_at_once_are_two_steps() -> None:
    store = Store()
    store.save(call("a", "before", "Read(a)"))
    store.save(call("b", "before", "Read(b)"))
    store.save(call("b", "after", "Read(b)"))
    store.save(call("a", "after", "Read(a)"))
    store.save(Told(call="Read, Read", phase="after"))
    assert drawn(store.tell()) == [("", [("Read(a)", 5), ("Read(b)", 3)])]


def test_files_that_were_saved_before_their_call_was_known_belong_to_the_next() -> None:
    store = Store()
    store.save(Told(phase="during"), description="during the next tool", files={"-": 1})
    store.save(call("1", text="Bash(rm b)"))
    (step,) = store.tell().steps
    assert (step.text, step.files, len(step.rows)) == ("Bash(rm b)", {"-": 1}, 2)


def test_what_changed_between_calls_is_a_step_of_its_own() -> None:
    store = Store()
    store.save(call("1"))
    store.save(description="between calls", files={"~": 1}, is_counted=True)
    store.save(call("2"))
    assert [step.text for step in store.tell().steps] == [
        "Bash(make)",
        "between calls",
        "Bash(make)",
    ]


def test_equal_calls_are_two_steps_if_they_were_made_twice() -> None:
    store = Store()
    store.save(call("1"))
    store.save(call("2"))
    assert len(store.tell().steps) == 2


def test_a_checkpoint_that_adds_nothing_is_no_step_of_its_own() -> None:
    store = Store()
    store.save(files={"": 3}, is_counted=True, description="first")
    store.save(files={}, is_counted=True)
    store.save(files={}, is_counted=True)
    (step,) = store.tell().steps
    assert (step.text, step.newest.seq) == ("first", 3)


def test_a_checkpoint_of_which_nothing_is_known_is_shown() -> None:
    store = Store()
    for text in ("one", "two"):
        store.save(description=text)
    assert [step.text for step in store.tell().steps] == ["two", "one"]


def test_what_was_saved_by_hand_is_a_step_of_its_own_and_nothing_is_added_to_it() -> None:
    store = Store()
    store.save(call("1", "before"))
    store.save(kind="manual", description="looks good", is_counted=True)
    store.save(call("1"), is_counted=True, files={"+": 1})
    store.save(name="ready", is_counted=True)
    store.save(Told(phase="end"), is_counted=True, description="session ended")
    assert [(s.text, [r.seq for r in s.rows]) for s in store.tell().steps] == [
        ("session ended", [5]),
        ("", [4]),
        ("Bash(make)", [1, 3]),
        ("looks good", [2]),
    ]


def test_a_prompt_is_gone_back_to_where_its_hook_saved() -> None:
    store = Store()
    store.save(prompted("one"))
    store.save(Told(prompt="one", phase="answer"), said="yes", new_messages=2)
    store.save(prompted("two"))
    store.save(Told(prompt="two", phase="answer"), said="no", new_messages=2)
    assert [(p.text, p.before and p.before.seq, len(p.steps)) for p in store.tell().prompts] == [
        ("two", 3, 1),
        ("one", 1, 1),
    ]


def test_what_changed_before_a_prompt_is_told_beside_it_where_that_is_known() -> None:
    store = Store()
    store.save(prompted("one"), files={"": 3})
    store.save(Told(prompt="one", phase="answer"), said="yes", new_messages=2, files={"+": 2})
    store.save(prompted("two"), files={"~": 1})
    store.save(said="no", new_messages=1, files={"-": 1})
    store.save(Told(prompt="three"), said="two calls", new_messages=3, files={"+": 4})
    told = [(each.text, each.changed_before) for each in store.tell().prompts]
    assert told == [("three", None), ("two", {"~": 1}), ("one", None)]


def test_without_hooks_a_prompt_is_gone_back_to_the_checkpoint_before_its_answer() -> None:
    store = Store()
    store.save(files={"": 3}, is_counted=True)
    store.save(Told(prompt="one"), said="yes", new_messages=2)
    store.save(Told(prompt="two"), said="two", new_messages=1)
    store.save(said="no", new_messages=1)
    two, one, _ = store.tell().prompts
    assert (two.text, two.before and two.before.seq, len(two.steps)) == ("two", 3, 1)
    assert (one.text, one.before and one.before.seq, len(one.steps)) == ("one", 1, 1)
    assert one.created_at == store.rows[1].created_at  # not that of what it goes back to


def test_the_same_prompt_said_twice_is_two_prompts() -> None:
    store = Store()
    for _ in range(2):
        store.save(prompted("go on"))
        store.save(Told(prompt="go on", phase="answer"), said="done", new_messages=2)
    assert len(store.tell().prompts) == 2


def test_sessions_that_saved_by_turns_are_told_apart() -> None:
    store = Store()
    for number in range(3):
        for name in ("a", "b"):
            store.save(prompted(f"{name} {number}"), name)
            store.save(call(f"{name}{number}"), name)
    told = store.tell()
    assert [(s.timeline, s.title, s.step_count) for s in told.sessions] == [
        ("b", "b 0", 3),
        ("a", "a 0", 3),
    ]
    assert [p.text for p in told.prompts] == ["b 2", "a 2", "b 1", "a 1", "b 0", "a 0"]
    assert [s.newest.number for s in told.steps] == [12, 10, 8, 6, 4, 2]
    assert told.sessions[0].newest.number == 12


def test_after_a_rewind_it_is_told_where_the_head_is_and_what_was_left_behind() -> None:
    store = Store()
    store.save(prompted("one"))
    good = store.save(call("1"))
    store.save(call("2"))
    store.save(prompted("two"))
    store.save(call("3"))
    store.rewind(good)
    two, one = store.tell().prompts
    assert two.is_left
    assert all(step.is_left for step in two.steps)
    assert [(s.newest.seq, s.is_left, s.is_head) for s in one.steps] == [
        (3, True, False),
        (2, False, True),
    ]


def test_what_is_saved_after_a_rewind_belongs_to_the_prompt_that_was_gone_back_to() -> None:
    store = Store()
    store.save(prompted("one"))
    good = store.save(call("1"))
    store.save(prompted("two"))
    store.save(call("2"))
    store.rewind(good)
    store.save(call("3"))
    one, two = store.tell().prompts
    assert [(s.newest.seq, s.is_left) for s in one.steps] == [(5, False), (2, False)]
    assert [(s.newest.seq, s.is_left) for s in two.steps] == [(4, True)]


def test_what_tells_nothing_and_adds_nothing_after_a_rewind_is_no_step() -> None:
    store = Store()
    store.save(prompted("Fix it"))
    back = store.save(call("1"), new_messages=2, is_counted=True)
    store.save(Told(phase="answer"), said="Done.", new_messages=1, is_counted=True)
    store.rewind(back)
    store.save(is_counted=True)  # the session goes on
    assert [step for _, step in drawn(store.tell())[0][1]] == [4, 3, 2]  # the head stands there
    store.save(kind="manual", is_counted=True)
    store.save(call("2"), new_messages=2, is_counted=True)
    assert [step for _, step in drawn(store.tell())[0][1]] == [6, 5, 3, 2]


def test_a_step_is_told_in_two_where_its_timeline_went_back_into_the_middle_of_it() -> None:
    store = Store()
    middle = store.save(call("1", "before"))
    store.save(call("1"))
    store.rewind(middle)
    assert [(s.newest.seq, s.is_head, s.is_left) for s in store.tell().steps] == [
        (2, False, True),
        (1, True, False),
    ]
    store.save(said="Something else.", new_messages=1)
    assert [(s.newest.seq, s.is_head, s.is_left) for s in store.tell().steps] == [
        (3, True, False),
        (2, False, True),
        (1, False, False),
    ]


def test_a_head_may_stand_right_before_a_prompt() -> None:
    store = Store()
    asked = store.save(prompted("one"))
    store.save(call("1"))
    store.rewind(asked)
    (prompt,) = store.tell().prompts
    assert prompt.is_head
    assert prompt.is_left
    assert not prompt.steps[0].is_head


def test_a_head_that_is_older_than_all_that_was_read_has_left_all_of_it_behind() -> None:
    store = Store()
    first = store.save()
    store.save(call("1"))
    store.rewind(first)
    (step,) = tell(store.rows[1:], store.heads).steps
    assert step.is_left
    (step,) = tell(store.rows[1:], {"s": Head("elsewhere", 99)}).steps
    assert not step.is_left


def test_a_fork_is_a_session_of_its_own() -> None:
    store = Store()
    store.save(prompted("one"))
    source = store.save(call("1"))
    store.save(timeline="fork", parent=source.id, description="forked from s:2")
    told = store.tell()
    assert [(s.timeline, s.step_count) for s in told.sessions] == [("fork", 1), ("s", 1)]
    assert not any(step.is_left for step in told.steps)


def test_a_checkpoint_whose_parent_was_dropped_goes_on_from_the_one_before_it() -> None:
    store = Store()
    store.save(prompted("one"))
    store.save(call("1"), parent="dropped")
    (prompt,) = store.tell().prompts
    assert (prompt.text, len(prompt.steps), prompt.is_left) == ("one", 1, False)


def test_a_title_that_is_known_wins_over_the_first_prompt_that_was_read() -> None:
    store = Store()
    store.save(prompted("the second"))
    assert tell(store.rows, titles={"s": "the first"}).sessions[0].title == "the first"
    assert tell(store.rows).sessions[0].title == "the second"
    assert tell([]) == Story(())


def test_what_hooks_have_written_is_read_where_nothing_else_was_kept() -> None:
    def read(description: str, **metadata: Any) -> Told:
        return story.read(description, metadata)

    assert read("before: Fix it; now", hook="UserPromptSubmit") == prompted("Fix it; now")
    assert read("between calls; before: Fix it", hook="UserPromptSubmit") == prompted("Fix it")
    assert read("before Bash: cd a; ls", hook="PreToolUse", tool="Bash", tool_use_id="1") == call(
        "1", "before", "Bash(cd a; ls)"
    )
    assert read(
        "during Bash: x; after Edit: a.py", hook="PostToolUse", tool="Edit", tool_use_id="2"
    ) == call("2", "after", "Edit(a.py)")
    assert read("after Read, Read", hook="PostToolBatch", tool="Read, Read") == Told(
        call="Read, Read", phase="after"
    )
    assert read("answered", hook="Stop") == Told(phase="answer")
    assert read("session ended", hook="SessionEnd") == Told(phase="end")
    made = [{"calls": [{"tool": "Bash", "tool_use_id": "3"}], "paths": ["a"], "count": 1}]
    assert read("during Bash: rm a", changed_by=made) == call("3", "during", "Bash(rm a)")
    assert read("during one of Bash: rm a | Bash: rm b", changed_by=made * 0) == Told(
        phase="during"
    )
    assert read("during the next tool") == Told(phase="during")
    assert read("between calls") == read("anything") == Told()


def test_what_an_agent_said_is_told_rather_than_that_it_answered() -> None:
    store = Store()
    store.save(Told(phase="answer"), description="answered", said="Done.", new_messages=1)
    store.save(description="my own words", said="Done.", new_messages=1)
    store.save(paths=("a.py", "b.py"), files={"~": 2})
    assert [step.text for step in store.tell().steps] == ["a.py, b.py", "my own words", "Done."]


def test_what_a_call_reached_outside_is_told_by_its_step() -> None:
    store = Store()
    store.save(call("1", "before"), outside=("git push",))
    store.save(call("1"), outside=("git push",), paths=("a",), new_messages=2)
    step: Step = store.tell().steps[0]
    assert (step.outside, step.paths, step.new_messages) == (("git push",), ("a",), 2)
    assert isinstance(store.tell().prompts[0], Prompt)


SAFETY = Told(phase="safety")


def saved_for(store: Store, operation: str, capture: bytes, files: int = 1) -> Row:
    return store.save(
        SAFETY,
        description=f"before the {operation}",
        capture=capture,
        files={"~": files},
        is_counted=True,
    )


def test_what_each_of_two_undos_had_to_save_is_one_step_if_it_is_the_same() -> None:
    store = Store()
    store.save(prompted("one"))
    good = store.save(call("1"))
    saved_for(store, "undo to s:9", b"1")
    store.rewind(good)
    saved_for(store, "redo to s:2", b"2")
    store.rewind(good)
    saved_for(store, "undo to s:9", b"1")
    store.rewind(good)
    assert drawn(store.tell()) == [
        (
            "one",
            [("before the undo to s:9", 5), ("before the redo to s:2", 4), ("Bash(make)", 2)],
        )
    ]


def test_what_was_saved_for_operations_has_texts_that_differ_if_files_do() -> None:
    store = Store()
    good = store.save(call("1"))
    for capture in (b"1", b"2"):
        saved_for(store, "undo to s:9", capture)
        store.rewind(good)
    assert [step.text for step in store.tell().steps] == [
        "before the undo to s:9 (2)",
        "before the undo to s:9",
        "Bash(make)",
    ]


def test_what_was_saved_for_an_operation_and_adds_nothing_is_no_step() -> None:
    store = Store()
    good = store.save(call("1"))
    store.save(call("2"))
    store.rewind(good)
    safety = saved_for(store, "undo to s:9", b"1", files=0)
    store.rewind(good)
    assert [step.newest.seq for step in store.tell().steps] == [2, 1]
    store.rewind(safety)
    assert [step.newest.seq for step in store.tell().steps] == [3, 2, 1]


def test_a_story_of_nothing_but_what_was_saved_for_an_operation_shows_that() -> None:
    store = Store()
    saved_for(store, "rewind to s:9", b"1", files=0)
    store.heads = {}
    assert [step.newest.seq for step in store.tell().steps] == [1]
