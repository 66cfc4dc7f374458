"""What an error of PostgreSQL means to a caller: by its whole SQLSTATE, and without one by its kind."""

import pytest

from hermes.domain.errors import Conflict, Misconfigured, Unavailable
from hermes.store.engine import Failure

psycopg = pytest.importorskip("psycopg")


def understood(error: Exception) -> Failure:
    from hermes.store.postgres import PostgresEngine

    failure = PostgresEngine("postgresql://h/d").understand(error)
    assert failure is not None
    return failure


@pytest.mark.parametrize(
    ("state", "kind", "may_pass", "said"),
    [
        ("25006", Unavailable, False, "primary"),
        ("25P02", Unavailable, True, "gave up this transaction"),
        ("25P03", Unavailable, True, "gave up this transaction"),
        ("25001", Unavailable, True, "gave up this transaction"),
        ("40001", Unavailable, True, "gave up this transaction"),
        ("57014", Unavailable, False, "30 s"),
        ("57P01", Unavailable, True, "stopped"),
        ("55P03", Unavailable, True, "stopped"),
        ("22021", Misconfigured, False, "cannot store"),
        ("22003", Misconfigured, False, "cannot store"),
        ("23505", Conflict, False, "rule"),
        ("28P01", Misconfigured, False, "password"),
        ("3D000", Misconfigured, False, "DATABASE_URL"),
        ("53300", Unavailable, False, "out of"),
        ("08006", Unavailable, True, "is the server running"),
    ],
)
def test_an_error_means_what_its_state_says(state: str, kind: type[Exception], may_pass: bool, said: str) -> None:
    failure = understood(psycopg.errors.lookup(state)("what the server said"))
    assert (type(failure.error), failure.may_pass) == (kind, may_pass)
    assert said in str(failure.error)
    assert "what the server said" in str(failure.error)


def test_a_connection_that_is_refused_asks_for_the_server_and_for_what_is_in_the_url() -> None:
    failure = understood(psycopg.OperationalError("connection failed: password authentication failed"))
    assert isinstance(failure.error, Unavailable)
    assert failure.may_pass
    for word in ("running", "user", "password", "database", "DATABASE_URL"):
        assert word in str(failure.error)


def test_a_text_that_the_driver_refuses_is_named() -> None:
    failure = understood(psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes"))
    assert isinstance(failure.error, Misconfigured)
    assert not failure.may_pass
    assert "NUL" in str(failure.error)
