"""A handle is not in conflict with what its own program did to the head."""

import errno
import threading

import pytest

from hardsave.errors import Conflict, Corrupt, Unavailable
from hardsave.objects.records import TimelineRecord
from hardsave.stores.base import position
from hardsave.vault.restore.own_moves import OwnMoves
from hardsave.vault.vault import Vault
from hardsave.workspace.restore import journal
from tests.unit.vault.desk import Desk, refusal
from tests.unit.vault.stage import Watched


def failed_rewind(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> str:
    """A rewind whose journal cannot be written; what it says."""

    def refused(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    desk.write(a="one")
    desk.save(1)
    desk.write(a="two")
    desk.save(2)
    desk.write(a="not saved yet")
    with monkeypatch.context() as patched:
        patched.setattr(journal, "write", refused)
        error = refusal(desk.line.rewind, "main:1")
    assert isinstance(error, Unavailable)
    return str(error)


@pytest.mark.parametrize("how", ["save", "append", "save_files"])
def test_a_handle_goes_on_after_a_rewind_that_failed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    said = failed_rewind(desk, monkeypatch)
    assert "no file was changed" in said
    assert "What was here is saved as main:3, and that is the head now" in said
    assert desk.read("a") == "not saved yet"
    if how == "save":
        saved = desk.line.save({"turn": 3})
    elif how == "append":
        saved = desk.line.append({"turn": 3})
    else:
        saved = desk.line.save_files(desk.work)
    assert saved.seq == 4
    assert saved.parent == desk.line.get("main:3").id
    assert desk.line.load() == {"turn": 2 if how == "save_files" else 3}


def test_a_save_by_another_writer_after_a_rewind_that_failed_is_still_a_conflict(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed_rewind(desk, monkeypatch)
    Vault(desk.store).timeline("main").save({"turn": "theirs"})
    assert isinstance(refusal(desk.line.save, {"turn": 3}), Conflict)


def test_what_was_damaged_is_said_with_what_was_saved(desk: Desk, store: Watched) -> None:
    desk.write(a="first")
    one = desk.save(1)
    desk.write(a="second")
    for address in [address for address, data in store.objects.items() if data.endswith(b"first")]:
        store.objects[address] = b"rubbish"
    error = refusal(desk.line.rewind, one)
    assert isinstance(error, Corrupt)
    assert "saved as main:2" in str(error)
    assert desk.line.save({"turn": 2}).seq == 3


def test_a_handle_saves_on_what_the_vault_has_undone_and_redone(desk: Desk) -> None:
    for turn in (1, 2, 3):
        desk.line.save({"turn": turn})
    desk.line.rewind("main:1")
    desk.vault.undo()
    assert desk.line.save({"turn": 4}).parent == desk.line.get("main:3").id
    desk.line.rewind("main:2")
    desk.vault.undo()
    desk.vault.redo()
    assert desk.line.append({"more": 5}).parent == desk.line.get("main:2").id
    assert desk.line.load() == {"turn": 2, "more": 5}


def test_a_handle_saves_after_files_were_restored_without_it(desk: Desk) -> None:
    desk.write(a="one")
    one = desk.save(1)
    desk.write(a="two")
    desk.vault.workspace(desk.work).restore(one)
    assert desk.line.save({"turn": 2}).parent == one
    desk.vault.undo()
    assert desk.line.save({"turn": 3}).seq > 2
    assert desk.read("a") == "two"


def test_an_undo_by_another_thread_is_another_writers(desk: Desk) -> None:
    for turn in (1, 2):
        desk.line.save({"turn": turn})
    desk.line.rewind("main:1")
    other = threading.Thread(target=desk.vault.undo)
    other.start()
    other.join()
    assert isinstance(refusal(desk.line.save, {"turn": 3}), Conflict)


def test_moves_lead_as_far_as_they_were_noted() -> None:
    moves = OwnMoves()
    one, two, three = (TimelineRecord("main", bytes([at]), at, 0, None) for at in (1, 2, 3))
    moves.note("main", position(one), position(two), is_same_state=True)
    moves.note("main", position(two), position(one))
    assert moves.lead(one, two)
    assert moves.lead(two, one)
    assert not moves.lead(one, one)
    assert not moves.lead(one, three)
    assert not moves.lead(one, two._replace(name="other"))
    assert not moves.lead(one, None)
    moves.note("main", None, position(three))
    assert moves.lead(None, three)
