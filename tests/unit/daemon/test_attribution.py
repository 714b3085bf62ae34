"""Which call has made a change, over plain data."""

from typing import Any

from hardsave.agents.tools import by_keys
from hardsave.daemon import attribution
from hardsave.daemon.attribution import Call, Calls, Change, Verdict, attributed, call, candidates

WORK = "/project"


def ran(made: Call, began: float | None, ended: float | None) -> Call:
    return made._replace(began=began, ended=ended)


def shell(id: str, began: float | None = 0, ended: float | None = None) -> Call:
    return ran(call(id, "Bash", by_keys({"command": f"do {id}"}), WORK), began, ended)


def edit(id: str, path: str, began: float = 0, ended: float | None = None) -> Call:
    given = {"file_path": f"{WORK}/{path}", "old_string": "a", "new_string": "b"}
    return ran(call(id, "Edit", by_keys(given), WORK), began, ended)


def names(change: Change, *calls: Call) -> list[str]:
    return [each.id for each in candidates(change, calls)]


def test_a_change_during_one_call_is_of_that_call() -> None:
    one, two = shell("one", 0, 10), shell("two", 20, 30)
    assert names(Change("f", 5, 6), one, two) == ["one"]
    assert names(Change("f", 25, 26), one, two) == ["two"]


def test_a_change_while_no_call_runs_is_of_none() -> None:
    assert names(Change("f", 12, 18), shell("one", 0, 10), shell("two", 20, 30)) == []
    assert names(Change("f", 12, 18)) == []


def test_a_change_at_an_unknown_moment_may_be_of_each_call_that_ran_meanwhile() -> None:
    one, two, three = shell("one", 0, 10), shell("two", 20, 30), shell("three", 40, 50)
    assert names(Change("f", 5, 25), one, two, three) == ["one", "two"]


def test_a_call_that_has_not_ended_or_whose_beginning_is_unknown_counts() -> None:
    assert names(Change("f", 5, 6), shell("one", 0, None)) == ["one"]
    assert names(Change("f", 5, 6), shell("one", None, 10)) == ["one"]
    assert names(Change("f", 11, 12), shell("one", None, 10)) == []


def test_only_commands_at_the_same_time_are_one_of_these() -> None:
    at = Change("f", 5, 6)
    assert names(at, shell("one"), shell("two"), edit("three", "g")) == ["one", "two"]


def test_an_edit_is_known_by_its_path_though_a_command_runs() -> None:
    one, two = shell("one"), edit("two", "src/new.py")
    assert names(Change("src/new.py", 5, 6), one, two) == ["two"]
    assert names(Change("src", 5, 6), one, two) == ["two"]  # which has come with the file
    assert names(Change("src/newer.py", 5, 6), one, two) == ["one"]


def test_a_tool_that_reads_is_not_held_for_what_a_command_does() -> None:
    given: list[tuple[str, dict[str, Any]]] = [
        ("Read", {"file_path": "/project/f"}),
        ("Grep", {"pattern": "x", "path": "/project"}),
        ("WebSearch", {"query": "x"}),
    ]
    readers = [ran(call(tool, tool, by_keys(input), WORK), 0, 10) for tool, input in given]
    assert names(Change("f", 5, 6), *readers, shell("one")) == ["one"]
    assert names(Change("g", 5, 6), *readers) == []


def test_a_tool_of_which_nothing_is_known_counts_where_no_command_runs() -> None:
    agent = ran(call("agent", "Task", by_keys({"prompt": "x"}), WORK), 0, 10)
    assert names(Change("f", 5, 6), agent) == ["agent"]
    assert names(Change("f", 5, 6), agent, shell("one")) == ["one"]


def test_changes_of_the_same_calls_are_told_together() -> None:
    one, two = shell("one"), edit("two", "new")
    changes = [Change(path, 5, 6) for path in ("a", "new", "b")]
    found = attributed(changes, [one, two])
    assert found == [Verdict(("a", "b"), (one,)), Verdict(("new",), (two,))]
    assert attribution.metadata(found) == {
        "changed_by": [
            {
                "calls": [{"tool": "Bash", "tool_use_id": "one"}],
                "paths": ["a", "b"],
                "count": 2,
            },
            {"calls": [{"tool": "Edit", "tool_use_id": "two"}], "paths": ["new"], "count": 1},
        ]
    }
    assert attribution.described(found, is_known=True) == "during Bash: do one | Edit: new"


def test_a_description_says_what_is_not_known() -> None:
    both = [Verdict(("a",), (shell("one"), shell("two")))]
    assert attribution.described(both, is_known=True) == "during one of Bash: do one | Bash: do two"
    none = [Verdict(("a",), ())]
    assert attribution.described(none, is_known=True) == "between calls"
    assert attribution.described(none, is_known=False) == "during the next tool"
    assert attribution.metadata(none) == {}


# Calls that begin and end


def test_of_a_call_that_is_told_twice_the_earlier_moments_count() -> None:
    calls = Calls()
    calls.begin(shell("one", None), "s", 5)
    calls.begin(Call("one", "Bash"), "s", 4)  # by a hook that says less
    calls.end("one", 9)
    calls.end("one", 8)
    (known,) = calls.during(0, 100)
    assert (known.began, known.ended, known.target) == (4, 8, "do one")


def test_where_a_turn_ends_no_call_of_its_session_runs() -> None:
    calls = Calls()
    calls.begin(shell("one"), "s", 1)
    calls.begin(shell("two"), "other", 1)
    calls.end_all("s", 5)
    assert [each.id for each in calls.during(6, 7)] == ["two"]
    assert calls.is_running()
    calls.end("two", 6)
    assert not calls.is_running()
    calls.end("never begun", 7)


def test_a_command_in_the_background_may_have_changed_what_changes_until_it_has_ended() -> None:
    calls = Calls()
    calls.begin(shell("left"), "s", 1)
    calls.end("left", 2)
    calls.leave_running("left")
    calls.begin(shell("next"), "s", 3)
    assert [each.id for each in calls.during(4, 5)] == ["left", "next"]
    calls.end_all("s", 6)
    assert not calls.is_running()  # no hook of its is to be waited for
    assert [each.id for each in calls.during(7, 8)] == ["left"]
    calls.end_in_background("left", 9)
    calls.end_in_background("next", 10)  # which was none
    assert [each.id for each in calls.during(8, 9)] == ["left"]
    assert calls.during(10, 11) == []


def test_a_call_begins_though_the_one_before_goes_on_in_the_background() -> None:
    calls = Calls()
    calls.begin(shell("left"), "s", 1)
    calls.end("left", 2)
    calls.leave_running("left")
    calls.begin(shell("next")._replace(behind="left"), "s", 3)
    calls.end_in_background("left", 9)
    assert [each.id for each in calls.during(4, 5)] == ["left", "next"]


def test_of_calls_in_order_the_next_begins_when_the_one_before_has_ended() -> None:
    calls = Calls()
    for id, before in (("one", ""), ("two", "one"), ("three", "two")):
        calls.begin(shell(id)._replace(behind=before), "s", 1)
    assert [each.id for each in calls.during(2, 3)] == ["one"]
    calls.end("one", 5)
    assert [each.id for each in calls.during(2, 3)] == ["one"]
    assert [each.id for each in calls.during(6, 7)] == ["two"]
    calls.begin(Call("agent", "Task", behind="two"), "s", 1)  # which may run beside others
    assert [each.id for each in calls.during(6, 7)] == ["two", "agent"]


def test_old_calls_are_forgotten_and_running_ones_are_not() -> None:
    calls = Calls()
    calls.begin(shell("running"), "s", 0)
    for number in range(1000):
        calls.begin(shell(str(number)), "s", number)
        calls.end(str(number), number)
    assert len(calls.during(0, 1000)) == 201
    assert calls.is_running()
