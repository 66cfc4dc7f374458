"""`AIAgent`: the assistant as a class for programs that are not asynchronous.

Invariant: whatever it opens is closed by `close`, at the latest when the process ends. One thread may use it at a time.
"""

import atexit
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from anyio.from_thread import BlockingPortal, start_blocking_portal

from hermes.agent.export import plain
from hermes.agent.history import from_plain
from hermes.agent.trajectory import conversations
from hermes.agent.turn import Ended, Turn
from hermes.app.assistant import Assistant, Wish, open_assistant
from hermes.app.core import open_app
from hermes.config import load
from hermes.domain.errors import NotFound
from hermes.domain.event import Event
from hermes.domain.message import Message, MessageId, TextPart
from hermes.domain.principal import LOCAL, Principal
from hermes.domain.session import Session, SessionId
from hermes.llm.catalogue.vendors import vendor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

OWNER = Principal.owner()
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
        self._wish = Wish(toolsets=enabled, without=tuple(disabled_toolsets or ()), platform=platform)
        self._is_quiet = quiet_mode
        self._callback = tool_progress_callback
        self._saves = save_trajectories
        self._workspace = Path(workspace or Path.cwd())
        self._home = None if home is None else Path(home)
        self._said: list[Message] = []
        self._stack = ExitStack()
        self._lock = threading.Lock()
        self._opened: tuple[BlockingPortal, Assistant] | None = None
        self._session: Session | None = None
        self.session_id = session_id

    def chat(self, message: str, system_message: str | None = None, max_iterations: int | None = None) -> str:
        """Ask, and return the answer."""
        return self._ask(message, system_message, (), max_iterations).text

    def run_conversation(
        self,
        user_message: str,
        system_message: str | None = None,
        conversation_history: Sequence[Mapping[str, Any]] | None = None,
        task_id: str | None = None,  # noqa: ARG002 - part of the face; a session has its own name
    ) -> dict[str, Any]:
        """Ask, and return the answer with all that was said; a history that is given begins a session of its own."""
        history: tuple[Message, ...] = ()
        if conversation_history is not None:
            _, assistant = self._open()
            history = from_plain(conversation_history, assistant.now())
        ended = self._ask(user_message, system_message, history, None)
        return {
            "final_response": ended.text,
            "messages": [_bare(plain(message)) for message in self._said],
            "api_calls": ended.ending.steps,
            "completed": ended.ending.state == "done",
            "session_id": ended.session.id,
        }

    def get_trajectory(self) -> dict[str, Any]:
        """Return all that was said as training data."""
        _, assistant = self._open()
        return {
            "conversations": conversations(self._said, assistant.specs),
            "timestamp": self._said[-1].at.isoformat() if self._said else "",
            "model": assistant.model_name,
            "completed": bool(self._said) and self._said[-1].role == "assistant",
        }

    def close(self) -> None:
        """Close what was opened: the model, the machine with its processes, the database."""
        atexit.unregister(self.close)
        self._stack.close()
        self._opened = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, text: str, system: str | None, history: tuple[Message, ...], most: int | None) -> Ended:
        with self._lock:
            portal, assistant = self._open()
            if history:
                self._session, self._said = None, []
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
            ended = portal.call(self._run, assistant, turn)
            self._session, self.session_id = ended.session, ended.session.id
            self._said += [*turn.history, *ended.messages]
            if self._saves:
                self._save(completed=ended.ending.state == "done")
            if ended.error is not None:
                raise ended.error
            return ended

    def _open(self) -> tuple[BlockingPortal, Assistant]:
        if self._opened is None:
            portal = self._stack.enter_context(start_blocking_portal())
            opening: AbstractContextManager[Assistant] = portal.wrap_async_context_manager(self._assistant())
            self._opened = (portal, self._stack.enter_context(opening))
            atexit.register(self.close)
        return self._opened

    @asynccontextmanager
    async def _assistant(self) -> "AsyncIterator[Assistant]":
        settings = load(home=self._home, flags=self._flags)
        async with open_app(settings) as app, open_assistant(app, self._wish) as assistant:
            yield assistant

    async def _find(self, assistant: Assistant) -> tuple[Session, bool]:
        if self._session is not None:
            return self._session, False
        if self.session_id is None:
            return assistant.sessions.make(OWNER, source=self._wish.platform, workspace=self._workspace), True
        try:
            session = await assistant.sessions.find(OWNER, self.session_id)
        except NotFound:
            made = assistant.sessions.make(OWNER, source=self._wish.platform, workspace=self._workspace)
            return replace(made, id=SessionId(self.session_id), tenant=LOCAL), True
        self._said = await assistant.sessions.path(OWNER, session.id)
        return session, False

    async def _run(self, assistant: Assistant, turn: Turn) -> Ended:
        return await assistant.run(turn)

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
