"""What a narrow terminal makes of it."""

import io

import pytest
from rich.text import Text

from hardsave.cli.render import changed_files, draw
from hardsave.cli.render.console import console, put
from hardsave.vault.files import Held, compared

SAID = "files and state were saved, destroyed, restored and compared"


def drawn(width: int, line: object) -> list[str]:
    file = io.StringIO()
    put(console(file, width=width, terminal=True), line)  # type: ignore[arg-type]  # as rich takes it
    return Text.from_ansi(file.getvalue()).plain.splitlines()


@pytest.mark.parametrize("width", [25, 40, 45, 80])
def test_a_text_that_goes_on_is_never_wider_than_the_terminal(width: int) -> None:
    found = drawn(width, draw.Hanging(Text("✓  save and restore   "), Text(SAID)))
    assert max(map(len, found)) <= width
    assert " ".join(" ".join(found).split()) == f"✓ save and restore {SAID}"
    indents = {len(line) - len(line.lstrip()) for line in found[1:]}
    assert indents == {22 if width - 22 >= 20 else 4}


def patched(old: bytes, new: bytes) -> list[Text]:
    return list(draw.patch(compared("a", Held(old), Held(new))))


def test_how_lines_end_is_seen_if_it_differs() -> None:
    """It may be all that has changed."""
    alike = [text.plain for text in patched(b"a\r\nb\r\nc", b"a\r\nB\r\nc")]
    assert alike[3:] == [" a", "-b", "+B", " c", "\\ No newline at end of file"]
    differ = [text.plain for text in patched(b"a\r\nb\r\n", b"a\r\nb\n")]
    assert differ[3:] == [" a\\r", "-b\\r", "+b"]


def test_a_line_that_looks_like_a_heading_is_a_line() -> None:
    found = patched(b"-- a comment\nselect\n", b"++ more\nselect\n")
    assert [(text.plain, text.style) for text in found[3:5]] == [
        ("--- a comment", "removed"),
        ("+++ more", "added"),
    ]
    patch = "\n".join(text.plain for text in found) + "\n"
    assert changed_files.stat(f"-x: mode 0755\n{patch}") == {"+": 1, "-": 1}


def test_the_lines_of_what_became_a_symlink_are_counted_once() -> None:
    patch = compared("a", Held(b"b", "symlink"), Held(b"one\ntwo\n"))
    assert changed_files.stat(patch) == {"+": 2, "-": 1}
