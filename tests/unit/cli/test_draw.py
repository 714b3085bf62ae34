"""What a narrow terminal makes of it."""

import io

import pytest
from rich.text import Text

from hardsave.cli import draw
from hardsave.cli.output import console, put

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
