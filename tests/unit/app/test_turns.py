"""The assistant as a job: tried again it goes on, and its answer commits with its end."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hermes.app import App, open_app
from hermes.app.turns import JOB, order
from hermes.config import load
from hermes.domain.job import Job, JobState
from hermes.domain.principal import Principal
from hermes.domain.session import SessionId
from hermes.jobs.queue import Order
from hermes.store import message as messages
from hermes.store import run as runs
from hermes.testing.bad_status import STATUS
from hermes.testing.clock import FakeClock
from hermes.testing.model_server import ModelServer
from hermes.testing.turn import call

pytestmark = pytest.mark.anyio
OWNER = Principal.owner()


@dataclass
class Place:
    app: App
    clock: FakeClock
    server: ModelServer

    async def work(self, given: Order) -> Job:
        job = await self.app.queue.put(OWNER, given)
        while await self.app.worker.step():
            continue
        return await self.app.queue.get(OWNER, job.id)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    clock = FakeClock()
    async with ModelServer().opened() as server:
        own = {
            "provider": "custom",
            "base_url": f"{server.url}/v1",
            "default": "m",
            "api_key": "sk-fake",
            "attempts": "1",
        }
        flags = {f"model.{key}": value for key, value in own.items()} | {"database.url": "memory://"}
        async with open_app(load(home=tmp_path, flags=flags, environ={}), clock=clock) as app:
            yield Place(app, clock, server)


async def test_a_job_is_a_run_with_a_session_of_its_own(place: Place) -> None:
    place.server.add(call("write_file", path="a.txt", content="x"), "written")
    job = await place.work(Order(JOB, {"text": "write a file"}))
    assert (job.state, job.result) == (
        JobState.DONE,
        {"session": f"job-{job.id}", "state": "done", "text": "written"},
    )
    assert (place.app.settings.home / "workspaces" / "jobs" / "a.txt").read_text() == "x"


async def test_a_turn_in_a_session_needs_its_lane(place: Place) -> None:
    place.server.add("one", "two")
    first = await place.work(Order(JOB, {"text": "a"}))
    session = SessionId(f"job-{first.id}")
    stray = await place.work(Order(JOB, {"text": "b", "session": session}))
    assert (stray.state, "--lane" in str(stray.error)) == (JobState.DEAD, True)
    done = await place.work(order("b", session))
    assert done.result is not None
    assert done.result["text"] == "two"
    path = await place.app.store.read(lambda tx: messages.said(tx, OWNER, session))
    assert [m.text for _, m in path] == ["a", "one", "b", "two"]


async def test_what_can_only_fail_is_dead_and_its_run_has_ended(place: Place) -> None:
    job = await place.work(Order(JOB, {"text": "a", "session": "nobody"}, lane="session:nobody"))
    assert job.state == JobState.DEAD
    odd = await place.work(Order(JOB, {"words": "a"}))
    assert odd.state == JobState.DEAD


async def test_a_run_of_a_job_ends_once_also_when_it_is_tried_again(place: Place) -> None:
    place.server.behaviours[:] = [STATUS["529"][0]]
    place.server.add("at last")
    job = await place.app.queue.put(OWNER, Order(JOB, {"text": "go"}))
    await place.app.worker.step()
    assert (await place.app.queue.get(OWNER, job.id)).state == JobState.QUEUED
    place.clock.advance(hours=1)
    while await place.app.worker.step():
        continue
    done = await place.app.queue.get(OWNER, job.id)
    assert (done.state, done.attempt) == (JobState.DONE, 2)
    (run,) = await place.app.store.read(lambda tx: runs.of_session(tx, OWNER, SessionId(f"job-{job.id}")))
    assert run.state == "done"
    said = await place.app.store.read(lambda tx: messages.said(tx, OWNER, SessionId(f"job-{job.id}")))
    assert [m.text for _, m in said] == ["go", "at last"]


async def test_a_job_that_was_dead_is_done_when_it_is_put_back(place: Place) -> None:
    place.server.behaviours[:] = [STATUS["401"][0]]
    job = await place.work(Order(JOB, {"text": "go"}))
    assert job.state == JobState.DEAD
    place.server.behaviours[:] = []
    place.server.add(call("write_file", path="a.txt", content="x"), "written")
    await place.app.queue.retry(OWNER, job.id)
    while await place.app.worker.step():
        continue
    done = await place.app.queue.get(OWNER, job.id)
    assert (done.state, done.error) == (JobState.DONE, None)
    said = await place.app.store.read(lambda tx: messages.said(tx, OWNER, SessionId(f"job-{job.id}")))
    assert [m.text for _, m in said][-1] == "written"
    assert [m.text for _, m in said].count("go") == 1


async def test_a_dead_job_is_asked_again_when_others_were_in_its_session_since(place: Place) -> None:
    place.server.add("first")
    session = SessionId(f"job-{(await place.work(Order(JOB, {'text': 'a'}))).id}")
    place.server.behaviours[:] = [STATUS["401"][0]]
    job = await place.work(order("go", session))
    place.server.behaviours[:] = []
    place.server.add("between", "at last")
    await place.work(order("and b?", session))
    await place.app.queue.retry(OWNER, job.id)
    while await place.app.worker.step():
        continue
    assert (await place.app.queue.get(OWNER, job.id)).state == JobState.DONE
    said = await place.app.store.read(lambda tx: messages.said(tx, OWNER, session))
    assert [m.text for _, m in said] == ["a", "first", "go", "and b?", "between", "go", "at last"]
