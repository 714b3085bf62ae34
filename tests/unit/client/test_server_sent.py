from hypothesis import given
from hypothesis import strategies as st

from hardsave.client.server_sent import Message, Parser

STREAM = (
    b": .\n\nid: 1\nevent: hello\ndata: {}\n\n"
    b"id:2\r\nevent:events\r\ndata: a\r\ndata: b\r\n\r\n"
    b"retry: 5\nunknown\n\nevent: bye\n\n: .\nid: 7\n\n" + "id: 3\ndata: größer …\n\n".encode()
)
MESSAGES = [
    Message("hello", "{}", "1"),
    Message("events", "a\nb", "2"),
    Message("bye", "", None),
    Message("", "", "7"),
    Message("", "größer …", "3"),
]


@given(st.lists(st.integers(0, len(STREAM))))
def test_messages_are_the_same_however_the_bytes_are_cut(cuts: list[int]) -> None:
    parser, at = Parser(), 0
    found = []
    for end in [*sorted(cuts), len(STREAM)]:
        found += parser.feed(STREAM[at:end])
        at = end
    assert found == MESSAGES


def test_a_message_without_its_empty_line_is_not_given_out() -> None:
    assert Parser().feed(b"id: 1\nevent: events\ndata: {}\n") == []
