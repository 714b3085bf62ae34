"""A table of figures, each with what it is compared to, its target, and whether it is met."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

HEADINGS = ("figure", "ours", "theirs or floor", "result", "target", "met")


@dataclass(frozen=True, slots=True)
class Target:
    """A bound that a figure keeps to."""

    bound: float
    is_minimum: bool

    def is_met_by(self, value: float) -> bool:
        return value >= self.bound if self.is_minimum else value <= self.bound


def at_least(bound: float) -> Target:
    return Target(bound, is_minimum=True)


def at_most(bound: float) -> Target:
    return Target(bound, is_minimum=False)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `value`, in `unit`, is what the target judges: usually a ratio."""

    figure: str
    ours: str = ""
    other: str = ""
    value: float | None = None
    unit: str = "×"
    target: Target | None = None
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        if self.target is None or self.value is None:
            return None
        return self.target.is_met_by(self.value)

    def cells(self) -> tuple[str, ...]:
        result = "" if self.value is None else f"{number(self.value)} {self.unit}"
        target = ""
        if self.target is not None:
            sign = "≥" if self.target.is_minimum else "≤"
            target = f"{sign} {number(self.target.bound)} {self.unit}"
        met = {True: "yes", False: "NO", None: ""}[self.is_met]
        return self.figure, self.ours, self.other, result.strip(), target.strip(), met


def ratio(
    figure: str,
    ours: float,
    other: float,
    target: Target | None = None,
    *,
    names: tuple[str, str] = ("", ""),
    note: str = "",
) -> Row:
    """How many times less time we take than others do; both in seconds."""
    mine, theirs = (_named(*pair) for pair in zip((ours, other), names, strict=True))
    return Row(figure, mine, theirs, other / ours, "× faster", target, note)


def growth(
    figure: str,
    ours: float,
    base: float,
    target: Target | None = None,
    *,
    names: tuple[str, str] = ("", ""),
    note: str = "",
) -> Row:
    """How many times a floor or an earlier cost something takes; both in seconds."""
    mine, floor = (_named(*pair) for pair in zip((ours, base), names, strict=True))
    return Row(figure, mine, floor, ours / base, "×", target, note)


def _named(seconds: float, name: str) -> str:
    return f"{duration(seconds)} {name}".strip()


def duration(seconds: float) -> str:
    if seconds < 0.001:
        return f"{number(seconds * 1e6)} µs"
    return f"{number(seconds * 1e3)} ms" if seconds < 1 else f"{number(seconds)} s"


def size(count: float) -> str:
    if count < 10_000:
        return f"{count:,.0f} B"
    return f"{number(count / 1e3)} kB" if count < 1e6 else f"{number(count / 1e6)} MB"


def number(value: float) -> str:
    """Three digits that count."""
    if value and abs(value) < 0.1:
        return f"{value:.2g}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    text = f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def as_text(facts: dict[str, str], rows: Sequence[Row]) -> str:
    lines = [f"{name}: {value}" for name, value in facts.items()]
    cells, notes = _numbered(rows)
    widths = [max(len(line[at]) for line in [HEADINGS, *cells]) for at in range(len(HEADINGS))]
    lines += ["", _aligned(HEADINGS, widths), "  ".join("-" * width for width in widths)]
    lines += [_aligned(line, widths) for line in cells]
    if notes:
        lines += ["", *notes]
    return "\n".join([*lines, "", summary(rows)])


def as_markdown(facts: dict[str, str], rows: Sequence[Row]) -> str:
    cells, notes = _numbered(rows)
    lines = ["# State benchmark", "", *(f"- {name}: {value}" for name, value in facts.items()), ""]
    lines += [_piped(HEADINGS), _piped(["---"] * len(HEADINGS)), *map(_piped, cells), ""]
    if notes:
        lines += [*(f"{note}  " for note in notes), ""]
    return "\n".join([*lines, summary(rows), ""])


def as_json(facts: dict[str, str], rows: Sequence[Row]) -> str:
    found: dict[str, Any] = {"facts": facts}
    found["rows"] = [{**asdict(row), "met": row.is_met} for row in rows]
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def summary(rows: Sequence[Row]) -> str:
    judged = [row for row in rows if row.is_met is not None]
    missed = [row.figure for row in judged if not row.is_met]
    said = f"{len(judged) - len(missed)} of {len(judged)} targets met"
    return said + (f"; missed: {'; '.join(missed)}" if missed else "")


def _numbered(rows: Sequence[Row]) -> tuple[list[tuple[str, ...]], list[str]]:
    """The rows' cells, and their notes, each with the number that its row shows."""
    cells: list[tuple[str, ...]] = []
    numbers: dict[str, int] = {}
    for row in rows:
        figure, *rest = row.cells()
        if row.note:
            figure += f" [{numbers.setdefault(row.note, len(numbers) + 1)}]"
        cells.append((figure, *rest))
    return cells, [f"[{at}] {note}" for note, at in numbers.items()]


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    padded = [text.ljust(width) for text, width in zip(line, widths, strict=True)]
    return "  ".join(padded).rstrip()


def _piped(line: Sequence[str]) -> str:
    return f"| {' | '.join(text.replace('|', '/') for text in line)} |"
