"""A pgbouncer in transaction mode before a test database."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.servers.throwaway import MissingServerError

_START_SECONDS = 10.0


@contextmanager
def transaction_pooler(dsn: str, connections: int) -> Iterator[str]:
    """The dsn of ``dsn``'s database behind a pooler with that many connections to the server."""
    program = shutil.which("pgbouncer", path=f"{os.defpath}:/usr/sbin:/usr/local/sbin")
    if program is None:
        raise MissingServerError("pgbouncer is missing. As root: apt-get install pgbouncer")
    target = {k: str(v) for k, v in conninfo_to_dict(dsn).items()}
    folder = Path(tempfile.mkdtemp(prefix="cf-pool-", dir="/tmp"))
    account = _account(Path(target.get("host", "/")))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = " ".join(
        f"{name}='{target[name]}'"
        for name in ("host", "port", "user", "password")
        if name in target
    )
    configuration = folder / "pgbouncer.ini"
    configuration.write_text(
        f"[databases]\n* = {server}\n[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        f"pool_mode = transaction\ndefault_pool_size = {connections}\n"
    )
    if account is not None:
        os.chown(folder, account.pw_uid, account.pw_gid)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, configuration],
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=[] if account else None,
            stdout=log,
            stderr=log,
        )
    pooled = make_conninfo(host="127.0.0.1", port=port, user="pooled", dbname=target["dbname"])
    try:
        _wait_until_it_answers(process, pooled, folder / "log")
        yield pooled
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


def _account(socket_folder: Path) -> pwd.struct_passwd | None:
    # pgbouncer refuses to run as root; who owns the server's socket may use it.
    if os.getuid() != 0:
        return None
    owner = socket_folder.stat().st_uid if socket_folder.is_dir() else 0
    return pwd.getpwuid(owner) if owner else pwd.getpwnam("nobody")


def _wait_until_it_answers(process: subprocess.Popen[bytes], dsn: str, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            psycopg.connect(dsn, connect_timeout=2).close()
            return
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"pgbouncer does not answer:\n{log.read_text()}") from error
        time.sleep(0.02)
