"""A save that is cut off: by Ctrl-C, by a failing store, in a forked process."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

import hardsave
from hardsave.errors import Conflict, Misuse, Unavailable
from hardsave.objects import growth, levels, shadow
from hardsave.objects.records import TimelineRecord
from hardsave.stores.base import Batch
from hardsave.stores.memory.store import MemoryStore
from hardsave.stores.registry import file_path
from hardsave.stores.sqlite.open import file_identity
from hardsave.vault import line_saves as line_module
from hardsave.vault.line import Timeline
from hardsave.vault.save import saving
from hardsave.vault.vault import Vault
from tests.unit.stores.processes import Child
from tests.unit.stores.test_lock import interrupted_after
from tests.unit.tracing import at_line, interrupt
from tests.unit.vault.stage import Watched, messages

CUTS = [KeyboardInterrupt(), Unavailable("no space left"), SystemExit(), MemoryError()]


@pytest.fixture
def state(line: Timeline) -> dict[str, Any]:
    """A state that has been saved once."""
    state = {"messages": messages(200), "turn": 0}
    line.save(state)
    return state


@pytest.mark.parametrize("cut", CUTS, ids=lambda cut: type(cut).__name__)
def test_a_save_that_was_not_written_is_as_if_it_never_was(
    line: Timeline, vault: Vault, store: Watched, state: dict[str, Any], cut: BaseException
) -> None:
    state["messages"] += messages(50, start=200)
    store.before_commit = cut
    with pytest.raises(type(cut)):
        line.save(state)
    assert len(line) == 1
    state["messages"] += messages(1, start=250)
    assert line.save(state).seq == 2
    assert line.load() == state
    assert vault.store.verify().ok


@pytest.mark.parametrize("cut", CUTS, ids=lambda cut: type(cut).__name__)
def test_a_save_that_was_written_and_did_not_return_is_found(
    line: Timeline, vault: Vault, store: Watched, state: dict[str, Any], cut: BaseException
) -> None:
    state["messages"] += messages(50, start=200)
    store.after_commit = cut
    with pytest.raises(type(cut)):
        line.save(state)
    assert line.load("main:2") == state
    state["messages"] += messages(1, start=250)
    saved = line.save(state)
    assert (saved.seq, saved.parent) == (3, line.get("main:2").id)
    assert line.load() == state
    assert vault.store.verify().ok


@pytest.mark.parametrize("written", [False, True])
def test_an_append_that_did_not_return_is_not_made_twice(
    line: Timeline, vault: Vault, store: Watched, written: bool
) -> None:
    line.append({"messages": messages(100)})
    if written:
        store.after_commit = KeyboardInterrupt()
    else:
        store.before_commit = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        line.append({"messages": messages(1, start=100)})
    found = line.load()["messages"]
    assert len(found) == 100 + written
    line.append({"messages": messages(1, start=len(found))})
    assert line.load() == {"messages": messages(101 + written)}
    assert vault.store.verify().ok


def test_an_append_after_one_that_did_not_return_wants_a_look_first(
    line: Timeline, vault: Vault, store: Watched
) -> None:
    line.append({"messages": messages(100)})
    store.after_commit = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        line.append({"messages": messages(1, start=100)})
    for _ in range(2):  # a caller that simply repeats would double what was written
        with pytest.raises(Conflict, match="did not return, but it was written as number 2"):
            line.append({"messages": messages(1, start=100)})
    assert line.load() == {"messages": messages(101)}
    line.append({"messages": messages(1, start=101)})
    assert line.load() == {"messages": messages(102)}
    assert vault.store.verify().ok


def test_an_append_whose_handler_was_interrupted_wants_a_look_first(
    line: Timeline, vault: Vault
) -> None:
    line.append({"messages": messages(100)})

    def interrupted(told: object) -> None:
        raise KeyboardInterrupt

    end = vault.on("checkpoint_saved", interrupted)
    with pytest.raises(KeyboardInterrupt):
        line.append({"messages": messages(1, start=100)})
    end()
    with pytest.raises(Conflict, match="did not return, but it was written as number 2"):
        line.append({"messages": messages(1, start=100)})
    assert line.load() == {"messages": messages(101)}
    line.append({"messages": messages(1, start=101)})
    assert line.load() == {"messages": messages(102)}


def test_an_append_that_is_written_while_the_next_one_looks_is_not_doubled(
    line: Timeline, vault: Vault, store: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread leads its round, and commits it right after the next one has looked."""
    line.append({"messages": messages(100)})
    late: list[Batch] = []

    def interrupted(batch: Batch) -> int:
        late.append(batch)
        raise KeyboardInterrupt

    with monkeypatch.context() as slow:
        slow.setattr(store, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            line.append({"messages": messages(1, start=100)})
    look = store.timeline

    def look_and_write(user: str | None, name: str) -> TimelineRecord | None:
        found = look(user, name)
        if late:
            store.commit(late.pop())
        return found

    monkeypatch.setattr(store, "timeline", look_and_write)
    with pytest.raises(Conflict):
        line.append({"messages": messages(1, start=100)})
    assert line.load() == {"messages": messages(101)}
    assert vault.store.verify().ok


def test_somebody_elses_save_is_not_taken_for_ones_own(
    line: Timeline, vault: Vault, store: Watched, state: dict[str, Any]
) -> None:
    store.before_commit = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        line.save({"turn": "mine"})
    vault.timeline("main").save({"turn": "theirs"})
    for _ in range(2):
        with pytest.raises(Conflict):
            line.save({"turn": "mine"})
    assert line.load() == {"turn": "theirs"}


def test_what_came_after_ones_own_save_is_a_conflict(
    line: Timeline, vault: Vault, store: Watched, state: dict[str, Any]
) -> None:
    store.after_commit = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        line.save({"turn": "mine"})
    vault.timeline("main").save({"turn": "theirs"})
    with pytest.raises(Conflict):
        line.save({"turn": "mine again"})


def test_an_interrupt_while_encoding_leaves_a_usable_handle(line: Timeline, vault: Vault) -> None:
    class Interrupting:
        """A dataclass to the eye, whose field is never there in time."""

        __dataclass_fields__: ClassVar[dict[str, Any]] = {}

        def __getattribute__(self, name: str) -> Any:
            raise KeyboardInterrupt

    state: dict[str, Any] = {"messages": messages(200)}
    line.save(state)
    with pytest.raises(KeyboardInterrupt):
        line.save({"messages": [*messages(300), Interrupting()]})
    state["messages"] += messages(100, start=200)
    line.save(state)
    assert line.load() == state
    assert vault.store.verify().ok


def test_a_handler_that_is_interrupted_has_been_told_of_a_save(
    line: Timeline, vault: Vault, state: dict[str, Any]
) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    off = vault.on("checkpoint_saved", interrupt)
    with pytest.raises(KeyboardInterrupt):
        line.save({"turn": 1})
    off()
    assert line.load() == {"turn": 1}
    assert line.save({"turn": 2}).seq == 3


# On a real file

# Between an `open` and its `with`, CPython is the one who closes the file, and says so.
in_an_open = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def real(url: str) -> Iterator[Vault]:
    """With all that is loaded late: a Ctrl-C in an import leaves a file of Python's own open."""
    with hardsave.open("sqlite:///" + file_path(url) + "-warm") as warm:
        line = warm.timeline("main")
        for turn in range(40):
            line.append({"messages": messages(3, start=3 * turn), "turn": turn})
        line.load()
        assert warm.store.verify().ok
    with hardsave.open(url) as vault:
        yield vault


@in_an_open
def test_ctrl_c_at_any_time_leaves_a_usable_handle(real: Vault) -> None:
    line = real.timeline("main")
    turn = 0
    for attempt in range(40):
        try:
            with interrupted_after(0.0005 + attempt * 0.0002):
                while True:
                    line.append({"messages": messages(3, start=3 * turn), "turn": turn})
                    turn += 1
        except KeyboardInterrupt:
            found = len(line)
            assert found in (turn, turn + 1)  # the last one may have been written
            turn = found
        except Conflict:  # the way out that it names
            line.load()
            turn = len(line)  # one that was cut off may have been written later, by a leader
    line.load()
    line.append({"messages": messages(3, start=3 * turn), "turn": turn})
    assert line.load() == {"messages": messages(3 * turn + 3), "turn": turn}
    assert real.store.verify().ok
    before = time.monotonic()
    real.close()
    assert time.monotonic() - before < 5  # nobody is waited for who is not there any more


@pytest.mark.parametrize("method", ["save", "append"])
def test_ctrl_c_between_any_two_lines_of_a_save_leaves_a_line_that_goes_on(method: str) -> None:
    """The next save finds out by itself whether the one that was cut off had been written."""
    cuts = 0
    for cut in range(1, 80):
        vault = Vault(MemoryStore())
        line = vault.timeline("main")
        write = getattr(line, method)
        write({"messages": messages(30)})
        try:
            with interrupted_at_line(cut):
                write({"messages": messages(1, start=30)})
        except KeyboardInterrupt:
            cuts += 1
        written = len(line) == 2
        if method == "append" and written:
            line.load()  # an append does not guess
        write({"messages": messages(1, start=31)})
        assert len(line) == 2 + written
        assert vault.store.verify().ok
    assert cuts > 20


@pytest.mark.parametrize("method", ["save", "append"])
def test_a_signal_handler_that_saves_on_the_same_line_spoils_nothing(method: str) -> None:
    """Of the two saves each holds what it was given, or says that it was not made."""
    answers: set[type] = set()
    for number in range(1, 1_500, 7):
        vault = Vault(MemoryStore())
        line = vault.timeline("main")
        write = getattr(line, method)
        given = messages(250)
        write({"messages": given, "by": "nobody"})

        def save(by: str, write: Callable[..., object] = write) -> None:
            before = messages(250) if method == "save" else []
            try:
                write({"messages": [*before, {"role": "user", "content": by * 100}], "by": by})
            except hardsave.HardsaveError as error:
                answers.add(type(error))

        with at_line(number, lambda: save("handler"), INSIDE):
            save("body")
        *later, _ = line.checkpoints()
        for checkpoint in reversed(later):
            by = checkpoint.read("by")
            given = [*(given if method == "append" else messages(250))]
            given.append({"role": "user", "content": by * 100})
            assert checkpoint.read() == {"messages": given, "by": by}
        assert vault.store.verify().ok
    assert answers <= {Conflict, Misuse}
    assert Conflict in answers


INSIDE = tuple(module.__file__ for module in (line_module, saving, shadow, growth, levels))


def interrupted_at_line(number: int) -> contextlib.AbstractContextManager[None]:
    """A block in which the nth line of the timeline's own code that is reached is not run."""
    return at_line(number, interrupt, (line_module.__file__, saving.__file__))


@in_an_open
def test_ctrl_c_in_one_thread_does_not_stop_the_others(real: Vault) -> None:
    done = threading.Event()
    counts = [0] * 4

    def work(number: int) -> None:
        line = real.timeline(f"line {number}")
        while not done.is_set():
            line.append({"messages": messages(1)})
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(4)]
    for thread in threads:
        thread.start()
    line = real.timeline("main")
    line.save({})
    for attempt in range(30):
        try:
            with interrupted_after(0.001 + attempt * 0.0003):
                while True:
                    line.append({"messages": messages(1)})
        except KeyboardInterrupt:
            pass
        except Conflict:  # a save that was cut off may be written a moment later
            line.load()
    done.set()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    for number, count in enumerate(counts):
        assert len(real.timeline(f"line {number}")) == count > 0
    line.load()
    line.append({"turn": 1})
    assert real.store.verify().ok


def test_a_forked_process_goes_on_with_the_same_vault(real: Vault, url: str) -> None:
    line = real.timeline("main")
    line.save({"messages": messages(100)})

    def work(_: Child) -> None:
        own = line.fork(name="child")
        own.append({"messages": messages(1, start=100)})
        assert own.load() == {"messages": messages(101)}
        line.append({"messages": messages(1, start=100)})  # the inherited handle too

    assert Child(work).end() == 0
    with pytest.raises(Conflict):
        line.append({"messages": ["parent"]})
    line.load()
    line.append({"messages": messages(1, start=101)})
    assert line.load() == {"messages": messages(102)}
    assert real.timeline("child").load() == {"messages": messages(101)}
    assert real.store.verify().ok


def test_a_killed_process_leaves_what_it_was_told_is_saved(url: str) -> None:
    def work(child: Child) -> None:
        line = hardsave.open(url).timeline("main")
        for n in range(20):
            line.append({"messages": messages(1, start=n)})
        child.tell()
        signal.pause()

    child = Child(work)
    child.hear()
    os.kill(child.pid, signal.SIGKILL)
    assert child.end() == -signal.SIGKILL
    with hardsave.open(url) as vault:
        line = vault.timeline("main")
        assert line.load() == {"messages": messages(20)}
        line.append({"messages": messages(1, start=20)})
        assert vault.store.verify().ok


def test_after_a_disk_that_was_full_for_all_writers_everybody_goes_on(
    real: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several saves in one transaction, which fails; later ones stand on sound ground again."""
    lines = [real.timeline(f"line {n}") for n in range(4)]
    for number, line in enumerate(lines):
        line.append({"messages": messages(50, start=1_000 * number)})

    def at_once(turn: int) -> list[object]:
        answers: list[object] = []

        def work(number: int) -> None:
            try:
                new = messages(3, start=1_000 * number + 50 + 3 * turn)
                answers.append(lines[number].append({"messages": new}))
            except hardsave.HardsaveError as error:
                answers.append(error)

        threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
        return answers

    for turn in range(8):
        with monkeypatch.context() as broken:
            broken.setattr(file_identity, "status_of", lambda path: None)  # as if it were replaced
            assert all(isinstance(answer, Unavailable) for answer in at_once(turn))
        assert {type(answer) for answer in at_once(turn)} == {hardsave.Checkpoint}
    for number, line in enumerate(lines):
        assert line.load() == {"messages": messages(74, start=1_000 * number)}
    assert real.store.verify().ok
