"""The SQL sources, read once and parsed with PostgreSQL's own parser.

A file may allow itself what a rule forbids, with a reason: ``-- allows: RULE: why``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pglast import ast, parse_plpgsql, parse_sql
from pglast.enums import FunctionParameterMode, ObjectType, RoleSpecType
from pglast.parser import ParseError

from lint.findings import Finding

SCHEMA = "counterfoil"
COMMON = "common"
ROOMS = (
    "admission",
    "attempts",
    "facts",
    "delivery",
    "ledger",
    "journal",
    "receipts",
    "operations",
)
"""In the order of the sentence in docs: a launch is admitted, attempted, leaves facts, …"""

_ALLOWS = re.compile(r"^-- allows: ([a-z-]+): (\S.*)$", re.MULTILINE)
_OUTPUT_MODES = (FunctionParameterMode.FUNC_PARAM_OUT, FunctionParameterMode.FUNC_PARAM_TABLE)


@dataclass(frozen=True)
class Query:
    """One piece of SQL inside a function, parsed, and the line it begins near."""

    statements: Sequence[ast.RawStmt]
    line: int


@dataclass
class Function:
    """One ``create function``: its declaration, and its body as trees."""

    path: Path
    name: str
    declaration: ast.CreateFunctionStmt
    text: str
    line: int
    plpgsql: Mapping[str, Any] | None = None
    queries: list[Query] = field(default_factory=list)

    @cached_property
    def options(self) -> dict[str, Any]:
        """What follows the parameters, by name; of several SET clauses ``sets`` has them all."""
        return {option.defname: option.arg for option in self.declaration.options or ()}

    @cached_property
    def sets(self) -> dict[str, list[str]]:
        """SET clauses: parameter name → values."""
        found = {}
        for option in self.declaration.options or ():
            if option.defname == "set":
                found[option.arg.name] = [_constant(value) for value in option.arg.args or ()]
        return found

    @property
    def language(self) -> str:
        """``sql``, ``plpgsql``, …"""
        return str(self.options["language"].sval) if "language" in self.options else "sql"

    @property
    def is_definer(self) -> bool:
        """Whether it runs with its owner's rights."""
        return "security" in self.options and bool(self.options["security"].boolval)

    @cached_property
    def signature(self) -> tuple[str, ...]:
        """Types of the input parameters, as the parser spells them."""
        return tuple(
            spell_type(parameter.argType)
            for parameter in self.declaration.parameters or ()
            if parameter.mode not in _OUTPUT_MODES
        )

    @property
    def inputs(self) -> list[str]:
        """Names of the input parameters ('' where one has none)."""
        return [
            parameter.name or ""
            for parameter in self.declaration.parameters or ()
            if parameter.mode not in _OUTPUT_MODES
        ]

    @property
    def outputs(self) -> list[str]:
        """Names of the columns it answers with."""
        return [
            parameter.name or ""
            for parameter in self.declaration.parameters or ()
            if parameter.mode in _OUTPUT_MODES
        ]


@dataclass
class Source:
    """One SQL file."""

    path: Path
    text: str
    statements: Sequence[ast.RawStmt]
    functions: list[Function]

    @property
    def room(self) -> str:
        """The folder it lies in."""
        return self.path.parent.name

    @cached_property
    def allowed(self) -> dict[str, str]:
        """Rules that this file may break, and why."""
        return {match[1]: match[2] for match in _ALLOWS.finditer(self.text)}

    @cached_property
    def header(self) -> str:
        """The comment that opens the file."""
        lines = []
        for line in self.text.splitlines():
            if not line.startswith("--"):
                break
            lines.append(line)
        return "\n".join(lines)

    def line_of(self, location: int) -> int:
        """Line number of a position in the text."""
        return self.text.count("\n", 0, location) + 1

    def commented(self) -> set[tuple[str, tuple[str, ...]]]:
        """Functions that get a comment here: (name, signature)."""
        return {
            _named(statement.stmt.object)
            for statement in self.statements
            if isinstance(statement.stmt, ast.CommentStmt)
            and statement.stmt.objtype == ObjectType.OBJECT_FUNCTION
            and (statement.stmt.comment or "").strip()
        }

    def revoked(self) -> set[tuple[str, tuple[str, ...]]]:
        """Functions that are taken from PUBLIC here: (name, signature)."""
        return {
            _named(item)
            for statement in self.statements
            if isinstance(statement.stmt, ast.GrantStmt)
            and not statement.stmt.is_grant
            and statement.stmt.privileges is None
            and statement.stmt.objtype == ObjectType.OBJECT_FUNCTION
            and any(
                grantee.roletype == RoleSpecType.ROLESPEC_PUBLIC
                for grantee in statement.stmt.grantees
            )
            for item in statement.stmt.objects
        }


@dataclass(frozen=True)
class Tree:
    """All function files, and who may call what."""

    sources: Sequence[Source]
    grants: Mapping[str, Sequence[str]]
    broken: Sequence[Finding] = ()

    @cached_property
    def room_of(self) -> dict[str, str]:
        """Function name → its room."""
        return {source.path.stem: source.room for source in self.sources}

    def is_private(self, name: str) -> bool:
        """Whether no role may call it."""
        return not self.grants.get(name)


def read_tree(root: Path) -> Tree:
    """Read ``root``/functions and ``root``/grants.toml."""
    matrix = tomllib.loads((root / "grants.toml").read_text(encoding="utf-8"))
    grants = {name: roles for room in matrix.values() for name, roles in room.items()}
    sources, broken = [], []
    for path in sorted(root.glob("functions/*/*.sql")):
        try:
            sources.append(read_source(path))
        except ParseError as error:
            broken.append(Finding(path, 1, "parse", f"PostgreSQL cannot parse it: {error}"))
    return Tree(sources, grants, broken)


def read_source(path: Path) -> Source:
    """Parse one file; raises pglast's ``ParseError`` where PostgreSQL would refuse it."""
    text = path.read_text(encoding="utf-8")
    statements = parse_sql(text)
    functions = [
        _function(path, text, statement)
        for statement in statements
        if isinstance(statement.stmt, ast.CreateFunctionStmt)
    ]
    return Source(path, text, statements, functions)


def spell_type(name: ast.TypeName) -> str:
    """A type as one word, the same however it was written."""
    parts = [part.sval for part in name.names]
    if parts[0] == "pg_catalog":
        parts = parts[1:]
    return ".".join(parts) + "[]" * len(name.arrayBounds or ())


def _function(path: Path, text: str, statement: ast.RawStmt) -> Function:
    declaration = statement.stmt
    end = statement.stmt_location + statement.stmt_len if statement.stmt_len else len(text)
    own = text[statement.stmt_location : end]
    start = re.search(r"^create\b", own, re.IGNORECASE | re.MULTILINE)
    skipped = start.start() if start else 0
    own = own[skipped:]
    line = text.count("\n", 0, statement.stmt_location + skipped) + 1
    name = declaration.funcname[-1].sval
    function = Function(path, name, declaration, own, line)
    if function.language == "plpgsql":
        # The parser outside the server knows neither our schema nor arrays of rows; the tree is
        # the same.
        known = re.sub(rf"\b{SCHEMA}\.\w+\[\]", "text[]", own).replace(f"{SCHEMA}.", "public.")
        tree = parse_plpgsql(f"{known};")[0]["PLpgSQL_function"]
        function.plpgsql = tree
        body_line = line + own[: own.find("$")].count("\n")
        function.queries.extend(_queries(tree, body_line))
    elif function.language == "sql" and "as" in function.options:
        body = function.options["as"][0].sval
        body_line = line + own[: own.find("$")].count("\n")
        function.queries.append(Query(parse_sql(body), body_line))
    return function


def _queries(tree: Mapping[str, Any], body_line: int) -> Iterator[Query]:
    """Every expression and statement in a PL/pgSQL tree."""
    for node, line in walk(tree, 1):
        expression = node.get("PLpgSQL_expr")
        if expression is None:
            continue
        text, mode = expression["query"].replace("public.", f"{SCHEMA}."), expression["parseMode"]
        if mode >= 3:  # an assignment: only its right side is SQL
            text = re.split(r":=|=", text, maxsplit=1)[1]
        if mode == 1:  # a type's name
            continue
        yield Query(parse_sql(text if mode == 0 else f"select {text}"), body_line + line - 1)


def walk(node: Any, line: int) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Every object of a PL/pgSQL tree with the line, in its body, of the statement around it."""
    if isinstance(node, list):
        for item in node:
            yield from walk(item, line)
    elif isinstance(node, dict):
        line = node.get("lineno", line)
        yield node, line
        for item in node.values():
            yield from walk(item, line)


def _named(item: ast.ObjectWithArgs) -> tuple[str, tuple[str, ...]]:
    return item.objname[-1].sval, tuple(spell_type(argument) for argument in item.objargs or ())


def _constant(value: ast.A_Const) -> str:
    constant = value.val
    return str(getattr(constant, "sval", None) or getattr(constant, "ival", constant))
