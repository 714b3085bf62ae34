from hashlib import sha256
from pathlib import Path

from blake3 import blake3

from hardsave.agents.transcripts import EMPTY, Mark, beginning, read, to_bytes, to_lines


def mark(data: bytes) -> Mark:
    return Mark(len(data), blake3(data).hexdigest())


def earlier_mark(data: bytes) -> Mark:
    found = Mark.of({"offset": len(data), "sha256": sha256(data).hexdigest()})
    assert found is not None
    return found


def test_a_half_written_line_is_not_part_of_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b": ')
    found = read(path)
    assert found == (mark(b'{"a": 1}\n'), [b'{"a": 1}'], True)


def test_only_what_is_new_is_handed_out_if_the_beginning_is_known(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"one\ntwo\nthree\n")
    found = read(path, mark(b"one\n"))
    assert found == (mark(b"one\ntwo\nthree\n"), [b"two", b"three"], True)


def test_another_beginning_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"ONE\ntwo\n")
    assert read(path, mark(b"one\n")) == (mark(b"ONE\ntwo\n"), [b"ONE", b"two"], False)


def test_a_transcript_that_became_shorter_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"one\n")
    assert read(path, mark(b"one\ntwo\n")) == (mark(b"one\n"), [b"one"], False)


def test_a_mark_of_an_earlier_version_names_the_same_beginning(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"one\ntwo\n")
    assert read(path, earlier_mark(b"one\n")) == (mark(b"one\ntwo\n"), [b"two"], True)
    assert read(path, earlier_mark(b"ONE\n")) == (mark(b"one\ntwo\n"), [b"one", b"two"], False)
    assert beginning(path, earlier_mark(b"one\n")) == b"one\n"
    assert beginning(path, earlier_mark(b"ONE\n")) is None
    assert read(tmp_path / "none", earlier_mark(b"")).goes_on


def test_a_mark_comes_back_out_of_a_state() -> None:
    for each in (mark(b"one\n"), earlier_mark(b"one\n")):
        assert Mark.of(each.told()) == each
    for nonsense in ({}, {"offset": 3}, {"offset": "3", "blake3": "a"}, {"offset": 3, "blake3": 7}):
        assert Mark.of(nonsense) is None


def test_no_file_is_an_empty_transcript(tmp_path: Path) -> None:
    assert read(tmp_path / "none") == (EMPTY, [], True)
    assert not read(tmp_path / "none", mark(b"one\n")).goes_on


def test_lines_give_any_bytes_again_as_they_were() -> None:
    data = b'{"a": "\xe2\x80\xa8"}\r\n\xff\xfe\n\n{"b": 1}\n'
    assert len(to_lines(data)) == 4
    assert to_bytes(to_lines(data)) == data


def test_the_part_of_a_mark_is_handed_out_only_if_it_is_that_part(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"one\ntwo\n")
    assert beginning(path, mark(b"one\n")) == b"one\n"
    assert beginning(path, mark(b"One\n")) is None
    assert beginning(path, mark(b"one\ntwo\nthree\n")) is None
