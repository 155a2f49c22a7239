"""Run pgTAP files without Perl or psql: what ``counterfoil pgtap`` does.

Each file gets a session of its own, statement by statement, and leaves nothing: the session ends
without a commit of its own. What the statements answer is read as TAP. A file passes when it runs
to its end, states a plan, runs exactly as many tests as planned, and each of them is ``ok``.

Of psql's own commands only ``\\ir`` and ``\\i`` (include a file) are understood; ``\\set``,
``\\unset``, ``\\pset`` and ``\\echo`` are passed over; any other is an error that names its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

_TOKEN = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>--[^\n]*)
    | (?P<block>/\*)
    | (?P<dollar>\$(?:[^\W\d]\w*)?\$)
    | (?P<escaped>[eE]'(?:[^'\\]|''|\\.)*')
    | (?P<string>'(?:[^']|'')*')
    | (?P<name>"(?:[^"]|"")*")
    | (?P<word>[^\W\d][\w$]*)
    | (?P<number>\d[\w.]*)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_RESULT = re.compile(
    r"(?P<not>not )?ok\b *(?P<number>\d+)?(?P<text>[^#]*)(?:# *(?P<why>todo|skip)\b)?",
    re.IGNORECASE,
)
_PLAN = re.compile(r"1\.\.(?P<count>\d+)(?P<skip> *# *skip\b)?", re.IGNORECASE)
_PASSED_OVER = {"set", "unset", "pset", "echo"}


class ScriptError(ValueError):
    """A test file cannot be read as a script; the message gives file and line."""


@dataclass(frozen=True)
class Statement:
    """One SQL statement and where it begins."""

    sql: str
    path: Path
    line: int


@dataclass
class FileResult:
    """What one file's TAP said. ``problems`` is empty when the file passed."""

    path: Path
    planned: int | None = None
    passed: int = 0
    failed: int = 0
    skipped_whole: bool = False
    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether every planned test ran and passed, and the file came to its end."""
        return not self.problems

    def read(self, text: str) -> None:
        """Take in what one row of an answer said, which may be several lines."""
        for line in text.splitlines():
            if plan := _PLAN.match(line):
                self.planned = int(plan["count"])
                self.skipped_whole = bool(plan["skip"])
            elif line.startswith("Bail out!"):
                self.problems.append(line)
            elif result := _RESULT.match(line):
                self._count(result)

    def _count(self, result: re.Match[str]) -> None:
        number = self.passed + self.failed + 1
        if result["number"] is not None and int(result["number"]) != number:
            self.problems.append(f"test {number} came with the number {result['number']}")
        if result["not"] and not result["why"]:
            self.failed += 1
            self.problems.append(f"test {number} failed:{result['text'].rstrip()}")
        else:
            self.passed += 1

    def close(self) -> None:
        """Judge the plan, once the file has come to its end or died."""
        ran = self.passed + self.failed
        if self.planned is None:
            self.problems.append("no plan was stated (is finish() missing?)")
        elif ran != self.planned:
            self.problems.append(f"{self.planned} tests were planned, {ran} ran")
        elif ran == 0 and not self.skipped_whole:
            self.problems.append("no test ran")


@dataclass(frozen=True)
class Summary:
    """All files of one run."""

    files: Sequence[FileResult]

    @property
    def passed(self) -> int:
        """Tests that passed."""
        return sum(result.passed for result in self.files)

    @property
    def failed(self) -> int:
        """Tests that failed, and files that died or missed their plan."""
        return sum(result.failed or (0 if result.ok else 1) for result in self.files)


def find_files(paths: Sequence[Path]) -> list[Path]:
    """The ``.sql`` files among ``paths``, folders searched to the bottom, ordered by name."""
    found: set[Path] = set()
    for path in paths:
        if not path.exists():
            raise ScriptError(f"{path}: no such file or folder")
        found.update(path.rglob("*.sql") if path.is_dir() else [path])
    return sorted(found)


def run_files(dsn: str, paths: Sequence[Path], say: Callable[[str], None]) -> Summary:
    """Run each file below ``paths`` in the database of ``dsn``; ``say`` gets lines for people."""
    results = []
    for path in find_files(paths):
        result = run_file(dsn, path)
        results.append(result)
        say(f"{path} .. {'ok' if result.ok else 'FAILED'}")
        for problem in result.problems:
            say(f"    {problem}")
    return Summary(results)


def run_file(dsn: str, path: Path) -> FileResult:
    """Run one file in a session of its own."""
    result = FileResult(path)
    # Closed, not left by `with connection`, which would commit what a dying file had begun.
    with closing(psycopg.connect(dsn, autocommit=True, prepare_threshold=None)) as connection:
        try:
            for statement in read_script(path):
                _execute(connection, statement, result)
        except ScriptError as error:
            result.problems.append(str(error))
    result.close()
    return result


def _execute(connection: psycopg.Connection, statement: Statement, result: FileResult) -> None:
    where = f"{statement.path}:{statement.line}"
    try:
        # Sent as bytes, since the text is a file's own and not composed here.
        cursor = connection.execute(statement.sql.encode())
    except psycopg.Error as error:
        raise ScriptError(f"{where}: died: {str(error).strip()}") from error
    if cursor.description is not None:
        for row in cursor:
            result.read("|".join("" if value is None else str(value) for value in row))


def read_script(path: Path) -> Iterator[Statement]:
    """The statements of a file and of those it includes, in the order psql would send them."""
    text = path.read_text(encoding="utf-8")
    position = start = depth = 0
    words: list[str] = []
    while position < len(text):
        if not words and text[position] == "\\":
            end = text.find("\n", position)
            end = len(text) if end < 0 else end
            yield from _command(text[position + 1 : end].strip(), path, _line(text, position))
            position = end
            continue
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None or match[0] in ("'", '"'):
            raise ScriptError(f"{path}:{_line(text, position)}: a quote is never closed")
        kind, lexeme = match.lastgroup, match[0]
        position = _end_of(kind, text, match, path)
        if kind in ("space", "comment", "block"):
            continue
        depth += (lexeme == "(") - (lexeme == ")")
        if kind == "other" and lexeme == ";" and depth <= 0 and not _in_atomic_body(words):
            if words:
                yield _statement(text, start, position, path)
            words, depth = [], 0
        else:
            if not words:
                start = match.start()
            words.append(lexeme.lower() if kind == "word" else lexeme)
    if words:
        yield _statement(text, start, len(text), path)


def _statement(text: str, start: int, end: int, path: Path) -> Statement:
    return Statement(text[start:end].rstrip(), path, _line(text, start))


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _end_of(kind: str, text: str, match: re.Match[str], path: Path) -> int:
    """Where the token ends; comments nest, and a dollar quote ends at its own tag."""
    if kind == "dollar":
        end = text.find(match[0], match.end())
        if end < 0:
            raise ScriptError(f"{path}:{_line(text, match.start())}: {match[0]} is never closed")
        return end + len(match[0])
    if kind != "block":
        return match.end()
    depth, position = 1, match.end()
    for edge in re.finditer(r"/\*|\*/", text[position:]):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return position + edge.end()
    raise ScriptError(f"{path}:{_line(text, match.start())}: a comment is never closed")


def _in_atomic_body(words: Sequence[str]) -> bool:
    """Whether a ``begin atomic`` body of a function is still open: its semicolons end nothing."""
    if words[:1] != ["create"] or not {"function", "procedure"} & set(words[1:4]):
        return False
    opened = sum(word in ("begin", "case") for word in words) - words.count("end")
    return opened > 0 and "atomic" in words


def _command(command: str, path: Path, line: int) -> Iterator[Statement]:
    name, _, argument = command.partition(" ")
    if name in ("ir", "i", "include_relative", "include"):
        base = path.parent if name in ("ir", "include_relative") else Path()
        included = base / argument.strip().strip("'")
        if not included.is_file():
            raise ScriptError(f"{path}:{line}: \\{name}: {included} is not a file")
        yield from read_script(included)
    elif name not in _PASSED_OVER:
        raise ScriptError(f"{path}:{line}: \\{name} is not understood by this runner")
