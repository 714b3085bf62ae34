"""A worker that is stopped past its lease and wakes writes nothing, wherever it was stopped."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import postgres_server
from tests.crash.launcher import Launcher
from tests.unit.runtime.listener import Listener, listening


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    postgres_server.server()
    launched = Launcher(("zombie",))
    yield launched
    launched.close()


class Site:
    """A job of a store in a database of its own."""

    def __init__(self, launcher: Launcher, folder: Path, on_success: str) -> None:
        folder.mkdir()
        self._launcher = launcher
        self.folder = folder
        self.url = postgres_server.url_of(folder)
        self._on_success = on_success

    def points(self) -> list[str]:
        with listening() as receiver:
            self._add(receiver)
            found: list[str] = self._launcher.call("zombie.points", url=self.url)
        return found

    def check(self, name: str, at: int = 0) -> None:
        """A worker that is stopped before a write wakes when its job is done."""
        with listening() as receiver:
            self._add(receiver)
            where = {"url": self.url, "folder": str(self.folder)}
            stopped, other = self._launcher.start(
                ("zombie.stop_before", {**where, "name": name, "at": at}),
                ("zombie.take_over", where),
            )
            assert other.code == 0, other.words
            assert stopped.code == 0, stopped.words
            self._compare(name, other.answer)
            # One that was told is told again if that is not on record: by the other worker.
            told = 2 if name == "completed fix/notice" else 1
            assert len(receiver.got) == told, f"{name}: the receiver was told {receiver.keys}"

    def _add(self, receiver: Listener) -> None:
        where = {"url": self.url, "folder": str(self.folder)}
        given = {"receiver": receiver.url, "on_success": self._on_success}
        self._launcher.call("zombie.add", **where, **given)

    def _compare(self, point: str, found: dict[str, Any]) -> None:
        assert found["before"]["states"]["fix"] == "completed"
        for what, before in found["before"].items():
            assert found["after"][what] == before, (point, what)


@pytest.mark.parametrize(
    "point",
    [
        "workspace",  # the files are to be taken over
        "files",  # their contents are there, and not in place
        "save: write returned",
        "added delegated",
        "completed fix",
        "post",
    ],
)
def test_a_worker_that_was_stopped_before_a_write_writes_nothing_when_it_wakes(
    launcher: Launcher, tmp_path: Path, point: str
) -> None:
    Site(launcher, tmp_path / "site", "archive").check(point)


@pytest.mark.torture
@pytest.mark.parametrize("on_success", ["archive", "purge"])
def test_a_worker_may_be_stopped_before_any_of_its_writes(
    launcher: Launcher, tmp_path: Path, on_success: str
) -> None:
    points = Site(launcher, tmp_path / "first", on_success).points()
    assert len(points) > 20
    seen: Counter[str] = Counter()
    for number, name in enumerate(points):
        Site(launcher, tmp_path / str(number), on_success).check(name, seen[name])
        seen[name] += 1
