"""Loading a program for its worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from counterfoil.playing.loading import LoadError, load_worker

PROGRAM = """
from counterfoil.worker import Worker
from neighbour import NAME

worker = Worker()

@worker.play(NAME)
def play(run, given):
    return given

worker.run()  # must not run while it is only loaded
"""


def test_a_file_is_loaded_beside_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("NAME = 'found'")
    (tmp_path / "one_worker.py").write_text(PROGRAM)
    worker = load_worker(str(tmp_path / "one_worker.py"))
    assert list(worker.plays) == ["found"]
    assert load_worker(f"{tmp_path / 'one_worker.py'}:worker").plays is not worker.plays


def test_a_module_is_loaded_by_name() -> None:
    assert list(load_worker("counterfoil.demonstration.play").plays) == ["audit-distribution"]


@pytest.mark.parametrize(
    ("content", "suffix", "message"),
    [
        ("x = 1", "", "has no Worker"),
        ("from counterfoil.worker import Worker\na, b = Worker(), Worker()", "", "has 2 Workers"),
        ("x = 1", ":x", "no Worker of that name"),
        ("x = 1", ":y", "no Worker of that name"),
    ],
)
def test_a_program_without_a_worker_is_refused(
    tmp_path: Path, content: str, suffix: str, message: str
) -> None:
    (tmp_path / "program.py").write_text(content)
    with pytest.raises(LoadError, match=message):
        load_worker(f"{tmp_path / 'program.py'}{suffix}")


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="no such file"):
        load_worker(str(tmp_path / "none.py"))
    with pytest.raises(LoadError, match="no such module"):
        load_worker("counterfoil_none.plays")


def test_a_missing_import_of_the_program_is_not_hidden(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import counterfoil_none")
    with pytest.raises(ModuleNotFoundError, match="counterfoil_none"):
        load_worker(str(tmp_path / "broken.py"))
