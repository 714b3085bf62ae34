"""A disk without a free byte: what is there can be read, and what cannot be saved is said so."""

from collections.abc import Callable
from typing import Any

import pytest

NO_ROOM = "Unavailable: no space left for"


@pytest.fixture
def found(request: pytest.FixtureRequest, on_a_disk: Callable[[str, str], Any]) -> Any:
    """What a process has found out on a full disk of its own."""
    return on_a_disk("tests.crash.crowding", request.param)


@pytest.mark.parametrize("found", ["closed", "killed"], indirect=True)
def test_a_store_on_a_full_disk_can_be_read_and_goes_on_once_there_is_room(found: Any) -> None:
    assert found["looked"] == {
        "log": list(range(20, 0, -1)),
        "load": 19,
        "diff": 2,
        "verify": True,
        "stats": 20,
        "tasks": 0,
        "export": 20,
    }
    assert found["save"].startswith(NO_ROOM)
    assert found["second"] == 19
    assert found["saved"] == 21  # by the same vault
    assert found["after"] == {
        **found["looked"],
        "log": list(range(21, 0, -1)),
        "load": 20,
        "stats": 21,
        "export": 21,
    }


@pytest.mark.parametrize("found", ["filled", "filled and killed"], indirect=True)
def test_a_store_that_has_filled_its_disk_can_be_read(found: Any) -> None:
    """Its last saves lie in a WAL that cannot be moved into the main file."""
    assert found["saved"] > 10
    looked = found["looked"]
    assert (looked["log"][0], looked["stats"], looked["export"]) == (found["saved"],) * 3
    assert looked["verify"] is True
    assert found["save"].startswith("Unavailable: ")


@pytest.mark.parametrize("found", ["beside"], indirect=True)
def test_what_others_write_once_there_is_room_is_seen(found: Any) -> None:
    assert found == {"before": 2, "after": 8, "saved": 9, "ok": True}


@pytest.mark.parametrize("found", ["damage"], indirect=True)
def test_damage_is_an_error_on_a_full_disk_too(found: Any) -> None:
    assert "Corrupt" in str(found["every"]), found


@pytest.mark.parametrize("found", ["commands"], indirect=True)
def test_the_command_line_reads_on_a_full_disk(found: Any) -> None:
    code, said = found.pop("save -m third")
    assert code != 0
    assert "no space left" in said
    assert {words: code for words, (code, _) in found.items()} == dict.fromkeys(found, 0), found


@pytest.mark.parametrize("found", ["hooks", "hooks from then on"], indirect=True)
def test_saves_that_hooks_miss_on_a_full_disk_are_told(
    found: Any, request: pytest.FixtureRequest
) -> None:
    """In room that was set aside; in the runtime directory, if there was none to be had."""
    assert (found["first"], found["full"], found["after"]) == (0, [0, 0], 0)
    assert ["NOT saved" in each for each in found["said"]] == [True, True]
    message, remedy = found["doctor"]
    assert message.startswith("2 saves missed: what has changed here ")
    assert remedy.startswith("make room with other files first")
    is_late = "from then on" in request.node.name
    assert len(found["runtime"]) == is_late
    assert found["doctor after"][0] == "none was missed"
    assert (found["saved"], found["missed"]) == (1 if is_late else 2, 2)


LEFT = (0,)  # KiB
SWEEP = (4, 36, 64, 100, 200, 400, 800, 1_500, 3_000, 5_000, 8_000, 12_000, 20_000, 40_000)
MIB = 1 << 20


@pytest.mark.parametrize(
    "left", [*LEFT, *(pytest.param(each, marks=pytest.mark.torture) for each in SWEEP)]
)
def test_what_fails_on_a_full_disk_gives_its_room_back(
    left: int, on_a_disk: Callable[[str, str], Any]
) -> None:
    found = on_a_disk("tests.crash.filling", str(left))
    assert found["reserve"] == ["store.db-reserve"]
    assert (found["big"]["code"], len(found["big"]["lines"])) == (6, 1), found
    assert "no space left" in found["big"]["lines"][0]
    assert found["big"]["lost"] <= MIB
    assert set(found["reading"].values()) == {0}, found["reading"]
    assert found["dry run"] == 0
    is_back = found["rewind"]["code"] == 0
    assert found["text"] == ("two" if is_back else "three")
    if not is_back:
        assert (found["rewind"]["code"], len(found["rewind"]["lines"])) == (6, 1), found
        assert found["files"] == ["a", "b", "data"]
        assert found["rewind"]["lost"] <= MIB
    assert found["small"]["code"] in (0, 6)
    assert (found["gc"]["code"], found["gc"]["lines"]) == (0, []), found
    assert found["gc"]["gained"] > 8 * MIB
    assert (found["after gc"]["code"], found["after gc"]["lines"]) == (0, [])
    assert found["compact"]["code"] in (0, 6)
    assert len(found["compact"]["lines"]) <= 1
    assert found["compact"]["lost"] <= 0
    assert found["verify"] == 0
    assert {text for text, _ in found["kept"]} == {"two", "three"}
    assert {size for _, size in found["kept"]} == {9 * MIB}
