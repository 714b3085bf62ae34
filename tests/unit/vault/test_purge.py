"""What was purged is in no file of the store, and nothing else is harmed."""

import threading
import time
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.errors import Conflict, Misuse, NotFound, Unavailable
from hardsave.objects.rewriting import Rewriting
from hardsave.objects.types import Types
from hardsave.stores.base import Batch
from hardsave.stores.memory.store import MemoryStore
from hardsave.stores.sqlite.backup import durable_files
from hardsave.stores.sqlite.store import SqliteStore
from hardsave.vault.purge import REPLACEMENT, purge
from hardsave.vault.vault import Vault
from tests.unit.stores.processes import fresh
from tests.unit.vault.secrets_scanner import found

SECRETS = [f"sesame-{number:02d}-{number * 7919 % 9973:04d}-opens" for number in range(50)]


@dataclass
class Card:
    holder: str
    numbers: tuple[str, ...]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "store.db"


def opened(path: Path, **options: Any) -> hardsave.Vault:
    return hardsave.open(f"sqlite:///{path}", **options)


def planted(vault: hardsave.Vault) -> hardsave.Timeline:
    """A session with a secret in every other turn, in all kinds of places."""
    line = vault.timeline("main")
    line.save({"messages": [], "cards": (Card(SECRETS[0], ("1", SECRETS[1])), {SECRETS[2]: {1}})})
    for turn, secret in enumerate(SECRETS[3:45]):
        text = f"turn {turn} " + "the quick brown fox " * 20
        line.append({"messages": [{"role": "user", "content": text + secret, "n": turn}]})
        line.append({"messages": [{"role": "assistant", "content": text, "raw": b"x" * 50}]})
    line.append({"note": SECRETS[45].encode()}, name=f"named {SECRETS[46]}")
    line.append({"turn": 1}, description=SECRETS[47], status=SECRETS[48])
    line.append({"turn": 2}, metadata={"key": [SECRETS[49]]})
    return line


def backed_up(path: Path) -> None:
    """Wait for the first backup: a file that comes and goes cannot be looked into."""
    until = time.monotonic() + 60
    while not path.with_name(path.name + "-backup").exists():
        assert time.monotonic() < until, "no backup was made"
        time.sleep(0.02)


def test_texts_are_in_no_file_after_they_were_purged(path: Path) -> None:
    with opened(path) as vault:
        line = planted(vault)
        vault.search("sesame")  # an index that knows them
        backed_up(path)
        before = [vault.get(f"main:{n}").read() for n in (1, 40, 85)]
        assert found(path.parent, SECRETS) == set(SECRETS)
        for secret in SECRETS:
            assert vault.store.purge(text=secret).rewritten > 0
        assert found(path.parent, SECRETS) == set()
        for n, old in zip((1, 40, 85), before, strict=True):
            assert vault.get(f"main:{n}").read() == without(vault, old)
        assert vault.store.verify().faults == ()
        assert len(line) == 88
        line.append({"turn": 3})
    assert found(path.parent, SECRETS) == set()


def without(vault: hardsave.Vault, state: Any) -> Any:
    """The state as it must be now: every secret replaced, nothing else touched."""
    codec = vault._context.objects.codec
    data = codec.encode(state)
    for secret in SECRETS:
        data = Rewriting(secret, REPLACEMENT, vault._context.objects.fetch).value(data)
    return codec.decode(data)


def test_labels_and_notes_are_purged_too(path: Path) -> None:
    with opened(path) as vault:
        line = vault.timeline("main")
        one = line.save({}, labels={"who": f"it is {SECRETS[0]}", "k": "v"}, notes={"a": 1})
        line.save({}, labels={"k": "w"}, notes={"b": SECRETS[3]})
        vault.put_notes(one, {"said": {"deep": [SECRETS[1]]}, SECRETS[2]: "x", "z": b"y"})
        backed_up(path)
        assert found(path.parent, SECRETS[:4]) == set(SECRETS[:4])
        assert [vault.store.purge(text=each).rewritten for each in SECRETS[:4]] == [1, 1, 1, 1]
        assert found(path.parent, SECRETS[:4]) == set()
        assert one.labels == {"who": "it is [purged]", "k": "v"}
        deep = {"deep": ["[purged]"]}
        assert one.notes == {"a": 1, "said": deep, "[purged]": "x", "z": b"y"}
        assert [each.seq for each in vault.checkpoints(labels={"who": "it is [purged]"})] == [1]
        assert vault.store.verify().ok


def test_keys_of_labels_and_notes_that_become_equal_stay_apart(path: Path) -> None:
    secret = SECRETS[0]
    labels = {secret: "a", f"{secret}2": "b", "[purged]": "c", "[purged]3": "d"}
    given = {f"{secret}": 1, "[purged]": 2, f"{secret}2": 3, "z": 4}
    with opened(path) as vault:
        one = vault.timeline("main").save({}, labels=labels, notes=given)
        vault.store.purge(text=secret)
        assert one.labels == {
            "[purged]2": "a",
            "[purged]22": "b",
            "[purged]": "c",
            "[purged]3": "d",
        }
        assert sorted(one.notes.values()) == [1, 2, 3, 4]
        assert one.notes["[purged]"] == 2
        assert found(path.parent, [secret]) == set()
        assert vault.store.verify().ok


def test_labels_and_notes_of_a_purged_checkpoint_are_in_no_file(path: Path) -> None:
    with opened(path) as vault:
        line = vault.timeline("main")
        line.save({}, name="gone", labels={"who": SECRETS[0]}, notes={"a": SECRETS[1]})
        line.save({})
        backed_up(path)
        vault.store.purge("main:1")
        assert found(path.parent, SECRETS[:2]) == set()


def test_a_purged_timeline_is_in_no_file(path: Path) -> None:
    with opened(path) as vault:
        planted(vault)
        backed_up(path)
        other = vault.timeline("other")
        other.save({"kept": "this stays here"})
        assert vault.store.purge(timeline="main").dropped == 88
        assert found(path.parent, [*SECRETS, "this stays here"]) == {"this stays here"}
        assert [line.name for line in vault.timelines()] == ["other"]
        assert vault.store.verify().faults == ()
        assert other.load() == {"kept": "this stays here"}
        assert vault.timeline("main").save({"turn": 1}).seq == 89


def test_a_purged_checkpoint_is_in_no_file_and_its_children_stay(path: Path) -> None:
    with opened(path) as vault:
        line = vault.timeline("main")
        for text in ("first words", SECRETS[0], "last words"):
            line.save({"messages": [text * 20]})
        backed_up(path)
        assert vault.store.purge("main:2").dropped == 1
        assert found(path.parent, SECRETS) == set()
        assert [each.seq for each in line.ancestors()] == [1]
        assert line.load() == {"messages": ["last words" * 20]}
        assert vault.store.purge("main:3").dropped == 1
        assert line.load() == {"messages": ["first words" * 20]}
        assert vault.store.verify().faults == ()
        with pytest.raises(NotFound):
            vault.get("main:2")


def test_a_purge_that_was_interrupted_is_finished_by_calling_it_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path) as vault:
        line = vault.timeline("main")
        ids = [line.save({"messages": [text * 20]}).id for text in (*SECRETS[:3], "last words")]

        def killed(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        for ref in ("main:1", ids[1]):
            with monkeypatch.context() as patched:
                patched.setattr(purge, "collected", killed)
                with pytest.raises(KeyboardInterrupt):
                    vault.store.purge(ref)
            assert vault.store.purge(ref).dropped == 0
        assert found(path.parent, SECRETS[:3]) == {SECRETS[2]}
        for unknown in ("main:9", "main:99999999999999999999", "chk_" + "0" * 24):
            with pytest.raises(NotFound):
                vault.store.purge(unknown)


@pytest.mark.parametrize("has_backup", [True, False])
def test_what_was_left_half_made_goes_too(path: Path, has_backup: bool) -> None:
    """By processes that were killed while they built a backup or took over."""
    with opened(path) as vault:
        vault.timeline("main").save({"messages": [SECRETS[0] * 20]})
        if has_backup:
            backed_up(path)
        rows = [durable_files.TAKEOVER + each for each in durable_files.ROWS.values()]
        for suffix in ("-backup-old", "-backup-new", durable_files.TAKEOVER, *rows):
            path.with_name(path.name + suffix).write_text(SECRETS[0])
        vault.store.purge(text=SECRETS[0])
        assert found(path.parent, SECRETS[:1]) == set()
        assert vault.timeline("main").load() == {"messages": ["[purged]" * 20]}


_PINS_AND_DIES = """
import os, sys
import hardsave
vault = hardsave.open(sys.argv[1])
vault._context.store.put(None, {}, pin=b"p" * 12, seconds=3600)
os._exit(0)
"""


def test_what_somebody_holds_who_was_killed_is_purged_all_the_same(path: Path) -> None:
    with opened(path) as vault:
        vault.timeline("main").save({"messages": [SECRETS[0] * 20]})
    fresh(_PINS_AND_DIES, f"sqlite:///{path}")
    with opened(path) as vault:
        assert vault.store.purge(text=SECRETS[0]).objects > 0
        assert found(path.parent, SECRETS[:1]) == set()


@pytest.mark.parametrize("who", ["this process", "another store"])
def test_what_somebody_holds_is_not_said_to_be_purged(
    path: Path, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import of the same user is under way."""
    monkeypatch.setattr(purge, "PATIENCE", 0.2)
    with opened(path) as vault, opened(path) as other:
        vault.timeline("main").save({"messages": [SECRETS[0] * 20]})
        holder = (vault if who == "this process" else other)._context.store
        holder.put(None, {}, pin=b"p" * 12, seconds=3600)
        with pytest.raises(Unavailable, match="repeat it afterwards"):
            vault.store.purge(text=SECRETS[0])
        assert vault.store.gc().left == (None,)
        holder.unpin(None, b"p" * 12)
        vault.store.purge(text=SECRETS[0])
        assert found(path.parent, SECRETS[:1]) == set()
        assert vault.timeline("main").load() == {"messages": ["[purged]" * 20]}


def test_a_capture_under_way_is_waited_for(path: Path) -> None:
    with opened(path) as vault, opened(path) as other:
        vault.timeline("main").save({"messages": [SECRETS[0] * 20]})
        store = other._context.store
        store.put(None, {}, pin=b"p" * 12, seconds=3600)
        later = threading.Timer(0.3, store.unpin, (None, b"p" * 12))
        later.start()
        assert vault.store.purge(text=SECRETS[0]).objects > 0
        later.join()
        assert found(path.parent, SECRETS[:1]) == set()


def test_what_another_user_holds_is_no_hindrance_and_not_told(path: Path) -> None:
    with opened(path, user="ada") as ada, opened(path, user="bob") as bob:
        ada.timeline("main").save({"messages": [SECRETS[0] * 20]})
        bob._context.store.put("bob", {}, pin=b"p" * 12, seconds=3600)
        ada.store.purge(text=SECRETS[0])
        assert found(path.parent, SECRETS[:1]) == set()
        assert ada.store.gc().left == ()


def test_a_deleted_checkpoint_is_purged_by_its_ref(path: Path) -> None:
    with opened(path) as vault:
        line = vault.timeline("main")
        for text in (*SECRETS[:2], "last words"):
            line.save({"messages": [text * 20]})
        vault.delete("main:2")
        assert vault.store.purge("main:2").dropped == 1
        assert found(path.parent, SECRETS[:2]) == {SECRETS[0]}
        assert vault.store.verify().faults == ()


def test_what_was_deleted_is_purged_too(path: Path) -> None:
    with opened(path) as vault:
        planted(vault).delete()
        backed_up(path)
        vault.store.purge(text=SECRETS[9])
        vault.undo()
        assert found(path.parent, SECRETS[9:11]) == {SECRETS[10]}
        assert vault.timeline("main").load()["messages"][12]["content"].endswith("[purged]")


def test_what_another_timeline_stands_on_is_not_purged() -> None:
    with Vault(MemoryStore()) as vault:
        line = vault.timeline("main")
        line.save({"turn": 1})
        line.save({"turn": 2})
        fork = line.fork("@~1", name="try-2")
        for wanted in ({"ref": "main:1"}, {"timeline": "main"}):
            with pytest.raises(Conflict, match="'try-2' stands there"):
                vault.store.purge(**wanted)
        fork.save({"turn": 3})
        assert vault.store.purge("main:1").dropped == 1
        assert fork.load() == {"turn": 3}


def test_another_users_text_is_not_touched(path: Path) -> None:
    with opened(path, user="ada") as ada, opened(path, user="bob") as bob:
        for vault in (ada, bob):
            vault.timeline("main").save({"text": "a word of mine, sesame"})
        assert ada.store.purge(text="sesame").rewritten == 1
        assert bob.timeline("main").load() == {"text": "a word of mine, sesame"}
        assert ada.timeline("main").load() == {"text": "a word of mine, [purged]"}


def test_a_handle_that_has_saved_before_goes_on(path: Path) -> None:
    with opened(path) as vault:
        line = vault.timeline("main")
        state = {"messages": [f"{n} sesame" * 50 for n in range(30)]}
        line.save(state)
        vault.store.purge(text="sesame")
        state["messages"].append("one more")
        assert line.save(state).read() == state  # it has the text again, as it was told
        grown = vault.timeline("other")
        grown.append({"messages": ["sesame" * 100]})
        vault.store.purge(text="sesame")
        grown.append({"messages": ["more"]})
        assert grown.load()["messages"] == ["[purged]" * 100, "more"]
        assert vault.store.verify().faults == ()


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({}, Misuse),
        ({"ref": "main:1", "text": "sesame"}, Misuse),
        ({"text": "abc"}, Misuse),
        ({"text": 12345}, Misuse),
        ({"text": "][pur"}, Misuse),
        ({"text": "key["}, Misuse),
        ({"text": "]key"}, Misuse),
        ({"text": "key[purged]key"}, Misuse),
        ({"ref": "main:77"}, NotFound),
        ({"timeline": "never"}, NotFound),
    ],
)
def test_what_cannot_be_purged_is_an_error(wanted: dict[str, str], error: type[Exception]) -> None:
    with Vault(MemoryStore()) as vault:
        vault.timeline("main").save({"turn": 1})
        with pytest.raises(error):
            vault.store.purge(**wanted)
        assert vault.timeline("main").load() == {"turn": 1}


def test_a_text_that_is_nowhere_changes_nothing() -> None:
    with Vault(MemoryStore()) as vault:
        vault.timeline("main").save({"turn": 1})
        assert vault.store.purge(text="nowhere") == purge.Purged(0, 0, 0)
        assert vault.timeline("main").load() == {"turn": 1}


@pytest.mark.parametrize(("count", "size", "rest"), [(40, 200, 0), (5, 50, 5_000), (1, 20, 5_000)])
def test_an_append_goes_on_after_somebody_else_has_purged(
    path: Path, count: int, size: int, rest: int
) -> None:
    with opened(path) as vault, opened(path) as other:
        line = vault.timeline("main")
        line.save({"m": ["sesame " + "x" * size for _ in range(count)], "rest": b"r" * rest})
        line.append({"m": ["y sesame"]})
        other.store.purge(text="sesame")
        line.append({"m": ["one more"]})
        assert len(line.load()["m"]) == count + 2
        assert "sesame" not in str(line.load())


def test_tasks_that_hold_a_text_are_forgotten(path: Path) -> None:
    first, second, third = SECRETS[:3]
    with opened(path) as vault:
        vault.tasks.add("a", f"use {first}")
        vault.tasks.add("b")
        vault.tasks.add("c", "harmless")
        for name, secret in (("a", "none"), ("b", second), ("c", "none")):
            with vault.tasks.attempt(name) as attempt:
                attempt.step("look", lambda secret=secret: {"found": secret * 400})
        backed_up(path)
        for secret in (first, second):
            assert vault.store.purge(text=secret).tasks == 1
        assert [task.id for task in vault.tasks.find()] == ["c"]
        assert found(path.parent, [first, second]) == set()
        vault.tasks.add("d", third)
        with pytest.raises(Conflict, match="task 'd' holds the text and is pending"):
            vault.store.purge(text=third)
        vault.tasks.cancel("d")
        vault.tasks.add("e", after=["d"])
        with pytest.raises(Conflict, match="and task 'e' waits for it"):
            vault.store.purge(text=third)
        vault.tasks.cancel("e")
        assert vault.store.purge(text=third).tasks == 1
        assert vault.store.verify().faults == ()
    assert found(path.parent, SECRETS) == set()


def test_a_task_that_is_begun_anew_while_it_is_purged_is_not_forgotten(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another process, after it was seen to be over."""
    with hardsave.open(f"sqlite:///{path}") as vault, hardsave.open(f"sqlite:///{path}") as other:
        vault.tasks.add("a", "the password is swordfish")
        with vault.tasks.attempt("a"):
            pass
        begun: list[hardsave.Attempt] = []
        store = vault._context.store
        commit = store.commit

        def overtaken(batch: Batch) -> int:
            if batch.event.kind == "purge" and not begun:
                begun.append(other.tasks.claim("a", force=True))
            return commit(batch)

        monkeypatch.setattr(store, "commit", overtaken)
        with pytest.raises(Conflict, match="task 'a' holds the text and is in_progress; cancel it"):
            vault.store.purge(text="swordfish")
        begun[0].complete("still here")
        assert vault.store.purge(text="swordfish").tasks == 1
        assert not vault.tasks.find()


def test_the_id_of_a_task_is_purged_from_its_checkpoints_and_from_the_log_too(path: Path) -> None:
    secret = SECRETS[0]
    with opened(path) as vault:
        line = vault.timeline("main")
        first = line.save({"n": 0}).id
        vault.tasks.add(f"use {secret}")
        with vault.tasks.attempt(f"use {secret}"):
            saved = line.save({"n": 1}).id
        line.rewind(first, tasks=True)
        backed_up(path)
        assert vault.store.purge(text=secret).tasks == 1
        assert vault.get(saved).task == "use [purged]"
        assert vault.get(saved).read("n") == 1
        assert vault.store.verify().faults == ()
    assert found(path.parent, [secret]) == set()


def test_what_is_stored_as_a_text_is_gone_too(path: Path) -> None:
    with opened(path) as vault:
        line = vault.timeline("main")
        line.save({"born": date(1983, 4, 5), "card": Decimal("4929123456781234"), "[purged]": 1})
        line.save({"at": datetime(1983, 4, 5, 12, tzinfo=UTC), "1983-04-05": 2, "[purged]": 3})
        secrets = ["1983-04-05", "4929123456781234"]
        assert found(path.parent, secrets) == set(secrets)
        for secret in secrets:
            vault.store.purge(text=secret)
        assert found(path.parent, secrets) == set()
        first, second = (vault.get(f"main:{n}").read() for n in (1, 2))
        assert first == {"born": "[purged]", "card": "[purged]", "[purged]": 1}
        assert second["[purged][purged]"] == 2
        assert vault.store.verify().faults == ()


def test_objects_stay_what_they_are_where_nobody_knows_their_class(path: Path) -> None:
    """As on the command line, which knows none."""
    numbers = tuple(f"number {n:04d}" for n in range(500))
    with opened(path) as vault:
        vault.timeline("main").save({"card": Card(SECRETS[0], numbers)})
        vault.store.purge(text=SECRETS[0])
    known = Types()
    known.register(Card)
    with Vault(SqliteStore(path), types=known) as vault:
        assert vault.timeline("main").load() == {"card": Card("[purged]", numbers)}


def test_a_name_that_grows_stays_within_the_rules(path: Path, tmp_path: Path) -> None:
    with opened(path) as vault:
        vault.timeline("main").save({}, name="no: " + "abcd" * 49, status="abcd" * 50)
        vault.store.purge(text="abcd")
        assert vault.timeline("main").load(vault.get("main:1").name or "") == {}
        vault.export_file(tmp_path / "out.hardsave")
    with hardsave.open("memory://") as other:
        assert other.import_file(tmp_path / "out.hardsave").checkpoints == 1
