"""Which directory of which host files are of, and whose captures are refused."""

from pathlib import Path

import pytest

from hardsave.errors import Conflict, WorkspaceTaken
from hardsave.objects.records import CheckpointRecord, WorkspaceRecord
from hardsave.stores.base import Batch, Changes, Store
from hardsave.stores.workspaces import NO_HOST, WorkspaceMove
from hardsave.testing.batches import Line, an_entry, an_object, but, operate

FIRST = ("", b"", b"")
HERE = WorkspaceRecord(b"one", "host-a", b"/w")
THERE = WorkspaceRecord(b"two", "host-b", b"/w")


def note(store: Store, label: str, *moves: WorkspaceMove, user: str | None = None) -> int:
    """Commit what workspaces become."""
    return store.commit(Batch(user, an_entry(label), workspaces=moves))


def capture(line: Line, move: WorkspaceMove) -> Batch:
    """The next save of a line with files of a workspace, not committed."""
    batch = line.next()
    assert isinstance(batch.event, CheckpointRecord)
    files = an_object(f"files of {batch.event.id.hex()}")
    event = batch.event._replace(snapshot=next(iter(files)), workspace=move.become.id)
    return but(batch, event=event, objects={**batch.objects, **files}, workspaces=(move,))


class Workspaces:
    """Needs a `store` fixture, and `open_store`."""

    persists: bool

    def open_store(self, folder: Path) -> Store:
        raise NotImplementedError

    def test_a_workspace_begins_with_its_first_capture(self, store: Store) -> None:
        line = Line(store)
        line.commit(capture(line, WorkspaceMove(None, HERE)))
        line.commit(capture(line, WorkspaceMove(0, HERE)))
        assert store.workspace(None, HERE.id) == HERE
        assert store.workspace_at(None, "host-a", b"/w") == HERE
        assert store.workspaces(None, FIRST, 9) == [HERE]
        assert [row.seq for row in store.captured(None, HERE.id, None, 9)] == [2, 1]

    def test_a_workspace_that_is_not_there_is_none(self, store: Store) -> None:
        assert store.workspace(None, HERE.id) is None
        assert store.workspace_at(None, "host-a", b"/w") is None
        assert store.workspaces(None, FIRST, 9) == []

    def test_two_hosts_have_a_workspace_each_at_the_same_path(self, store: Store) -> None:
        one, two = Line(store, "one"), Line(store, "two")
        one.commit(capture(one, WorkspaceMove(None, HERE)))
        two.commit(capture(two, WorkspaceMove(None, THERE)))
        assert store.workspace_at(None, "host-a", b"/w") == HERE
        assert store.workspace_at(None, "host-b", b"/w") == THERE
        assert store.workspace_at(None, "host-c", b"/w") is None
        assert store.workspace_at(None, "host-a", b"/w/x") is None
        assert store.captured(None, HERE.id, None, 9) == one.saved
        assert store.captured(None, THERE.id, None, 9) == two.saved

    def test_workspaces_come_by_host_and_path_page_by_page(self, store: Store) -> None:
        places = [
            *((NO_HOST, b"/w"), (NO_HOST, b"/w")),
            *(("a", b"/a"), ("a", b"/a/b"), ("a", b"/ab"), ("b", b"/\xff"), ("\u00e9", b"/")),
        ]
        made = [WorkspaceRecord(b"%d" % at, *place) for at, place in enumerate(places)]
        note(store, "all", *(WorkspaceMove(None, each) for each in reversed(made)))
        assert store.workspaces(None, FIRST, 99) == made
        assert store.workspaces(None, FIRST, 2) == made[:2]
        assert store.workspaces(None, (made[0].host, made[0].path, made[0].id), 3) == made[1:4]
        assert store.workspaces(None, ("a", b"/a/", b""), 99) == made[3:]

    def test_a_capture_that_began_before_a_takeover_is_refused_and_writes_nothing(
        self, store: Store
    ) -> None:
        line = Line(store)
        line.commit(capture(line, WorkspaceMove(None, HERE)))
        begun = capture(line, WorkspaceMove(0, HERE))
        taken = HERE._replace(host="host-b", epoch=1)
        note(store, "takeover", WorkspaceMove(0, taken))
        with pytest.raises(WorkspaceTaken, match=r"taken over before.*host-b now"):
            store.commit(begun)
        assert store.checkpoint(None, begun.event.id) is None
        assert store.missing(None, begun.objects) == set(begun.objects)
        assert store.timeline(None, "main") == line.standing
        assert store.workspace(None, HERE.id) == taken
        line.commit(capture(line, WorkspaceMove(1, taken)))
        assert store.captured(None, HERE.id, None, 9) == line.saved[::-1]

    def test_an_attempt_that_takes_over_on_the_same_host_refuses_the_one_before(
        self, store: Store
    ) -> None:
        note(store, "first", WorkspaceMove(None, HERE))
        note(store, "takeover", WorkspaceMove(0, HERE._replace(epoch=1)))
        line = Line(store)
        with pytest.raises(WorkspaceTaken, match="epoch 1"):
            store.commit(capture(line, WorkspaceMove(0, HERE)))
        assert store.timeline(None, "main") is None

    def test_of_two_who_take_a_workspace_over_one_does(self, store: Store) -> None:
        note(store, "first", WorkspaceMove(None, HERE))
        note(store, "b", WorkspaceMove(0, HERE._replace(host="host-b", epoch=1)))
        with pytest.raises(WorkspaceTaken):
            note(store, "c", WorkspaceMove(0, HERE._replace(host="host-c", epoch=1)))
        found = store.workspace(None, HERE.id)
        assert found is not None
        assert found.host == "host-b"

    def test_a_host_has_one_workspace_at_a_path(self, store: Store) -> None:
        note(store, "first", WorkspaceMove(None, HERE))
        again = HERE._replace(id=b"again")
        with pytest.raises(WorkspaceTaken, match="another workspace"):
            note(store, "second", WorkspaceMove(None, again))
        assert store.workspaces(None, FIRST, 9) == [HERE]
        nowhere = [WorkspaceRecord(id, NO_HOST, b"/w") for id in (b"x", b"y")]
        note(store, "import", *(WorkspaceMove(None, each) for each in nowhere))
        assert store.workspace_at(None, NO_HOST, b"/w") == nowhere[0]

    def test_a_workspace_moves_and_its_captures_stay_its_own(self, store: Store) -> None:
        line = Line(store)
        line.commit(capture(line, WorkspaceMove(None, HERE)))
        moved = HERE._replace(path=b"/elsewhere", epoch=1)
        new = WorkspaceRecord(b"new", HERE.host, HERE.path)
        note(store, "move", WorkspaceMove(0, moved), WorkspaceMove(None, new))
        assert store.workspace_at(None, HERE.host, b"/elsewhere") == moved
        assert store.workspace_at(None, HERE.host, HERE.path) == new
        assert store.captured(None, HERE.id, None, 9) == line.saved
        assert store.captured(None, new.id, None, 9) == []

    def test_a_refused_batch_leaves_its_workspace_as_it_was(self, store: Store) -> None:
        line = Line(store)
        line.commit(capture(line, WorkspaceMove(None, HERE)))
        other = Line(store, writer="other")
        other.standing = line.standing
        late = capture(other, WorkspaceMove(0, HERE._replace(epoch=1)))
        line.save()
        with pytest.raises(Conflict, match="moved on"):
            store.commit(late)
        assert store.workspace(None, HERE.id) == HERE

    def test_a_repeated_capture_is_recognised_after_a_takeover(self, store: Store) -> None:
        line = Line(store)
        batch = capture(line, WorkspaceMove(None, HERE))
        number = store.commit(batch)
        note(store, "takeover", WorkspaceMove(0, HERE._replace(host="host-b", epoch=1)))
        assert store.commit(batch) == number

    def test_a_workspace_that_was_forgotten_is_not_captured_as_it_was(self, store: Store) -> None:
        line = Line(store)
        line.commit(capture(line, WorkspaceMove(None, HERE)))
        operate(store, "forget", Changes(forget_workspaces=[HERE.id, b"never there"]))
        assert store.workspace(None, HERE.id) is None
        assert store.captured(None, HERE.id, None, 9) == line.saved
        with pytest.raises(WorkspaceTaken, match="forgotten"):
            store.commit(capture(line, WorkspaceMove(0, HERE)))

    def test_workspaces_are_seen_by_their_user_only(self, store: Store) -> None:
        note(store, "first", WorkspaceMove(None, HERE), user="ada")
        note(store, "first", WorkspaceMove(None, HERE._replace(epoch=7)))
        assert store.workspace("ada", HERE.id) == HERE
        assert store.workspace(None, HERE.id) == HERE._replace(epoch=7)
        assert store.workspaces("bob", FIRST, 9) == []

    def test_workspaces_are_there_when_opened_again(self, tmp_path: Path) -> None:
        if not self.persists:
            pytest.skip("this store is gone with its process")
        store = self.open_store(tmp_path)
        note(store, "first", WorkspaceMove(None, HERE))
        note(store, "takeover", WorkspaceMove(0, HERE._replace(epoch=1)))
        store.close()
        again = self.open_store(tmp_path)
        try:
            assert again.workspace(None, HERE.id) == HERE._replace(epoch=1)
        finally:
            again.close()
