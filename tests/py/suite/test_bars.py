"""`python -m benchmarks` fails when a figure misses its bar."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from benchmarks import __main__ as benches
from benchmarks.bars import Bar, Row, measured


def run(monkeypatch: pytest.MonkeyPatch, *rows: Row) -> None:
    monkeypatch.setattr(benches, "measured_database", nullcontext)
    monkeypatch.setattr(benches, "BENCHES", {"one": lambda dsn, rounds: list(rows)})
    monkeypatch.setattr("sys.argv", ["benchmarks", "one"])
    benches.main()


@pytest.mark.parametrize(
    "row",
    [
        measured("slow", [1.0, 1.3, 9.0], "×", at_most=1.2),
        measured("few", [0.1, 0.2, 0.9], "×", at_least=0.4),
        Row("nothing measured", "none", Bar(float("nan"), at_most=1)),
    ],
)
def test_a_missed_bar_is_named_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], row: Row
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, measured("fine", [1.0], "×", at_most=1), row)
    assert ended.value.code == 1
    errors = capsys.readouterr().err
    assert row.name in errors
    assert "fine" not in errors


def test_the_median_counts_and_figures_without_a_bar_do_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(
        monkeypatch,
        measured("ratio", [0.5, 1.1, 7.0], "×", at_least=1, at_most=1.2),
        measured("told", [3.0], " s"),
    )
    out = capsys.readouterr().out
    assert "1.10× (0.50…7.00)  [at least 1, at most 1.2: met]" in out
    assert "3.00 s (3.00…3.00)\n" in out
