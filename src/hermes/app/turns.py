"""The job `agent.turn`: whoever wants the assistant to work puts one: a schedule, a chat, a program.

Invariant: a job is one run under the job's own name. One that is tried again goes on where it was, under the next name
when its run has ended meanwhile; its answer and its end commit together.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.agent.cutting import original
from hermes.domain.errors import Misconfigured, NotFound, Unavailable
from hermes.domain.event import Data
from hermes.domain.job import Job
from hermes.domain.message import MessageId, TextPart
from hermes.domain.session import RunId, Session, SessionId
from hermes.jobs.kind import Again, Assignment, Done, Failed, JobKind, Result, Retry
from hermes.jobs.queue import Order
from hermes.store import message as messages
from hermes.store import run as runs
from hermes.store import session as sessions

if TYPE_CHECKING:
    # Loaded with the first job: whoever only puts one needs no assistant.
    from hermes.agent.turn import Ended, Turn
    from hermes.app.assistant import Assistant
    from hermes.app.core import App
    from hermes.domain.protocols import Tx

JOB = "agent.turn"
_RETRY = Retry(attempts=5, first=timedelta(seconds=10))
_EXPECTED = 'it is {"text": "what to do", "session": "optional", "workspace": "optional folder"}'


def order(text: str, session: SessionId, *, dedupe_key: str | None = None) -> Order:
    """Return the order to do something in a session, in its lane."""
    return Order(JOB, {"text": text, "session": session}, dedupe_key=dedupe_key, lane=f"session:{session}")


def kind(app: "App") -> JobKind:
    """Return the kind of job, done by this installation's assistant."""

    async def handle(assignment: Assignment) -> Result:
        from hermes.app.assistant import Wish, open_assistant

        _check(assignment.job.payload)
        async with open_assistant(app, Wish(platform="job")) as assistant:
            return await _take(app, assistant, assignment.job)

    return JobKind(JOB, handle, check=_check, retry=_RETRY, timeout=timedelta(hours=4))


def _check(payload: Data) -> None:
    odd = sorted(payload.keys() - {"text", "session", "workspace"})
    if odd:
        raise Misconfigured(f"the payload of {JOB!r} has no {odd[0]!r}; {_EXPECTED}")
    if not isinstance(payload.get("text"), str) or not str(payload["text"]).strip():
        raise Misconfigured(f"the payload of {JOB!r} needs a text; {_EXPECTED}")
    if any(not isinstance(payload.get(name), str | None) for name in ("session", "workspace")):
        raise Misconfigured(f"the payload of {JOB!r} needs texts as session and workspace; {_EXPECTED}")


async def _take(app: "App", assistant: "Assistant", job: Job) -> Result:
    turn = await _turn(app, assistant, job)
    if job.payload.get("session") is not None and job.lane != f"session:{turn.session.id}":
        return Failed(f"a turn in a session waits in its lane: put it with --lane session:{turn.session.id}")
    ended, work = await assistant.run_held(turn)
    if isinstance(ended.error, Unavailable) and job.attempt < _RETRY.attempts:
        # The run stays open: the next try goes on with it.
        return Again(str(ended.error), timedelta(seconds=ended.error.retry_after))
    if ended.error is not None:
        await app.store.write(work)
        return Failed(str(ended.error))
    return Done(_told(ended), work=work)


def _told(ended: "Ended") -> Mapping[str, str]:
    return {"session": ended.session.id, "state": ended.ending.state, "text": ended.text}


async def _turn(app: "App", assistant: "Assistant", job: Job) -> "Turn":
    named = job.payload.get("session")
    name = SessionId(str(named)) if named is not None else SessionId(f"job-{job.id}")
    session, is_new = await _session(assistant, job, name)
    workspace = Path(str(job.payload.get("workspace") or session.workspace or _own(app)))
    turn = assistant.turn(job.principal, replace(session, workspace=str(workspace)), workspace)
    run, is_said = await app.store.read(lambda tx: _run_of(tx, job, session.id))
    parts = () if is_said else (TextPart(str(job.payload["text"])),)
    return replace(turn, parts=parts, is_new=is_new, run=run, platform="job")


def _run_of(tx: "Tx", job: Job, session: SessionId) -> tuple[RunId, bool]:
    """Return the run in which a job goes on, and whether its words wait for an answer from a run that has ended."""
    ended: list[str] = []
    name = RunId(job.id)
    while (found := runs.get(tx, job.principal, name)) is not None and found.state != "running":
        ended.append(name)
        name = RunId(f"{job.id}.{len(ended) + 1}")
    context = sessions.context(tx, job.principal, session) if ended else None
    path = messages.path(tx, job.principal, context.head) if context is not None else []
    asked = next((m for m in reversed(path) if messages.is_opening(tx, job.principal, MessageId(original(m)))), None)
    is_answered = bool(path) and path[-1].role == "assistant" and not path[-1].calls
    return name, asked is not None and original(asked) in ended and not is_answered


async def _session(assistant: "Assistant", job: Job, name: SessionId) -> tuple[Session, bool]:
    try:
        return await assistant.sessions.find(job.principal, name), False
    except NotFound:
        if job.payload.get("session") is not None:
            raise
    made = assistant.sessions.make(job.principal, source="job", workspace=Path())
    return replace(made, id=name, workspace=""), True


def _own(app: "App") -> Path:
    folder = app.settings.home / "workspaces" / "jobs"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
