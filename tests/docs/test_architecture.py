"""The architecture page names no module that is not there, and shows every room."""

import re

from tests.docs.pages import DOCS, ROOT, section

SOURCE = ROOT / "src" / "hardsave"
PAGE = DOCS / "ARCHITECTURE.md"


def modules() -> set[str]:
    """Return every module as the page writes it: `objects/tree.py`, and `objects/` for a room."""
    paths = (path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))
    return {re.sub(r"(?<=/)__init__\.py$", "", path) for path in paths}


def named(text: str) -> set[str]:
    return set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:\.py|/))`", text))


def test_no_module_is_named_that_is_not_there() -> None:
    assert {each for each in named(PAGE.read_text()) if not each.startswith("tests/")} <= modules()


def test_the_picture_shows_every_room_that_exists_and_no_other() -> None:
    picture = section(PAGE, "Who imports whom").partition("```text\n")[2].partition("```")[0]
    shown = {room for row in picture.splitlines() for room in row.partition("  ")[0].split(" | ")}
    rooms = {path.name.removesuffix(".py") for path in SOURCE.iterdir() if is_room(path.name)}
    assert shown - {"hardsave"} == rooms


def is_room(name: str) -> bool:
    return not name.startswith("__") and name not in ("py.typed", "testing")


def test_the_reading_of_the_page_sees_files_and_rooms() -> None:
    text = "`objects/tree.py` then `stores/sqlite/`, not `Levels` nor `make run`"
    assert named(text) == {"objects/tree.py", "stores/sqlite/"}
