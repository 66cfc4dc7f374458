"""Every behaviour of a bad model server, met by a whole run: it ends in time with one clear line, what was said stays,
and the next question is answered.
"""

import resource
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from hermes.app import open_app
from hermes.app.assistant import Assistant, open_assistant
from hermes.config import load
from hermes.domain.errors import HermesError
from hermes.domain.message import Message, TextPart
from hermes.domain.principal import Principal
from hermes.testing.bad_status import STATUS
from hermes.testing.bad_streams import BOTH, CHAT, MESSAGES
from hermes.testing.bad_transport import TRANSPORT
from hermes.testing.model_server import ModelServer

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
OWNER = Principal.owner()
TIMES = {"connect_timeout": "2s", "first_timeout": "150ms", "idle_timeout": "150ms", "timeout": "1s", "attempts": "2"}
SECONDS = 20.0
MEGABYTES = 500
"""The server is in this process, and some of what it sends has tens of megabytes."""


def complaints(name: str, error: HermesError | None, path: list[Message]) -> list[str]:
    found = []
    if error is not None and (len(str(error).splitlines()) != 1 or not 10 < len(str(error)) < 1000):
        found.append(f"{name}: no clear line: {error!r}")
    calls = [call.id for message in path for call in message.calls]
    results = [result.call for message in path for result in message.results]
    if sorted(calls) != sorted(results):
        found.append(f"{name}: calls and results do not match: {calls} {results}")
    if not path or path[0].text != "hello":
        found.append(f"{name}: the words of the user are gone")
    return found


async def ask(assistant: Assistant, server: ModelServer, workspace: Path, name: str) -> list[str]:
    session = assistant.sessions.make(OWNER, source="test", workspace=workspace)
    turn = replace(assistant.turn(OWNER, session, workspace), parts=(TextPart("hello"),), is_new=True)
    with anyio.fail_after(SECONDS):
        ended = await assistant.run(turn)
    found = complaints(name, ended.error, await assistant.sessions.path(OWNER, session.id))
    server.behaviours.clear()
    with anyio.fail_after(SECONDS):
        after = await assistant.run(replace(turn, parts=(TextPart("and now?"),), is_new=False))
    if after.text != "Well again.":
        found.append(f"{name}: the next question was not answered: {after.ending} {after.text[:80]!r}")
    return found


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("vendor", "more"), [("custom", CHAT), ("custom-anthropic", MESSAGES)])
async def test_a_run_survives_every_behaviour(vendor: str, more: dict[str, object], tmp_path: Path) -> None:
    behaviours = {**TRANSPORT, **STATUS, **BOTH, **more}
    workspace = tmp_path / "work"
    workspace.mkdir()
    found: list[str] = []
    async with ModelServer(["Well again."] * 1000).opened() as server:
        own = {"provider": vendor, "base_url": server.url, "default": "m", "api_key": "sk-fake", **TIMES}
        flags = {f"model.{key}": value for key, value in own.items()} | {"agent.max_turns": "4"}
        settings = load(home=tmp_path / "home", environ={}, flags=flags)
        async with open_app(settings) as app, open_assistant(app) as assistant:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for name, (behave, _) in behaviours.items():
                # Asked again, and once more where a kept connection closes before it answers.
                server.behaviours[:] = [behave] * 12
                found += await ask(assistant, server, workspace, name)
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1000
    print(f"{vendor}: {len(behaviours)} behaviours, {len(found)} complaints, {grown:.0f} MB more")
    assert not found, found
    assert len(behaviours) >= 60
    assert grown < MEGABYTES
