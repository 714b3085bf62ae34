"""The pages of the documentation, and what a test wants to know about them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
DOCS = ROOT / "docs"
SKILL = ROOT / "src" / "hardsave" / "agents" / "skill"
PAGES = [
    *(README, CONTRIBUTING, ROOT / "CHANGELOG.md"),
    *(*sorted(DOCS.rglob("*.md")), *sorted(SKILL.rglob("*.md"))),
]

_FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (?P<title>.+)$", re.MULTILINE)


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of one language, in order."""
    found = _FENCE.finditer(page.read_text())
    return [block["text"] for block in found if block["language"] == language]


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return _FENCE.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """Return what a link may name after '#': headings, the way GitHub spells them."""
    titles = (heading["title"] for heading in _HEADING.finditer(prose(page)))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def section(page: Path, title: str) -> str:
    """Return the text from a second-level heading to the next one."""
    _, found, rest = page.read_text().partition(f"\n## {title}\n")
    assert found, f"{page.name} has no section {title!r}"
    return rest.partition("\n## ")[0]
