"""These tests need frameworks that `make test` does not install: `make test-frameworks` does.

Warnings are errors in our own modules alone: what frameworks warn of among themselves is theirs.
"""

import os

import pytest

ASKED_FOR = bool(os.environ.get("HARDSAVE_TEST_FRAMEWORKS"))

collect_ignore_glob = [] if ASKED_FOR else ["*"]


def pytest_configure(config: pytest.Config) -> None:
    if ASKED_FOR:
        config.addinivalue_line("filterwarnings", "default")
        config.addinivalue_line("filterwarnings", r"error:::(hardsave|tests)(\..*)?$")
