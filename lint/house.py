"""House rules of the SQL: what DESIGN asks of every function file and migration.

``RULES`` holds the rules; each takes a source and the whole tree and gives what it finds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from pglast import ast, parse_sql
from pglast.parser import scan
from pglast.visitors import Visitor

from lint.findings import Finding
from lint.queries import forbidden_in
from lint.sources import COMMON, ROOMS, SCHEMA, Function, Source, Tree, read_tree, walk

Rule = Callable[[Source, Tree], Iterator[Finding]]

_HEADER = ("Promises", "Locks", "Raises", "Since")
_RAISE_PARTS = {0: "errcode", 1: "message", 2: "detail", 3: "hint"}
_ERROR = 21
_LINE = 140
_ESCAPED = re.compile(r"\b[eE]'((?:[^'\\]|\\.|'')*)'", re.DOTALL)
_UNKNOWN_ESCAPE = re.compile(r"\\(?:[bfnrtxuU0-7'\\]|(.))")
_PINNED = ["pg_catalog", "pg_temp"]


def one_name(source: Source, tree: Tree) -> Iterator[Finding]:
    """A file holds the overloads of one function, in the schema's name, and is named after it."""
    if source.room not in (*ROOMS, COMMON):
        yield Finding(source.path, 1, "one-name", f"there is no room {source.room}")
    if not source.functions:
        yield Finding(source.path, 1, "one-name", "no function is created here")
    for function in source.functions:
        names = [part.sval for part in function.declaration.funcname]
        if names != [SCHEMA, source.path.stem]:
            message = f"creates {'.'.join(names)}, not {SCHEMA}.{source.path.stem}"
            yield Finding(source.path, function.line, "one-name", message)
        if not function.declaration.replace:
            yield Finding(source.path, function.line, "one-name", "says create, not or replace")
        if function.language in ("sql", "plpgsql") and "$function$" not in function.text:
            message = "the body is not in $function$"
            yield Finding(source.path, function.line, "one-name", message)


def header(source: Source, tree: Tree) -> Iterator[Finding]:
    """A file opens with what it promises, locks and raises, and since which version."""
    if not source.header.startswith(f"-- {source.path.stem}:"):
        message = f"the file does not open with `-- {source.path.stem}: …`"
        yield Finding(source.path, 1, "header", message)
    for section in _HEADER:
        if not re.search(rf"\b{section}:[ \t]*\S", source.header):
            message = f"the opening comment has no section `{section}: …`"
            yield Finding(source.path, 1, "header", message)


def names(source: Source, tree: Tree) -> Iterator[Finding]:
    """Parameters are ``p_…``, locals ``v_…``."""
    for function in source.functions:
        for name in function.inputs:
            if not name.startswith("p_"):
                message = f"the parameter {name or '(unnamed)'} is not named p_…"
                yield Finding(source.path, function.line, "names", message)
        if function.plpgsql is None:
            continue
        for name, line in _locals(function):
            if not name.startswith("v_"):
                message = f"the local variable {name} is not named v_…"
                yield Finding(source.path, line, "names", message)


def _locals(function: Function) -> Iterator[tuple[str, int]]:
    assert function.plpgsql is not None
    for datum in function.plpgsql["datums"]:
        for kind, variable in datum.items():
            name = variable.get("refname", "")
            implied = name in ("sqlstate", "sqlerrm") or name.startswith("__Case__")
            # Parameters and result columns have no line of their own.
            if kind in ("PLpgSQL_var", "PLpgSQL_rec") and "lineno" in variable and not implied:
                yield name, body_line(function) + variable["lineno"] - 1


def body_line(function: Function) -> int:
    """Line of the file on which the body's first line lies."""
    return function.line + function.text[: function.text.find("$function$")].count("\n")


def markings(source: Source, tree: Tree) -> Iterator[Finding]:
    """Volatility, parallel, strictness and security are written out, and agree with the grants."""
    written = {
        "volatility": "volatile, stable or immutable",
        "parallel": "parallel safe, restricted or unsafe",
        "strict": "strict or called on null input",
        "security": "security definer or security invoker",
    }
    for function in source.functions:
        for option, choice in written.items():
            if option not in function.options:
                message = f"it is not written out whether {function.name} is {choice}"
                yield Finding(source.path, function.line, "markings", message)
        if function.name not in tree.grants:
            message = f"grants.toml has no row for {function.name}"
            yield Finding(source.path, function.line, "markings", message)
        elif "security" in function.options and function.is_definer == tree.is_private(
            function.name
        ):
            message = (
                f"{function.name} is private, so it must be security invoker"
                if function.is_definer
                else f"roles may call {function.name}, so it must be security definer"
            )
            yield Finding(source.path, function.line, "markings", message)


def search_path(source: Source, tree: Tree) -> Iterator[Finding]:
    """PL/pgSQL and definer functions pin ``search_path = pg_catalog, pg_temp``."""
    for function in source.functions:
        pinned = function.sets.get("search_path")
        if pinned == _PINNED:
            continue
        if pinned is not None or function.is_definer or function.language == "plpgsql":
            message = f"{function.name} does not set search_path = pg_catalog, pg_temp"
            yield Finding(source.path, function.line, "search-path", message)


def comment_and_revoke(source: Source, tree: Tree) -> Iterator[Finding]:
    """Each overload is commented on and taken from PUBLIC, under its own signature."""
    commented, revoked = source.commented(), source.revoked()
    for function in source.functions:
        spelled = f"{function.name}({', '.join(function.signature)})"
        if (function.name, function.signature) not in commented:
            message = f"no comment on function {spelled}"
            yield Finding(source.path, function.line, "comment-and-revoke", message)
        if (function.name, function.signature) not in revoked:
            message = f"no revoke all on function {spelled} from public"
            yield Finding(source.path, function.line, "comment-and-revoke", message)


def raises(source: Source, tree: Tree) -> Iterator[Finding]:
    """Errors are raised by the helpers alone, and those give all four parts."""
    is_helper = source.room == COMMON and source.path.stem.startswith("raise_")
    for function in source.functions:
        for node, line in walk(function.plpgsql, 1):
            raised = node.get("PLpgSQL_stmt_raise")
            if raised is None or raised.get("elog_level") != _ERROR:
                continue
            where = body_line(function) + raised.get("lineno", line) - 1
            options = raised.get("options", [])
            parts = {item["PLpgSQL_raise_option"]["opt_type"] for item in options}
            if not parts and "message" not in raised and "condname" not in raised:
                continue  # `raise;` passes on an error that was caught
            if not is_helper:
                message = "an error is raised here, not by a raise_ helper of common/"
                yield Finding(source.path, where, "raise", message)
            missing = [name for part, name in _RAISE_PARTS.items() if part not in parts]
            if missing:
                message = f"the error has no {', '.join(missing)}"
                yield Finding(source.path, where, "raise", message)


def exception_block(source: Source, tree: Tree) -> Iterator[Finding]:
    """No subtransactions."""
    for function in source.functions:
        for node, line in walk(function.plpgsql, 1):
            if "exceptions" in node:
                where = body_line(function) + line - 1
                message = "an exception block starts a subtransaction"
                yield Finding(source.path, where, "exception-block", message)


def in_queries(source: Source, tree: Tree) -> Iterator[Finding]:
    """What SQL inside the bodies may not do: see lint.queries."""
    for function in source.functions:
        for query in function.queries:
            for rule, message in forbidden_in(query.statements, function, tree.room_of):
                yield Finding(source.path, query.line, rule, message)


def no_triggers(source: Source, tree: Tree) -> Iterator[Finding]:
    """Logic lives in functions."""
    for statement in source.statements:
        if isinstance(statement.stmt, ast.CreateTrigStmt | ast.RuleStmt | ast.CreateEventTrigStmt):
            line = source.line_of(statement.stmt_location)
            yield Finding(source.path, line, "trigger", "triggers and rules are not used")


def lower_case(source: Source, tree: Tree) -> Iterator[Finding]:
    """Key words and names are in lower case, in bodies too."""
    yield from _upper_case(source.path, source.text, 1)
    for function in source.functions:
        _, _, rest = function.text.partition("$function$")
        yield from _upper_case(source.path, rest.partition("$function$")[0], body_line(function))


def _upper_case(path: Path, text: str, first_line: int) -> Iterator[Finding]:
    for token in scan(text):
        word = text[token.start : token.end + 1]
        if (token.kind != "NO_KEYWORD" or token.name == "IDENT") and word != word.lower():
            if word.startswith('"'):
                continue
            line = first_line + text.count("\n", 0, token.start)
            yield Finding(path, line, "lower-case", f"{word} is not in lower case")


def escapes(source: Source, tree: Tree) -> Iterator[Finding]:
    """An escape means the same everywhere: 15 takes one that it does not know for a letter."""
    for string in _ESCAPED.finditer(source.text):
        for escape in _UNKNOWN_ESCAPE.finditer(string[1]):
            if escape[1] is not None:
                line = source.text.count("\n", 0, string.start(1) + escape.start()) + 1
                message = f"\\{escape[1]} is no escape on PostgreSQL 15: write it as \\x…"
                yield Finding(source.path, line, "escape", message)


def line_length(source: Source, tree: Tree) -> Iterator[Finding]:
    """Code fits on a screen. The literal of a comment on an object is one line, however long."""
    for number, line in enumerate(source.text.splitlines(), 1):
        if len(line) > _LINE and not line.startswith(("'", "comment on ", "revoke all on ")):
            message = f"the line has {len(line)} characters; {_LINE} is the limit"
            yield Finding(source.path, number, "line-length", message)


class _Unqualified(Visitor):  # type: ignore[misc]
    """Collects relations that a migration names without their schema."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def visit_RangeVar(self, ancestors: object, node: ast.RangeVar) -> None:
        if node.schemaname is None:
            self.found.append(node.relname)


def migration_names(path: Path) -> Iterator[Finding]:
    """A migration names each table with its schema, and makes no trigger."""
    text = path.read_text(encoding="utf-8")
    yield from _upper_case(path, text, 1)
    for statement in parse_sql(text):
        line = text.count("\n", 0, statement.stmt_location) + 1
        visitor = _Unqualified()
        visitor(statement.stmt)
        for name in visitor.found:
            yield Finding(path, line, "qualified", f"{name} is named without its schema")
        if isinstance(statement.stmt, ast.CreateTrigStmt | ast.RuleStmt | ast.CreateEventTrigStmt):
            yield Finding(path, line, "trigger", "triggers and rules are not used")


RULES: tuple[Rule, ...] = (
    one_name,
    header,
    names,
    markings,
    search_path,
    comment_and_revoke,
    raises,
    exception_block,
    in_queries,
    no_triggers,
    lower_case,
    escapes,
    line_length,
)


def check_source(source: Source, tree: Tree) -> Iterator[Finding]:
    """All findings of one function file that it does not allow itself."""
    used = set()
    for rule in RULES:
        for finding in rule(source, tree):
            if finding.rule in source.allowed:
                used.add(finding.rule)
            else:
                yield finding
    for rule_name in source.allowed.keys() - used:
        message = f"allows {rule_name}, which nothing here breaks"
        yield Finding(source.path, 1, "allows", message)


def check(root: Path) -> list[Finding]:
    """All findings of the SQL below ``root``."""
    tree = read_tree(root)
    findings = list(tree.broken)
    for source in tree.sources:
        findings.extend(check_source(source, tree))
    for path in sorted(root.glob("migrations/*.sql")):
        findings.extend(migration_names(path))
    return sorted(findings)
