import pytest

from hardsave.errors import Corrupt, Misuse, StepsChanged
from hardsave.objects.codec import Codec
from hardsave.objects.records import EntryRecord
from hardsave.tasks import steps
from hardsave.tasks.steps import NO_PLACE, Body, Journal, Scope

NIL = Codec().encode(None)


def entry(path: str, place: int = NO_PLACE, kind: str = "step_done") -> EntryRecord:
    data = steps.pack(Body(b"argument", place, NIL))
    return EntryRecord(0, b"id", "t", kind, 1, 1, 0, path, data)


# Paths


def test_a_path_names_every_step_around() -> None:
    outer = steps.path_of("", "plan", 2)
    assert outer == "plan#2"
    assert steps.path_of(outer, "search", "python") == "plan#2/search[python]"


def test_no_name_can_pass_for_a_path() -> None:
    names = ["a", "a#1", "a/b#1", "a%23", "a[k]", "[", "%"]
    paths = [steps.path_of("", name, which) for name in names for which in (1, "k")]
    assert len(set(paths)) == len(paths)
    assert all("/" not in path for path in paths)


# Arguments


def test_arguments_tell_calls_apart() -> None:
    codec = Codec()
    every = [(), (1,), (True,), (1, 2), ("1",), ([1],), ((1,),), (None,), (object(),), ({1, 2},)]
    hashes = [steps.arguments_hash(codec, steps.Given(args)) for args in every]
    assert len(set(hashes)) == len(every)


def test_what_cannot_be_stored_counts_by_its_type() -> None:
    codec = Codec()

    class Client: ...

    one, two = (steps.arguments_hash(codec, steps.Given((Client(), "x"))) for _ in range(2))
    assert one == two
    assert one != steps.arguments_hash(codec, steps.Given((Client(), "y")))


def test_the_entry_of_a_step_round_trips() -> None:
    body = Body(b"12345678", 77, b"\xc0")
    assert steps.unpack(steps.pack(body)) == body
    with pytest.raises(Corrupt):
        steps.unpack(b"short")


# The journal


def test_the_last_entry_of_a_step_decides() -> None:
    journal = Journal([entry("a#1", 1, "step_started"), entry("b#1", 2, "step_started")])
    assert journal.unknown() == ["a#1", "b#1"]
    journal.add(entry("a#1", 1))
    assert journal.unknown() == ["b#1"]
    journal.add(entry("b#1", 2, "step_failed"))
    assert journal.unknown() == []


def test_another_step_in_a_recorded_place_is_a_changed_program() -> None:
    journal = Journal([entry("a#1", 1), entry("b#1", 2), entry("b#1/inner#1", 1)])
    journal.checked("a#1", 1, b"argument")
    journal.checked("c#1", 3, b"argument")
    journal.checked("a#1/other#1", 1, b"argument")
    with pytest.raises(StepsChanged, match=r"'c#1' is asked for where 'b#1' was recorded"):
        journal.checked("c#1", 2, b"argument")
    with pytest.raises(StepsChanged):
        journal.checked("b#1/changed#1", 1, b"argument")


def test_other_arguments_are_a_changed_program() -> None:
    journal = Journal([entry("a#1", 1), entry("k[x]")])
    for path, place in (("a#1", 1), ("k[x]", NO_PLACE)):
        with pytest.raises(StepsChanged, match="other arguments"):
            journal.checked(path, place, b"another.")


def test_a_step_that_others_joined_has_no_place() -> None:
    journal = Journal([entry("a#1", 1, "step_started"), entry("a#1", NO_PLACE)])
    journal.checked("b#1", 1, b"argument")


def test_a_step_that_has_overlapped_one_of_unknown_end_is_free() -> None:
    """The start of the first was recorded while it was alone."""
    journal = Journal([entry("a#1", 1, "step_started"), entry("b#1", NO_PLACE)])
    journal.checked("b#1", 1, b"argument")
    with pytest.raises(StepsChanged):
        journal.checked("c#1", 1, b"argument")


# What is asked for


def test_steps_of_one_name_are_counted() -> None:
    scope = Scope()
    found = []
    for name in ("a", "b", "a"):
        asked = scope.enter("", name, None)
        scope.leave(asked)
        found.append((asked.path, asked.place))
    assert found == [("a#1", 1), ("b#1", 2), ("a#2", 3)]


def test_two_of_one_name_at_once_need_keys() -> None:
    scope = Scope()
    scope.enter("", "a", None)
    with pytest.raises(Misuse, match="give each a key="):
        scope.enter("", "a", None)
    assert scope.enter("", "a", "one").path == "a[one]"
    assert scope.enter("", "a", "two").path == "a[two]"
    with pytest.raises(Misuse, match="under way already"):
        scope.enter("", "a", "one")


def test_overlapping_steps_may_come_in_any_order_and_later_ones_keep_their_place() -> None:
    scope = Scope()
    one = scope.enter("", "a", None)
    two = scope.enter("", "b", None)
    assert scope.place(one) == scope.place(two) == two.place == NO_PLACE
    scope.leave(one)
    scope.leave(two)
    assert scope.enter("", "c", None).place == 3


def test_keywords_count_in_any_order() -> None:
    codec = Codec()

    def hashed(*args: object, **kwargs: object) -> bytes:
        return steps.arguments_hash(codec, steps.Given(args, kwargs))

    assert hashed(1, a=2, b=3) == hashed(1, b=3, a=2)
    assert len({hashed(1), hashed(1, a=2), hashed(1, a=3), hashed(1, b=2), hashed()}) == 5
