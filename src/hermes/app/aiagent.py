"""`AIAgent`: the assistant as a class for programs that are not asynchronous.

Invariant: what it opens is closed by `close`, by `with`, when nobody has it any more, or when the process ends,
whichever is first. One thread at a time is served.
"""

import atexit
import json
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
from anyio.from_thread import BlockingPortal

from hermes.agent.export import plain
from hermes.agent.history import from_plain
from hermes.agent.trajectory import conversations
from hermes.agent.turn import Ended, Turn
from hermes.app.assistant import Assistant, Wish, open_assistant
from hermes.app.core import open_app
from hermes.config import load
from hermes.domain.errors import LimitReached, Misconfigured, NotFound
from hermes.domain.event import Event
from hermes.domain.message import Message, MessageId, TextPart
from hermes.domain.principal import LOCAL, Principal
from hermes.domain.session import Session, SessionId
from hermes.llm.catalogue.vendors import vendor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

OWNER = Principal.owner()
_LONG = 30.0
Progress = Callable[[str, str, dict[str, Any]], None]
"""Called when a tool begins: its name, what it does in a line, and its arguments."""


class AIAgent:
    """An assistant with one session. Opened at the first question, closed by `close` or `with`.

    `session_id` goes on with a session, or names a new one. Raises the errors of `hermes.domain.errors`.
    """

    def __init__(  # noqa: PLR0913 - the face that other programs know
        self,
        model: str = "",
        api_key: str | None = None,
        base_url: str | None = None,
        max_iterations: int = 90,
        enabled_toolsets: Sequence[str] | None = None,
        disabled_toolsets: Sequence[str] | None = None,
        verbose_logging: bool = False,
        quiet_mode: bool = False,
        tool_progress_callback: Progress | None = None,
        session_id: str | None = None,
        platform: str = "cli",
        save_trajectories: bool = False,
        *,
        workspace: str | os.PathLike[str] | None = None,
        home: str | os.PathLike[str] | None = None,
    ) -> None:
        self._flags = _flags(model, api_key, base_url, is_verbose=verbose_logging)
        self._limit = max_iterations
        enabled = None if enabled_toolsets is None else tuple(enabled_toolsets)
        self._wish = Wish(toolsets=enabled, without=tuple(disabled_toolsets or ()), platform=platform, is_lasting=True)
        self._is_quiet = quiet_mode
        self._callback = tool_progress_callback
        self._saves = save_trajectories
        self._workspace = Path(workspace or Path.cwd())
        self._home = None if home is None else Path(home)
        if max_iterations < 1:
            raise Misconfigured(f"max_iterations is {max_iterations}; expected at least 1")
        self._said: list[Message] = []
        self._stack = ExitStack()
        # Of the stack alone: what is called for us must not keep us.
        weakref.finalize(self, self._stack.close).atexit = False
        _at_the_end(self._stack)
        self._lock = threading.RLock()
        self._opened: tuple[BlockingPortal, Assistant] | None = None
        self._session: Session | None = None
        self.session_id = session_id

    def chat(self, message: str, system_message: str | None = None, max_iterations: int | None = None) -> str:
        """Ask, and return the answer."""
        ended = self._take(message, system_message, (), max_iterations)
        if ended.error is not None:
            raise ended.error
        return ended.text

    def run_conversation(
        self,
        user_message: str,
        system_message: str | None = None,
        conversation_history: Sequence[Mapping[str, Any]] | None = None,
        task_id: str | None = None,  # noqa: ARG002 - part of the face; a session has its own name
    ) -> dict[str, Any]:
        """Ask, and return the answer with all that was said; a history that is given begins a session of its own."""
        history: tuple[Message, ...] = ()
        with self._lock:
            if conversation_history is not None:
                _, assistant = self._open()
                history = from_plain(conversation_history, assistant.now())
                self._session, self.session_id, self._said = None, None, []
            ended = self._take(user_message, system_message, history, None)
            said = [_bare(plain(message)) for message in self._said]
        if ended.error is not None and not isinstance(ended.error, LimitReached):
            raise ended.error
        return {
            "final_response": ended.text,
            "error": None if ended.error is None else str(ended.error),
            "messages": said,
            "api_calls": ended.ending.steps,
            "completed": ended.ending.state == "done",
            "session_id": ended.session.id,
        }

    def get_trajectory(self) -> dict[str, Any]:
        """Return all that was said as training data."""
        with self._lock:
            _, assistant = self._open()
            return {
                "conversations": conversations(self._said, assistant.specs),
                "timestamp": self._said[-1].at.isoformat() if self._said else "",
                "model": assistant.model_name,
                "completed": bool(self._said) and self._said[-1].role == "assistant",
            }

    def close(self) -> None:
        """Close what was opened: the model, the machine with its processes, the database."""
        self._stack.close()
        self._opened = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _take(self, text: object, system: str | None, history: tuple[Message, ...], most: int | None) -> Ended:
        if not isinstance(text, str) or not text.strip():
            raise Misconfigured(f"there is nothing to ask in {text!r}; expected some words")
        with self._lock:
            portal, assistant = self._open()
            session, is_new = portal.call(self._find, assistant)
            turn = assistant.turn(OWNER, session, self._workspace)
            turn = replace(
                turn,
                parts=(TextPart(text),),
                is_new=is_new,
                history=history if is_new else (),
                more=(system or "") if is_new else "",
                ephemeral=_aside(system, assistant) if system and not is_new else (),
                platform=self._wish.platform,
                limits=replace(turn.limits, steps=most or self._limit),
                watches=(self._watch,),
            )
            run = portal.start_task_soon(assistant.run, turn)
            try:
                ended = run.result()
            except KeyboardInterrupt:
                # The run is on another thread, and would work on and spend.
                portal.call(turn.steering.interrupt)
                self._take_in(turn, run.result(_LONG))
                raise
            return self._take_in(turn, ended)

    def _take_in(self, turn: Turn, ended: Ended) -> Ended:
        """Go on from here with the next question."""
        self._session, self.session_id = ended.session, ended.session.id
        self._said += [*turn.history, *ended.messages]
        if self._saves:
            self._save(completed=ended.ending.state == "done")
        return ended

    def _open(self) -> tuple[BlockingPortal, Assistant]:
        if self._opened is None:
            portal = self._stack.enter_context(_portal())
            opening = _assistant(self._home, self._flags, self._wish)
            managed: AbstractContextManager[Assistant] = portal.wrap_async_context_manager(opening)
            try:
                self._opened = (portal, self._stack.enter_context(managed))
            except BaseException as error:
                # The loop that was begun for it is of no use to anybody.
                self._stack.close()
                if isinstance(error, BaseExceptionGroup):
                    raise _first(error) from error
                raise
        return self._opened

    async def _find(self, assistant: Assistant) -> tuple[Session, bool]:
        if self._session is not None:
            return self._session, False
        if self.session_id is None:
            return assistant.sessions.make(OWNER, source=self._wish.platform, workspace=self._workspace), True
        try:
            session = await assistant.sessions.get(OWNER, SessionId(self.session_id))
        except NotFound:
            made = assistant.sessions.make(OWNER, source=self._wish.platform, workspace=self._workspace)
            return replace(made, id=SessionId(self.session_id), tenant=LOCAL), True
        self._said = await assistant.sessions.path(OWNER, session.id)
        return session, False

    def _watch(self, event: Event) -> None:
        if event.type != "tool.progress" or event.data["state"] != "began":
            return
        name, arguments = str(event.data["name"]), _object(str(event.data["arguments"]))
        if self._callback is not None:
            self._callback(name, str(event.data["arguments"])[:200], arguments)
        elif not self._is_quiet:
            sys.stderr.write(f"┊ {name} {json.dumps(arguments)[:200]}\n")

    def _save(self, *, completed: bool) -> None:
        name = "trajectory_samples.jsonl" if completed else "failed_trajectories.jsonl"
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(json.dumps({**self.get_trajectory(), "completed": completed}) + "\n")


@asynccontextmanager
async def _assistant(home: Path | None, flags: Mapping[str, str], wish: Wish) -> "AsyncIterator[Assistant]":
    settings = load(home=home, flags=flags)
    async with open_app(settings) as app, open_assistant(app, wish) as assistant:
        yield assistant


def _at_the_end(stack: ExitStack) -> None:
    """Close before the interpreter waits for threads and ends its pools; `atexit` comes after that, and too late."""
    kept = weakref.ref(stack)

    def close() -> None:
        still = kept()
        if still is not None:
            still.close()

    register: Callable[[Callable[[], None]], None] | None = getattr(threading, "_register_atexit", None)
    (register or atexit.register)(close)


@contextmanager
def _portal() -> Iterator[BlockingPortal]:
    """An event loop on a thread that holds up no end of the process."""
    ready: Future[BlockingPortal] = Future()

    async def serve() -> None:
        async with BlockingPortal() as portal:
            ready.set_result(portal)
            await portal.sleep_until_stopped()

    thread = threading.Thread(target=anyio.run, args=(serve,), name="hermes-agent", daemon=True)
    thread.start()
    portal = ready.result(_LONG)
    try:
        yield portal
    finally:
        portal.call(portal.stop)
        thread.join(_LONG)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


def _flags(model: str, key: str | None, url: str | None, *, is_verbose: bool) -> dict[str, str]:
    flags = {"logging.level": "debug"} if is_verbose else {}
    if model:
        flags["model.default"] = model
    if url:
        flags |= {"model.base_url": url, "model.provider": "custom"}
    if key:
        flags["model.api_key"] = key
        if not url:
            named = vendor(model.partition("/")[0])
            flags["model.provider"] = named.name if named is not None else "openrouter"
    return flags


def _aside(system: str, assistant: Assistant) -> tuple[Message, ...]:
    """A system message for one question of a session that has begun: read once, stored nowhere."""
    at = assistant.now()
    return (Message(MessageId("aside"), "user", (TextPart(f"[for this answer] {system}"),), at),)


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _bare(message: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in message.items() if name not in {"id", "timestamp"}}
