"""Rows of figures, and the bars that `make bench` fails by when a figure misses its own."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Bar(NamedTuple):
    """What ``value`` has to be; a value that is no number (nothing was measured) misses it."""

    value: float
    at_least: float = -math.inf
    at_most: float = math.inf

    @property
    def met(self) -> bool:
        """Whether the value lies where it has to."""
        return self.at_least <= self.value <= self.at_most

    def __str__(self) -> str:
        ends = (("at least", self.at_least), ("at most", self.at_most))
        asked = ", ".join(f"{word} {end:,g}" for word, end in ends if math.isfinite(end))
        return f"{asked}: {'met' if self.met else 'MISSED'}"


class Row(NamedTuple):
    """A line of the printed table: what was measured, the figure as shown, and its bar, if any."""

    name: str
    figure: str
    bar: Bar | None = None

    def __str__(self) -> str:
        return f"{self.name:<75} {self.figure}" + (f"  [{self.bar}]" if self.bar else "")


def measured(
    name: str,
    values: Sequence[float],
    unit: str,
    *,
    at_least: float = -math.inf,
    at_most: float = math.inf,
    note: str = "",
) -> Row:
    """The row of a figure measured in rounds: median, lowest and highest; the median is judged."""
    median = statistics.median(values)
    figure = f"{median:.2f}{unit} ({min(values):.2f}…{max(values):.2f}){note}"
    barred = math.isfinite(at_least) or math.isfinite(at_most)
    return Row(name, figure, Bar(median, at_least, at_most) if barred else None)
