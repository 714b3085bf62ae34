"""The order of steps, and which files are joined or parted: decided over plain data."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.workspace.entries import DIRECTORY, FILE, SYMLINK, Entry
from hardsave.workspace.restore.hard_links import Group, effective, linking
from hardsave.workspace.restore.plan import Choice, Groups, arrange
from hardsave.workspace.restore.requested_paths import RequestedPaths
from hardsave.workspace.snapshot.compare import Difference

ONE, TWO = Entry(FILE, 0o644, 1, b"1" * 20), Entry(FILE, 0o644, 1, b"2" * 20)
FOLDER, SHUT = Entry(DIRECTORY, 0o755, 0, b"3" * 20), Entry(DIRECTORY, 0o555, 0, b"3" * 20)
LINK = Entry(SYMLINK, 0, 1, None, b"x")


def order(*changes: Difference, modes: dict[bytes, int] | None = None) -> list[tuple[str, bytes]]:
    return [(step.do, step.path) for step in arrange(changes, modes or {}, Groups())]


def test_removals_come_after_everything_that_is_put() -> None:
    assert order(
        Difference(b"a", ONE, None),
        Difference(b"b", None, TWO),
        Difference(b"c", None, FOLDER),
        Difference(b"c/d", None, LINK),
    ) == [
        ("mkdir", b"c"),
        ("write", b"b"),
        ("symlink", b"c/d"),
        ("remove", b"a"),
        ("close", b"c"),
    ]


def test_what_lies_deepest_goes_first() -> None:
    assert order(
        Difference(b"a", FOLDER, None),
        Difference(b"a/b", FOLDER, None),
        Difference(b"a/b/c", ONE, None),
        Difference(b"a-c", ONE, None),
    ) == [("remove", b"a/b/c"), ("rmdir", b"a/b"), ("remove", b"a-c"), ("rmdir", b"a")]


def test_what_stands_in_the_way_is_cleared_before_and_staged_above() -> None:
    changes = (
        Difference(b"s/d", ONE, FOLDER),
        Difference(b"s/d/f", None, TWO),
        Difference(b"e", FOLDER, ONE),
        Difference(b"e/f", ONE, None),
    )
    assert order(*changes) == [
        ("remove", b"s/d"),
        ("remove", b"e/f"),
        ("rmdir", b"e"),
        ("mkdir", b"s/d"),
        ("write", b"e"),
        ("write", b"s/d/f"),
        ("close", b"s/d"),
    ]
    (step,) = [each for each in arrange(changes, {}, Groups()) if each.path == b"s/d/f"]
    assert step.via == b"s"


def test_a_directory_that_cannot_be_written_to_is_opened_and_closed_again() -> None:
    steps = arrange([Difference(b"s/f", ONE, TWO)], {b"": 0o700, b"s": 0o555}, Groups())
    assert [(step.do, step.path) for step in steps] == [
        ("open", b"s"),
        ("write", b"s/f"),
        ("close", b"s"),
    ]
    assert [step.after.mode for step in steps if step.after] == [0o755, 0o644, 0o555]


def test_a_mode_alone_is_changed_in_place() -> None:
    private = ONE._replace(mode=0o600)
    assert order(Difference(b"f", ONE, private), Difference(b"d", FOLDER, SHUT)) == [
        ("chmod", b"f"),
        ("close", b"d"),
    ]


def partitions(paths: list[bytes]) -> list[list[Group]]:
    """Every way to group some paths; those that are alone are in no group."""
    if not paths:
        return [[]]
    found = []
    for smaller in partitions(paths[1:]):
        for at, group in enumerate(smaller):
            found.append([*smaller[:at], (paths[0], *group), *smaller[at + 1 :]])
        found.append([(paths[0],), *smaller])
    return found


def groups(partition: list[Group]) -> list[Group]:
    return [tuple(sorted(group)) for group in partition if len(group) > 1]


def simulate(present: list[Group], wanted: list[Group], rewritten: set[bytes]) -> list[set[bytes]]:
    """What the disk looks like after the links were made as `linking` says."""
    paths = [b"a", b"b", b"c", b"d"]
    made = linking(present, wanted, rewritten)
    inode = {path: path for path in paths}
    inode.update({path: group[0] for group in present for path in group})
    for path in (*rewritten - made.to.keys(), *made.apart):
        inode[path] = b"new " + path
    for path, to in made.to.items():
        assert to not in made.to, "linked to something that is still to be linked"
        inode[path] = inode[to]
    return [{path for path in paths if inode[path] == each} for each in {*inode.values()}]


ALL = [groups(each) for each in partitions([b"a", b"b", b"c", b"d"])]


@pytest.mark.parametrize("rewritten", [set(), {b"a"}, {b"b", b"c"}, {b"a", b"b", b"c", b"d"}])
def test_every_grouping_becomes_every_other(rewritten: set[bytes]) -> None:
    for present, wanted in product(ALL, ALL):
        result = simulate(present, wanted, rewritten)
        assert sorted(sorted(each) for each in result if len(each) > 1) == sorted(map(list, wanted))


def test_files_that_are_grouped_as_they_shall_be_are_not_touched() -> None:
    for each in ALL:
        assert linking(each, each, ()) == ({}, {})


@given(
    st.sampled_from(ALL),
    st.sampled_from(ALL),
    st.sets(st.sampled_from([b"a", b"b", b"c", b"d"])),
)
def test_what_is_fixed_is_neither_written_nor_linked(
    present: list[Group], wanted: list[Group], fixed: set[bytes]
) -> None:
    made = linking(present, effective(present, wanted, {b"a", b"b", b"c", b"d"} - fixed), (), fixed)
    assert not fixed & (made.to.keys() | made.apart.keys())


# What the disk adds to a choice


def chosen(*found: Difference) -> Choice:
    return Choice(RequestedPaths(), list(found), {}, {})


def test_what_lies_in_a_place_keeps_all_out_that_was_to_come_beneath_it() -> None:
    new = [Difference(path, None, entry) for path, entry in ((b"d", FOLDER), (b"d/a", ONE))]
    choice = chosen(*new, Difference(b"da", None, ONE))
    assert choice.to_make() == {b"d", b"d/a", b"da"}
    assert choice.directories_to_make() == {b"d"}
    left = choice.without({b"d"}, set())
    assert [each.path for each in left.found] == [b"da"]
    assert left.unsaved == {b"d": FOLDER}


def test_a_directory_that_stands_is_not_made_and_what_is_in_it_is() -> None:
    choice = chosen(Difference(b"d", None, FOLDER), Difference(b"d/a", None, ONE))
    assert [each.path for each in choice.without(set(), {b"d"}).found] == [b"d/a"]


def test_a_directory_that_holds_something_stays() -> None:
    choice = chosen(Difference(b"d", FOLDER, ONE), Difference(b"d/a", ONE, None))
    assert choice.to_go() == {b"d", b"d/a"}
    assert choice.directories_to_go() == {b"d"}
    held = choice.holding(frozenset({b"d"}))
    assert [each.path for each in held.found] == [b"d/a"]


def test_what_is_known_is_not_done_besides() -> None:
    choice = chosen(Difference(b"a", ONE, None))
    more = [Difference(b"a", None, ONE), Difference(b"b", None, ONE)]
    assert choice.with_besides(more).found == [choice.found[0], more[1]]
