"""What is missing is named with its reason; nothing is installed by whoever may not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "servers/packages"


def run(folder: Path, *arguments: str, user: str, **environment: str) -> tuple[int, str]:
    """Run the script as root or someone else, on a machine with or without apt-get."""
    identity = folder / "id"
    identity.write_text(f"#!/bin/sh\necho {0 if user == 'root' else 1000}\n")
    identity.chmod(0o755)
    ran = subprocess.run(
        ["/bin/bash", SCRIPT, *arguments],
        env={"PATH": str(folder), **environment},
        capture_output=True,
        text=True,
    )
    return ran.returncode, ran.stderr


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A PATH with nothing on it but what a test puts there."""
    return tmp_path


def apt_get(machine: Path, script: str) -> None:
    """Put an apt-get on the machine."""
    tool = machine / "apt-get"
    tool.write_text(f"#!/bin/bash\n{script}\n")
    tool.chmod(0o755)


def test_without_apt_get_the_package_and_its_reason_are_named(machine: Path) -> None:
    code, said = run(machine, "python3-venv", user="root")
    assert code == 1
    assert "python3-venv: makes the environment" in said
    assert "there is no apt-get here" in said


def test_who_is_not_root_is_told_what_root_would_run(machine: Path) -> None:
    apt_get(machine, "exit 99")
    code, said = run(machine, "python3-venv", user="joe")
    assert code == 1
    assert "As root: apt-get update && apt-get install python3-venv" in said


def test_a_failed_installation_says_so(machine: Path) -> None:
    apt_get(machine, '[ "$1" = update ]')
    code, said = run(machine, "python3-venv", user="root")
    assert code == 1
    assert "apt-get could not install them" in said


def test_root_on_debian_gets_it_installed(machine: Path) -> None:
    log = machine / "log"
    apt_get(machine, f'echo "$*" >> {log}')
    code, said = run(machine, "python3-venv", user="root")
    assert (code, "Installing python3-venv" in said) == (0, True), said
    assert [line.split()[0] for line in log.read_text().splitlines()] == ["update", "install"]
    assert "python3-venv" in log.read_text()


def test_with_a_server_of_ones_own_nothing_is_needed(machine: Path) -> None:
    assert run(machine, user="joe", COUNTERFOIL_TEST_DSN="host=x") == (0, "")
