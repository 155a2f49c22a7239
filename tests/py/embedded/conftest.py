"""Every test here runs for each kind of caller that is possible: root and an ordinary user.

Run as root, a test is done once as root and once as another account; run as an ordinary user it
is done as that user. No test is skipped for want of root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from counterfoil.embedded import EmbeddedServer
from tests.py.embedded.callers import IS_ROOT, Caller, account

CALLERS = ["root", "ordinary"] if IS_ROOT else ["ordinary"]


def _caller(kind: str) -> Caller:
    base = Path(tempfile.mkdtemp(prefix="cf-embedded-", dir="/tmp"))
    base.chmod(0o755)
    uid, gid = os.geteuid(), os.getegid()
    if IS_ROOT and kind == "ordinary":
        entry = account("daemon", "bin", "games")
        uid, gid = entry.pw_uid, entry.pw_gid
    for folder in (base, base / "checkout"):
        folder.mkdir(exist_ok=True)
        os.chown(folder, uid, gid)
    return Caller(uid, gid, base)


@pytest.fixture(scope="session")
def filled_homes() -> Iterator[dict[str, Path]]:
    """A stopped server for each kind of caller, to be copied: an initdb takes a second."""
    callers = {kind: _caller(kind) for kind in CALLERS}
    for caller in callers.values():

        def fill(caller: Caller = caller) -> None:
            with caller.server():
                pass

        caller.run(fill)
    yield {kind: caller.home for kind, caller in callers.items()}
    for caller in callers.values():
        shutil.rmtree(caller.base)


@pytest.fixture(params=CALLERS)
def bare(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Caller]:
    """A caller whose server was never started."""
    caller = _caller(request.param)
    monkeypatch.setenv("COUNTERFOIL_STATE", str(caller.base / "state"))
    monkeypatch.delenv("COUNTERFOIL_HOME", raising=False)
    monkeypatch.delenv("COUNTERFOIL_OS_USER", raising=False)
    # Imported before a child forks that may be unable to read the interpreter's files.
    psycopg.pq.version()
    yield caller
    for lock in caller.base.rglob(".counterfoil*/lock"):

        def stop(home: Path = lock.parent) -> None:
            EmbeddedServer(home).stop()

        caller.run(stop)
    shutil.rmtree(caller.base)


@pytest.fixture
def caller(bare: Caller, filled_homes: dict[str, Path]) -> Caller:
    """A caller whose server was started once and is stopped now."""
    template = (
        filled_homes["root" if bare.is_root else "ordinary"]
        if IS_ROOT
        else (filled_homes["ordinary"])
    )
    subprocess.run(["cp", "-a", template, bare.home], check=True)
    return bare
