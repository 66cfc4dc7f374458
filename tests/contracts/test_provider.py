"""The contract of a Provider over each of them: the scripted one, both wires against a server, the embedded one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.config import load
from hermes.domain.clock import SystemClock
from hermes.llm.choice import choose
from hermes.llm.local.provider import Local, Terms
from hermes.llm.opening import open_provider
from hermes.testing.contracts.provider import ProviderContract, Stage
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted import ScriptedProvider
from hermes.testing.small_engine import ScriptedEngine

pytestmark = pytest.mark.anyio


class TestScripted(ProviderContract):
    @pytest.fixture
    async def stage(self) -> Stage:
        provider = ScriptedProvider(SystemClock(), [])
        return Stage(provider, provider.add)


class TestLocal(ProviderContract):
    @pytest.fixture
    async def stage(self) -> AsyncIterator[Stage]:
        engine = ScriptedEngine()
        with engine.linked() as link:
            yield Stage(Local(Terms("local/fake", 32_768), lambda: link, SystemClock()), engine.add)


class OverTheWire(ProviderContract):
    vendor = ""
    path = ""

    @pytest.fixture
    async def stage(self, tmp_path: Path) -> AsyncIterator[Stage]:
        async with ModelServer([]).opened() as server:
            flags = {
                "model.provider": self.vendor,
                "model.base_url": server.url + self.path,
                "model.api_key": "sk-fake",
                "model.default": "fake-model",
            }
            settings = load(home=tmp_path, environ={}, flags=flags)
            async with open_provider(choose(settings), settings, SystemClock()) as provider:
                yield Stage(provider, server.add)


class TestChat(OverTheWire):
    vendor, path = "custom", "/v1"


class TestOpenRouter(OverTheWire):
    vendor, path = "openrouter", "/api/v1"


class TestDeepSeek(OverTheWire):
    vendor = "deepseek"


class TestAnthropic(OverTheWire):
    vendor = "anthropic"


class TestCustomAnthropic(OverTheWire):
    vendor, path = "custom-anthropic", "/v1"
