"""Run a command beside a throwaway server.

    python -m tests.servers 15 -- psql                  # an empty server
    python -m tests.servers embedded --schema -- psql   # Counterfoil installed in one database

The command finds the server in ``PGHOST`` and friends and in ``COUNTERFOIL_TEST_DSN``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from psycopg.conninfo import conninfo_to_dict

from tests.servers.databases import create_database, install
from tests.servers.throwaway import MissingServerError, ThrowawayServer

_VARIABLES = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE"}


def main() -> int:
    """Parse arguments, run the command, answer with its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.servers", description=__doc__)
    parser.add_argument("which", help="embedded, or a major version such as 15")
    parser.add_argument("--schema", action="store_true", help="install Counterfoil and pgTAP")
    parser.add_argument("command", nargs="+", help="after --, the command to run")
    arguments = parser.parse_args()
    try:
        server = ThrowawayServer(arguments.which)
    except MissingServerError as error:
        sys.exit(str(error))
    with server:
        dsn = server.dsn()
        if arguments.schema:
            dsn = create_database(dsn)
            install(dsn, "pgtap")
        found = conninfo_to_dict(dsn)
        variables = {_VARIABLES[key]: str(value) for key, value in found.items()}
        variables["COUNTERFOIL_TEST_DSN"] = dsn
        return subprocess.run(arguments.command, env=os.environ | variables).returncode


if __name__ == "__main__":
    sys.exit(main())
