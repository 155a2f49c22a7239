"""What one part of the suite came to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """Counts of one part. ``failed`` is at least one whenever the part did not succeed.

    Gates are no tests: ``is_tests`` is false for them, and they do not count in the total.
    """

    part: str
    passed: int
    failed: int
    seconds: float
    is_tests: bool = True

    @property
    def exit_code(self) -> int:
        """0 when nothing failed."""
        return 1 if self.failed else 0

    def line(self) -> str:
        """One line for people."""
        verdict = "ok" if self.failed == 0 else "FAILED"
        return (
            f"{self.part:<28} {self.passed:>6} passed {self.failed:>4} failed"
            f" {self.seconds:>7.1f} s  {verdict}"
        )
