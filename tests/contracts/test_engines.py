"""What a connection of an engine shows of other processes, and how PostgreSQL is spoken to."""

from contextlib import closing

import pytest

from hermes.domain.errors import Misconfigured, Unavailable
from hermes.domain.protocols import Tx
from hermes.jobs.queue import Order
from hermes.store import job
from hermes.testing.world import SYSTEM, World


@pytest.fixture
def server_url(database_url: str) -> str:
    if not database_url.startswith("postgres"):
        pytest.skip("it is about a server")
    return database_url


@pytest.mark.anyio
async def test_another_process_notices_that_a_running_job_is_cancelled(world: World, database_url: str) -> None:
    if database_url.startswith("memory"):
        pytest.skip("memory has no other process")
    put = await world.queue.put(SYSTEM, Order("test"))
    await world.store.write(
        lambda tx: job.claim(tx, SYSTEM, worker="w", kinds=["test"], limit=1, lease_micros=60_000_000)
    )
    with closing(world.store.engine.connect(is_reading=False)) as other:
        other.has_changed()
        assert not other.has_changed()
        await world.queue.cancel(SYSTEM, put.id)
        assert other.has_changed()
        assert not other.has_changed()


@pytest.mark.anyio
async def test_a_text_with_a_nul_is_refused_at_once(world: World, server_url: str) -> None:
    assert server_url
    with pytest.raises(Misconfigured, match="NUL"):
        await world.store.write(lambda tx: tx.one("SELECT ?::text", ("a\0b",)))


@pytest.mark.anyio
async def test_a_statement_that_takes_too_long_is_not_done_again(world: World, server_url: str) -> None:
    assert server_url
    tries: list[Tx] = []

    def work(tx: Tx) -> None:
        tries.append(tx)
        tx.execute("SET LOCAL statement_timeout = 50")
        tx.one("SELECT pg_sleep(5)")

    with pytest.raises(Unavailable, match="may take"):
        await world.store.write(work)
    assert len(tries) == 1


@pytest.mark.anyio
async def test_a_connection_notices_a_server_that_is_gone_and_the_url_overrules_how_soon(
    world: World, server_url: str
) -> None:
    from hermes.store.postgres import PostgresEngine

    assert server_url
    with closing(world.store.engine.connect(is_reading=True)) as usual:
        set_to = usual.raw.info.get_parameters()
    assert int(set_to["keepalives_idle"]) + int(set_to["keepalives_interval"]) * int(set_to["keepalives_count"]) <= 30
    assert int(set_to["tcp_user_timeout"]) <= 30_000
    url = f"{world.place.url}&keepalives_idle=77&tcp_user_timeout=7000"
    with closing(PostgresEngine(url).connect(is_reading=True)) as other:
        own = other.raw.info.get_parameters()
    assert (own["keepalives_idle"], own["tcp_user_timeout"]) == ("77", "7000")
