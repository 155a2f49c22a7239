"""The shipped SQL: finding it, reading it, and refusing it when it is not in order.

bootstrap.sql                the schema's own ledger tables (version 0)
migrations/0001_name.sql …   applied once, in order
functions/<room>/<name>.sql  installed together, again whenever one changed
indexes/<name>.sql           one CREATE INDEX CONCURRENTLY each
roles.sql, grants.toml       who may call what
"""

from __future__ import annotations

import hashlib
import importlib.resources
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from pathlib import Path

from counterfoil.schema.errors import SqlTreeError
from counterfoil.schema.grants import GrantMatrix
from counterfoil.schema.sql import statements

ROOMS = (
    "common",
    "admission",
    "attempts",
    "facts",
    "delivery",
    "ledger",
    "journal",
    "receipts",
    "operations",
)

_MIGRATION_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
_DIRECTIVE = re.compile(r"(?im)^--\s*requires-(index|function):\s*(.+?)\s*$")
_SINCE = re.compile(r"(?im)^--[ \t]*since:?[ \t]+(?:version[ \t]+)?v?(\d[\w.]*)")
_CREATES = re.compile(
    r'(?i)^create (?:or replace )?(?:function|procedure) counterfoil\."?([a-z0-9_]+)"?'
)
_INDEX = re.compile(
    r'(?i)^create (unique )?index concurrently (?:if not exists )?"?([a-z0-9_]+)"? on '
    r'(?:only )?counterfoil\."?([a-z0-9_]+)"?'
)
_TRANSACTION = re.compile(
    r"(?i)^(begin|commit|rollback|abort|end|start transaction|savepoint|release|"
    r"prepare transaction|set session|\\)\b|^\\"
)
_NEEDS_NO_TRANSACTION = re.compile(r"(?i)^(create|drop|reindex)\b.*\bconcurrently\b|^vacuum\b")


@dataclass(frozen=True)
class SqlFile:
    """One file: its path below the root, its text (LF line ends), the sha256 of that text."""

    path: str
    text: str
    checksum: str


@dataclass(frozen=True)
class Migration:
    """One numbered step. Version 0 is the bootstrap."""

    version: int
    name: str
    file: SqlFile
    indexes: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()


@dataclass(frozen=True)
class FunctionFile:
    """All overloads of one function name. `since` is None where its header does not say."""

    name: str
    room: str
    since: str | None
    file: SqlFile


@dataclass(frozen=True)
class PreparedIndex:
    """An index on a large table that the operator builds without blocking writers."""

    name: str
    table: str
    file: SqlFile


@dataclass(frozen=True)
class SqlTree:
    """Everything the package ships, in the order it is installed."""

    bootstrap: Migration
    migrations: tuple[Migration, ...]
    functions: tuple[FunctionFile, ...]
    indexes: dict[str, PreparedIndex]
    roles: SqlFile
    grants: GrantMatrix
    functions_by_name: dict[str, FunctionFile] = field(default_factory=dict)

    @property
    def version(self) -> int:
        """The schema version a fresh install has."""
        return self.migrations[-1].version if self.migrations else 0


def shipped_sql() -> Traversable:
    """The folder with the SQL: inside the installed package, else the checkout's `sql/`."""
    packaged = importlib.resources.files("counterfoil") / "sql"
    if packaged.is_dir():
        return packaged
    checkout = Path(__file__).resolve().parents[3] / "sql"
    if checkout.is_dir():
        return checkout
    raise SqlTreeError(
        "the package's SQL files are missing",
        where=str(packaged),
        hint="reinstall counterfoil, or run from a checkout",
    )


def load_tree(root: Traversable | None = None) -> SqlTree:
    """Read and check the SQL below `root` (the shipped SQL when None).

    Raises `SqlTreeError` for a gap or duplicate in the numbers, a misnamed file, a file that
    creates a function of another name, or a directive that names nothing.
    """
    base = shipped_sql() if root is None else root
    bootstrap = Migration(0, "bootstrap", _required(base, "bootstrap.sql"))
    functions = tuple(_functions(base))
    by_name = {function.name: function for function in functions}
    indexes = {index.name: index for index in _indexes(base)}
    migrations = tuple(_migrations(base))
    _check_directives(migrations, by_name, indexes)
    grants = _required(base, "grants.toml")
    return SqlTree(
        bootstrap=bootstrap,
        migrations=migrations,
        functions=functions,
        indexes=indexes,
        roles=_required(base, "roles.sql"),
        grants=GrantMatrix.parse(grants.text, grants.path),
        functions_by_name=by_name,
    )


def _read(node: Traversable, path: str) -> SqlFile:
    try:
        text = node.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise SqlTreeError("not UTF-8", where=path, hint="save it as UTF-8") from error
    text = text.replace("\r\n", "\n")
    return SqlFile(path, text, hashlib.sha256(text.encode()).hexdigest())


def _required(base: Traversable, name: str) -> SqlFile:
    node = base / name
    if not node.is_file():
        raise SqlTreeError("missing", where=name, hint="reinstall counterfoil")
    return _read(node, name)


def _sql_files(folder: Traversable, path: str) -> Iterator[tuple[str, SqlFile]]:
    if not folder.is_dir():
        return
    for node in sorted(folder.iterdir(), key=lambda n: n.name):
        if node.is_file() and node.name.endswith(".sql"):
            yield node.name, _read(node, f"{path}/{node.name}")


def _migrations(base: Traversable) -> Iterator[Migration]:
    expected = 1
    for filename, file in _sql_files(base / "migrations", "migrations"):
        match = _MIGRATION_NAME.fullmatch(filename)
        if match is None:
            raise SqlTreeError(
                "not a migration's name", where=file.path, hint="name it 0001_lower_case.sql"
            )
        version = int(match[1])
        if version != expected:
            problem = "twice" if version < expected else f"missing {expected:04d}"
            raise SqlTreeError(
                f"the numbers must run 0001, 0002, … without gap or duplicate ({problem})",
                where=file.path,
                hint="renumber the files that have not been released",
            )
        expected += 1
        _check_transactional(file)
        required: dict[str, list[str]] = {"index": [], "function": []}
        for kind, names in _DIRECTIVE.findall(file.text):
            required[kind.lower()] += re.split(r"[,\s]+", names)
        yield Migration(
            version, match[2], file, tuple(required["index"]), tuple(required["function"])
        )


def _check_transactional(file: SqlFile) -> None:
    for statement in statements(file.text):
        if _TRANSACTION.match(statement):
            raise SqlTreeError(
                f"transaction control in a migration: {statement[:40]}",
                where=file.path,
                hint="leave it out; the installer opens and commits the transaction",
            )
        if _NEEDS_NO_TRANSACTION.match(statement):
            raise SqlTreeError(
                f"cannot run inside a transaction: {statement[:40]}",
                where=file.path,
                hint="put a CONCURRENTLY index into indexes/ and require it",
            )


def _functions(base: Traversable) -> Iterator[FunctionFile]:
    folder = base / "functions"
    if not folder.is_dir():
        return
    seen: dict[str, str] = {}
    rooms = [node.name for node in folder.iterdir() if node.is_dir()]
    for room in sorted(rooms, key=lambda r: (ROOMS.index(r) if r in ROOMS else len(ROOMS), r)):
        for filename, file in _sql_files(folder / room, f"functions/{room}"):
            name = filename.removesuffix(".sql")
            if name in seen:
                raise SqlTreeError(
                    f"the function name is taken by {seen[name]}",
                    where=file.path,
                    hint="put all overloads of a name into one file",
                )
            seen[name] = file.path
            _check_function_file(name, file)
            since = _SINCE.search(file.text)
            yield FunctionFile(name, room, since[1] if since else None, file)


def _check_function_file(name: str, file: SqlFile) -> None:
    _check_transactional(file)
    created = [match[1] for s in statements(file.text) if (match := _CREATES.match(s))]
    others = sorted({other for other in created if other != name})
    if not created or others:
        raise SqlTreeError(
            f"creates {', '.join(others)}" if others else f"does not create counterfoil.{name}",
            where=file.path,
            hint="one function name a file, named like the file",
        )


def _indexes(base: Traversable) -> Iterator[PreparedIndex]:
    for filename, file in _sql_files(base / "indexes", "indexes"):
        name = filename.removesuffix(".sql")
        found = list(statements(file.text))
        match = _INDEX.match(found[0]) if len(found) == 1 else None
        if match is None or match[2] != name:
            raise SqlTreeError(
                f"must be one statement: create index concurrently {name} on counterfoil.…",
                where=file.path,
                hint="one index a file, named like the file",
            )
        yield PreparedIndex(name, match[3], file)


def _check_directives(
    migrations: tuple[Migration, ...],
    functions: dict[str, FunctionFile],
    indexes: dict[str, PreparedIndex],
) -> None:
    required = [(name, m) for m in migrations for name in m.indexes]
    for name, migration in required:
        if name not in indexes:
            raise SqlTreeError(
                f"requires an index that indexes/{name}.sql does not define",
                where=migration.file.path,
                hint="add the file or correct the name",
            )
    for migration in migrations:
        for name in migration.functions:
            if name not in functions:
                raise SqlTreeError(
                    f"requires a function that no file defines: {name}",
                    where=migration.file.path,
                    hint="add the file or correct the name",
                )
    idle = sorted(set(indexes) - {name for name, _ in required})
    if idle:
        raise SqlTreeError(
            "no migration requires this index, so a fresh install would not have it",
            where=indexes[idle[0]].file.path,
            hint=f"add '-- requires-index: {idle[0]}' to the migration that needs it",
        )
