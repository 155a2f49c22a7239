"""Reading SQL text: where its strings and comments are, and putting another schema name in it.

The shipped SQL says `counterfoil.thing` everywhere. A DBA may choose another schema, so the
qualifier is replaced, token by token, with that name in a form that is right for the place it
stands in: code, an identifier in quotes, a string, a string inside a string, a function body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from counterfoil.schema.errors import SchemaNameError

SHIPPED_SCHEMA = "counterfoil"
LONGEST_NAME = 48

Kind = Literal["code", "string", "escape_string", "identifier", "dollar", "comment"]

_TOKEN = re.compile(
    r"""
      (?P<line>--[^\n]*)
    | (?P<block>/\*)
    | (?P<escape_string>(?<![\w$])[eE]'(?:[^'\\]|''|\\.)*')
    | (?P<string>'(?:[^']|'')*')
    | (?P<identifier>"(?:[^"]|"")*")
    | (?P<dollar>(?<![\w$])\$(?:[^\W\d]\w*)?\$)
    """,
    re.VERBOSE | re.DOTALL,
)
_BLOCK_EDGE = re.compile(r"/\*|\*/")
# The qualifier is the bare word with a dot and a name (or a format placeholder) right behind it,
# and not part of a longer word (counterfoil_worker).
_QUALIFIER = re.compile(r'(?i)(?<![\w$.])counterfoil(?=\.[a-z_"%*])')
# In prose it is not part of a path or an address either, nor the end of a sentence.
_IN_PROSE = re.compile(r'(?<![\w$./@-])counterfoil(?=\.[A-Za-z_"%*])')
_SCHEMA_CLAUSE = re.compile(r"(?i)(\bschema\s+(?:if\s+(?:not\s+)?exists\s+)?)counterfoil(?![\w$])")


@dataclass(frozen=True)
class Token:
    """A stretch of SQL text of one kind. Joining the texts of all tokens gives the source back."""

    kind: Kind
    text: str


def check_schema_name(schema: str) -> None:
    """Raise `SchemaNameError` for a name that PostgreSQL or the rewriting could not carry."""

    def refuse(what: str) -> SchemaNameError:
        return SchemaNameError(
            what,
            where=f"schema {schema!r}",
            hint=f"choose a name of 1 to {LONGEST_NAME} bytes without control characters, "
            "percent signs, backslashes or two dollar signs; not public, not a system schema",
        )

    if not schema or len(schema.encode("utf-8", "surrogatepass")) > LONGEST_NAME:
        raise refuse(f"a schema name must have 1 to {LONGEST_NAME} bytes")
    if any(not c.isprintable() for c in schema):
        raise refuse("a schema name must not hold control or invisible characters")
    # A percent sign would be read as a placeholder by format() and raise, a backslash by E''.
    if "%" in schema or "\\" in schema or schema.count("$") > 1:
        raise refuse("the name cannot be written safely into function bodies")
    if schema in ("public", "information_schema") or schema.startswith("pg_"):
        raise refuse("Counterfoil wants a schema of its own")


def tokens(text: str) -> Iterator[Token]:
    """Cut SQL text into code, strings, quoted identifiers, dollar-quoted texts and comments."""
    at = 0
    while at < len(text):
        match = _TOKEN.search(text, at)
        if match is None:
            yield Token("code", text[at:])
            return
        if match.start() > at:
            yield Token("code", text[at : match.start()])
        kind, end = match.lastgroup, match.end()
        if kind == "block":
            end = _block_end(text, match.end())
        elif kind == "dollar":
            closing = text.find(match.group(), match.end())
            end = len(text) if closing < 0 else closing + len(match.group())
        found: dict[str | None, Kind] = {
            "line": "comment",
            "block": "comment",
            "escape_string": "escape_string",
            "string": "string",
            "identifier": "identifier",
            "dollar": "dollar",
        }
        yield Token(found[kind], text[match.start() : end])
        at = end


def _block_end(text: str, at: int) -> int:
    depth = 1
    while depth:
        edge = _BLOCK_EDGE.search(text, at)
        if edge is None:
            return len(text)
        depth += 1 if edge.group() == "/*" else -1
        at = edge.end()
    return at


# Steps are worked out again after every wait for a lock; the texts are the same.
@lru_cache(maxsize=1024)
def with_schema(text: str, identifier: str) -> str:
    """The same SQL for another schema. `identifier` is its name as SQL (quoted where needed)."""
    if identifier == SHIPPED_SCHEMA:
        return text
    return _rewritten(text, identifier)


def _rewritten(text: str, identifier: str) -> str:
    parts = list(tokens(text))
    rewritten = []
    for index, token in enumerate(parts):
        following = parts[index + 1].text if index + 1 < len(parts) else ""
        rewritten.append(_rewrite(token, following, identifier))
    return "".join(rewritten)


def _rewrite(token: Token, following: str, identifier: str) -> str:
    def put(form: str) -> Callable[[re.Match[str]], str]:
        return lambda _: form

    match token.kind:
        case "code":
            text = _SCHEMA_CLAUSE.sub(lambda m: m.group(1) + identifier, token.text)
            # A quoted name may follow the dot: counterfoil."Odd name".
            if following.startswith('"') and text.endswith("counterfoil."):
                text = _QUALIFIER.sub(put(identifier), text + '"')[:-1]
                return text
            return _QUALIFIER.sub(put(identifier), text)
        case "identifier":
            return identifier if token.text == f'"{SHIPPED_SCHEMA}"' else token.text
        case "string" | "escape_string":
            return _IN_PROSE.sub(lambda m: _inside_string(m, identifier), token.text)
        case "dollar":
            tag = token.text[: token.text.index("$", 1) + 1]
            body = token.text[len(tag) : -len(tag)]
            return tag + _rewritten(body, identifier) + tag
        case "comment":
            # Only so far as it stays one comment.
            safe = identifier.replace("*/", "* /").replace("/*", "/ *")
            return _IN_PROSE.sub(put(safe), token.text)


def _inside_string(match: re.Match[str], identifier: str) -> str:
    # Two quotes in a row before us, an odd number of times: a string within this string.
    before = match.string[: match.start()].split("'", 1)[1]
    nested = before.count("''") % 2 == 1
    return identifier.replace("'", "''''" if nested else "''")


def statements(text: str) -> Iterator[str]:
    """The top-level statements of a script, without comments, white space squeezed."""
    current: list[str] = []
    for token in tokens(text):
        if token.kind == "comment":
            current.append(" ")
        elif token.kind == "code":
            pieces = token.text.split(";")
            for piece in pieces[:-1]:
                current.append(piece)
                yield from _squeezed(current)
                current = []
            current.append(pieces[-1])
        else:
            current.append(token.text)
    yield from _squeezed(current)


def _squeezed(parts: list[str]) -> Iterator[str]:
    statement = " ".join("".join(parts).split())
    if statement:
        yield statement


def literal(value: str) -> str:
    """`value` as an SQL string literal."""
    quoted = "'" + value.replace("'", "''") + "'"
    return "E" + quoted.replace("\\", "\\\\") if "\\" in value else quoted
