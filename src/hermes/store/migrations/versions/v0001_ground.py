"""The ground: events and streams, cursors, jobs and attempts, schedules, users and keys."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the first tables."""
    op.create_table(
        "api_keys",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "id"),
    )
    op.create_index("api_keys_digest", "api_keys", ["digest"], unique=True)
    op.create_table(
        "attempts",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "job", "fence"),
    )
    op.create_table(
        "cursors",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("fence", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("lease", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "events",
        sa.Column("position", NUMBER, autoincrement=True, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("schema", sa.Text(), nullable=True),
        sa.Column("trace", sa.Text(), nullable=True),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.Column("dedupe_key", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("position"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "events_dedupe",
        "events",
        ["tenant", "stream", "dedupe_key"],
        unique=True,
        sqlite_where=sa.text("dedupe_key IS NOT NULL"),
        postgresql_where=sa.text("dedupe_key IS NOT NULL"),
    )
    op.create_index("events_id", "events", ["tenant", "id"], unique=True)
    op.create_index("events_seq", "events", ["tenant", "stream", "seq"], unique=True)
    op.create_table(
        "jobs",
        sa.Column("number", NUMBER, autoincrement=True, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("dedupe_key", sa.Text(), nullable=True),
        sa.Column("lane", sa.Text(), nullable=True),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("run_at", sa.BigInteger(), nullable=False),
        sa.Column("deadline", sa.BigInteger(), nullable=True),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("fence", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("lease", sa.BigInteger(), nullable=True),
        sa.Column("is_cancelling", sa.Integer(), server_default="0", nullable=False),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("number"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "jobs_deadline",
        "jobs",
        ["deadline"],
        unique=False,
        sqlite_where=sa.text("state IN ('queued', 'blocked') AND deadline IS NOT NULL"),
        postgresql_where=sa.text("state IN ('queued', 'blocked') AND deadline IS NOT NULL"),
    )
    op.create_index(
        "jobs_dedupe",
        "jobs",
        ["tenant", "kind", "dedupe_key"],
        unique=True,
        sqlite_where=sa.text("dedupe_key IS NOT NULL"),
        postgresql_where=sa.text("dedupe_key IS NOT NULL"),
    )
    op.create_index(
        "jobs_due",
        "jobs",
        ["run_at"],
        unique=False,
        sqlite_where=sa.text("state = 'queued'"),
        postgresql_where=sa.text("state = 'queued'"),
    )
    op.create_index("jobs_id", "jobs", ["tenant", "id"], unique=True)
    op.create_index(
        "jobs_lane",
        "jobs",
        ["tenant", "lane", "number"],
        unique=False,
        sqlite_where=sa.text("lane IS NOT NULL AND state IN ('queued', 'blocked', 'running')"),
        postgresql_where=sa.text("lane IS NOT NULL AND state IN ('queued', 'blocked', 'running')"),
    )
    op.create_index(
        "jobs_lane_queued",
        "jobs",
        ["tenant", "lane"],
        unique=False,
        sqlite_where=sa.text("lane IS NOT NULL AND state = 'queued'"),
        postgresql_where=sa.text("lane IS NOT NULL AND state = 'queued'"),
    )
    op.create_index(
        "jobs_lane_running",
        "jobs",
        ["tenant", "lane"],
        unique=True,
        sqlite_where=sa.text("lane IS NOT NULL AND state = 'running'"),
        postgresql_where=sa.text("lane IS NOT NULL AND state = 'running'"),
    )
    op.create_index(
        "jobs_lease",
        "jobs",
        ["lease_until"],
        unique=False,
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )
    op.create_index(
        "jobs_ready",
        "jobs",
        ["rank", "run_at", "number"],
        unique=False,
        sqlite_where=sa.text("state = 'queued'"),
        postgresql_where=sa.text("state = 'queued'"),
    )
    op.create_index("jobs_state", "jobs", ["tenant", "state", "number"], unique=False)
    op.create_table(
        "schedules",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("zone", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("lane", sa.Text(), nullable=True),
        sa.Column("missed", sa.Text(), nullable=False),
        sa.Column("is_paused", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=True),
        sa.Column("last_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "id"),
    )
    op.create_index(
        "schedules_due",
        "schedules",
        ["next_at"],
        unique=False,
        sqlite_where=sa.text("is_paused = 0 AND next_at IS NOT NULL"),
        postgresql_where=sa.text("is_paused = 0 AND next_at IS NOT NULL"),
    )
    op.create_index("schedules_name", "schedules", ["tenant", "name"], unique=True)
    op.create_table(
        "streams",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "name"),
    )
    op.create_table(
        "users",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
    )
