"""Counts of a gateway's requests, in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_PREFIX = "counterfoil_gateway"


class Metrics:
    """Requests by route and status, and how long they took. No ids: labels stay few."""

    def __init__(self) -> None:
        self._requests: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._times: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(BOUNDS) + 1))
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._gauges: dict[str, Callable[[], int]] = {}

    def gauge(self, name: str, read: Callable[[], int]) -> None:
        """Show what ``read`` says at the time."""
        self._gauges[name] = read

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests[route, status] += 1
        self._seconds[route] += seconds
        self._times[route][bisect_left(BOUNDS, seconds)] += 1

    def text(self) -> str:
        """All counts."""
        lines = [f"# TYPE {_PREFIX}_requests_total counter"]
        lines += [
            f'{_PREFIX}_requests_total{{route="{route}",status="{status}"}} {count}'
            for (route, status), count in sorted(self._requests.items())
        ]
        name = f"{_PREFIX}_request_seconds"
        lines.append(f"# TYPE {name} histogram")
        for route, counts in sorted(self._times.items()):
            below = 0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), counts, strict=True):
                below += count
                lines.append(f'{name}_bucket{{route="{route}",le="{bound}"}} {below}')
            lines.append(f'{name}_sum{{route="{route}"}} {self._seconds[route]:.6f}')
            lines.append(f'{name}_count{{route="{route}"}} {below}')
        for gauge, read in sorted(self._gauges.items()):
            lines += [f"# TYPE {_PREFIX}_{gauge} gauge", f"{_PREFIX}_{gauge} {read()}"]
        return "\n".join(lines) + "\n"
