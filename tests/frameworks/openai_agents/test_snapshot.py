"""Archives of a sandbox, stored in a vault."""

import io
import random
import tarfile
from pathlib import Path

import pytest
from agents.sandbox.errors import SnapshotRestoreError
from agents.sandbox.snapshot import SnapshotBase
from hypothesis import given
from hypothesis import strategies as st

import hardsave
from hardsave.adapters.openai_agents import HardsaveSnapshot, HardsaveSnapshotSpec, archive


def packed(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return made.getvalue()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/s.db"


@pytest.mark.asyncio
async def test_an_archive_comes_back_to_the_byte(url: str) -> None:
    whole = packed({"a" * 200: b"x" * 3_000_000, "empty": b"", "ünï": b"y"})
    snapshot = HardsaveSnapshotSpec(url=url).build("one")
    assert not await snapshot.restorable()
    await snapshot.persist(io.BytesIO(whole))
    again = SnapshotBase.parse(snapshot.model_dump())
    assert await again.restorable()
    with await again.restore() as restored:
        assert restored.read() == whole


@pytest.mark.asyncio
async def test_what_archives_share_is_stored_once(url: str, tmp_path: Path) -> None:
    rng = random.Random(7)
    files = {f"{n}.bin": rng.randbytes(100_000) for n in range(20)}
    for n in range(8):
        files["5.bin"] = rng.randbytes(rng.randrange(1, 100_000))
        await HardsaveSnapshot(id=f"snap-{n}", url=url).persist(io.BytesIO(packed(files)))
    with hardsave.open(url) as vault:
        vault.store.compact()
    assert (tmp_path / "s.db").stat().st_size < 20 * 100_000 * 2


@pytest.mark.asyncio
async def test_one_that_was_interrupted_is_not_restorable_until_it_was_made_again(url: str) -> None:
    class Breaks(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError("the sandbox is gone")

    snapshot = HardsaveSnapshot(id="one", url=url)
    with pytest.raises(Exception, match="snapshot"):
        await snapshot.persist(Breaks(b"x"))
    with hardsave.open(url) as vault:  # as a process leaves it that dies between two commits
        vault.timeline("sandbox/one").save({"pieces": [b"half"], "bytes": 99})
    assert not await snapshot.restorable()
    with pytest.raises(SnapshotRestoreError):
        await snapshot.restore()
    await snapshot.persist(io.BytesIO(b"no archive at all"))
    with await snapshot.restore() as restored:
        assert restored.read() == b"no archive at all"


@given(st.binary(max_size=5_000), st.integers(0, 5_000), st.binary(max_size=40))
def test_pieces_are_the_archive_also_of_damaged_ones(content: bytes, at: int, junk: bytes) -> None:
    whole = bytearray(packed({"a": content, "b": b"b" * 700}))
    whole[at : at + len(junk)] = junk
    assert b"".join(archive.pieces(io.BytesIO(whole), len(whole))) == bytes(whole)
