"""What Alembic runs: the migrations, on the connection and inside the transaction it is given."""

from alembic import context

from hermes.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
