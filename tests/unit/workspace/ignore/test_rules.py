"""Ignore rules: what is asked of them, without git. That they are git's is tested beside."""

import re
import time

import pytest

from hardsave.workspace.ignore.globs import Glob, trails
from hardsave.workspace.ignore.patterns import parse
from hardsave.workspace.ignore.rules import Rules, root_rules


def rules(*patterns: bytes, exclude_files: tuple[bytes, ...] = ()) -> Rules:
    return root_rules(exclude_files=exclude_files, patterns=patterns)


def ignored(inside: Rules, *names: bytes) -> list[bytes]:
    return [name for name in names if inside.match(name, False)]


def test_no_rules_ignore_nothing() -> None:
    nothing = rules()
    assert not nothing.match(b"a", False)
    assert not nothing.enter(b"a", ()).match(b"b", True)


def test_the_last_line_that_matches_decides() -> None:
    assert ignored(rules(b"*.log\n!keep.log\n"), b"a.log", b"keep.log") == [b"a.log"]
    assert ignored(rules(b"!keep.log\n*.log\n"), b"a.log", b"keep.log") == [b"a.log", b"keep.log"]


def test_a_later_file_decides_over_an_earlier_one() -> None:
    gitignore, hardsaveignore = b"*.log\n", b"!keep.log\n"
    assert not rules(gitignore, hardsaveignore).match(b"keep.log", False)
    assert rules(hardsaveignore, gitignore).match(b"keep.log", False)
    assert not rules(hardsaveignore, exclude_files=(gitignore,)).match(b"keep.log", False)


def test_a_deeper_file_decides_over_those_above() -> None:
    inside = rules(b"*.log\n").enter(b"docs", (b"!*.log\n", b"b.log\n"))
    assert ignored(inside, b"a.log", b"b.log") == [b"b.log"]
    assert ignored(inside.enter(b"more", (b"*.log\n",)), b"a.log", b"b.log") == [b"a.log", b"b.log"]


def test_a_pattern_with_a_slash_belongs_to_one_place() -> None:
    root = rules(b"/build\nsrc/*.c\n")
    assert root.match(b"build", False)
    assert not root.enter(b"src", ()).match(b"build", False)
    assert root.enter(b"src", ()).match(b"a.c", False)
    assert not root.match(b"a.c", False)
    assert not root.enter(b"src", ()).enter(b"src", ()).match(b"a.c", False)


def test_a_pattern_with_a_slash_at_its_end_is_about_directories() -> None:
    root = rules(b"build/\n")
    assert root.match(b"build", True)
    assert not root.match(b"build", False)


def test_a_pattern_that_never_matches_is_no_pattern() -> None:
    assert parse(b"\n# comment\n[a\nb\\\na//b\n/\n!\n\r\n[[:nonsense:]]\n") == ()


# The key


def test_the_key_changes_with_every_change_that_counts() -> None:
    contents = (b"", b"a", b"b", b"!a", b"a/", b"/a", b"a/b", b"a\nb", b"b\na", b"a*", b"*a", b"?")
    keys = [rules(content).key for content in contents]
    assert len(set(keys)) == len(keys)


def test_the_key_knows_which_file_a_line_is_from_only_as_far_as_it_matters() -> None:
    assert rules(b"a", b"b").key == rules(b"a\nb").key
    below = rules(b"a").enter(b"d", (b"b",))
    assert below.key != rules(b"b").enter(b"d", (b"a",)).key


def test_a_comment_or_a_line_about_elsewhere_leaves_the_key() -> None:
    one = rules(b"*.o\n/elsewhere\nother/place/x\n").enter(b"src", ())
    two = rules(b"# objects\n*.o\n").enter(b"src", ())
    assert one.key == two.key


def test_a_line_about_something_further_down_is_part_of_the_key() -> None:
    with_line = rules(b"/src/deep/x\n").enter(b"src", ())
    assert with_line.key != rules(b"").enter(b"src", ()).key
    assert with_line.enter(b"deep", ()).match(b"x", False)


def test_directories_without_rules_of_their_own_share_them() -> None:
    root = rules(b"*.o\n/build\na/**/b/c\n")
    below = root.enter(b"x", ())
    assert below is root.enter(b"y", ())
    assert below is below.enter(b"z", ())


# Patterns made to be slow


@pytest.mark.parametrize(
    "pattern", [b"*a" * 100 + b"b", b"?*" * 100 + b"b", b"[ab]*" * 100 + b"c", b"a*" * 120 + b"?b"]
)
def test_a_hostile_pattern_does_not_stop_the_walk(pattern: bytes) -> None:
    # Trying every way to place the stars would take years: that this ends is the test.
    assert not rules(pattern).match(b"a" * 255, False)


@pytest.mark.parametrize("pattern", [b"x/" + b"a" * 60_000, b"x/" * 40_000, b"[[:" * 80_000])
def test_a_pattern_that_is_longer_than_any_path_takes_no_time(pattern: bytes) -> None:
    started = time.process_time()
    parse(pattern + b"\n" + b"a/" + b"b" * 4000 + b"\n")
    assert time.process_time() - started < 5  # it took time by the square of its length


def test_a_pattern_may_be_as_long_as_a_path() -> None:
    names = [b"d" * 200] * 20
    inside = rules(b"/".join(names))
    for name in names[:-1]:
        inside = inside.enter(name, ())
    assert inside.match(names[-1], False)


@pytest.mark.parametrize(
    "pattern",
    [b"a" * 40_000 + b"/b", b"**/a/" * 8_000 + b"b", b"[[:" * 20_000],
    ids=["a name", "names", "classes"],
)
def test_a_long_line_takes_as_much_longer_as_it_is(pattern: bytes) -> None:
    began = time.process_time()
    assert not rules(pattern).match(b"a", False)
    assert time.process_time() - began < 2  # four seconds and more, if it grew with its square


def test_a_pattern_with_many_stars_takes_no_longer_in_a_deep_tree() -> None:
    """Only the last place where any number of directories may follow counts."""
    here = rules(b"**/a/" * 800 + b"b")
    began = time.process_time()
    for depth in range(1_000):
        assert here.match(b"b", False) == (depth >= 800)
        here = here.enter(b"a", ())
    assert time.process_time() - began < 5  # minutes, if each directory had all that are behind


def test_what_is_further_along_says_all_that_what_is_behind_it_says() -> None:
    deep = rules(b"**/a/**/b/c").enter(b"a", ()).enter(b"b", ())
    assert deep.key == rules(b"**/a/**/b/c").enter(b"a", ()).enter(b"a", ()).enter(b"b", ()).key
    assert deep.match(b"c", False)
    assert deep.enter(b"a", ()).enter(b"b", ()).match(b"c", False)
    assert not deep.enter(b"a", ()).match(b"c", False)


def test_what_is_left_of_a_hostile_pattern_does_not_grow_with_depth() -> None:
    here = rules(b"**/a/" * 30 + b"b\n")
    for _ in range(100):
        here = here.enter(b"a", ())
    assert here.match(b"b", False)
    assert here is here.enter(b"a", ())


@pytest.mark.parametrize("pattern", [b"a**/" * 20 + b"b", b"a/" + b"**/" * 50 + b"b", b"a**" * 50])
def test_stars_in_a_row_make_few_trails(pattern: bytes) -> None:
    assert len(trails(pattern)) <= 3


def test_the_cheap_cases_say_the_same_as_their_expression() -> None:
    for text in (b"a.b", b"*.b", b"a*", b"*", b"\\*", b"***", b"*\\*", b"a[b]"):
        ((_, name),) = trails(text)
        assert isinstance(name, Glob)
        for candidate in (b"a.b", b"x.b", b"a", b"*", b"x*", b"ab", b".b", b"b"):
            cheap = rules(text).match(candidate, False)
            assert cheap == bool(re.fullmatch(name.source, candidate, re.DOTALL)), (text, candidate)


def test_many_odd_patterns_are_told_apart() -> None:
    """The last that fits decides, and hundreds of them take hardly any time."""
    lines = [b"a*%d*z" % number for number in range(800)]
    lines += [b"!a*77*z", b"a*7?7*z"]
    rules = root_rules(exclude_files=[], patterns=[b"\n".join(lines)])
    for number in range(800):
        assert not rules.match(b"name-%d.txt" % number, False)
    assert rules.match(b"a799z", False)
    assert not rules.match(b"a77z", False)
    assert rules.match(b"a737z", False)
    assert not rules.match(b"a737", False)
