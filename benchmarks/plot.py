"""A small line chart as SVG: no library, and a file that a diff can be read of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT = 640, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 150, 30, 40
_COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#57606a", "#bf3989", "#0a7ea4")


def lines(title: str, x_name: str, y_name: str, series: Mapping[str, Sequence[float]]) -> str:
    """A chart of ``series``, whose values stand at x = 1, 2, …; y begins at nought."""
    length = max(len(values) for values in series.values())
    most = max(max(values) for values in series.values())
    step = _step(most)
    top = step * (int(most / step) + 1)
    wide, high = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x(at: float) -> float:
        return round(_LEFT + wide * (at - 1) / max(1, length - 1), 1)

    def y(value: float) -> float:
        return round(_TOP + high * (1 - value / top), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
        ' font-family="sans-serif" font-size="11" fill="#24292f">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="18" font-size="13">{escape(title)}</text>',
        f'<text x="{_LEFT + wide / 2}" y="{_HEIGHT - 6}" text-anchor="middle">'
        f"{escape(x_name)}</text>",
        f'<text x="14" y="{_TOP + high / 2}" text-anchor="middle"'
        f' transform="rotate(-90 14 {_TOP + high / 2})">{escape(y_name)}</text>',
    ]
    value = 0.0
    while value <= top:
        parts.append(
            f'<path d="M{_LEFT} {y(value)}h{wide}" stroke="#d0d7de"/>'
            f'<text x="{_LEFT - 6}" y="{y(value) + 4}" text-anchor="end">{value:g}</text>'
        )
        value += step
    for at in range(1, length + 1):
        if at == 1 or at % max(1, length // 8) == 0:
            parts.append(
                f'<text x="{x(at)}" y="{_TOP + high + 16}" text-anchor="middle">{at}</text>'
            )
    ends: list[float] = []
    for number, (name, values) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        points = " ".join(f"{x(at)},{y(value)}" for at, value in enumerate(values, 1))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        # Names stand beside the ends of their lines, and below each other where those meet.
        place = y(values[-1]) + 4
        while any(abs(place - other) < 13 for other in ends):
            place += 1
        ends.append(place)
        parts.append(
            f'<text x="{_LEFT + wide + 6}" y="{place}" fill="{colour}">{escape(name)}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _step(most: float) -> float:
    """A round distance between lines: five to ten of them."""
    step = 1.0
    while most / step > 10:
        step *= 10
    while most / step < 3:
        step /= 2
    return step
