"""docs/format.md says enough about exports: a reader made from it alone agrees with Hardsave."""

import re
from pathlib import Path

import pytest

import hardsave
from tests.docs.export_reader import MAGIC, ExportFile, Tombstone, frames
from tests.docs.pages import DOCS
from tests.docs.test_format import conversation, odd_states

PAGE = (DOCS / "format.md").read_text().partition("## 10. Exports")[2]


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> hardsave.Vault:
    vault = hardsave.open("memory://")
    main = vault.timeline("main")
    for number, state in enumerate(conversation(30), 1):
        main.save(state, name=f"turn {number}", metadata={"number": number})
    odd = vault.timeline("odd")
    for state in odd_states():
        odd.save(state, description="odd")
    odd.save({"noise": bytes(range(256)) * 5_000}, labels={"k": "v"}, notes={"n": [1, None]})
    main.fork("main:20", name="fork").append({"messages": ["another way"]})
    main.rewind("main:25")
    main.append({"messages": ["again"]})
    vault.delete("main:10")
    vault.delete("main:30")
    return vault


@pytest.fixture(scope="module")
def path(vault: hardsave.Vault, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "out.hardsave"
    vault.export_file(path)
    return path


@pytest.fixture(scope="module")
def file(path: Path) -> ExportFile:
    return ExportFile(path)


def test_every_state_can_be_rebuilt_from_an_export(vault: hardsave.Vault, file: ExportFile) -> None:
    seen = 0
    for found in file.checkpoints:
        if found.is_hidden:
            continue
        expected = vault.get(f"chk_{found.id.hex()}")
        assert repr(file.state(found.root)) == repr(expected.read())
        assert (found.timeline, found.number) == (expected.timeline, expected.seq)
        assert (found.name, found.description) == (expected.name, expected.description)
        assert found.metadata == expected.metadata
        assert (dict(found.labels), dict(found.notes)) == (expected.labels, expected.notes)
        seen += 1
    assert seen == sum(len(line) for line in vault.timelines())


def test_timelines_stand_where_they_stand(vault: hardsave.Vault, file: ExportFile) -> None:
    assert [line.name for line in file.timelines] == ["fork", "main", "odd"]
    for line in file.timelines:
        head = vault.timeline(line.name).head
        assert head is not None
        assert line.head is not None
        assert head.id == f"chk_{line.head.hex()}"
    assert {line.name: line.last for line in file.timelines}["main"] == 31


def test_deleted_checkpoints_are_places_or_the_history_of_a_fork(file: ExportFile) -> None:
    gone = {(each.timeline, each.number): each for each in file.history}
    assert isinstance(gone["main", 30], Tombstone)
    hidden = gone["main", 10]
    assert not isinstance(hidden, Tombstone)
    assert hidden.is_hidden


def test_history_is_in_the_order_of_the_page(file: ExportFile) -> None:
    ids: set[bytes | None] = {None}
    for each in file.history:
        assert each.parent in ids
        ids.add(each.id)


def test_there_are_frames_of_both_kinds_and_of_full_length(path: Path) -> None:
    data = path.read_bytes()
    contents = [content for _, content in frames(data)]
    assert max(map(len, contents)) == 1_048_576
    assert len(data) < sum(map(len, contents))


def test_the_numbers_of_the_page_are_those_of_the_reader() -> None:
    assert MAGIC.hex(" ") in PAGE
    sizes = re.findall(r"^\| (\d+)(?:, then (\d+))? \|", PAGE.partition("### Frames")[0], re.M)
    assert sum(int(one) + int(other or 0) for one, other in sizes) == 60
