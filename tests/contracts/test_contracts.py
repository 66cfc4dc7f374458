"""The suites of `hermes.testing.contracts`, on the engine that `--database-url` names."""

import pytest

from hermes.testing.contracts.accounts import AccountsContract
from hermes.testing.contracts.bus import BusContract, SubscriptionContract
from hermes.testing.contracts.jobs import QueueContract
from hermes.testing.contracts.schedules import ScheduleContract
from hermes.testing.contracts.sessions import SearchContract, SessionContract
from hermes.testing.contracts.store import StoreContract
from hermes.testing.contracts.worker import WorkerContract


@pytest.mark.anyio
class TestStore(StoreContract):
    pass


@pytest.mark.anyio
class TestBus(BusContract):
    pass


@pytest.mark.anyio
class TestSubscription(SubscriptionContract):
    pass


@pytest.mark.anyio
class TestQueue(QueueContract):
    pass


@pytest.mark.anyio
class TestWorker(WorkerContract):
    pass


@pytest.mark.anyio
class TestSchedule(ScheduleContract):
    pass


@pytest.mark.anyio
class TestAccounts(AccountsContract):
    pass


@pytest.mark.anyio
class TestSession(SessionContract):
    pass


@pytest.mark.anyio
class TestSearch(SearchContract):
    pass
