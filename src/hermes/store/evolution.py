"""From whatever is stored to the schema of this Hermes: look at the number, and migrate only when it differs.

Invariant: a migration happens as a whole or not at all, after a backup, and never backwards.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from hermes.domain.errors import Conflict, HermesError, Misconfigured
from hermes.domain.protocols import Probe
from hermes.store import sqlite
from hermes.store.engine import Connection, Engine
from hermes.store.lock import held_by, server_lock

SCHEMA = 2
"""The number of the newest migration; a test compares it with the folder."""

MIGRATIONS = Path(__file__).parent / "migrations"

Keep = Callable[[Connection], object]


def open_current(
    engine: Engine,
    path: Path | None,
    probe: Probe,
    keep: Keep,
    *,
    schema: int = SCHEMA,
    folder: Path = MIGRATIONS,
) -> Connection:
    """Connect, and leave a database with the present schema behind. Blocks; `keep` backs up what is to be migrated.

    Raises Misconfigured for a damaged or foreign file, for a schema from the future, and for a file that a restore was
    about to put in its place; Unavailable when nobody answers.
    """
    if path is not None and not path.exists() and unfinished_restore(path).exists():
        raise Misconfigured(
            f"the database {str(path)!r} is missing: a restore was broken off. Do it again with "
            "`hermes db restore FILE`; what was there before is beside it"
        )
    if path is not None:
        # Nobody else's business, wherever the file is; SQLite gives its write-ahead log the same rights.
        path.touch(mode=0o600)
    with translated(engine):
        connection = engine.connect(is_reading=False)
        try:
            number = known_schema_number(connection, schema)
            connection.adopt()
            if number < schema:
                if number > 0:
                    _require_no_server(path)
                    keep(connection)
                migrate(connection, probe=probe, target=schema, folder=folder)
        except BaseException:
            connection.close()
            raise
    return connection


def _require_no_server(path: Path | None) -> None:
    """An older Hermes that works on the file would go on with tables it does not know."""
    holder = None if path is None else held_by(server_lock(path))
    if holder is not None:
        raise Conflict(
            f"the database {str(path)!r} has an older schema and a server works on it ({holder}); stop it first"
        )


def unfinished_restore(path: Path) -> Path:
    """Return the file that a restore builds before it puts it in the place of `path`."""
    return path.with_name(f"{path.name}.restoring")


@contextlib.contextmanager
def translated(engine: Engine) -> Iterator[None]:
    """Turn the driver's errors of a block into ours."""
    try:
        yield
    except HermesError:
        raise
    except Exception as error:
        failure = engine.understand(error)
        if failure is None:
            raise
        raise failure.error from error


def schema_number(connection: Connection) -> int:
    """Return the stored schema's number, 0 for an empty database."""
    names = {row[0] for row in connection.fetch(_TABLES[connection.dialect], ())}
    if "alembic_version" in names:
        rows = connection.fetch("SELECT version_num FROM alembic_version", ())
        return int(rows[0][0]) if rows else 0
    if names:
        raise Misconfigured(
            f"this is no Hermes database: it holds {min(names)!r} and others but no schema number; "
            "name an empty one in DATABASE_URL"
        )
    return 0


def known_schema_number(connection: Connection, schema: int = SCHEMA) -> int:
    """Return the stored schema's number; raises Misconfigured when only a newer Hermes knows it."""
    number = schema_number(connection)
    if number > schema:
        raise from_the_future(number)
    return number


def tables(connection: Connection) -> list[str]:
    """Return the names of our tables, sorted."""
    return sorted(row[0] for row in connection.fetch(_TABLES[connection.dialect], ()) if row[0] != "alembic_version")


def columns(connection: Connection, table: str) -> list[str]:
    """Return the names of a table's columns in their order."""
    if connection.dialect == "sqlite":
        return [row[0] for row in connection.fetch("SELECT name FROM pragma_table_info(?) ORDER BY cid", (table,))]
    rows = connection.fetch(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = ? "
        "ORDER BY ordinal_position",
        (table,),
    )
    return [row[0] for row in rows]


_TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
    "AND substr(name, 1, 12) <> 'messages_fts'",
    "postgres": "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() "
    "AND table_type = 'BASE TABLE' AND substr(table_name, 1, 12) <> 'messages_fts'",
}
"""The tables that hold something. The index for searching is made from them, and made again where it is missing."""


def from_the_future(number: int) -> Misconfigured:
    """Return the error for a schema that only a newer Hermes knows."""
    return Misconfigured(
        f"the database has schema {number}, this Hermes knows up to {SCHEMA}; nothing was changed. "
        "Use the newer Hermes again, or restore a backup from before with `hermes db restore FILE`"
    )


def migrate(connection: Connection, *, probe: Probe, target: int = SCHEMA, folder: Path = MIGRATIONS) -> None:
    """Run the migrations up to `target` in one transaction."""
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory
    from sqlalchemy import create_engine
    from sqlalchemy.pool import StaticPool

    config = Config()
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    script = ScriptDirectory.from_config(config)

    def steps(present: object, _context: object) -> object:
        return script._upgrade_revs(f"{target:04d}", present)  # type: ignore[arg-type]  # noqa: SLF001 - its only door

    url, options = _SQLALCHEMY[connection.dialect]
    engine = create_engine(url, creator=lambda: connection.raw, poolclass=StaticPool, **options)
    try:
        # SQLAlchemy's own begin() sends nothing here; it keeps Alembic from committing after each step.
        with engine.connect() as wrapped, wrapped.begin():
            connection.begin(is_reading=False)
            connection.order()
            config.attributes["connection"] = wrapped
            with EnvironmentContext(config, script, fn=steps, destination_rev=f"{target:04d}"):
                script.run_env()
            probe("migration.worked")
    finally:
        connection.rollback()


_SQLALCHEMY: dict[str, tuple[str, dict[str, object]]] = {
    "sqlite": ("sqlite://", {"module": sqlite.driver}),
    "postgres": ("postgresql+psycopg://", {}),
}
