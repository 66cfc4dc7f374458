"""The tables as they are now. Migrations make them; a test compares the two.

Imported only to migrate and by tests: SQLAlchemy costs more than everything else Hermes does at start.
Times are microseconds since 1970, truth values are 0 and 1, JSON is text: the same on both engines.
`jobs.rank` is the negated priority, so that one index gives the order of work.
"""

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, PrimaryKeyConstraint, Table, Text, text

NUMBER = BigInteger().with_variant(Integer, "sqlite")
"""A counter that SQLite can hand out by itself."""

metadata = MetaData()

events = Table(
    "events",
    metadata,
    Column("position", NUMBER, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("stream", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("type", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("subject", Text),
    Column("at", BigInteger, nullable=False),
    Column("data", Text, nullable=False),
    Column("schema", Text),
    Column("trace", Text),
    Column("cause", Text),
    Column("dedupe_key", Text),
    Index("events_id", "tenant", "id", unique=True),
    Index("events_seq", "tenant", "stream", "seq", unique=True),
    Index(
        "events_dedupe",
        "tenant",
        "stream",
        "dedupe_key",
        unique=True,
        sqlite_where=text("dedupe_key IS NOT NULL"),
        postgresql_where=text("dedupe_key IS NOT NULL"),
    ),
    sqlite_autoincrement=True,
)

streams = Table(
    "streams",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    PrimaryKeyConstraint("tenant", "name"),
)

cursors = Table(
    "cursors",
    metadata,
    Column("name", Text, primary_key=True),
    Column("position", BigInteger, nullable=False),
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("fence", BigInteger, nullable=False, server_default="0"),
    Column("owner", Text),
    Column("lease_until", BigInteger),
    Column("lease", BigInteger),
)

jobs = Table(
    "jobs",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("dedupe_key", Text),
    Column("lane", Text),
    Column("principal", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("rank", Integer, nullable=False),
    Column("run_at", BigInteger, nullable=False),
    Column("deadline", BigInteger),
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("fence", BigInteger, nullable=False, server_default="0"),
    Column("owner", Text),
    Column("lease_until", BigInteger),
    Column("lease", BigInteger),
    Column("is_cancelling", Integer, nullable=False, server_default="0"),
    Column("cause", Text),
    Column("result", Text),
    Column("error", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("finished_at", BigInteger),
    Index("jobs_id", "tenant", "id", unique=True),
    Index(
        "jobs_dedupe",
        "tenant",
        "kind",
        "dedupe_key",
        unique=True,
        sqlite_where=text("dedupe_key IS NOT NULL"),
        postgresql_where=text("dedupe_key IS NOT NULL"),
    ),
    Index(
        "jobs_ready",
        "rank",
        "run_at",
        "number",
        sqlite_where=text("state = 'queued'"),
        postgresql_where=text("state = 'queued'"),
    ),
    Index(
        "jobs_due",
        "run_at",
        sqlite_where=text("state = 'queued'"),
        postgresql_where=text("state = 'queued'"),
    ),
    Index(
        "jobs_lease",
        "lease_until",
        sqlite_where=text("state = 'running'"),
        postgresql_where=text("state = 'running'"),
    ),
    Index(
        "jobs_deadline",
        "deadline",
        sqlite_where=text("state IN ('queued', 'blocked') AND deadline IS NOT NULL"),
        postgresql_where=text("state IN ('queued', 'blocked') AND deadline IS NOT NULL"),
    ),
    Index(
        "jobs_lane",
        "tenant",
        "lane",
        "number",
        sqlite_where=text("lane IS NOT NULL AND state IN ('queued', 'blocked', 'running')"),
        postgresql_where=text("lane IS NOT NULL AND state IN ('queued', 'blocked', 'running')"),
    ),
    Index(
        "jobs_lane_queued",
        "tenant",
        "lane",
        sqlite_where=text("lane IS NOT NULL AND state = 'queued'"),
        postgresql_where=text("lane IS NOT NULL AND state = 'queued'"),
    ),
    # The last word on lanes: whatever goes wrong elsewhere, two jobs of one lane never run at once.
    Index(
        "jobs_lane_running",
        "tenant",
        "lane",
        unique=True,
        sqlite_where=text("lane IS NOT NULL AND state = 'running'"),
        postgresql_where=text("lane IS NOT NULL AND state = 'running'"),
    ),
    Index("jobs_state", "tenant", "state", "number"),
    sqlite_autoincrement=True,
)

attempts = Table(
    "attempts",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("job", Text, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("number", Integer, nullable=False),
    Column("worker", Text, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    Column("outcome", Text),
    Column("error", Text),
    PrimaryKeyConstraint("tenant", "job", "fence"),
)

schedules = Table(
    "schedules",
    metadata,
    Column("id", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("rule", Text, nullable=False),
    Column("zone", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("lane", Text),
    Column("missed", Text, nullable=False),
    Column("is_paused", Integer, nullable=False, server_default="0"),
    Column("next_at", BigInteger),
    Column("last_at", BigInteger),
    PrimaryKeyConstraint("tenant", "id"),
    Index("schedules_name", "tenant", "name", unique=True),
    Index(
        "schedules_due",
        "next_at",
        sqlite_where=text("is_paused = 0 AND next_at IS NOT NULL"),
        postgresql_where=text("is_paused = 0 AND next_at IS NOT NULL"),
    ),
)

users = Table(
    "users",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("tenant", "id"),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("prefix", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("revoked_at", BigInteger),
    Column("used_at", BigInteger),
    PrimaryKeyConstraint("tenant", "id"),
    Index("api_keys_digest", "digest", unique=True),
)
