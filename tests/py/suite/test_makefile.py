"""The front door: every target is listed, calls commands that exist, and hands DSN on unharmed."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from counterfoil.cli import app

ROOT = Path(__file__).parents[3]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = (
    *("help", "demo", "up", "down", "migrate", "status", "verify", "plan", "prepare-indexes"),
    "roles",
    *("test", "lint", "pgtap", "isolation", "pytest", "coverage", "bench", "docs", "clean"),
)


def make(*arguments: str) -> str:
    """What make prints."""
    ran = subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_make_alone_lists_every_target_with_what_it_does() -> None:
    listed = [line.split(maxsplit=1) for line in make().splitlines()]
    assert [name for name, _ in listed] == list(TARGETS)


@pytest.mark.parametrize(
    "command", sorted(set(re.findall(r"\$\(BIN\)/counterfoil (\S+)", MAKEFILE)))
)
def test_a_target_calls_a_command_that_exists(command: str) -> None:
    assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0


def test_a_dsn_arrives_as_it_was_given(tmp_path: Path) -> None:
    dsn = "host=x password=a$b$$c'd\"e#f"
    probe = tmp_path / "Makefile"
    probe.write_text(f"{MAKEFILE}\nprobe: ; @printenv COUNTERFOIL_DSN COUNTERFOIL_TEST_DSN\n")
    assert make("-f", str(probe), "probe", f"DSN={dsn}") == f"{dsn}\n{dsn}\n"


def test_a_container_is_used_only_without_a_dsn() -> None:
    assert "docker compose" in make("-n", "migrate", "PG=docker:16")
    assert "docker compose" not in make("-n", "migrate", "PG=docker:16", "DSN=host=x")
