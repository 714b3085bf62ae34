"""YAML as nodes, which know the lines that they stand on: what is wrong can be named with its line.

Nothing is constructed: a tag is a text to the reader of the nodes.
"""

from typing import TYPE_CHECKING

from hardsave.errors import Misuse

if TYPE_CHECKING:
    import yaml


def composed(data: bytes | str, name: str) -> "yaml.Node | None":
    """The topmost node of a file's content; None if there is nothing in it."""
    import yaml  # few programs have such a file

    try:
        return yaml.compose(data, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # also of "\\UFFFFFFFF"
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f":{mark.line + 1}"
        raise Misuse(f"{name}{line}: this is not YAML: {error}") from error
    except RecursionError as error:
        raise Misuse(f"{name}: this is nested too deeply") from error
