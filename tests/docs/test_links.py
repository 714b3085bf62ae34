"""Links lead somewhere, and files that are named exist."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, anchors, prose

LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
NAMED = re.compile(r"`(?P<path>(?:src|tests|docs|bench|examples)/[\w./-]*)`")


def broken_links(page: Path, text: str) -> list[str]:
    """Return the relative links that lead to no file, or to no heading of it."""
    broken = []
    for link in LINK.finditer(text):
        place, _, anchor = link["target"].partition("#")
        if "://" in link["target"]:
            continue
        target = page.parent / place if place else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link["target"])
    return broken


def missing_files(text: str) -> list[str]:
    return [named["path"] for named in NAMED.finditer(text) if not (ROOT / named["path"]).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken_links(page, prose(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_is_named_exists(page: Path) -> None:
    assert missing_files(prose(page)) == []


def test_the_search_finds_what_is_broken() -> None:
    page = ROOT / "README.md"
    text = "[a](docs/format.md) [b](docs/nowhere.md) [c](docs/format.md#no-such) [d](#nor-this)"
    assert broken_links(page, text) == ["docs/nowhere.md", "docs/format.md#no-such", "#nor-this"]
    assert missing_files("see `tests/docs` and `tests/attic/test_box.py`") == [
        "tests/attic/test_box.py"
    ]
