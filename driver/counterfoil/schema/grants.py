"""Who may call what: the role × function matrix of `sql/grants.toml`, and its SQL."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass

from counterfoil.schema.errors import SqlTreeError
from counterfoil.schema.sql import literal

ROLES = (
    "counterfoil_worker",
    "counterfoil_dispatcher",
    "counterfoil_gateway",
    "counterfoil_operator",
    "counterfoil_reader",
)
_PREFIX = "counterfoil_"


@dataclass(frozen=True)
class GrantMatrix:
    """Function name → the full names of the roles that may execute all its overloads."""

    rows: dict[str, frozenset[str]]
    rooms: dict[str, str]

    @classmethod
    def parse(cls, text: str, path: str) -> GrantMatrix:
        """Read the file's text. Raises `SqlTreeError` naming the bad row."""
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SqlTreeError(
                f"not TOML: {error}", where=path, hint="a function name may stand there only once"
            ) from error
        rows: dict[str, frozenset[str]] = {}
        rooms: dict[str, str] = {}
        for room, functions in document.items():
            if not isinstance(functions, dict):
                raise SqlTreeError(
                    f"{room} stands outside a room", where=path, hint="put it below a [room]"
                )
            for name, roles in functions.items():
                where = f"{path}: [{room}] {name}"
                if name in rows:
                    raise SqlTreeError(
                        f"also in [{rooms[name]}]", where=where, hint="keep one of the two rows"
                    )
                short = {role.removeprefix(_PREFIX) for role in ROLES}
                if not isinstance(roles, list) or not set(roles) <= short:
                    raise SqlTreeError(
                        f"must be a list of {', '.join(sorted(short))}",
                        where=where,
                        hint="[] is nobody",
                    )
                rows[name] = frozenset(_PREFIX + role for role in roles)
                rooms[name] = room
        return cls(rows, rooms)

    def apply_sql(self, identifier: str, roles: frozenset[str]) -> str:
        """SQL that makes the grants of the schema's functions exactly the matrix, for `roles`."""
        wanted = sorted(role for role in ROLES if role in roles)
        revokees = ", ".join(["public", *wanted])
        lines = [
            f"revoke all on schema {identifier} from {revokees};",
            f"revoke all on all tables in schema {identifier} from {revokees};",
            f"revoke all on all sequences in schema {identifier} from {revokees};",
            f"revoke all on all routines in schema {identifier} from {revokees};",
        ]
        if wanted:
            lines.append(f"grant usage on schema {identifier} to {', '.join(wanted)};")
        rows = [
            f"      ({literal(name)}, {literal(', '.join(granted))})"
            for name, allowed in sorted(self.rows.items())
            if (granted := [role for role in wanted if role in allowed])
        ]
        if rows:
            lines.append(
                _GRANT_BLOCK.format(
                    rows=",\n".join(rows),
                    id=identifier,
                    prefix=literal(f"grant execute on routine {identifier}."),
                )
            )
        return "\n".join(lines) + "\n"


# Signatures are the server's to spell, so the statements are made there. Only functions that the
# package installed are granted, never a stranger's overload of the same name.
_GRANT_BLOCK = """\
do $grants$
declare
  v_grant record;
begin
  for v_grant in
    select f.signature, m.roles
    from (values
{rows}
    ) as m (name, roles)
    join {id}.schema_functions as f on f.name = m.name
    order by f.signature
  loop
    execute {prefix} || v_grant.signature || ' to ' || v_grant.roles;
  end loop;
end
$grants$;"""
