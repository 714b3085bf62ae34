"""What a row keeps of a step: as bytes and back, cut, and without what was purged."""

import pytest

from hardsave import FileCounts, StepSummary
from hardsave.errors import Corrupt
from hardsave.objects.codec import Codec
from hardsave.timeline import step_summary
from hardsave.timeline.step_summary import LINE, PROMPT, beginning, line, without_text

FULL = StepSummary(
    messages=12,
    new_messages=2,
    said="done",
    prompt="fix\nit",
    call="Bash(make)",
    call_id="toolu_1",
    phase="after",
    outside=("git push",),
    files=FileCounts(1, 2, 3, 40),
    paths=("a.py", "\udcff.py"),
    not_captured=4,
    lost="a rule",
)


@pytest.mark.parametrize(
    "summary", [StepSummary(), FULL, StepSummary(messages=0), StepSummary(files=FileCounts())]
)
def test_a_summary_comes_back_as_it_was(summary: StepSummary) -> None:
    assert step_summary.decode(step_summary.encode(summary)) == summary


def test_what_has_nothing_to_tell_takes_a_byte() -> None:
    assert step_summary.encode(StepSummary()) == b"\x90"
    assert len(step_summary.encode(StepSummary(messages=7, new_messages=1))) == 3


@pytest.mark.parametrize(
    "value",
    [None, {}, [1] * 20, ["1"], [1, 1, 2], [1, 1, "", "", [1, 2, 3]], [1, 1, "", "", None, [1]]],
)
def test_anything_else_is_damaged(value: object) -> None:
    with pytest.raises(Corrupt, match="summary is malformed"):
        step_summary.decode(Codec().encode(value))


def test_texts_are_cut_at_their_end() -> None:
    assert line("a\n  b") == "a b"
    assert line("x" * 500) == "x" * (LINE - 1) + "…"
    assert beginning(" a\n b ") == "a\n b"
    assert len(beginning("x" * 5_000)) == PROMPT


def test_a_purged_text_goes_from_every_text() -> None:
    secret = "sesame-7919"  # noqa: S105 # a text to be purged
    texts = ("said", "prompt", "call", "call_id", "lost")
    summary = StepSummary(paths=(f"{secret}/x",), outside=(f"curl {secret}",))
    summary = summary.replace(**dict.fromkeys(texts, f"a {secret} b"))
    found = step_summary.without(summary, secret, "[purged]")
    assert secret not in repr(found)
    assert repr(found).count("[purged]") == len(texts) + 2


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ("open sesame now", "[purged] now"),
        ("it is open ses…", "it is [purged]…"),
        ("it is ope…", "it is ope…"),  # too short to be told from any word
        ("open\tsesame", "open\tsesame"),
    ],
)
def test_what_was_cut_in_the_middle_of_a_purged_text_goes_too(kept: str, expected: str) -> None:
    assert without_text(kept, "open\nsesame", "[purged]") == expected
