"""Whatever a server does, a call ends in time with a good reply or one clear line, and the next call works."""

import resource
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from hermes.config import load
from hermes.domain.clock import SystemClock
from hermes.domain.errors import HermesError, Unavailable
from hermes.domain.model import Cut, Delta
from hermes.llm.choice import choose
from hermes.llm.opening import open_provider
from hermes.testing.bad_status import STATUS
from hermes.testing.bad_streams import BOTH, CHAT, MESSAGES, Outcome
from hermes.testing.bad_transport import TRANSPORT
from hermes.testing.contracts.provider import HELLO, Stage, said
from hermes.testing.model_server import ModelServer

pytestmark = pytest.mark.anyio

NEUTRAL: Mapping[str, Outcome] = {**TRANSPORT, **STATUS, **BOTH}
CASES = [
    *(("custom", "/v1", name, one) for name, one in {**NEUTRAL, **CHAT}.items()),
    *(("custom-anthropic", "", name, one) for name, one in {**NEUTRAL, **MESSAGES}.items()),
]
TIMES = {"connect_timeout": "2s", "first_timeout": "300ms", "idle_timeout": "300ms", "timeout": "700ms"}
LONGER = {"connect_timeout": "2s", "first_timeout": "20s", "idle_timeout": "20s", "timeout": "20s"}
SILENT = ("hang", "one byte", "comments without", "blank lines without")


def test_there_are_many_behaviours() -> None:
    assert len({**NEUTRAL, **CHAT, **MESSAGES}) > 100


@pytest.mark.parametrize(("vendor", "path", "name", "case"), CASES, ids=[f"{v}-{n}" for v, _, n, _ in CASES])
async def test_a_call_ends_in_time_and_the_next_one_works(
    vendor: str, path: str, name: str, case: Outcome, tmp_path: Path
) -> None:
    behave, expected = case
    times = TIMES if name.startswith(SILENT) else LONGER
    async with ModelServer(["Well again."]).opened() as server:
        flags = {
            "provider": vendor,
            "base_url": server.url + path,
            "api_key": "sk-fake",
            "default": "fake-model",
            **times,
        }
        settings = load(home=tmp_path, environ={}, flags={f"model.{key}": value for key, value in flags.items()})
        async with open_provider(choose(settings), settings, SystemClock()) as provider:
            stage = Stage(provider, server.add)
            server.behaviours.append(behave)
            shown: list[Delta] = []
            memory, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
            history = [HELLO]
            if expected is None:
                reply = await provider.call(stage.request(HELLO), shown.append)
                assert reply.message.parts, "a good answer has something in it"
                assert len({call.id for call in reply.message.calls}) == len(reply.message.calls)
                assert all(isinstance(msgspec.json.decode(call.arguments), dict) for call in reply.message.calls)
                assert {call.name for call in reply.message.calls} <= {"shell", "unnamed"}
                assert reply.usage.input > 0
                history.append(reply.message)
            else:
                with pytest.raises(HermesError) as caught:
                    await provider.call(stage.request(HELLO), shown.append)
                check(caught.value, expected, shown)
            assert time.monotonic() - begun < 15
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 250_000
            again = await provider.call(stage.request(*history, said("user", "And now?")), shown.append)
            assert again.message.text == "Well again."


def check(error: HermesError, expected: type[HermesError], shown: list[Delta]) -> None:
    """One line of a person's length, of the right kind, without the key."""
    assert type(error) is expected, str(error)
    assert len(str(error).splitlines()) == 1
    assert 20 < len(str(error)) < 800
    assert "sk-fake" not in str(error)
    assert "custom" in str(error) or "127.0.0.1" in str(error) or "answer" in str(error)
    if isinstance(error, Unavailable):
        assert 0 <= error.retry_after <= 3600
    if isinstance(error, Cut):
        assert error.partial is not None
        assert error.partial.text == "".join(delta.text for delta in shown if delta.kind == "text")
        assert error.partial.text


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("429, seconds", 7, 7), ("429, date", 3600, 3600), ("429, milliseconds", 1.5, 1.5), ("429, fraction", 0.5, 0.5),
     ("429, nonsense", 1, 60), ("429, negative", 1, 60), ("429, for ever", 3600, 3600), ("500", 0.1, 10)],
)  # fmt: skip
async def test_the_pause_a_vendor_asks_for_is_kept(name: str, least: float, most: float, tmp_path: Path) -> None:
    async with ModelServer([]).opened() as server:
        flags = {"model.provider": "custom", "model.base_url": server.url, "model.default": "fake-model"}
        settings = load(home=tmp_path, environ={}, flags=flags)
        async with open_provider(choose(settings), settings, SystemClock()) as provider:
            server.behaviours.append(STATUS[name][0])
            with pytest.raises(Unavailable) as caught:
                await provider.call(Stage(provider, server.add).request(HELLO), lambda _: None)
            assert least <= caught.value.retry_after <= most
