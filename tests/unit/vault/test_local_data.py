"""What a host keeps to be quick goes when another host purges."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import hardsave
from hardsave.vault.workspaces import local_data
from tests.contract.shared_stores import SharedStore

SECRET = "correct-horse-battery"  # noqa: S105 # it opens nothing


class HostStore(SharedStore):
    """Has a folder of its own on each host."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        super().__init__(path)

    def local(self, what: str) -> str | None:
        return str(self.folder / f"store-{what}")


class Host:
    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder / name
        self.vault = hardsave.Vault(HostStore(folder / "store.db", self.folder))
        self.work = folder / f"work-of-{name}"
        self.work.mkdir()

    def meets_another_server(self) -> None:
        self.vault._context.store.generation = lambda: b"another"  # type: ignore[method-assign]

    def saves(self, text: str) -> None:
        self.vault.timeline(self.work.name).save({"said": text}, workspace=self.work)

    def has(self, text: str) -> bool:
        """Whether any file that it keeps has a text."""
        self.vault.workspace(self.work)._place.write_cache()
        files = [path for path in self.folder.iterdir() if path.is_file()]
        return any(text.encode() in path.read_bytes() for path in files)


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[Host, Host]]:
    made = Host(tmp_path, "one"), Host(tmp_path, "two")
    yield made
    for host in made:
        host.vault.close()


def test_the_index_and_the_caches_of_another_host_lose_what_was_purged(
    hosts: tuple[Host, Host],
) -> None:
    one, two = hosts
    (two.work / f"{SECRET}.txt").write_text("a file")
    two.saves(f"the password is {SECRET}")
    assert len(list(two.vault.search("password"))) > 0
    assert two.has(SECRET)
    one.vault.store.purge(text=SECRET)
    assert two.has(SECRET), "it is out of reach from here"
    (two.work / f"{SECRET}.txt").unlink()
    assert SECRET not in str(list(two.vault.search("password")))
    two.saves("something else")
    assert not two.has(SECRET)


def test_another_process_of_a_host_forgets_what_it_has_in_memory(
    hosts: tuple[Host, Host], tmp_path: Path
) -> None:
    one, two = hosts
    (two.work / f"{SECRET}.txt").write_text("a file")
    two.saves("first")
    place = two.vault.workspace(two.work)._place
    local_data.drop_if_purged(two.vault._context)
    assert place.last is not None, "nothing was purged yet"
    one.vault.store.purge(text=SECRET)
    with hardsave.Vault(HostStore(tmp_path / "store.db", two.folder)) as another:
        another.search("anything")
    assert place.last is not None
    local_data.drop_if_purged(two.vault._context)
    assert place.last is None


def test_a_purge_of_one_user_leaves_what_is_kept_of_another(
    hosts: tuple[Host, Host], tmp_path: Path
) -> None:
    one, two = hosts
    two.saves("words to be found")
    two.vault.search("words")
    before = {path.name for path in two.folder.iterdir()}
    with hardsave.Vault(HostStore(tmp_path / "store.db", one.folder), user="ada") as ada:
        ada.timeline("main").save({"said": SECRET})
        ada.store.purge(text=SECRET)
    assert len(list(two.vault.search("words"))) == 1
    assert before <= {path.name for path in two.folder.iterdir()}


def test_what_was_made_in_an_earlier_generation_goes(hosts: tuple[Host, Host]) -> None:
    host, _ = hosts
    host.saves(SECRET)
    assert host.vault.search("correct-horse")
    before = host.vault._context.search_index
    host.meets_another_server()
    host.vault.workspace(host.work).status()
    assert not host.has(SECRET)
    assert host.vault.search("correct-horse")
    assert host.vault._context.search_index is before
