"""Files that somebody else has written: an error of ours, and a store as it was before."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hardsave.errors import Corrupt, HardsaveError, Misuse
from hardsave.objects import wire
from hardsave.objects.envelope import LEAF, SEQUENCE, VALUE, seal
from hardsave.objects.frames import Counts
from hardsave.objects.hashing import digest
from hardsave.stores.memory.store import MemoryStore
from hardsave.stores.results import Stats
from hardsave.stores.sqlite import SqliteStore
from hardsave.vault.transfer.transfer import Imported
from hardsave.vault.vault import Vault
from tests.unit.vault.forge import (
    ENCODE,
    STATE,
    Forgery,
    checkpoint,
    name,
    objects_of,
    timeline,
    tombstone,
)
from tests.unit.vault.stage import Clock, messages

Look = tuple[Stats, list[str], int, dict[Any, Any]]


@pytest.fixture
def vault() -> Iterator[Vault]:
    with Vault(MemoryStore(), clock=Clock()) as vault:
        vault.timeline("mine").save({"messages": messages(5)})
        yield vault


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "forged.hardsave"


def look(vault: Vault) -> Look:
    store = vault._context.store
    assert isinstance(store, MemoryStore)
    return (
        vault.store.stats(),
        [line.name for line in vault.timelines()],
        len(list(vault.operations())),
        dict(store._tenant(None).pins),
    )


def refused(vault: Vault, file: Path, error: type[HardsaveError] = Corrupt) -> str:
    """Import it in vain; what was said about it."""
    before = look(vault)
    with pytest.raises(error) as caught:
        vault.import_file(file)
    assert look(vault) == before
    return str(caught.value)


def test_a_forgery_that_lies_about_nothing_is_accepted(vault: Vault, file: Path) -> None:
    """Or the refusals below would prove nothing."""
    stone = tombstone()
    Forgery(timelines=[timeline(last_seq=2)], history=[checkpoint(), stone]).write(file)
    assert vault.import_file(file) == Imported(("main",), 1, 0, 0, {})
    assert vault.timeline("main").load() == {"turn": 1}
    assert vault.timeline("main").save({}).seq == 3
    assert vault.store.verify().faults == ()


def test_labels_and_notes_that_are_well_made_are_accepted(vault: Vault, file: Path) -> None:
    Forgery(history=[beside([["a", "b"]], [["k", b"\x01"]])]).write(file)
    vault.import_file(file)
    (found,) = vault.checkpoints(labels={"a": "b"})
    assert found.notes == {"k": 1}


def test_an_export_from_before_checkpoints_had_files_is_accepted(vault: Vault, file: Path) -> None:
    *about, _snapshot, _workspace, is_hidden = checkpoint()
    Forgery(history=[[*about, is_hidden]]).write(file)
    vault.import_file(file)
    assert vault.timeline("main").load() == {"turn": 1}
    assert vault.store.verify().faults == ()


LONG = "x" * 201
OTHER = seal(VALUE, [], ENCODE({"turn": 2}))
LEAF_OF_STATE = seal(LEAF, [digest(STATE)], b"\x92" + wire.REF_MARK + b"\x01")
LIST = seal(SEQUENCE, [digest(STATE)], b"\x95\x00\xc0\x01\xc2\x91" + wire.REF_MARK)

NAMES = {
    "a timeline with a colon": timeline(name="a:b"),
    "a timeline like a ref": timeline(name="@"),
    "a timeline without a name": timeline(name=""),
    "a timeline of spaces": timeline(name=" a"),
    "a timeline of two lines": timeline(name="a\nb"),
    "a timeline with NUL": timeline(name="a\x00b"),
    "a timeline with a long name": timeline(name=LONG),
    "a timeline with a surrogate": timeline(name="\ud800"),
    "a timeline whose name is bytes": timeline(name=b"main"),
    "a timeline whose name is nothing": timeline(name=None),
    "a number below nothing": timeline(last_seq=-1),
    "a number beyond all": timeline(last_seq=(1 << 62) + 1),
    "a number beyond 64 bits": timeline(last_seq=1 << 80),
    "a number that is a truth": timeline(last_seq=True),
    "a number that is a float": timeline(last_seq=1.0),
    "a time before time": timeline(created_at=-(1 << 60)),
    "a time after time": timeline(created_at=1 << 60),
    "a head that is no id": timeline(head=b"short"),
    "a head that is text": timeline(head="chk_"),
    "a head that is not there": timeline(head=name(9)),
    "an origin that is not there": timeline(origin=name(9)),
    "an origin that is no id": timeline(origin=7),
    "a flag that is none": timeline(is_deleted=0),
    "a field too few": timeline()[:-1],
    "a field too many": [*timeline(), None],
    "no list": {"name": "main"},
    "no value": b"\xc1",
    "two values": ENCODE(timeline()) + b"\x01",
    "not UTF-8": b"\x96\xa1\xff" + ENCODE(timeline())[6:],
}


@pytest.mark.parametrize("line", NAMES.values(), ids=NAMES.keys())
def test_a_timeline_that_cannot_be_is_refused(vault: Vault, file: Path, line: Any) -> None:
    history = [checkpoint(timeline=line[0])] if isinstance(line, list) else [checkpoint()]
    Forgery(timelines=[line], history=history).write(file)
    refused(vault, file)


def beside(labels: Any = (), notes: Any = ()) -> list[Any]:
    """A checkpoint that says to have labels and notes."""
    *about, is_hidden = checkpoint()
    return [*about, None, labels, notes, is_hidden]


POINTS = {
    "labels that are no list": beside({"a": "b"}, []),
    "labels that are no pairs": beside([["a"]], []),
    "a label that is no text": beside([["a", 1]], []),
    "a label of two lines": beside([["a\nb", "c"]], []),
    "a long label": beside([["a", "x" * 1_001]], []),
    "a label twice": beside([["a", "b"], ["a", "c"]], []),
    "many labels": beside([[str(at), ""] for at in range(33)], []),
    "notes that are no list": beside([], None),
    "a note that is no bytes": beside([], [["a", "b"]]),
    "a note without data": beside([], [["a", b""]]),
    "a note of two values": beside([], [["a", b"\x01\x02"]]),
    "a note that refers": beside([], [["a", b"\x91" + wire.REF_MARK]]),
    "a note without a key": beside([], [["", b"\x01"]]),
    "a note twice": beside([], [["a", b"\x01"], ["a", b"\x02"]]),
    "an id of eleven bytes": checkpoint(id=bytes(11)),
    "an id that is text": checkpoint(id="x" * 12),
    "no timeline": checkpoint(timeline="other"),
    "number zero": checkpoint(seq=0),
    "a number below zero": checkpoint(seq=-1),
    "a number beyond the last": checkpoint(seq=2),
    "a number beyond all": checkpoint(seq=(1 << 62) + 1),
    "a number that is a truth": checkpoint(seq=True),
    "itself as its parent": checkpoint(parent=name(1)),
    "a parent that is not there": checkpoint(parent=name(9)),
    "a parent that is no id": checkpoint(parent=b""),
    "a time after time": checkpoint(created_at=1 << 60),
    "a time that some zones have in the year 10000": checkpoint(created_at=253_402_300_799_999_999),
    "a time that some zones have before time": checkpoint(created_at=-62_135_596_800_000_000),
    "a time that is text": checkpoint(created_at="now"),
    "a name like a ref": checkpoint(name="@~1"),
    "a name like an id": checkpoint(name="chk_" + "0" * 24),
    "a name like a number": checkpoint(name="main:1"),
    "a name of two lines": checkpoint(name="a\nb"),
    "a long name": checkpoint(name=LONG),
    "an empty name": checkpoint(name=""),
    "an unknown kind": checkpoint(kind="odd"),
    "a kind that is no text": checkpoint(kind=["automatic"]),
    "a status of two lines": checkpoint(status="a\nb"),
    "no status": checkpoint(status=None),
    "an empty status": checkpoint(status=""),
    "a long description": checkpoint(description="x" * (64 * 1024 + 1)),
    "a description with NUL": checkpoint(description="\x00"),
    "a description with a surrogate": checkpoint(description="\ud800"),
    "no description": checkpoint(description=None),
    "metadata that is no dict": checkpoint(metadata=b"\x90"),
    "metadata of two values": checkpoint(metadata=b"\x80\x80"),
    "metadata of nothing": checkpoint(metadata=b""),
    "metadata that is text": checkpoint(metadata="{}"),
    "metadata that refers": checkpoint(metadata=b"\x81\xa1a" + wire.REF_MARK),
    "metadata that is too long": checkpoint(metadata=ENCODE({"x": "x" * 64 * 1024})),
    "metadata that is nested": checkpoint(metadata=b"\x81\xa1a" + b"\x91" * 45_000 + b"\x01"),
    "metadata of four billion": checkpoint(metadata=b"\xdf\xff\xff\xff\xff"),
    "a root that is not there": checkpoint(root=bytes(20)),
    "a root that is no address": checkpoint(root=b"root"),
    "a flag that is none": checkpoint(is_hidden=None),
    "a hidden head": checkpoint(is_hidden=True),
    "a field too few": checkpoint()[:-1],
    "a tombstone for a head": tombstone(id=name(1), seq=1),
    "a tombstone without a parent that is there": tombstone(id=name(1), seq=1, parent=name(9)),
    "no list": {"id": name(1)},
    "two values": ENCODE(checkpoint()) + b"\x01",
    "nothing of it": b"\xc0",
}


@pytest.mark.parametrize("point", POINTS.values(), ids=POINTS.keys())
def test_a_checkpoint_that_cannot_be_is_refused(vault: Vault, file: Path, point: Any) -> None:
    Forgery(history=[point]).write(file)
    refused(vault, file)


TOGETHER = {
    "an object twice": Forgery(objects=[STATE, STATE]),
    "an object before what it refers to": Forgery(objects=[LIST, STATE]),
    "an object that is missing": Forgery(objects=[LIST], history=[checkpoint(root=digest(LIST))]),
    "an object with another content": Forgery(
        objects=[OTHER, LIST], history=[checkpoint(root=digest(OTHER))]
    ),
    "an object of two values": Forgery(objects=[STATE, seal(VALUE, [], b"\x01\x02")]),
    "an object that is nested": Forgery(objects=[STATE, seal(VALUE, [], b"\x91" * 90_000)]),
    "an object without an envelope": Forgery(objects=[STATE, b"\x11"]),
    "a root that is a leaf": Forgery(
        objects=[STATE, LEAF_OF_STATE], history=[checkpoint(root=digest(LEAF_OF_STATE))]
    ),
    "the same timeline twice": Forgery(timelines=[timeline(), timeline()]),
    "timelines out of order": Forgery(timelines=[timeline(), timeline(name="a", head=None)]),
    "the same checkpoint twice": Forgery(
        timelines=[timeline(last_seq=2)], history=[checkpoint(), checkpoint(seq=2)]
    ),
    "two checkpoints with one number": Forgery(history=[checkpoint(), checkpoint(id=name(2))]),
    "a checkpoint and a tombstone with one number": Forgery(
        history=[checkpoint(), tombstone(seq=1)]
    ),
    "a checkpoint and a tombstone with one id": Forgery(
        timelines=[timeline(last_seq=2)], history=[checkpoint(), tombstone(id=name(1))]
    ),
    "parents in a circle": Forgery(
        timelines=[timeline(last_seq=2)],
        history=[checkpoint(parent=name(2)), checkpoint(id=name(2), seq=2, parent=name(1))],
    ),
    "tombstones in a circle": Forgery(
        timelines=[timeline(last_seq=3)],
        history=[
            tombstone(id=name(2), seq=2, parent=name(3)),
            tombstone(id=name(3), seq=3, parent=name(2)),
            checkpoint(parent=name(2)),
        ],
    ),
    "a child before its parent": Forgery(
        timelines=[timeline(last_seq=2)],
        history=[checkpoint(id=name(2), seq=2, parent=name(1)), checkpoint()],
    ),
    "a head that is not in the file": Forgery(timelines=[timeline(head=name(7))]),
    "fewer timelines than it says": Forgery(counts=Counts(2, 1, 0)),
    "fewer checkpoints than it says": Forgery(counts=Counts(1, 2, 0)),
    "more checkpoints than it says": Forgery(counts=Counts(1, 0, 0)),
    "fewer tombstones than it says": Forgery(counts=Counts(1, 1, 1)),
    "fewer objects than it says": Forgery(more_objects=1),
    "more objects than it says": Forgery(more_objects=-1),
    "more than anybody can have": Forgery(counts=Counts(1 << 63, 1 << 63, 1 << 63)),
}


@pytest.mark.parametrize("forgery", TOGETHER.values(), ids=TOGETHER.keys())
def test_what_does_not_fit_together_is_refused(vault: Vault, file: Path, forgery: Forgery) -> None:
    forgery.write(file)
    refused(vault, file)


@pytest.mark.parametrize("last", [1 << 62, (1 << 32) + 2])
def test_a_file_cannot_use_up_the_numbers_of_a_timeline(
    vault: Vault, file: Path, last: int
) -> None:
    Forgery(timelines=[timeline(last_seq=last)]).write(file)
    refused(vault, file)


def test_a_file_with_numbers_missing_is_accepted_and_so_is_what_is_saved_after_it(
    vault: Vault, file: Path
) -> None:
    Forgery(timelines=[timeline(last_seq=(1 << 32) + 1)]).write(file)
    vault.import_file(file)
    vault.timeline("main").save({"turn": 2})
    vault.export_file(file, timelines=["main"])
    with Vault(MemoryStore()) as other:
        assert other.import_file(file).checkpoints == 2


def test_a_kind_of_object_that_a_newer_version_has_asks_for_an_upgrade(
    vault: Vault, file: Path
) -> None:
    Forgery(objects=[STATE, seal(0x21, [], b"\x01")]).write(file)
    assert "upgrade" in refused(vault, file, Misuse)


def test_an_object_beyond_the_cap_is_refused_before_it_is_read(tmp_path: Path, file: Path) -> None:
    with Vault(MemoryStore()) as source, Vault(MemoryStore(), max_value_bytes=1_000) as small:
        source.timeline("main").save({"text": "x" * (3 << 20)})
        source.export_file(file)
        assert "longer than it may be" in refused(small, file)


def test_bombs_and_circles_of_references_are_refused(vault: Vault, file: Path) -> None:
    bomb = [STATE]
    for _ in range(30):
        refs = [digest(bomb[-1])] * 30
        items = b"\xdc\x00\x1e" + wire.REF_MARK * 30
        bomb.append(seal(SEQUENCE, refs, b"\x95\x00\xc0\x1e\xc2" + items))
    Forgery(objects=bomb, history=[checkpoint(root=digest(bomb[-1]))]).write(file)
    assert "no memory could hold" in refused(vault, file)
    deep = [STATE]
    for _ in range(1_000):
        payload = b"\x95\x00\xc0\x01\xc2\x91" + wire.REF_MARK
        deep.append(seal(SEQUENCE, [digest(deep[-1])], payload))
    Forgery(objects=deep, history=[checkpoint(root=digest(deep[-1]))]).write(file)
    assert "deeper" in refused(vault, file)


def test_names_are_never_paths(vault: Vault, file: Path, tmp_path: Path) -> None:
    names = sorted(["../../etc/passwd", "/etc/passwd", "~root", "C\\evil", "$(rm -rf .)", "a/b"])
    history = [
        checkpoint(id=name(at), timeline=each, name=each) for at, each in enumerate(names, 1)
    ]
    lines = [timeline(name=each, head=name(at)) for at, each in enumerate(names, 1)]
    Forgery(timelines=lines, history=history).write(file)
    before = sorted(tmp_path.rglob("*"))
    with Vault(SqliteStore(tmp_path / "store.db")) as target:
        assert list(target.import_file(file).timelines) == names
        assert [line.name for line in target.timelines()] == names
        target.export_file(tmp_path / "again")
    made = {path.name for path in tmp_path.rglob("*") if path not in before}
    assert {each for each in made if not each.startswith("store.db")} == {"again"}


# A file and a store that contradict each other


def known(vault: Vault, number: int) -> dict[str, Any]:
    """What a forgery says of a checkpoint that is here."""
    record = vault.get(f"mine:{number}")._record
    return {"id": record.id, "timeline": "mine", "seq": record.seq, "parent": record.parent}


def test_history_cannot_be_bent_into_a_circle(vault: Vault, file: Path) -> None:
    line = vault.timeline("mine")
    line.save({"turn": 2})
    one, two = known(vault, 1), known(vault, 2)
    history = [
        checkpoint(**{**two, "parent": None}),
        checkpoint(**{**one, "parent": two["id"]}),
    ]
    lines = [timeline(name="mine", head=one["id"], last_seq=2)]
    Forgery(timelines=lines, history=history).write(file)
    assert "disagree about checkpoint" in refused(vault, file)


@pytest.mark.parametrize("change", [{"seq": 7}, {"parent": name(5)}])
def test_a_file_cannot_change_what_is_here(
    vault: Vault, file: Path, change: dict[str, Any]
) -> None:
    history = [
        checkpoint(id=name(5), timeline="mine", seq=5),
        checkpoint(**{**known(vault, 1), **change}),
    ]
    Forgery(timelines=[timeline(name="mine", head=name(5), last_seq=9)], history=history).write(
        file
    )
    assert "disagree about checkpoint" in refused(vault, file)


def test_a_known_checkpoint_with_another_content_is_not_replaced(vault: Vault, file: Path) -> None:
    before = vault.timeline("mine").load()
    line = timeline(name="mine", head=known(vault, 1)["id"])
    Forgery(timelines=[line], history=[checkpoint(**known(vault, 1))]).write(file)
    assert vault.import_file(file).checkpoints == 0
    assert vault.timeline("mine").load() == before


# Damage


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("export") / "out.hardsave"
    with Vault(MemoryStore(), clock=Clock()) as vault:
        line = vault.timeline("main")
        for turn in range(5):
            line.append({"messages": messages(3, start=turn), "turn": turn}, name=f"turn {turn}")
        line.fork("main:2", name="fork")
        vault.export_file(path)
    return path.read_bytes()


def places(size: int, count: int) -> list[int]:
    """Some offsets of a file: all at its ends, and a sample between them."""
    ends = [*range(min(70, size)), *range(max(0, size - 60), size)]
    return sorted({*ends, *random.Random(7).sample(range(size), min(count, size))})


def test_a_bit_flipped_anywhere_is_noticed(vault: Vault, file: Path, export: bytes) -> None:
    for at in places(len(export), 150):
        data = bytearray(export)
        data[at] ^= 1 << (at % 8)
        file.write_bytes(data)
        refused(vault, file, Misuse if at < 8 else Corrupt)


def test_a_file_cut_anywhere_is_noticed(vault: Vault, file: Path, export: bytes) -> None:
    for size in places(len(export), 150):
        file.write_bytes(export[:size])
        refused(vault, file, Misuse if size < 8 else Corrupt)


def test_bytes_after_the_end_are_noticed(vault: Vault, file: Path, export: bytes) -> None:
    for more in (b"\x00", b"\n", export):
        file.write_bytes(export + more)
        assert "follow its trailer" in refused(vault, file)


def test_every_object_of_a_file_is_needed(vault: Vault, file: Path, export: bytes) -> None:
    """Leave out any of them, and the file is refused."""
    file.write_bytes(export)
    objects = objects_of(file)
    history = [checkpoint(root=list(objects)[-1])]
    Forgery(objects=objects.values(), history=history).write(file)
    vault.import_file(file)
    needed = _reachable(objects, list(objects)[-1])
    for address in needed:
        left = [data for other, data in objects.items() if other != address and other in needed]
        Forgery(objects=left, history=history).write(file)
        with Vault(MemoryStore()) as other_vault:
            refused(other_vault, file)


def _reachable(objects: dict[bytes, bytes], root: bytes) -> set[bytes]:
    from hardsave.objects.envelope import unseal

    found = {root}
    todo = [root]
    while todo:
        refs = set(unseal(objects[todo.pop()]).refs) - found
        found |= refs
        todo += refs
    return found


def test_a_file_that_changes_while_it_is_read_is_noticed(
    vault: Vault, file: Path, export: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read twice: to be checked, and to be stored."""
    from hardsave.vault.transfer.arrival import Plan

    file.write_bytes(export)
    decided = Plan.decided

    def swapped(plan: Plan) -> Plan:
        Forgery().write(file)
        return decided(plan)

    monkeypatch.setattr(Plan, "decided", swapped)
    before = [line.name for line in vault.timelines()]
    with pytest.raises(Corrupt, match="changed while it was read"):
        vault.import_file(file)
    assert [line.name for line in vault.timelines()] == before
    assert vault.store.verify().faults == ()
