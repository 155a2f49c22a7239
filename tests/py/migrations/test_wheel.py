"""The wheel carries its SQL: installed into an environment of its own, it migrates."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from counterfoil.migrations import verify
from tests.py.migrations.trees import SHIPPED, rows

SCRIPT = """
import sys
import counterfoil
from counterfoil.migrations import migrate
from counterfoil.schema.sql_tree import shipped_sql
print(counterfoil.__file__)
print(shipped_sql())
print(migrate(sys.argv[1]))
"""


def run(*command: str | Path, cwd: Path) -> str:
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_installed_from_the_wheel_it_finds_its_sql(database: str, tmp_path: Path) -> None:
    checkout = SHIPPED.parent
    run(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"),
        *("--wheel-dir", tmp_path, checkout),
        cwd=tmp_path,
    )
    [wheel] = tmp_path.glob("counterfoil-*.whl")
    home = tmp_path / "venv"
    venv.create(home, symlinks=True, with_pip=False)
    python = home / "bin/python"
    site = Path(
        run(python, "-c", "import site; print(site.getsitepackages()[0])", cwd=tmp_path).strip()
    )
    run(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"),
        *("--target", site, wheel),
        cwd=tmp_path,
    )
    # The dependencies come from the environment that runs the tests, after the wheel itself.
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")

    module, sql, *report = run(python, "-c", SCRIPT, database, cwd=tmp_path).splitlines()
    assert Path(module).is_relative_to(site)
    assert Path(sql) == site / "counterfoil/sql"
    assert report[0].startswith("schema counterfoil: version ")
    assert rows(database, "select max(version) > 0 from counterfoil.schema_migrations") == [(True,)]
    assert verify(database, source=Path(sql)).findings == ()
