"""The pages use words that an engineer would search for, and sentences that name their subject."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, prose

# Words that hide which process, caller or file is meant; and private names of standard things.
HIDING = "somebody nobody whoever whatever anybody someone everybody"
PRIVATE = (
    "resident residents standby desk reception seat seats guest guests sitter meeting meetings "
    "handover tether tethers vigil glance twins footing bury buried burying"
)
WORD = re.compile(rf"\b({'|'.join((HIDING + ' ' + PRIVATE).split())})\b", re.IGNORECASE)
STANDARD = re.compile(r"resident memory|`[^`\n]*`")  # as the kernel has it; names of code and files

SOURCE = ROOT / "src" / "hardsave"
CODE = sorted(SOURCE.rglob("*.py"))


def unclear(text: str) -> list[str]:
    return WORD.findall(STANDARD.sub("", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_no_private_words(page: Path) -> None:
    assert unclear(prose(page)) == []


def test_the_code_is_in_plain_words() -> None:
    found = {path.relative_to(SOURCE).as_posix(): unclear(path.read_text()) for path in CODE}
    assert {path: words for path, words in found.items() if words} == {}


def test_the_search_for_words_finds_some_and_knows_the_standard_ones() -> None:
    assert unclear("Whoever has a seat; `attempt.tether()` and resident memory") == [
        "Whoever",
        "seat",
    ]
