"""What docs/testing.md shows is run as it stands there, with the plugin and a server of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs/testing.md"


def test_the_page_s_example_passes(tmp_path: Path, admin_dsn: str) -> None:
    blocks = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE.read_text(), re.S))
    assert set(blocks) == {"conftest.py", "test_orders.py"}
    for name, text in blocks.items():
        (tmp_path / name).write_text(text)
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"COUNTERFOIL_TEST_DSN": admin_dsn},
        timeout=120,
    )
    assert "2 passed" in answer.stdout, answer.stdout + answer.stderr


def test_the_kit_needs_nothing_but_the_package(tmp_path: Path) -> None:
    program = (
        "from counterfoil.testing import TestServer\n"
        "with TestServer() as server, server.kit() as kit:\n"
        "    print(kit.run(lambda run, given: given + 1, 1).result)\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )
    assert answer.stdout == "2\n", answer.stderr
