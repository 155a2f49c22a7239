"""pgspot, run by the Python of its own environment.

To read a PL/pgSQL body it prints the function anew and parses that, and its printer loses quotes
that our functions need. Here it parses the text as it stands in the file.
"""

from __future__ import annotations

import re
from typing import Any

from pglast import parse_plpgsql, parse_sql
from pgspot import cli, visitors


def visit_plpgsql(state: Any, node: Any) -> None:
    """Analyse the body of the function that the file's current statement creates."""
    sql, location = state.counter.sql, state.counter.stmt_location
    statement = next(item for item in parse_sql(sql) if item.stmt_location == location)
    end = location + statement.stmt_len if statement.stmt_len else len(sql)
    # The parser outside the server knows neither our schema nor arrays of rows.
    text = re.sub(r"\bcounterfoil\.\w+\[\]", "text[]", sql[location:end])
    text = text.replace("counterfoil.", "public.")
    visitor = visitors.PLPGSQLVisitor(state)
    for item in parse_plpgsql(f"{text};"):
        visitor(item)


if __name__ == "__main__":
    visitors.visit_plpgsql = visit_plpgsql
    cli.run()
