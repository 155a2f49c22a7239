"""What the SQL inside function bodies may not do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pglast import ast
from pglast.enums import BoolExprType, NullTestType
from pglast.visitors import Ancestor, Visitor

from lint.sources import SCHEMA, Function

VOLATILE = {"clock_timestamp", "gen_random_uuid", "nextval", "random", "timeofday"}


def forbidden_in(
    statements: Sequence[ast.RawStmt], function: Function, room_of: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """(rule, message) for everything in ``statements`` that breaks a rule."""
    surveyor = _Surveyor()
    for statement in statements:
        surveyor(statement)
    variables = {*function.inputs, *function.outputs}
    inspector = _Inspector(surveyor, variables, room_of)
    for statement in statements:
        inspector(statement)
    yield from inspector.findings


def called(statements: Sequence[ast.RawStmt]) -> set[str]:
    """Names of the schema's own functions that ``statements`` call."""
    surveyor = _Surveyor()
    for statement in statements:
        surveyor(statement)
    return surveyor.calls


class _Surveyor(Visitor):  # type: ignore[misc]
    """Collects the names that a query introduces, and the functions it calls."""

    def __init__(self) -> None:
        super().__init__()
        self.common_tables: set[str] = set()
        self.aliases: set[str] = set()
        self.columns: set[str] = set()
        self.calls: set[str] = set()

    def visit_CommonTableExpr(self, _: Ancestor, node: ast.CommonTableExpr) -> None:
        self.common_tables.add(node.ctename)

    def visit_Alias(self, _: Ancestor, node: ast.Alias) -> None:
        self.aliases.add(node.aliasname)

    def visit_ResTarget(self, _: Ancestor, node: ast.ResTarget) -> None:
        if node.name:
            self.columns.add(node.name)

    def visit_FuncCall(self, _: Ancestor, node: ast.FuncCall) -> None:
        names = [part.sval for part in node.funcname]
        if len(names) == 2 and names[0] == SCHEMA:
            self.calls.add(names[1])


class _Inspector(Visitor):  # type: ignore[misc]
    """Applies the rules, knowing what the surveyor saw."""

    def __init__(self, seen: _Surveyor, variables: set[str], room_of: Mapping[str, str]) -> None:
        super().__init__()
        self.seen = seen
        self.variables = variables
        self.room_of = room_of
        self.findings: list[tuple[str, str]] = []

    def _find(self, rule: str, message: str) -> None:
        self.findings.append((rule, message))

    def visit_RangeVar(self, _: Ancestor, node: ast.RangeVar) -> None:
        # FOR UPDATE OF names an alias, not a table.
        known = self.seen.common_tables | self.seen.aliases
        # The system catalog is first on every pinned search_path.
        if node.schemaname is None and node.relname not in known and node.relname[:3] != "pg_":
            self._find("qualified", f"{node.relname} is named without its schema")

    def visit_FuncCall(self, ancestors: Ancestor, node: ast.FuncCall) -> None:
        names = [part.sval for part in node.funcname]
        if len(names) == 1 and names[0] in self.room_of:
            self._find("qualified", f"{names[0]}() is called without its schema")
        if names[-1].startswith(("pg_advisory", "pg_try_advisory")):
            self._find("advisory-lock", f"{names[-1]}() guards nothing here: row locks do")
        if names[-1] in VOLATILE and _is_written(ancestors):
            message = f"{names[-1]}() in set or returning: put it in a variable first"
            self._find("volatile", message)

    def visit_MergeStmt(self, _: Ancestor, node: ast.MergeStmt) -> None:
        self._find("merge", "merge is not used: insert … on conflict")

    def visit_ColumnRef(self, ancestors: Ancestor, node: ast.ColumnRef) -> None:
        if len(node.fields) != 1 or not isinstance(node.fields[0], ast.String):
            return
        name = node.fields[0].sval
        if name.startswith(("p_", "v_")) or name in self.seen.aliases | self.variables:
            return
        if name in self.seen.common_tables or name == "found" or name.startswith("__Case__"):
            return
        if name in self.seen.columns and _is_ordering(ancestors):
            return
        self._find("column-alias", f"{name} is named without the alias of its table")

    def visit_BoolExpr(self, _: Ancestor, node: ast.BoolExpr) -> None:
        if node.boolop != BoolExprType.OR_EXPR:
            return
        tested = {
            _parameter(item.arg)
            for item in node.args
            if isinstance(item, ast.NullTest) and item.nulltesttype == NullTestType.IS_NULL
        } - {None}
        for item in node.args:
            if isinstance(item, ast.A_Expr):
                for side in (item.lexpr, item.rexpr):
                    other = item.rexpr if side is item.lexpr else item.lexpr
                    if _parameter(side) in tested and _is_column(other):
                        message = (
                            f"({_parameter(side)} is null or …) makes one plan for two queries"
                        )
                        self._find("optional-filter", message)


def _parameter(node: Any) -> str | None:
    if isinstance(node, ast.ColumnRef) and len(node.fields) == 1:
        name = getattr(node.fields[0], "sval", "")
        return name if name.startswith(("p_", "v_")) else None
    return None


def _is_column(node: Any) -> bool:
    return isinstance(node, ast.ColumnRef) and len(node.fields) > 1


def _chain(ancestors: Ancestor) -> Iterator[tuple[Any, str]]:
    """(node, name of the attribute below it), innermost first."""
    step: Ancestor | None = ancestors
    while step is not None:
        yield step.node, step.member if isinstance(step.member, str) else ""
        step = step.parent


def _is_written(ancestors: Ancestor) -> bool:
    """Whether the place is the right side of a SET or in a RETURNING."""
    for node, member in _chain(ancestors):
        if isinstance(node, ast.SelectStmt):
            return False  # a subquery is evaluated on its own
        if member in ("returningList", "returningClause"):
            return True
        if member == "targetList" and isinstance(node, ast.UpdateStmt | ast.OnConflictClause):
            return True
    return False


def _is_ordering(ancestors: Ancestor) -> bool:
    return any(member in ("sortClause", "groupClause") for _, member in _chain(ancestors))
