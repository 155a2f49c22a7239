"""Every SQLSTATE of the contract has its class, on any connection of the process."""

from __future__ import annotations

import pickle

import psycopg
import pytest

from counterfoil import errors

PINNED = {
    "RL001": (errors.InvalidArgumentError, "invalid_argument", 400, False),
    "RL002": (errors.NotFoundError, "not_found", 404, False),
    "RL003": (errors.IdentityConflictError, "identity_conflict", 409, False),
    "RL004": (errors.LeaseLostError, "lease_lost", 409, True),
    "RL005": (errors.InvalidStateError, "invalid_state", 409, False),
    "RL006": (errors.CapacityError, "capacity", 503, True),
    "RL007": (errors.QuotaExceededError, "quota_exceeded", 429, True),
    "RL008": (errors.PayloadTooLargeError, "payload_too_large", 413, False),
    "RL009": (errors.SchemaVersionError, "schema_version", 503, False),
    "P0001": (errors.InvalidProjectionError, "invalid_projection", 422, False),
}


def raised(dsn: str, sqlstate: str, detail: str = "where", hint: str = "do this") -> psycopg.Error:
    with (
        psycopg.connect(dsn) as connection,
        pytest.raises(psycopg.Error) as caught,
    ):
        connection.execute(
            f"do $$ begin raise exception using errcode = '{sqlstate}', message = 'what',"
            f" detail = '{detail}', hint = '{hint}'; end $$".encode()
        )
    return caught.value


@pytest.mark.parametrize("sqlstate", PINNED)
def test_each_sqlstate_raises_its_class(admin_dsn: str, sqlstate: str) -> None:
    kind, name, status, retryable = PINNED[sqlstate]
    error = raised(admin_dsn, sqlstate)
    assert type(error) is kind
    assert (error.name, error.http_status, error.retryable) == (name, status, retryable)
    assert (error.message, error.reason, error.hint) == ("what", "where", "do this")
    assert str(error) == "what\nHINT:  do this"


def test_the_table_holds_them_all() -> None:
    assert {code: kind for code, (kind, *_) in PINNED.items()} == errors.BY_SQLSTATE


def test_a_strangers_exception_is_still_what_it_was(admin_dsn: str) -> None:
    assert isinstance(raised(admin_dsn, "P0001"), psycopg.errors.RaiseException)


@pytest.mark.parametrize("sqlstate", ["RL006", "RL007"])
def test_capacity_says_which_limit_and_how_long(admin_dsn: str, sqlstate: str) -> None:
    error = raised(admin_dsn, sqlstate, '{"limit": "maxQueued", "retryAfterMs": 2500}')
    assert isinstance(error, errors.CapacityError)
    assert (error.limit, error.retry_after_ms) == ("maxQueued", 2500)


def test_capacity_without_a_number_waits_a_second(admin_dsn: str) -> None:
    error = raised(admin_dsn, "RL006", "no JSON")
    assert isinstance(error, errors.CapacityError)
    assert (error.limit, error.retry_after_ms) == ("", 1000)


def test_an_error_of_the_drivers_own_reads_the_same() -> None:
    error = errors.InvalidArgumentError("p_x is bad", reason="p_x", hint="mend it")
    assert (error.message, error.reason, error.hint) == ("p_x is bad", "p_x", "mend it")
    assert error.sqlstate == "RL001"
    assert str(errors.InvalidArgumentError("p_x is bad")) == "p_x is bad"
    again = pickle.loads(pickle.dumps(error))
    assert (again.message, again.reason) == ("p_x is bad", "p_x")


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (psycopg.errors.AdminShutdown(), True),
        (psycopg.errors.TooManyConnections(), True),
        (psycopg.errors.DeadlockDetected(), True),
        (psycopg.errors.LockNotAvailable(), True),
        (psycopg.OperationalError("gone"), True),
        (errors.LeaseLostError(), True),
        (errors.InvalidArgumentError(), False),
        (psycopg.errors.UndefinedTable(), False),
        (psycopg.DataError("odd"), False),
    ],
)
def test_what_a_repeat_can_help(error: psycopg.Error, transient: bool) -> None:
    assert errors.is_transient(error) is transient


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (psycopg.errors.AdminShutdown(), True),
        (psycopg.errors.ConnectionFailure(), True),
        (psycopg.OperationalError("gone"), True),
        (psycopg.errors.QueryCanceled(), False),
        (psycopg.errors.DeadlockDetected(), False),
        (errors.CapacityError(), False),
        (ValueError(), False),
    ],
)
def test_what_means_that_the_database_is_away(error: Exception, away: bool) -> None:
    assert errors.is_disconnection(error) is away


def test_the_error_document_of_a_stranger_names_its_type_and_quotes_nothing() -> None:
    document = errors.error_document(ValueError("a secret payload"))
    assert document == {"message": "ValueError", "code": "driver_error", "retryable": True}


@pytest.mark.parametrize(("ms", "header"), [(1, "1"), (1000, "1"), (1001, "2"), (None, "1")])
def test_retry_after_is_whole_seconds_rounded_up(ms: int | None, header: str) -> None:
    assert errors.retry_after_seconds(ms) == header
