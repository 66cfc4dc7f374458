"""What a run tells whoever looks."""

from datetime import UTC, datetime

from hermes.agent.telling import Teller
from hermes.domain.event import Event
from hermes.domain.model import Delta
from hermes.domain.principal import Principal
from hermes.domain.session import Run, RunId, SessionId
from hermes.testing.clock import FakeClock


def test_what_a_model_does_before_it_answers_is_told_and_is_no_part_of_the_answer() -> None:
    run = Run(RunId("r"), SessionId("s"), Principal.owner(), "running", datetime(2027, 1, 4, tzinfo=UTC))
    heard: list[Event] = []
    teller = Teller(run, FakeClock(), lambda: (heard.append,))
    teller.show(Delta("note", "loading"))
    teller.show(Delta("text", "Hello"))
    assert [(event.type, event.data["text"]) for event in heard] == [
        ("run.progress", "loading"),
        ("text.delta", "Hello"),
    ]
    assert teller.partial == ["Hello"]
