"""What a daemon takes for a burst that is worth a checkpoint."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import hardsave
from hardsave.daemon import spool
from hardsave.daemon.recorder import Conversation, MissedSaves, Recorder, Said, noted
from tests.unit.vault.secrets_scanner import found


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[hardsave.Vault]:
    (tmp_path / "work").mkdir()
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as opened:
        yield opened


def looks(vault: hardsave.Vault, name: str, work: Path) -> int:
    """A daemon looks as it does after a burst; how many checkpoints its timeline has then."""
    line = vault.timeline(name)
    misses = MissedSaves(work.parent / "notes")
    Recorder(line, vault.workspace(work), ["agent"], misses).save_changes()
    return len(line)


def test_what_has_not_changed_is_not_saved_again(vault: hardsave.Vault, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "f").write_text("one")
    assert [looks(vault, "a", work), looks(vault, "a", work)] == [1, 1]
    (work / "f").write_text("two")
    assert looks(vault, "a", work) == 2


def test_each_timeline_has_every_burst(vault: hardsave.Vault, tmp_path: Path) -> None:
    """Also those that another daemon has saved on its own."""
    work = tmp_path / "work"
    (work / "f").write_text("one")
    assert [looks(vault, "a", work), looks(vault, "b", work)] == [1, 1]
    (work / "f").write_text("two")
    assert [looks(vault, "a", work), looks(vault, "b", work)] == [2, 2]


def test_a_rewind_is_not_saved_again(vault: hardsave.Vault, tmp_path: Path) -> None:
    work = tmp_path / "work"
    for text in ("one", "two"):
        (work / "f").write_text(text)
        looks(vault, "a", work)
    vault.timeline("a").rewind("a:1")
    assert (work / "f").read_text() == "one"
    assert looks(vault, "a", work) == 2


@pytest.mark.parametrize("word", ["\0", "\udcff", "\N{CYRILLIC SMALL LETTER YA}", "x" * 9000, ""])
def test_a_command_of_any_length_is_no_reason_not_to_save(
    vault: hardsave.Vault, tmp_path: Path, word: str
) -> None:
    words = ["agent", *[word] * 100_000]
    misses, place = MissedSaves(tmp_path / "notes"), vault.workspace(tmp_path / "work")
    Recorder(vault.timeline("a"), place, words, misses)._save_files("running")
    (saved,) = vault.timeline("a").checkpoints()
    assert saved.metadata["command"] == noted(words)
    assert noted(words)[0] == "agent"


# What could not be saved


def test_what_could_not_be_saved_is_noted_until_a_checkpoint_tells_it(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    work, place = tmp_path / "work", tmp_path / "notes"
    line = vault.timeline("a")
    daemon = Recorder(line, vault.workspace(work), ["agent"], MissedSaves(place))
    (work / "f").write_text("one")
    daemon.save_changes()
    assert spool.missed(place) == []  # a process is at work
    work.rename(tmp_path / "away")
    daemon.save_changes()
    daemon.save_changes()
    (note,) = spool.missed(place)
    assert spool.count([note]) == 2
    (tmp_path / "away").rename(work)
    (work / "f").write_text("two")
    daemon.save_changes()
    assert spool.missed(place) == []
    head = line.head
    assert head is not None
    assert head.metadata["missed_count"] == 2
    assert head.metadata["missed"][0]["why"] == note.why


@pytest.mark.parametrize("fails", [False, True])
def test_only_what_failed_at_the_end_stays_noted(tmp_path: Path, fails: bool) -> None:
    misses = MissedSaves(tmp_path)
    assert misses.about() == {}
    misses.saved("chk_1")
    if fails:
        misses.failed("no room")
    misses.ended()
    assert [note.why for note in spool.missed(tmp_path)] == (["no room"] if fails else [])
    assert len(list(tmp_path.glob("*.json"))) == fails


def test_what_failed_once_is_told_by_the_next_run_and_no_longer(tmp_path: Path) -> None:
    first = MissedSaves(tmp_path)
    first.saved("chk_1")
    first.failed("no room")
    first.ended()
    second = MissedSaves(tmp_path)
    assert second.about()["missed_count"] == 1
    second.saved("chk_2")
    assert second.about() == {}
    second.ended()
    assert list(tmp_path.glob("*.json")) == []


@pytest.mark.parametrize("odd", [b"[" * 60_000, b"\xff", b"[1]", b"{"])
def test_an_odd_note_prevents_no_save(tmp_path: Path, odd: bytes) -> None:
    (tmp_path / "0.json").write_bytes(odd)
    (tmp_path / "1.json").mkdir()  # it stays: nothing of ours, and nothing in the way
    misses = MissedSaves(tmp_path)
    assert misses.about()["missed_count"] == 1
    misses.saved("chk_1")
    assert len(list(tmp_path.glob("*-run.json"))) == 1
    misses.ended()
    assert not (tmp_path / "0.json").exists()


def test_an_agent_that_is_left_alone_is_told_of_until_a_hook_of_its_own_saves(
    tmp_path: Path,
) -> None:
    child = os.fork()
    if child == 0:
        MissedSaves(tmp_path, "line", os.getppid()).saved("chk_1")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    (note,) = spool.missed(tmp_path)
    assert note.left_alone == os.getpid()
    other = MissedSaves(tmp_path, "other")
    assert other.about() == {}  # whose saves are none of that agent's
    other.saved("chk_2")
    other.ended()
    assert [each.path for each in spool.missed(tmp_path)] == [note.path]
    own = MissedSaves(tmp_path, "line")
    assert own.about()["missed_count"] == 1
    own.saved("chk_3")
    own.ended()
    assert spool.missed(tmp_path) == []


def test_one_that_was_killed_leaves_its_note(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        MissedSaves(tmp_path).saved("chk_1")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    (note,) = spool.missed(tmp_path)
    assert note.why == "the process beside the agent was killed"


def test_a_place_for_notes_that_cannot_be_written_prevents_no_save(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    misses = MissedSaves(tmp_path / "file" / "notes")
    assert misses.about() == {}
    misses.failed("no room")
    misses.saved("chk_1")
    misses.ended()
    assert (tmp_path / "file").read_text() == "in the way"


# A purge, and a daemon that goes on


def test_what_was_purged_does_not_come_back_from_the_memory_of_a_daemon(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    """Its command is said once, by the first checkpoint, and by no other."""
    work, line = tmp_path / "work", vault.timeline("a")
    misses = MissedSaves(tmp_path / "notes")
    daemon = Recorder(line, vault.workspace(work), ["x", "--k=sesame"], misses)
    daemon._save("running")
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as other:
        other.store.purge(text="sesame")
    daemon._save("running")
    daemon._save("ended")
    told = [each.metadata.get("command") for each in line.checkpoints()][::-1]
    assert told == [["x", "--k=[purged]"], None, None]
    vault.close()
    assert found(tmp_path, ["sesame"]) == set()


# What an agent says


class Scripted:
    """Says what it is told to, or fails."""

    def __init__(self, *said: Said | Exception) -> None:
        self._said = list(said)
        self.heads: list[int] = []

    def is_due(self) -> bool:
        raise RuntimeError("out of order")

    def look(self) -> None:
        pass

    def now(self, head: hardsave.Checkpoint | None) -> Said:
        self.heads.append(0 if head is None else head.seq)
        found = self._said.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def why_unsaved(self, *, has_worked: bool) -> str:
        return "nothing is known" if has_worked else ""


def listening(vault: hardsave.Vault, work: Path, talk: Conversation) -> Recorder:
    return Recorder(vault.timeline("a"), vault.workspace(work), [], MissedSaves(work.parent), talk)


def test_what_an_agent_says_is_saved_with_its_files(vault: hardsave.Vault, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "f").write_text("one")
    said = Said({"messages": ["hello"]}, {"session": "s"})
    listening(vault, work, Scripted(said))._save("running")
    head = vault.timeline("a").head
    assert head is not None
    assert head.state == {"messages": ["hello"]}
    assert head.metadata["session"] == "s"
    assert head.files is not None
    assert head.files.read("f") == b"one"


def test_a_conversation_that_cannot_be_had_costs_no_files(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    broken = Said({"odd": object()}, {"session": "s"})  # nothing that can be stored
    talk = Scripted(RuntimeError("ours"), broken, Said(None, {"conversation": "not saved: x"}))
    daemon = listening(vault, work, talk)
    for text in ("one", "two", "three"):
        (work / "f").write_text(text)
        daemon._save("running")
    assert (daemon.saves, daemon.failed_saves) == (3, 0)
    told = [each.metadata["conversation"] for each in vault.timeline("a").checkpoints()]
    why = "not saved: state.odd: builtins.object has no stored form; pass plain data instead"
    assert told == ["not saved: x", why, "not saved: ours"]
    titles = [each.description for each in vault.timeline("a").checkpoints()]
    assert titles == ["not saved: x", why, "not saved: ours"]  # as a log shows them


def test_a_fault_of_who_listens_ends_the_listening_alone(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    daemon = listening(vault, tmp_path / "work", Scripted())
    assert not daemon._is_more_said()
    daemon._save("running")
    assert daemon.failed_saves == 0


def test_a_writer_that_moves_the_head_meanwhile_is_read_first(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    """What is new of a conversation is new to a certain head."""
    line = vault.timeline("a")

    class Overtaken(Scripted):
        def now(self, head: hardsave.Checkpoint | None) -> Said:
            if not self.heads:
                line.save({"of": "another"})
            return super().now(head)

    line.save({})
    talk = Overtaken(Said(["early"], {}), Said(["late"], {}))
    listening(vault, tmp_path / "work", talk)._save("running")
    assert talk.heads == [1, 2]
    assert line.load() == ["late"]


def test_a_run_without_any_conversation_leaves_a_note_that_says_why(tmp_path: Path) -> None:
    place = tmp_path / "notes"
    missed = MissedSaves(place, "t")
    missed.saved("chk_1")
    missed.ended()
    assert spool.missed(place) == []
    missed.saved("chk_2")
    missed.ended("the conversation is not saved: no hook has called")
    (note,) = spool.missed(place)
    assert note.why == "the conversation is not saved: no hook has called"
    assert spool.listed([note])["missed"][0]["why"] == note.why
