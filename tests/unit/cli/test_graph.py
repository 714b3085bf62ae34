from hypothesis import given
from hypothesis import strategies as st

from hardsave.cli.render import graph
from hardsave.cli.render.graph import Node, Row


def nodes(*pairs: str) -> list[Node]:
    """`6<5` is a node 6 whose parent is 5."""
    split = [pair.partition("<") for pair in pairs]
    return [Node(id, parent or None, "o") for id, _, parent in split]


def drawn(rows: list[Row]) -> list[str]:
    return [line.rstrip() for row in rows for line in (*row.joins, row.line)]


def test_nothing_is_nothing() -> None:
    assert graph.draw([]) == []


def test_a_line_is_a_line() -> None:
    assert drawn(graph.draw(nodes("3<2", "2<1", "1"))) == ["o", "o", "o"]


def test_a_branch_has_a_column_and_joins_at_its_parent() -> None:
    assert drawn(graph.draw(nodes("4<2", "3<2", "2<1", "1"))) == ["o", "│ o", "├─╯", "o", "o"]


def test_three_branches_join_at_once() -> None:
    rows = drawn(graph.draw(nodes("5<2", "4<2", "3<2", "2")))
    assert rows == ["o", "│ o", "│ │ o", "├─┴─╯", "o"]


def test_a_branch_that_goes_on_is_crossed() -> None:
    rows = drawn(graph.draw(nodes("6<2", "5<1", "4<2", "2<1", "1")))
    assert rows == ["o", "│ o", "│ │ o", "├─┼─╯", "o │", "├─╯", "o"]


def test_a_column_that_ended_is_used_again() -> None:
    tree = nodes("5<4", "9", "8", "4")
    assert drawn(graph.draw(tree, apart=False)) == ["o", "│ o", "│ o", "o"]


def test_what_has_nothing_in_common_is_kept_apart() -> None:
    """Else one would look like what the other was saved on top of."""
    assert drawn(graph.draw(nodes("5<4", "9", "8", "4"))) == ["o", "│ o", "│", "│ o", "o"]
    assert drawn(graph.draw(nodes("4<3", "3", "2<1", "1"))) == ["o", "o", "", "o", "o"]


def test_a_parent_that_is_not_shown_keeps_its_column_for_none_of_the_others() -> None:
    assert drawn(graph.draw(nodes("9<1", "8<7", "7<6"))) == ["o", "│ o", "│ o"]


@given(st.lists(st.integers(0, 30), max_size=30))
def test_every_node_has_a_row_with_its_mark(parents: list[int]) -> None:
    numbers = range(len(parents), 0, -1)  # a node's parent is older, or it has none
    tree = [
        Node(str(n), str(parent) if (parent := p % n) > 0 else None, "o")
        for n, p in zip(numbers, parents, strict=True)
    ]
    rows = graph.draw(tree)
    assert [row.line.count("o") for row in rows] == [1] * len(tree)
    assert all(not set(row.line) - set("o│ ") for row in rows)
    assert not rows or rows[-1].below.strip() == ""
