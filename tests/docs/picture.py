"""Pictures of the documentation: commands typed on a real terminal, drawn as it looked.

`python -m tests.docs.picture` draws them anew, in folders of their own.
"""

import fcntl
import html
import io
import os
import pty
import re
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

from rich.color_triplet import ColorTriplet
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tests.docs.day import VIEWS, WIDTHS, Day, View
from tests.docs.pages import DOCS, blocks
from tests.docs.test_howto import typed

PICTURES = DOCS / "pictures"
PICTURE = PICTURES / "rewind.svg"
AS_TEXT = PICTURES / "rewind.md"
COLUMNS = 76

_FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # nothing is fetched to show it
_FONTS = "Fira Code, Menlo, DejaVu Sans Mono, monospace"


def _rgb(colour: str) -> tuple[int, int, int]:
    return ColorTriplet(*bytes.fromhex(colour[1:]))


_COLOURS = ["#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2"]
_THEME = TerminalTheme(
    *(_rgb("#171a21"), _rgb("#d9dce3")),
    [_rgb(each) for each in ("#282c34", *_COLOURS, "#abb2bf")],
    [_rgb(each) for each in ("#6e7687", *_COLOURS, "#ffffff")],
)


def on_terminal(command: str, folder: Path) -> str:
    """What a command prints on a terminal, colours and all."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        home = str(folder.parent)
        environment = {"PATH": path, "HOME": home, "LANG": "C.UTF-8", "TERM": "xterm-256color"}
        os.execve("/bin/sh", ["sh", "-c", command], environment)  # noqa: S606 # a page of ours
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 40, COLUMNS, 0, 0))
    printed = io.BytesIO()
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        printed.write(part)
    os.close(terminal)
    os.waitpid(process, 0)
    return printed.getvalue().decode().replace("\r\n", "\n")


def screen() -> Text:
    """The commands, with what each of them printed this time."""
    shown = Text()
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home).resolve() / "project"
        folder.mkdir()
        (folder.parent / "agent.sh").write_text(typed(blocks(AS_TEXT, "console")[0])[0].printed)
        for command, _ in typed(blocks(AS_TEXT, "console")[0]):
            shown.append("$ ", style="bold green").append(f"{command}\n", style="bold")
            printed = on_terminal(command, folder).replace(str(folder), "/home/you/project")
            shown.append_text(Text.from_ansi(printed.rstrip("\n"))).append("\n" if printed else "")
            if "hardsave run" in command:
                time.sleep(2)  # for its last save
    shown.rstrip()
    return shown


def of_view(view: View, width: int) -> Path:
    """The picture of a command on a terminal of so many columns."""
    return PICTURES / f"{view.name}-{width}.svg"


def drawn(shown: Text, columns: int = COLUMNS) -> str:
    console = Console(width=columns, record=True, file=io.StringIO(), color_system="truecolor")
    console.print(shown)
    picture = console.export_svg(title="hardsave", theme=_THEME, unique_id="hardsave")
    picture = picture.replace(
        'class="hardsave-matrix"', 'class="hardsave-matrix" xml:space="preserve"'
    )
    return _FONT_FACE.sub("", picture).replace("Fira Code, monospace", _FONTS)


def words_of(picture: str) -> str:
    """All that a picture says, line by line."""

    lines: dict[float, str] = {}
    pattern = re.compile(r'<text [^>]*?y="([\d.]+)"[^>]*clip-path[^>]*>(.*?)</text>')
    for place, text in pattern.findall(picture):
        lines[float(place)] = lines.get(float(place), "") + " " + html.unescape(text)
    said = (lines[place].replace("\xa0", " ").rstrip() for place in sorted(lines))
    return "\n".join(said)


if __name__ == "__main__":
    PICTURE.write_text(drawn(screen()))
    with tempfile.TemporaryDirectory() as home:
        day = Day(Path(home).resolve())
        for width in WIDTHS:
            for view in VIEWS:
                of_view(view, width).write_text(drawn(day.seen(view, width), width))
