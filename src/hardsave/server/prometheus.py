"""Numbers in the text form that Prometheus reads, version 0.0.4. Pure."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from hardsave.tuples import NamedTuple

TEXT = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})


class Metric(NamedTuple):
    """One metric: its number, or one for each value of a label. What a caller can choose, such as
    an id, is never a label: each value is a time series that Prometheus keeps."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    values: Mapping[str, float]  # by the value of the label; without one under ""
    label: str = ""


def single(name: str, kind: Literal["counter", "gauge"], help: str, value: float) -> Metric:
    return Metric(name, kind, help, {"": value})


def text(metrics: Iterable[Metric]) -> str:
    return "".join(f"{line}\n" for metric in metrics for line in _lines(metric))


def _lines(metric: Metric) -> Iterator[str]:
    yield f"# HELP {metric.name} {metric.help}"
    yield f"# TYPE {metric.name} {metric.kind}"
    for label, value in metric.values.items():
        labels = f'{{{metric.label}="{label.translate(_ESCAPES)}"}}' if metric.label else ""
        yield f"{metric.name}{labels} {_number(value)}"


def _number(value: float) -> str:
    """As Prometheus spells it: `NaN` where there is no number."""
    return "NaN" if math.isnan(value) else repr(value)


class Rising:
    """Counts that never fall while the server runs.

    The store forgets in time what it counts from: an old task, a purged timeline. What it says less
    afterwards is no event, so only what comes on top is added. Not thread-safe.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], float] = {}
        self._total: dict[tuple[str, str], float] = {}

    def shown(self, metric: Metric) -> Metric:
        """A metric as it is told: a gauge as it is, a counter never lower than before."""
        if metric.kind == "gauge":
            return metric
        values = {
            label: self._counted((metric.name, label), value)
            for label, value in metric.values.items()
        }
        return metric._replace(values=values)

    def _counted(self, key: tuple[str, str], value: float) -> float:
        more = max(0, value - self._last.get(key, 0))
        self._last[key] = value
        self._total[key] = self._total.get(key, 0) + more
        return self._total[key]
