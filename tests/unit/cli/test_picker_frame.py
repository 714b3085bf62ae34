"""How the picker looks, as plain text."""

from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.text import Text

from hardsave.cli.picker.frame import Facts, Preview, frame
from hardsave.cli.picker.state import Option, Picker, Size, begun, press
from hardsave.cli.render.changed_files import FileStat

FRAMES = Path(__file__).parent
STORY = [
    Option("s1", "", "session", Text("fast  Fix the parser"), "", "2m", Text(), "fast"),
    Option(
        *("p1", "chk_1", "prompt", Text("Now make it fast"), ":14", "2m", Text("~2"), "fast"),
        has_steps=True,
    ),
    Option(
        "t1", "chk_2", "step", Text("Bash(rm src/b.py)"), ":18", "1m", Text("-1"), "rm", under="p1"
    ),
    Option(
        *("t2", "chk_3", "step", Text("Edit(a.py)"), ":16", "2m", Text("~1"), "edit"),
        mark="@",
        under="p1",
    ),
    Option(
        *("p2", "chk_4", "prompt", Text("Fix the parser"), ":1", "3h", Text("+2 ~11"), "fix"),
        has_steps=True,
    ),
    Option("s2", "", "session", Text("docs  Write docs"), "", "2d", Text(), "docs"),
    Option("p3", "chk_5", "prompt", Text("Write docs " * 30), ":1", "2d", Text(), "docs"),
]
PREVIEW = Preview(
    ":14, before this prompt was answered",
    (("prompt", "Now make it fast " * 20), ("answer", "Done.")),
    (Text("! 1 call since reached outside, still done: git push"),),
    Facts(
        (Text("files  1 created, 1 changed"), Text("! .env was not saved and does not come back")),
        (FileStat("~", "src/parser.py", 3, 1), FileStat("+", "src/b.py", 4)),
        3,
    ),
)


def lines(one: Picker, width: int, height: int, preview: Preview = PREVIEW) -> list[str]:
    found = [line.plain.rstrip() for line in frame(one, preview, Size(width, height))]
    assert len(found) == max(height, 4)
    assert all(cell_len(line) <= width for line in found)
    return found


def after(one: Picker, *keys: str) -> Picker:
    for key in keys:
        found = press(one, key)
        assert isinstance(found, Picker)
        one = found
    return one


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 50)])
def test_on_a_wide_terminal_the_preview_stands_beside_the_list_else_below(
    width: int, height: int
) -> None:
    expected = (FRAMES / f"picker_{width}x{height}.txt").read_text().splitlines()
    assert lines(begun(STORY), width, height) == expected


def test_all_keys_fit_a_usual_terminal() -> None:
    for keys in ([], ["tab"], ["diff"]):
        assert not lines(after(begun(STORY), *keys), 80, 24)[-1].endswith("…")


def test_a_narrow_terminal_still_says_how_to_choose_and_to_leave() -> None:
    assert lines(begun(STORY), 40, 12)[-1] == "^G go on  Enter rewind  Esc leave"
    assert lines(begun(STORY), 24, 12)[-1] == "Enter rewind  Esc leave"


@pytest.mark.parametrize("width", [20, 40, 80, 110, 200])
@pytest.mark.parametrize("height", [2, 4, 5, 8, 24, 100])
def test_a_frame_is_as_large_as_the_terminal_and_shows_where_one_is(
    width: int, height: int
) -> None:
    for keys in ([], ["page down"], ["end"]):
        found = lines(after(begun(STORY), *keys), width, height)
        assert sum(line.startswith("> ") for line in found) == 1


def test_what_is_not_known_yet_is_said() -> None:
    one = begun(STORY, is_whole=False)
    found = "\n".join(lines(one, 80, 24, PREVIEW._replace(facts=None)))
    assert "comparing with the disk …" in found
    assert "reading older ones …" in found


def test_where_nothing_matches_the_way_back_is_said() -> None:
    one = after(begun(STORY), *"xyz")
    assert "nothing matches; backspace takes letters back" in lines(one, 80, 24, Preview())[1]
    assert "nothing matches so far" in lines(one._replace(is_whole=False), 80, 24, Preview())[1]


def test_a_diff_has_the_screen_to_itself() -> None:
    one = after(begun(STORY), "diff")
    assert lines(one, 80, 8)[0] == "reading the differences …"
    one = one._replace(diff=[Text(f"+line {number}") for number in range(30)], top=20)
    found = lines(one, 80, 8)
    assert found[0] == "+line 20"
    assert found[6].startswith("── lines 21 to 26 of 30 ──")
    assert "Esc back" in found[7]
    assert lines(one._replace(diff=[], top=0), 80, 8)[0] == "no file would change"
