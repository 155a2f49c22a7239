"""Clients that are pgbench scripts: they leave the processor to the server, whose work is measured.

A client written in Python needs the processor as well, the same for a cheap call as for a dear one:
on a small machine it would measure itself, and flatter whatever is compared with a cheap call.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from counterfoil.server.setup import bin_dir


def run_scripts(dsn: str, seconds: float, *scripts: tuple[int, str]) -> list[float]:
    """Run scripts side by side, each by so many clients; transactions a second of each."""
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for number, (clients, script) in enumerate(scripts):
            file = Path(folder, f"{number}.sql")
            file.write_text(script)
            options = ["--no-vacuum", "--protocol=prepared", f"--client={clients}"]
            running.append(
                subprocess.Popen(
                    [
                        str(bin_dir() / "pgbench"),
                        *options,
                        f"--time={seconds:.0f}",
                        f"--file={file}",
                        dsn,
                    ],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
        return [_rate(process) for process in running]


def _rate(process: subprocess.Popen[str]) -> float:
    out, errors = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"pgbench failed: {errors.strip()}")
    line = next(line for line in out.splitlines() if line.startswith("tps = "))
    return float(line.split()[2])
