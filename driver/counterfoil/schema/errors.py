"""What can go wrong with the schema: one exception a cause; what, where, and what to do."""

from __future__ import annotations


class MigrationError(Exception):
    """Anything the installer refuses or fails at.

    `what` is one sentence, `where` the file, object or connection it is about ("" when it is
    about none), `hint` what to do next. `sqlstate` is the server's, or one of Counterfoil's own
    (`RL009` when driver and schema do not fit), or None.
    """

    sqlstate: str | None = None

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what = what
        self.where = where
        self.hint = hint
        text = f"{where}: {what}" if where else what
        super().__init__(f"{text}\n  what to do: {hint}" if hint else text)


class SqlTreeError(MigrationError):
    """The shipped SQL itself is not in order: a gap, a duplicate, a misnamed file, a bad row."""


class SchemaNameError(MigrationError):
    """The schema name cannot be used."""


class ConnectionFailedError(MigrationError):
    """The server could not be reached, or refused the login."""


class SchemaOccupiedError(MigrationError):
    """The schema exists, holds objects, and they are not Counterfoil's."""


class SchemaNewerError(MigrationError):
    """The database was migrated by a newer package than this one (`RL009`)."""

    sqlstate = "RL009"


class EditedMigrationError(MigrationError):
    """A migration that has been applied no longer has the content that was applied."""


class NotOwnerError(MigrationError):
    """The login may not change the schema."""


class IndexNotReadyError(MigrationError):
    """A migration needs an index that has not been prepared, or whose preparation failed."""


class StepFailedError(MigrationError):
    """The server refused a statement; the step's transaction was rolled back whole."""

    def __init__(
        self, what: str, *, where: str = "", hint: str = "", sqlstate: str | None = None
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.sqlstate = sqlstate


class ExpectedShapeError(StepFailedError):
    """The shipped SQL could not be installed on the side, to compare with; nothing was changed."""
