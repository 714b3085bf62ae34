import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.cli.picker.screen import decode


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        (b"ab", ["a", "b"]),
        ("é日🎉".encode(), ["é", "日", "🎉"]),
        (b"\x1b[A\x1b[B", ["up", "down"]),
        (b"\x1bOA", ["up"]),
        (b"\x1b[5~x", ["page up", "x"]),
        (b"\r\t\x7f\x15", ["enter", "tab", "backspace", "clear"]),
        (b"\x03", ["interrupt"]),
        (b"\x1b[38;5;1m", []),  # a sequence that we do not know
        (b"\x1a\x00", []),
        (b"\xff", []),
        (b"\x1bq", ["escape", "q"]),
    ],
)
def test_what_is_sent_is_known(sent: bytes, keys: list[str]) -> None:
    assert decode(sent, waits=True) == (keys, b"")


def test_an_escape_alone_is_a_key_only_if_nothing_follows() -> None:
    assert decode(b"\x1b", waits=True) == ([], b"\x1b")
    assert decode(b"\x1b", waits=False) == (["escape"], b"")


@given(st.lists(st.sampled_from(["\x1b[A", "\x1b[6~", "é", "🎉", "x", "\t"]), max_size=8))
def test_however_it_is_cut_the_same_keys_come(sent: list[str]) -> None:
    data = "".join(sent).encode()
    whole, _ = decode(data, waits=True)
    keys: list[str] = []
    pending = b""
    for byte in data:
        found, pending = decode(pending + bytes([byte]), waits=True)
        keys += found
    assert (keys, pending) == (whole, b"")
