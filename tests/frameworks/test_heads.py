"""Writes on top of a head that others move."""

from pathlib import Path

import pytest

import hardsave
from hardsave.adapters.heads import on_the_head


def test_a_write_that_another_writer_overtook_is_made_again(tmp_path: Path) -> None:
    with hardsave.open(f"sqlite:///{tmp_path}/s.db") as vault:
        line, other = vault.timeline("t"), vault.timeline("t")
        seen: list[hardsave.Checkpoint | None] = []

        def write(head: hardsave.Checkpoint | None) -> str:
            seen.append(head)
            if len(seen) < 3:
                other.save({"by": "another"}, expect=hardsave.ANY_HEAD)
            return line.save({"by": "us"}, expect=head).id

        assert on_the_head(line, write) == vault.get("t:3").id
        assert seen == [None, vault.get("t:1"), vault.get("t:2")]


@pytest.mark.parametrize("kind", [hardsave.Conflict, hardsave.LeaseLost, hardsave.WorkspaceTaken])
def test_a_refusal_that_is_not_about_the_head_is_told_at_once(
    kind: type[hardsave.Conflict],
) -> None:
    tries: list[object] = []

    def write(head: hardsave.Checkpoint | None) -> None:
        tries.append(head)
        raise kind("the reason")

    with hardsave.open("memory://") as vault, pytest.raises(kind, match="the reason"):
        on_the_head(vault.timeline("t"), write)
    assert len(tries) == 1
