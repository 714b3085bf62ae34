"""What changed between two checkpoints, as a whole. The paths themselves are of `objects.diff`."""

from hardsave.objects.builder import Builder
from hardsave.objects.codec import Codec
from hardsave.objects.diff import StatePath
from hardsave.objects.hashing import Hash
from hardsave.objects.levels import Out
from hardsave.objects.reader import Reader
from hardsave.objects.records import CheckpointRecord
from hardsave.objects.types import Types
from hardsave.stores.base import Batch
from hardsave.stores.memory.store import MemoryStore
from hardsave.testing.batches import an_entry
from hardsave.timeline.diff import Diff, compare, without_folders

MIB = 1 << 20


def records(*states: object, status: tuple[str, str] = ("running", "running")) -> Diff:
    store = MemoryStore()
    codec = Codec(Types())
    roots: list[Hash] = []
    for number, state in enumerate(states):
        out = Out()
        roots.append(Builder(codec, MIB).root(state, out))
        store.commit(Batch(None, an_entry(str(number)), objects=out))
    made = [
        CheckpointRecord(0, b"", "main", 1, None, 0, None, "manual", s, "", b"", root)
        for root, s in zip(roots, status, strict=True)
    ]
    return compare(Reader(codec, lambda wanted: store.read(None, wanted)), *made)


def test_equal_states_are_no_difference() -> None:
    found = records({"a": [1, 2]}, {"a": [1, 2]})
    assert not found
    assert found == Diff((), (), (), "running", "running")


def test_a_difference_of_state_counts() -> None:
    found = records({"a": 1, "b": 2}, {"a": 3, "c": 4})
    assert found
    assert found.added == (StatePath(("c",)),)
    assert found.removed == (StatePath(("b",)),)
    assert found.changed == (StatePath(("a",)),)


def test_a_difference_of_status_alone_counts() -> None:
    found = records({}, {}, status=("running", "failed"))
    assert found
    assert (found.old_status, found.new_status) == ("running", "failed")
    assert found.added == found.removed == found.changed == ()


def test_folders_are_left_out_if_something_in_them_is_named() -> None:
    paths = ["src", "src/a.py", "src-old", "empty", "src/deep", "src/deep/b.py"]
    assert without_folders(paths) == ["empty", "src/a.py", "src/deep/b.py", "src-old"]
    assert without_folders([]) == []
