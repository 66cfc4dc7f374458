"""A person at a session: a real assistant with a vendor on loopback, and a port that keeps what was shown."""

import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hermes.app import open_app
from hermes.app.assistant import Assistant, open_assistant
from hermes.commands import CATALOGUE, Seat, parse
from hermes.commands.port import Busy, Detail, Place
from hermes.config import load
from hermes.domain.errors import NotFound
from hermes.domain.message import Message, Part, TextPart
from hermes.domain.principal import Principal
from hermes.testing.model_server import ModelServer

OWNER = Principal.owner()


@dataclass
class Mirror:
    """How it looks, kept in mind."""

    detail: Detail = "tools"
    busy: Busy = "interrupt"
    shows_reasoning: bool = False
    skin: str = "default"
    copied: list[str] = field(default_factory=list)
    is_empty: bool = False

    def skins(self) -> Sequence[str]:
        return ("default", "mono")

    def wear(self, skin: str) -> None:
        if skin not in self.skins():
            raise NotFound(skin)
        self.skin = skin

    def clear(self) -> None:
        self.is_empty = True

    def copy(self, text: str) -> None:
        self.copied.append(text)


@dataclass
class Desk:
    """Implements `Port`."""

    seat: Seat
    assistant: Assistant
    model: ModelServer
    place: Place = "terminal"
    look: Mirror | None = field(default_factory=Mirror)
    shown: list[str] = field(default_factory=list)
    replayed: list[Message] = field(default_factory=list)
    is_closed: bool = False

    def say(self, text: str) -> None:
        self.shown.append(text)

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        assert all(len(row) == len(headings) for row in rows)
        self.shown += [" | ".join(row) for row in rows]

    def replay(self, messages: Sequence[Message]) -> None:
        self.replayed += messages

    def submit(self, parts: tuple[Part, ...]) -> None:
        self.seat.wait(parts)

    def close(self) -> None:
        self.is_closed = True

    async def order(self, line: str) -> str:
        """Do a command and return what was shown."""
        self.shown.clear()
        parsed = parse(line)
        assert parsed is not None, line
        await CATALOGUE.at(self.place).find(parsed.word).act(self, parsed.rest)
        return "\n".join(self.shown)

    async def talk(self, text: str, answer: str) -> str:
        """Say something, and let the model answer."""
        self.model.add(answer)
        return (await self.seat.take((TextPart(text),))).text


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    monkeypatch.setattr(sys, "stdin", None)
    async with ModelServer().opened() as server:
        environ = {"OPENAI_API_KEY": "sk-fake", "OPENAI_BASE_URL": f"{server.url}/v1"}
        settings = load(home=home, environ=environ)
        async with open_app(settings) as app, open_assistant(app) as assistant:
            session = assistant.sessions.make(OWNER, source="cli", workspace=work)
            usual = assistant.turn(OWNER, session, work)
            seat = Seat(
                assistant=assistant,
                principal=OWNER,
                workspace=work,
                session=session,
                mode=usual.mode,
                limits=usual.limits,
            )
            yield Desk(seat, assistant, server)
