"""The page of settings says what the code says: keys are known, defaults are the defaults."""

import re

import pytest

from hardsave import defaults
from hardsave.config import file
from tests.docs.pages import DOCS, blocks

PAGE = DOCS / "howto" / "settings.md"
ROW = re.compile(r"^\| `(?P<name>[A-Z_]+)` \| (?P<value>[^|]+) \|", re.MULTILINE)
UNITS = {"": 1, "s": 1, "days": 1, "characters": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def shown() -> dict[str, object]:
    rows = ROW.finditer(PAGE.read_text())
    return {row["name"]: meant(row["value"]) for row in rows if not is_variable(row["name"])}


def is_variable(name: str) -> bool:
    return name.startswith("HARDSAVE_")


def meant(value: str) -> object:
    if names := re.findall(r"`([^`]+)`", value):
        return names[0] if len(names) == 1 else tuple(name.encode() for name in names)
    number, _, unit = value.replace(",", "").partition(" ")
    return float(number) * UNITS[unit]


def test_every_default_is_listed_with_its_value() -> None:
    found = {name: value for name, value in vars(defaults).items() if name.isupper()}
    assert shown() == {name: value for name, value in found.items() if not name.startswith("_")}


def test_every_key_of_a_settings_file_is_shown_and_understood() -> None:
    ours, code_agents = blocks(PAGE, "yaml")
    theirs = file.CODE_AGENT_SECTION
    own = {path: keys for path, keys in file.SECTIONS.items() if path != theirs}
    settings = {key.setting for keys in own.values() for key in keys.values()}
    assert file.read(ours, PAGE.name).keys() == settings
    found = file.read_code_agent(code_agents, PAGE.name)
    assert found.keys() == {key.setting for key in file.SECTIONS[theirs].values()}


@pytest.mark.parametrize(
    ("value", "means"),
    [("4 GiB", 4 << 30), ("0.05 s", 0.05), ("`a.b`", "a.b"), ("`a`, `b`", (b"a", b"b"))],
)
def test_values_are_read_as_a_reader_reads_them(value: str, means: object) -> None:
    assert meant(value) == means
