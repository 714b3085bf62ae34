"""A first hook may find a transcript of months: it is taken in piece by piece."""

import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

import hardsave
from hardsave.agents import transcripts
from hardsave.agents.transcripts import Mark, pieces, read, tail
from hardsave.daemon import save, spool
from tests.unit.agents.conftest import said

SESSION = "claude-s-1"
BESIDE_MIB = 120  # what the program itself takes, and a few pieces in all their forms


def told(transcript: Path) -> bytes:
    about = {"session_id": "s-1", "hook_event_name": "Stop", "transcript_path": str(transcript)}
    return json.dumps({**about, "cwd": os.getcwd()}).encode()


def grow(path: Path, count: int, length: int) -> None:
    with path.open("a") as file:
        for number in range(count):
            roles = ("user", "assistant")
            file.write(said(roles[number % 2], f"{number} " + os.urandom(length).hex()) + "\n")


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "s-1.jsonl"
    grow(path, 300, 400)
    return path


def loaded() -> tuple[int, Any]:
    with hardsave.open() as vault:
        line = vault.timeline(SESSION)
        return len(line), line.load()


def test_a_line_without_an_end_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"one\n")
    os.truncate(path, 64 << 20)  # NULs, and no newline
    tracemalloc.start()
    try:
        assert read(path).lines == [b"one"]
        assert tracemalloc.get_traced_memory()[1] < 4 * transcripts.PIECE_BYTES
    finally:
        tracemalloc.stop()
    monkeypatch.setattr(transcripts, "PIECE_BYTES", 10)
    monkeypatch.setattr(transcripts, "MAX_VALUE_BYTES", 50)
    for end in (b"", b"\n"):
        path.write_bytes(b"one\n" + b"x" * 1_000 + end)
        with pytest.raises(ValueError, match="a line is longer than 50 bytes"):
            read(path)
    path.write_bytes(b"one\n" + b"x" * 40 + b"\ntwo\nthr")
    assert read(path).lines == [b"one", b"x" * 40, b"two"]


def test_pieces_are_one_checkpoint_and_the_same_as_the_whole(
    project: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save.work(told(transcript), {**os.environ, "HARDSAVE_TIMELINE": "whole"})
    monkeypatch.setattr(transcripts, "PIECE_BYTES", 10_000)
    assert len(list(pieces(transcript))) > 20
    assert save.work(told(transcript), os.environ)
    with hardsave.open() as vault:
        one, other = vault.timeline("whole").head, vault.timeline(SESSION).head
        assert one is not None
        assert other is not None
        assert other.parent is None
        assert one._record.root == other._record.root
        assert vault.store.verify().ok
        assert vault.store.gc().left == ()  # nothing is held back any more
    grow(transcript, 100, 400)
    assert save.work(told(transcript), os.environ)
    count, state = loaded()
    assert count == 2
    assert len(state["messages"]) == 400
    assert transcripts.to_bytes(state["lines"]) == transcript.read_bytes()
    assert state["transcript"]["offset"] == transcript.stat().st_size


def test_the_memory_of_a_hook_does_not_grow_with_the_transcript(
    project: Path, transcript: Path
) -> None:
    grow(transcript, 2200, 8 * 1024)  # 36 MB, and five times that if it were held at once
    script = (
        "import os, sys; from hardsave.daemon import save; from tests.peak import peak; "
        "print(save.work(sys.stdin.buffer.read(), os.environ), peak())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        input=told(transcript),
        capture_output=True,
        check=True,
    )
    _, most = done.stdout.split()
    assert int(most) >> 20 < BESIDE_MIB
    count, state = loaded()
    assert (count, len(state["messages"])) == (1, 2500)


def test_a_line_that_is_too_long_costs_no_files(project: Path, transcript: Path) -> None:
    def opened(*_: object) -> hardsave.Vault:
        return hardsave.open(max_value_bytes=500)

    assert not save.work(told(transcript), os.environ, opened=opened)
    (note,) = spool.missed(spool.folder(os.environ, project))
    assert "only files were saved" in note.why
    with hardsave.open() as vault:
        head = vault.timeline(SESSION).head
        assert head is not None
        assert head.files is not None
        assert head.files.read("a.txt") == b"one\n"


# Reading


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_pieces_are_whole_lines_and_lead_to_their_marks(
    tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"one\n\na longer one\nhalf")
    whole = read(path)
    assert whole.lines == [b"one", b"", b"a longer one"]
    known = Mark(4, blake3(b"one\n").hexdigest())
    monkeypatch.setattr(transcripts, "PIECE_BYTES", size)
    assert read(path) == whole
    assert read(path, known) == whole._replace(lines=whole.lines[1:])
    assert read(path, known._replace(digest="another")) == whole._replace(goes_on=False)


def test_the_last_lines_are_found_without_the_others(tmp_path: Path) -> None:
    path = tmp_path / "t"
    assert tail(path, 0, 100) == []
    path.write_bytes(b"one\ntwo\nthree\nhalf")
    assert tail(path, 0, 100) == [b"one", b"two", b"three"]
    assert tail(path, 4, 100) == [b"two", b"three"]
    assert tail(path, 0, 12) == [b"three"]
    assert tail(path, 0, 3) == []
