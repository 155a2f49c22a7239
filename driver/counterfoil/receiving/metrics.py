"""Counts of a gateway's requests, in the text format of Prometheus."""

from __future__ import annotations

from collections import defaultdict


class Metrics:
    """Requests and seconds by route and status. No ids: labels stay few."""

    def __init__(self) -> None:
        self._requests: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests[route, status] += 1
        self._seconds[route] += seconds

    def text(self) -> str:
        """All counts."""
        lines = ["# TYPE counterfoil_gateway_requests_total counter"]
        lines += [
            f'counterfoil_gateway_requests_total{{route="{route}",status="{status}"}} {count}'
            for (route, status), count in sorted(self._requests.items())
        ]
        lines.append("# TYPE counterfoil_gateway_request_seconds_total counter")
        lines += [
            f'counterfoil_gateway_request_seconds_total{{route="{route}"}} {seconds:.6f}'
            for route, seconds in sorted(self._seconds.items())
        ]
        return "\n".join(lines) + "\n"
