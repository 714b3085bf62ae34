"""The page of all public names is what the code says today."""

import hardsave
from tests.docs import reference


def test_the_page_is_as_the_code_is() -> None:
    again = "write it anew with: python -m tests.docs.reference"
    assert reference.PAGE.read_text() == reference.page(), again


def test_every_name_of_the_front_door_is_explained() -> None:
    page = reference.PAGE.read_text()
    rest = set(hardsave.__all__) - reference.named()
    assert {name for name in rest if f"`hardsave.{name}`" not in page} == set()
