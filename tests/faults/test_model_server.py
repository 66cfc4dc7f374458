"""Every behaviour of a bad server, fifty times, in any order, on one provider: nothing is left behind."""

import asyncio
import contextlib
import gc
import random
import resource
from pathlib import Path

import anyio
import pytest

from hermes.config import load
from hermes.domain.clock import SystemClock
from hermes.domain.errors import HermesError
from hermes.llm.choice import choose
from hermes.llm.opening import open_provider
from hermes.testing.bad_status import STATUS
from hermes.testing.bad_streams import BOTH, CHAT, MESSAGES
from hermes.testing.bad_transport import TRANSPORT
from hermes.testing.contracts.provider import HELLO, Stage
from hermes.testing.model_server import ModelServer

pytestmark = [pytest.mark.anyio, pytest.mark.faults]
ROUNDS = 50
TIMES = {"connect_timeout": "2s", "first_timeout": "100ms", "idle_timeout": "100ms", "timeout": "1s"}


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.timeout(3600)
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files the way Linux does")
@pytest.mark.parametrize(("vendor", "more"), [("custom", CHAT), ("custom-anthropic", MESSAGES)])
async def test_nothing_is_left_behind_by_any_behaviour(vendor: str, more: dict[str, object], tmp_path: Path) -> None:
    behaviours = {**TRANSPORT, **STATUS, **BOTH, **more}
    dice = random.Random(7)
    async with ModelServer().opened() as server:
        own = {"provider": vendor, "base_url": server.url, "default": "m", "api_key": "sk-fake", **TIMES}
        settings = load(home=tmp_path, environ={}, flags={f"model.{key}": value for key, value in own.items()})
        async with open_provider(choose(settings), settings, SystemClock()) as provider:
            stage = Stage(provider, server.add)
            files = tasks = memory = 0
            for number in range(ROUNDS):
                for behave, _ in dice.sample(list(behaviours.values()), len(behaviours)):
                    # A kept connection that closes before it answers is replaced once.
                    server.behaviours[:] = [behave, behave]
                    with anyio.fail_after(10), contextlib.suppress(HermesError):
                        await provider.call(stage.request(HELLO), lambda _: None)
                    server.behaviours.clear()
                reply, _ = await stage.ask(HELLO, turn="Well again.")
                assert reply.message.text == "Well again."
                await anyio.sleep(0.3)
                gc.collect()
                if number == 1:
                    files, tasks = open_files(), len(asyncio.all_tasks())
                    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            assert open_files() <= files + 8
            assert len(asyncio.all_tasks()) <= tasks + 8
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 150_000
