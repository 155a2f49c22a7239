"""`counterfoil demo`: real runs, a killed worker, a verdict from the database, nothing left."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import psutil
import psycopg
import pytest

from counterfoil.demonstration.play import (
    PLAY,
    check_hashes,
    distributions,
    find_licence,
    take_inventory,
    worker,
)


def test_the_demo_does_its_job_and_leaves_nothing(admin_dsn: str, tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COUNTERFOIL_")}
    answer = subprocess.run(
        [sys.executable, "-m", "counterfoil", "demo"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment | {"COUNTERFOIL_DSN": admin_dsn, "COLUMNS": "160", "TMPDIR": str(tmp_path)},
        timeout=240,
    )
    said = answer.stdout
    assert answer.returncode == 0, said + answer.stderr
    total = len(distributions())
    assert f"{total} runs in one call" in said
    assert f"{total} completed" in said
    assert "(SIGKILL), replaced by worker-3" in said
    assert "memoised by a later attempt" in said
    assert "of them for runs begun again" in said
    for label in ("duplicates  0", "gaps  0", "ledger = facts  yes"):
        assert label in said
    assert "verified from the database" in said
    assert list(tmp_path.iterdir()) == []
    with psycopg.connect(admin_dsn, autocommit=True) as connection:
        left = connection.execute(
            "select d.datname from pg_database as d where d.datname like 'counterfoil_demo_%'"
        ).fetchall()
    assert left == []
    assert [
        p for p in psutil.process_iter() if "counterfoil.demonstration.play" in _command(p)
    ] == []


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return []


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A distribution named sample with one file as recorded, one altered, one missing."""
    info = tmp_path / "sample-1.0.dist-info"
    info.mkdir()
    (tmp_path / "good.py").write_text("good")
    (tmp_path / "bad.py").write_text("altered")
    (info / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: sample\nVersion: 1.0\n"
        "Classifier: License :: OSI Approved :: MIT License\n"
    )
    digest = "sha256=dw6tlyN7J-bULoIMl-aYSSDtpOhPLZtUjU4hCLj1D1w"
    (info / "RECORD").write_text(
        f'good.py,{_digest("good")},4\nbad.py,{digest},7\n"go,ne.py",{digest},1\n'
        "sample-1.0.dist-info/RECORD,,\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def _digest(text: str) -> str:
    import base64
    import hashlib

    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
    return f"sha256={digest.rstrip(b'=').decode()}"


def test_altered_and_missing_files_are_found(package: Path) -> None:
    assert take_inventory("sample") == {"version": "1.0", "files": 4}
    found = check_hashes({"name": "sample", "from": 0, "to": 150})
    assert found["verified"] == 1
    assert found["unsigned"] == 1
    assert found["altered"] == ["bad.py"]
    assert found["missing"] == ["go,ne.py"]
    assert found["bytes"] == sum(
        path.stat().st_size
        for path in package.rglob("*")
        if path.name != "METADATA" and path.is_file()
    )
    assert check_hashes({"name": "sample", "from": 1, "to": 2})["altered"] == ["bad.py"]
    assert find_licence("sample") == "MIT License"


def test_each_distribution_is_named_once() -> None:
    names = [package["name"].lower() for package in distributions()]
    assert len(set(names)) == len(names)
    assert "counterfoil" in names
    assert {"pip", "psycopg"} <= set(names)
    assert all(metadata.distribution(name).read_text("RECORD") for name in names)
    assert list(worker.plays) == [PLAY]
