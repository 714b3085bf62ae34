"""Saves under an id that the caller has chosen: made once, however often they are asked for."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import hardsave
from hardsave.objects.records import CheckpointRecord
from hardsave.objects.shadow import Shadow
from hardsave.tasks.attempt import working
from hardsave.vault.save.request import SaveRequest
from hardsave.vault.save.saving import Saving

ID = "chk_" + "0123456789ab" * 2
Save = Callable[[hardsave.Timeline, str], hardsave.Checkpoint]


@pytest.fixture(params=["memory", "sqlite"])
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[hardsave.Vault]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/store.db"
    with hardsave.open(url) as made:
        yield made


@pytest.mark.parametrize(
    "save",
    [
        lambda line, status: line.save({"messages": ["hi"]}, status=status, id=ID),
        lambda line, status: line.append({"messages": ["hi"]}, status=status, id=ID),
    ],
    ids=["save", "append"],
)
def test_the_second_time_nothing_is_written(vault: hardsave.Vault, save: Save) -> None:
    first = save(vault.timeline("a"), "first")
    vault.timeline("a").append({"messages": ["later"]})
    second = save(vault.timeline("a"), "second")
    assert first.id == second.id == ID
    assert (second.seq, second.status, second.state["messages"][:]) == (1, "first", ["hi"])
    assert vault.timeline("a").load() == {"messages": ["hi", "later"]}


def test_an_append_is_recognised_however_long_the_state_has_become(vault: hardsave.Vault) -> None:
    line = vault.timeline("a")
    deltas = [{"messages": [f"{n} " * 30], f"key {n}": n} for n in range(200)]
    for again in range(2):
        for n, delta in enumerate(deltas):
            one = line.append(delta, id=hardsave.checkpoint_id("turn", str(n)))
            assert one.seq == n + 1, again
    assert len(line) == 200


@pytest.mark.parametrize(
    "save",
    [
        lambda vault: vault.timeline("a").save({"messages": ["other"]}, id=ID),
        lambda vault: vault.timeline("a").append({"messages": ["other"]}, id=ID),
        lambda vault: vault.timeline("a").copy("a:1", id=ID),
        lambda vault: vault.timeline("b").save({"messages": ["hi", "you"]}, id=ID),
        lambda vault: vault.timeline("b").append({"messages": ["you"]}, id=ID),
        lambda vault: vault.timeline("b").copy(ID, id=ID),
    ],
    ids=["save", "append", "copy", "save elsewhere", "append elsewhere", "copy elsewhere"],
)
def test_an_id_of_another_save_is_refused(
    vault: hardsave.Vault, save: Callable[[hardsave.Vault], object]
) -> None:
    vault.timeline("a").append({"messages": ["hi"]})
    vault.timeline("a").append({"messages": ["you"]}, id=ID)
    with pytest.raises(hardsave.Conflict, match=rf"{ID} is that of a:2, .*'[ab]' is of another"):
        save(vault)
    assert [len(line) for line in vault.timelines()] == [2]


def test_a_later_attempt_at_a_task_gets_what_an_earlier_one_has_saved(
    vault: hardsave.Vault,
) -> None:
    vault.tasks.add("t")
    line = vault.timeline("a")
    for reply in ("one", "two"):
        attempt = vault.tasks.claim("t")
        with working(attempt):
            made = line.append({"messages": [reply]}, id=attempt.once("reply"))
        attempt.hand_back()
        assert made.state["messages"][:] == ["one"]


def test_two_handles_that_race_write_one_checkpoint(
    vault: hardsave.Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have looked, and neither saw the other's."""
    one, other = (vault.timeline("a") for _ in range(2))
    one.append({"messages": ["hi"]}, id=ID)
    _look_away_once(monkeypatch)
    assert other.append({"messages": ["hi"]}, id=ID).id == ID
    assert vault.timeline("a").load() == {"messages": ["hi"]}
    assert len(vault.timeline("a")) == 1


def test_a_handle_that_was_late_goes_on_from_what_was_written(
    vault: hardsave.Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit of the second is recognised by its id: its own state was never written."""
    one, late = (vault.timeline("a") for _ in range(2))
    one.save({"from": "the first"}, id=ID)
    _look_away_once(monkeypatch)
    with pytest.raises(hardsave.Conflict, match="another state"):
        late.save({"from": "the second"}, id=ID)
    assert late.load() == {"from": "the first"}
    late.append({"more": 1})
    assert late.load() == {"from": "the first", "more": 1}


def _look_away_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[SaveRequest] = []
    look = Saving._done

    def away(self: Saving, request: SaveRequest) -> CheckpointRecord | None:
        looks.append(request)
        return None if len(looks) == 1 else look(self, request)

    monkeypatch.setattr(Saving, "_done", away)


def test_files_are_taken_under_that_id(vault: hardsave.Vault, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "f").write_text("one")
    vault.timeline("a").save_files(work, id=ID)
    (work / "f").write_text("two")
    again = vault.timeline("a").save_files(work, id=ID)
    assert again.files is not None
    assert again.files.read("f") == b"one"
    assert len(vault.timeline("a")) == 1


def test_the_change_detection_is_kept_between_saves_with_ids(
    vault: hardsave.Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = vault.timeline("a")
    state = {"messages": [{"content": f"{n} " * 30} for n in range(300)]}
    line.save(state, id=hardsave.checkpoint_id("thread", "0"))
    made: list[int] = []
    save = Shadow.save

    def counted(self: Shadow, state: object) -> object:
        root, out = save(self, state)
        made.append(len(out))
        return root, out

    monkeypatch.setattr(Shadow, "save", counted)
    for turn in range(3):
        state["messages"].append({"content": f"turn {turn}"})
        line.save(state, id=hardsave.checkpoint_id("thread", str(turn + 1)))
    assert max(made) < 10  # of some hundred objects


def test_a_deleted_checkpoint_is_not_given_as_if_it_was_saved(vault: hardsave.Vault) -> None:
    line = vault.timeline("a")
    line.save({"turn": 1}, id=ID)
    line.delete()
    with pytest.raises(hardsave.Conflict, match="was saved before, and deleted; undo brings it"):
        vault.timeline("a").save({"turn": 2}, id=ID)
    assert len(vault.timeline("a")) == 0


@pytest.mark.parametrize("bad", ["chk_12", "", 7, b"chk_" + b"0" * 24, "x" * 28])
def test_the_id_is_a_whole_one(vault: hardsave.Vault, bad: str) -> None:
    with pytest.raises(hardsave.Misuse, match="id is a whole id, not"):
        vault.timeline("a").save({}, id=bad)


def test_the_same_texts_give_the_same_id_and_others_another() -> None:
    made = {hardsave.checkpoint_id(*parts) for parts in (["a", "b"], ["ab"], ["a", "b", ""])}
    assert len(made) == 3
    assert hardsave.checkpoint_id("a", "b") in made


@pytest.mark.parametrize("bad", [(), (7,), ("\ud800",)])
def test_an_id_is_made_of_texts(bad: tuple[str, ...]) -> None:
    with pytest.raises(hardsave.Misuse):
        hardsave.checkpoint_id(*bad)
