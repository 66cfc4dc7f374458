"""The agent: sessions with their contexts and messages, runs, the ledger, approvals."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables of the agent, and the view that other programs read."""
    op.create_table(
        "sessions",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("title", sa.Text()),
        sa.Column("parent", sa.Text()),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("message_count", sa.Integer(), nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("tenant", "id"),
    )
    op.create_index("sessions_recent", "sessions", ["tenant", "updated_at"])
    op.create_index(
        "sessions_title",
        "sessions",
        ["tenant", "title"],
        unique=True,
        sqlite_where=sa.text("title IS NOT NULL"),
        postgresql_where=sa.text("title IS NOT NULL"),
    )
    op.create_table(
        "contexts",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("wire", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("tools", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("head", sa.Text()),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "session", "number"),
    )
    op.create_table(
        "messages",
        sa.Column("number", NUMBER, autoincrement=True, nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("session_key", sa.Text()),
        sa.Column("parent", sa.Text()),
        sa.Column("copy_of", sa.Text()),
        sa.Column("run", sa.Text()),
        sa.Column("task_id", sa.Text()),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("parts", sa.Text()),
        sa.Column("opaque", sa.Text()),
        sa.Column("timestamp", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sqlite_autoincrement=True,
    )
    op.create_index("messages_id", "messages", ["tenant", "id"], unique=True)
    op.create_index("messages_session", "messages", ["tenant", "conversation_id", "number"])
    op.create_table(
        "runs",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("steps", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("tenant", "id"),
    )
    op.create_index("runs_session", "runs", ["tenant", "session", "started_at"])
    op.create_table(
        "ledger",
        sa.Column("number", NUMBER, autoincrement=True, nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("session", sa.Text()),
        sa.Column("run", sa.Text()),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("input", sa.BigInteger(), nullable=False),
        sa.Column("output", sa.BigInteger(), nullable=False),
        sa.Column("cache_read", sa.BigInteger(), nullable=False),
        sa.Column("cache_write", sa.BigInteger(), nullable=False),
        sa.Column("reasoning", sa.BigInteger(), nullable=False),
        sa.Column("cost", sa.BigInteger()),
        sa.PrimaryKeyConstraint("number"),
        sqlite_autoincrement=True,
    )
    op.create_index("ledger_id", "ledger", ["tenant", "id"], unique=True)
    op.create_index("ledger_session", "ledger", ["tenant", "session"])
    op.create_index("ledger_at", "ledger", ["tenant", "at"])
    op.create_table(
        "approvals",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("effect", sa.Text(), nullable=False),
        sa.Column("pattern", sa.Text(), nullable=False),
        sa.Column("shown", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("decided_by", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("decided_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("tenant", "id"),
    )
    op.create_index("approvals_pattern", "approvals", ["tenant", "pattern", "state"])
    op.execute(
        "CREATE VIEW conversations AS SELECT tenant, id, id AS conversation_id, owner AS user_id, source, title, "
        "parent, workspace, created_at, updated_at, message_count FROM sessions"
    )
