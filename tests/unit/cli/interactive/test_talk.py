"""Words and commands come in; what comes of them is shown, in order, and nothing is lost."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import pytest
from tests.unit.commands.conftest import Desk, Mirror
from tests.unit.commands.conftest import desk as desk  # noqa: PLC0414 - a fixture of both

from hermes.agent.turn import Ended
from hermes.cli.interactive.composing import Composed
from hermes.cli.interactive.talk import Talk
from hermes.domain.approval import Approval, Decision
from hermes.domain.event import Event
from hermes.domain.message import Message, TextPart
from hermes.testing.turn import Say

pytestmark = pytest.mark.anyio


@dataclass
class Paper:
    """A face that writes everything down."""

    look: Mirror = field(default_factory=Mirror)
    is_attended: bool = False
    said: list[str] = field(default_factory=list)

    def say(self, text: str, kind: str = "words") -> None:
        self.said.append(f"{kind}: {text}")

    def table(self, _headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self.said += [" | ".join(row) for row in rows]

    def replay(self, messages: Sequence[Message]) -> None:
        self.said += [f"again: {message.text}" for message in messages]

    def begin(self, shown: str) -> None:
        self.said.append(f"> {shown}")

    def watch(self, event: Event) -> None:
        pass

    def end(self, ended: Ended | None) -> None:
        self.said.append("could not begin" if ended is None else f"< {ended.text or ended.error or ended.ending.state}")

    async def decide(self, _asked: Approval) -> Decision:
        return Decision("denied")

    async def answer(self, _question: str, _choices: Sequence[str] = ()) -> str | None:
        return None


def words(text: str) -> Composed:
    return Composed((TextPart(text),), text, text)


async def until_asked(desk: Desk) -> None:
    while not desk.model.asked:  # noqa: ASYNC110 - a server on a socket tells nobody
        await anyio.sleep(0.01)


@asynccontextmanager
async def talking(desk: Desk) -> AsyncIterator[tuple[Talk, Paper]]:
    paper = Paper()
    talk = Talk(paper, desk.seat, desk.assistant.notices)
    async with anyio.create_task_group() as group:
        group.start_soon(talk.serve)
        await talk.settled()
        yield talk, paper
        with anyio.fail_after(20):
            await talk.settled()
        talk.close()


async def test_what_is_typed_is_done_in_its_order(desk: Desk) -> None:
    desk.model.add("one", "two")
    async with talking(desk) as (talk, paper):
        talk.hear(words("/title my talk"))
        talk.hear(words("/title"))
        await talk.settled()
        talk.hear(words("first"))
        talk.hear(words("second"))
        await talk.settled()
        talk.hear(words("/undo"))
        talk.hear(words("/history"))
    assert paper.said[:6] == [
        "words: this session is called 'my talk'",
        "words: my talk",
        "> first",
        "< one",
        "> second",
        "< two",
    ]
    assert paper.said[-2:] == ["again: first", "again: one"]


async def test_what_would_disturb_a_run_is_refused_until_it_is_over(desk: Desk) -> None:
    desk.model.add(Say("slowly " * 5, pause=0.02))
    async with talking(desk) as (talk, paper):
        talk.hear(words("go"))
        talk.hear(words("/undo"))
        talk.hear(words("/nothing"))
        await anyio.sleep(0.02)
        talk.hear(words("/new"))
        talk.hear(words("/status"))
    refused = [line for line in paper.said if line.startswith("bad")]
    assert [line.split()[1] for line in refused] == ["/undo", "there", "/new"]
    assert any("works" in line for line in paper.said)
    assert sum(line.startswith("<") for line in paper.said) == 1


async def test_a_failure_is_told_and_the_talk_goes_on(desk: Desk) -> None:
    desk.model.add("fine")
    async with talking(desk) as (talk, paper):
        desk.seat.workspace = desk.seat.workspace / "gone"
        talk.hear(words("/resume nobody"))
        talk.hear(words("/personality nobody"))
        await talk.settled()
        desk.seat.workspace = desk.seat.workspace.parent
        talk.hear(words("hello"))
    assert [line.partition(":")[0] for line in paper.said] == ["bad", "bad", "> hello", "< fine"]


async def test_words_into_a_run_stop_it_wait_or_steer_it(desk: Desk) -> None:
    desk.model.add(Say("first " * 40, pause=0.02), "second", "third")
    async with talking(desk) as (talk, paper):
        talk.hear(words("one"))
        await until_asked(desk)
        paper.look.busy = "queue"
        talk.hear(words("three"))
        paper.look.busy = "interrupt"
        talk.hear(words("two"))
    assert [line for line in paper.said if line.startswith(">")] == ["> one", "> two", "> three"]
    assert "< third" in paper.said


async def test_leaving_writes_down_what_goes_on(desk: Desk) -> None:
    desk.model.add(Say("words " * 100, pause=0.02))
    async with talking(desk) as (talk, paper):
        talk.hear(words("go"))
        await until_asked(desk)
        await anyio.sleep(0.2)
        talk.close()
    said = await desk.assistant.sessions.path(desk.seat.principal, desk.seat.session.id)
    assert said[-1].status == "interrupted"
    assert paper.said[-1].startswith("< words")
