"""The index as a file: deleted, damaged, outdated, used by several at once, erased."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

import hardsave
from hardsave.errors import Unavailable
from hardsave.vault.search.index import name_for
from hardsave.vault.vault import Vault
from tests.unit.stores.processes import Child

TURNS = 40


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    with opened(path) as vault:
        for turn in range(TURNS):
            vault.timeline("main").append({"messages": [f"word{turn} " + "pad " * 100]})
    return path


def opened(path: Path, user: str | None = None) -> Vault:
    return hardsave.open(f"sqlite:///{path}", user=user)


def index_of(path: Path, user: str | None = None) -> Path:
    return path.with_name(f"{path.name}-{name_for(user)}")


def finds(vault: Vault) -> bool:
    hits = vault.search("word7")
    return [(hit.checkpoint.seq, hit.path) for hit in hits] == [(8, "messages[7]")]


def test_it_is_made_by_the_first_search_and_used_by_the_next(path: Path) -> None:
    assert not index_of(path).exists()
    with opened(path) as vault:
        assert finds(vault)
    before = index_of(path).read_bytes()
    with opened(path) as vault:
        assert finds(vault)
    assert index_of(path).read_bytes() == before


def test_nobody_else_may_read_it(path: Path) -> None:
    with opened(path) as vault:
        vault.search("word1")
    assert stat.S_IMODE(index_of(path).stat().st_mode) == 0o600


@pytest.mark.parametrize("is_made", [True, False])
def test_where_it_cannot_be_written_a_copy_finds_as_much(path: Path, is_made: bool) -> None:
    lock = Path(f"{index_of(path)}-lock")
    with opened(path) as vault:
        if is_made:
            assert finds(vault)
            lock.unlink()
        vault.timeline("main").append({"messages": ["later"]})
    before = index_of(path).read_bytes() if is_made else None
    lock.mkdir()
    with opened(path) as vault:
        assert finds(vault)
        assert len(vault.search("later")) == 1
        vault.timeline("main").append({"messages": ["latest"]})
        assert len(vault.search("latest")) == 1
        assert (index_of(path).read_bytes() if is_made else None) == before
        with pytest.raises(Unavailable, match=r"still has it: .*-search-lock cannot be written"):
            vault._context.search_index().erase()
        lock.rmdir()
        vault._context.search_index().erase()
        assert not index_of(path).exists()
        assert finds(vault)
    assert index_of(path).exists()


def test_an_index_that_is_no_good_is_not_copied(path: Path) -> None:
    index_of(path).write_bytes(b"no index at all " * 1000)
    Path(f"{index_of(path)}-lock").mkdir()
    with opened(path) as vault:
        assert finds(vault)
    assert index_of(path).read_bytes().startswith(b"no index")


def remove(index: Path) -> None:
    index.unlink()


def empty(index: Path) -> None:
    index.write_bytes(b"")


def garble(index: Path) -> None:
    index.write_bytes(os.urandom(20_000))


def cut(index: Path) -> None:
    index.write_bytes(index.read_bytes()[: index.stat().st_size // 2])


def flip_everywhere(index: Path) -> None:
    data = bytearray(index.read_bytes())
    for at in range(4_196, len(data), 4_096):
        data[at] ^= 0x10
    index.write_bytes(data)


def forget_a_table(index: Path) -> None:
    change(index, "DROP TABLE tails")


def make_it_older(index: Path) -> None:
    change(index, "PRAGMA user_version = 77")


def make_it_of_another_store(index: Path) -> None:
    change(index, "UPDATE progress SET last = x'00112233445566778899aabb'")


def change(index: Path, sql: str) -> None:
    connection = apsw.Connection(str(index), vfs="cksmvfs")
    connection.execute(sql)
    connection.close()


@pytest.mark.parametrize(
    "harm",
    [
        remove,
        empty,
        garble,
        cut,
        flip_everywhere,
        forget_a_table,
        make_it_older,
        make_it_of_another_store,
    ],
)
def test_whatever_happens_to_it_it_is_made_anew(path: Path, harm: Callable[[Path], None]) -> None:
    with opened(path) as vault:
        assert finds(vault)
        harm(index_of(path))
        assert finds(vault)
        assert len(vault.search("pad", limit=100)) == TURNS


def test_a_store_that_was_put_back_is_noticed(path: Path, tmp_path: Path) -> None:
    old = path.read_bytes()
    with opened(path) as vault:
        vault.timeline("main").append({"messages": ["lost words"]})
        assert len(vault.search("lost")) == 1
    path.write_bytes(old)
    for witness in ("-mark", "-backup"):  # they know better, and would bring it all back
        path.with_name(path.name + witness).unlink()
    with opened(path) as vault:
        assert len(vault.search("lost")) == 0
        vault.timeline("main").append({"messages": ["new words"]})
        assert len(vault.search("new")) == 1


def test_a_damaged_store_is_reported_and_not_blamed_on_the_index(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(path) as vault:
        assert finds(vault)
        before = index_of(path).stat().st_ino
        vault._context.store.close()
        with pytest.raises(hardsave.Misuse):
            vault.search("word1")
    assert index_of(path).stat().st_ino == before
    assert "made anew" not in caplog.text


def test_erase_leaves_no_text_behind(path: Path) -> None:
    with opened(path) as vault:
        assert finds(vault)
        vault._context.search_index().erase()
        assert not index_of(path).exists()
        left = [file for file in path.parent.glob("store.db-search*") if file.stat().st_size]
        assert left == []
        assert finds(vault)


def test_every_user_has_a_file_whose_name_does_not_tell_whose(path: Path) -> None:
    with opened(path, "kim") as vault:
        vault.timeline("main").save({"note": "kims"})
        assert len(vault.search("kims")) == 1
        assert vault.search("word1").next is None
        assert len(vault.search("word1")) == 0
    assert index_of(path, "kim").exists()
    assert "kim" not in index_of(path, "kim").name
    assert not index_of(path).exists()
    with opened(path) as vault:
        assert len(vault.search("kims")) == 0


def test_processes_search_and_save_at_once(path: Path) -> None:
    def work(child: Child) -> None:
        with opened(path) as vault:
            own = vault.timeline(f"line {os.getpid()}")
            for turn in range(15):
                own.append({"messages": [f"turn{turn}of{os.getpid()}"]})
                hits = vault.search(f"turn{turn}of{os.getpid()}")
                assert [hit.checkpoint.seq for hit in hits] == [turn + 1]
                assert finds(vault)

    children = [Child(work) for _ in range(3)]
    assert [child.end() for child in children] == [0, 0, 0]
    with opened(path) as vault:
        for child in children:
            assert len(vault.search(f"turn14of{child.pid}")) == 1


def test_a_process_killed_while_it_indexes_leaves_an_index_that_works(path: Path) -> None:
    def work(child: Child) -> None:
        from hardsave.vault.search import intake as search_intake
        from hardsave.vault.search import walk as search_walk

        with opened(path) as vault:
            walked = search_intake.Intake.take_in
            count = [0]

            def dying(self: search_intake.Intake, record: object) -> None:
                count[0] += 1
                if count[0] == 20:
                    os.kill(os.getpid(), 9)
                walked(self, record)  # type: ignore[arg-type] # a record

            search_intake.Intake.take_in = dying  # type: ignore[method-assign] # it dies
            search_walk.PAGE = 6
            vault.search("word1")

    assert Child(work).end() == -9
    with opened(path) as vault:
        assert finds(vault)
        assert len(vault.search("pad", limit=100)) == TURNS
