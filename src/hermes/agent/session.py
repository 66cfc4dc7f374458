"""What people do with sessions: find one, go on from elsewhere, go back, name it, forget it.

Invariant: going back moves a head and deletes nothing; only `delete` and `prune` forget, and they say how much.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from hermes.agent.cutting import original
from hermes.domain.clock import Clock, to_micros
from hermes.domain.errors import Conflict, Misconfigured, NotFound
from hermes.domain.ledger import Total
from hermes.domain.message import Message, MessageId, Part
from hermes.domain.principal import Principal
from hermes.domain.protocols import Store, Tx
from hermes.domain.records import dataclass
from hermes.domain.session import Context, Session, SessionId
from hermes.jobs.lane import Lane
from hermes.store import ledger, search
from hermes.store import message as messages
from hermes.store import session as sessions
from hermes.store.search import Hit

_SYSTEM = Principal.system("index what was said")
_LONGEST_TITLE = 200
_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class Undone:
    """What a step back took out of sight: the words of the user that began it, and how many messages with them."""

    parts: tuple[Part, ...]
    count: int


def new_session_id(clock: Clock) -> SessionId:
    """Name a session as people know it: day, time, and a few random signs."""
    return SessionId(f"{clock.now():%Y%m%d_%H%M%S}_{clock.new_id()[-8:]}")


class Sessions:
    """The sessions of one installation. Every method raises NotFound for what is not there, or not the principal's."""

    def __init__(self, store: Store, clock: Clock, lane: Lane) -> None:
        self._store = store
        self._clock = clock
        self._lane = lane

    def make(self, principal: Principal, *, source: str, workspace: Path, title: str | None = None) -> Session:
        """Make a session, which is stored with its first run."""
        now = self._clock.now()
        name = new_session_id(self._clock)
        return Session(
            name, principal.tenant, principal.id, source, now, now, title=_title(title), workspace=str(workspace)
        )

    async def find(self, principal: Principal, word: str) -> Session:
        """Return the session whose id or title is this or begins so. Raises Conflict when it is several."""
        found = await self._store.read(lambda tx: sessions.called(tx, principal, word))
        if not found:
            raise NotFound(f"there is no session {word!r}; `hermes sessions list` shows those there are")
        if len(found) > 1:
            names = ", ".join(f"{one.id} ({one.title})" if one.title else one.id for one in found[:5])
            raise Conflict(f"{word!r} may be {names}; say more of its id or title")
        return found[0]

    async def get(self, principal: Principal, session: SessionId) -> Session:
        """Return the session of just this id."""
        return await self._store.read(lambda tx: _session(tx, principal, session))

    async def latest(self, principal: Principal, *, source: str | None = None) -> Session:
        """Return the session in which something was said last."""
        found = await self.recent(principal, limit=1, source=source)
        if not found:
            raise NotFound("there is no session to go on with yet; begin one with `hermes chat`")
        return found[0]

    async def recent(self, principal: Principal, *, limit: int = 20, source: str | None = None) -> list[Session]:
        """Return sessions, the latest first."""
        return await self._store.read(lambda tx: sessions.recent(tx, principal, limit=limit, source=source))

    async def beginnings(self, principal: Principal, some: Sequence[Session]) -> dict[SessionId, str]:
        """Return how sessions began, to recognise them by."""
        return await self._store.read(
            lambda tx: {one.id: messages.first_of_user(tx, principal, one.id) for one in some}
        )

    async def path(self, principal: Principal, session: SessionId) -> list[Message]:
        """Return what the model is sent of a session."""

        def read(tx: Tx) -> list[Message]:
            return messages.path(tx, principal, _context(tx, principal, session).head)

        return await self._store.read(read)

    async def said(self, principal: Principal, session: SessionId) -> list[Message]:
        """Return everything that was said, also what was gone back from."""
        found: list[Message] = []
        after = 0
        while True:
            page = await self._page(principal, session, after)
            found += [message for _, message in page]
            if not page:
                return found
            after = page[-1][0]

    async def whole(self, principal: Principal, session: SessionId) -> tuple[list[Message], set[MessageId]]:
        """Return everything that belongs to a session, with what was said before it branched off, and the names of
        those messages that were gone back from.
        """
        said = await self.said(principal, session)
        path = await self.path(principal, session)
        own = {message.id for message in said}
        before = [message for message in path if _first(message) not in own and "~" not in message.id]
        kept = {_first(message) for message in path}
        is_compacted = any("~" in message.id for message in path)
        gone = set() if is_compacted else {message.id for message in said if message.id not in kept}
        return before + said, gone

    async def _page(self, principal: Principal, session: SessionId, after: int) -> list[tuple[int, Message]]:
        return await self._store.read(lambda tx: messages.said(tx, principal, session, after=after))

    async def message(self, principal: Principal, session: SessionId, message: MessageId) -> Message | None:
        """Return one message of a session, or of those it was branched from; None when it is another session's."""

        def read(tx: Tx) -> Message | None:
            place = messages.session_of(tx, principal, message)
            return messages.get(tx, principal, message) if place in _line(tx, principal, session) else None

        return await self._store.read(read)

    async def undo(self, principal: Principal, session: SessionId, turns: int = 1) -> Undone:
        """Go back before the last turns. Raises Conflict while somebody works in the session."""

        def work(tx: Tx) -> Undone:
            self._require_idle(tx, principal, session)
            context = _context(tx, principal, session)
            path = messages.path(tx, principal, context.head)
            begins = [
                number for number, message in enumerate(path) if messages.is_opening(tx, principal, _first(message))
            ]
            if len(begins) < turns:
                raise Misconfigured(
                    f"there are {len(begins)} turns to go back in {session!r}, not {turns}; older ones are in a "
                    "summary or in the session it was branched from"
                )
            begin = begins[-turns]
            sessions.move_head(tx, principal, session, context.number, path[begin].parent)
            return Undone(path[begin].parts, len(path) - begin)

        return await self._store.write(work)

    async def branch(self, principal: Principal, session: SessionId, *, title: str | None = None) -> Session:
        """Begin a session that goes on from where another stands; both go their own way from there."""
        name = new_session_id(self._clock)
        named = _title(title)

        def work(tx: Tx) -> Session:
            origin = _session(tx, principal, session)
            context = _context(tx, principal, session)
            made = replace(origin, id=name, title=None, parent=origin.id, message_count=0)
            stored = sessions.create(tx, principal, made)
            sessions.open_context(tx, principal, replace(context, session=name, number=1, why="branch"))
            if named is not None:
                sessions.rename(tx, principal, name, named)
            return replace(stored, title=named)

        return await self._store.write(work)

    async def rename(self, principal: Principal, session: SessionId, title: str) -> None:
        """Give a session its title. Raises Conflict when another has it."""
        await self._store.write(lambda tx: sessions.rename(tx, principal, session, _title(title)))

    async def delete(self, principal: Principal, session: SessionId) -> int:
        """Forget a session; return how many messages. The ledger keeps what it cost."""

        def work(tx: Tx) -> int:
            self._require_idle(tx, principal, session)
            return sessions.delete(tx, principal, session)

        count = await self._store.write(work)
        if not count:
            raise NotFound(f"there is no session {session!r}; `hermes sessions list` shows those there are")
        return count

    async def prune(self, principal: Principal, older: timedelta) -> list[SessionId]:
        """Forget the sessions that are quiet for so long; return which. Those that others go on from stay."""
        before = to_micros(self._clock.now() - older)
        gone: list[SessionId] = []
        while True:
            quiet = await self._store.read(lambda tx: sessions.quiet_since(tx, principal, before))
            idle = [one.id for one in quiet if await self._forget(principal, one.id)]
            gone += idle
            if not idle:
                return gone

    async def search(
        self, principal: Principal, query: str, *, limit: int = 20, session: SessionId | None = None
    ) -> list[Hit]:
        """Find messages by words, phrases and prefixes. Indexes what was said since the last search first."""
        while await self._store.write(lambda tx: search.index_more(tx, _SYSTEM)) == search.BATCH:
            continue
        return await self._store.read(lambda tx: search.find(tx, principal, query, limit=limit, session=session))

    async def usage(self, principal: Principal, session: SessionId) -> Total:
        """Return what a session has used, side calls included."""
        return await self._store.read(lambda tx: ledger.of_session(tx, principal, session))

    async def _forget(self, principal: Principal, session: SessionId) -> bool:
        try:
            return bool(await self.delete(principal, session))
        except (Conflict, NotFound):
            return False

    def _require_idle(self, tx: Tx, principal: Principal, session: SessionId) -> None:
        if self._lane.is_busy(tx, principal, f"session:{session}"):
            raise Conflict(f"somebody works in {session!r} now; wait for it to end, then try again")


def _first(message: Message) -> MessageId:
    return MessageId(original(message))


def _line(tx: Tx, principal: Principal, session: SessionId) -> set[SessionId]:
    """Return a session and those it was branched from."""
    line: set[SessionId] = set()
    at: SessionId | None = session
    while at is not None and at not in line and len(line) < _DEEPEST:
        line.add(at)
        found = sessions.get(tx, principal, at)
        at = None if found is None else found.parent
    return line


def _session(tx: Tx, principal: Principal, session: SessionId) -> Session:
    found = sessions.get(tx, principal, session)
    if found is None:
        raise NotFound(f"there is no session {session!r}; `hermes sessions list` shows those there are")
    return found


def _context(tx: Tx, principal: Principal, session: SessionId) -> Context:
    _session(tx, principal, session)
    found = sessions.context(tx, principal, session)
    if found is None:
        raise NotFound(f"nothing was said in {session!r} yet; say something in it first")
    return found


def _title(title: str | None) -> str | None:
    if title is None:
        return None
    plain = " ".join(title.split())
    if not plain or len(plain) > _LONGEST_TITLE:
        raise Misconfigured(f"{title[:40]!r} is no title; expected 1 to {_LONGEST_TITLE} characters")
    return plain
