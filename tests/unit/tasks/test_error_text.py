"""What a user reads of an error that ended an attempt."""

import json
import os
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from hardsave.errors import Conflict
from hardsave.tasks import error_text


def raised(act: Callable[[], object]) -> Exception:
    try:
        act()
    except Exception as error:  # noqa: BLE001 # whatever a test raises
        return error
    raise AssertionError("nothing was raised")


def test_an_error_of_ours_is_its_sentence() -> None:
    def refused() -> None:
        try:
            json.loads("{")
        except ValueError as error:
            raise Conflict("task 't' is taken; wait for its end") from error

    assert error_text.brief(raised(refused)) == "task 't' is taken; wait for its end"


def test_frames_of_libraries_are_counted_and_the_innermost_is_shown() -> None:
    found = error_text.brief(raised(lambda: json.loads("{")))
    assert "test_error_text.py" in found
    assert "(2 frames of libraries left out)" in found
    assert os.path.join("json", "decoder.py") in found
    assert os.path.join("json", "__init__.py") not in found
    assert found.splitlines()[-1].startswith("json.decoder.JSONDecodeError: Expecting")


def test_a_traceback_of_own_code_alone_leaves_nothing_out() -> None:
    def broken() -> None:
        raise RuntimeError("no network")

    found = error_text.brief(raised(broken))
    assert "left out" not in found
    assert found == error_text.full(raised(broken)).rstrip()


def test_what_an_error_was_raised_from_is_shortened_likewise() -> None:
    def broken() -> None:
        try:
            json.loads("{")
        except ValueError as error:
            raise RuntimeError("no settings") from error

    found = error_text.brief(raised(broken))
    assert "direct cause" in found
    assert found.count("left out") == 1
    assert os.path.join("json", "__init__.py") not in found


def test_an_error_of_ours_that_another_was_raised_from_has_no_frames() -> None:
    def refused() -> None:
        raise Conflict("task 't' is taken")

    def broken() -> None:
        try:
            refused()
        except Conflict as error:
            raise RuntimeError("not today") from error

    found = error_text.brief(raised(broken))
    assert "hardsave.errors.Conflict: task 't' is taken" in found
    assert "in refused" not in found
    assert "in broken" in found


def test_errors_of_a_group_are_shortened_likewise() -> None:
    def broken() -> None:
        raise ExceptionGroup("several", [raised(lambda: json.loads("{"))])

    found = error_text.brief(raised(broken))
    assert "(2 frames of libraries left out)" in found
    assert "JSONDecodeError" in found


def test_errors_that_were_raised_from_each_other_have_an_end() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    assert "ValueError: one" in error_text.brief(one)


def test_a_chain_may_be_longer_than_calls_can_be_deep() -> None:
    error = ValueError("the last")
    for _ in range(3_000):
        error, before = ValueError("later"), error
        error.__cause__ = before
    assert "ValueError: the last" in error_text.brief(error)


@pytest.mark.parametrize(
    ("path", "is_library"),
    [
        (error_text.__file__, True),
        (json.__file__, True),
        ("/home/me/.venv/lib/python3.12/site-packages/anyio/to_thread.py", True),
        ("<frozen importlib._bootstrap>", True),
        ("/home/me/project/agents.py", False),
        ("<stdin>", False),
        (__file__, False),
    ],
)
def test_own_code_is_neither_ours_nor_installed(path: str, is_library: bool) -> None:
    assert error_text.is_library(path) == is_library


def test_the_source_of_a_frame_is_shown(tmp_path: Path) -> None:
    source = tmp_path / "agents.py"
    source.write_text(
        textwrap.dedent("""
        def tool():
            raise RuntimeError("no network")
    """)
    )
    names: dict[str, Callable[[], object]] = {}
    exec(compile(source.read_text(), str(source), "exec"), names)  # noqa: S102 # a user's file
    assert 'raise RuntimeError("no network")' in error_text.brief(raised(names["tool"]))
