"""The tree of errors: one root, and branches by what a caller can do."""

import pytest

from hardsave import errors
from hardsave.errors import (
    Conflict,
    Corrupt,
    HardsaveError,
    Misuse,
    NotFound,
    Unavailable,
    Unstorable,
)


def test_every_error_is_drawn_in_the_docstring_and_stands_where_it_is_drawn() -> None:
    drawn = [line for line in (errors.__doc__ or "").splitlines() if "─ " in line]
    parents: dict[str, str] = {}
    branch = "HardsaveError"
    for line in drawn:
        name = line.split("─ ")[1].split()[0]
        parents[name] = "HardsaveError" if line.index("─") < 8 else branch
        branch = name if line.index("─") < 8 else branch
    classes = {
        name: cls.__base__.__name__
        for name, cls in vars(errors).items()
        if isinstance(cls, type) and cls is not HardsaveError and cls.__base__ is not None
    }
    assert classes == parents


@pytest.mark.parametrize("cls", [NotFound, Conflict, Corrupt, Unavailable, Misuse])
def test_the_root_catches_every_branch_and_no_branch_catches_another(
    cls: type[HardsaveError],
) -> None:
    with pytest.raises(HardsaveError):
        raise cls("a message")
    assert cls.__mro__[1:] == HardsaveError.__mro__


def test_what_cannot_be_stored_names_its_path() -> None:
    error = Unstorable("state.messages[3].image", "has no stored form")
    assert isinstance(error, Misuse)
    assert str(error) == "state.messages[3].image: has no stored form"
    assert (error.path, error.reason) == ("state.messages[3].image", "has no stored form")
