"""What sessions, their messages and the search among them promise, whatever is under them."""

from dataclasses import replace

from hermes.domain.errors import Conflict, NotFound
from hermes.domain.ledger import Entry
from hermes.domain.message import (
    CallId,
    CallPart,
    ImagePart,
    Message,
    MessageId,
    ReasoningPart,
    ResultPart,
    TextPart,
)
from hermes.domain.model import Usage
from hermes.domain.principal import LOCAL, Principal
from hermes.domain.protocols import Tx
from hermes.domain.session import Context, Run, RunId, Session, SessionId
from hermes.store import ledger, search
from hermes.store import message as messages
from hermes.store import run as runs
from hermes.store import session as sessions
from hermes.testing.contracts.asserting import raises
from hermes.testing.world import SYSTEM, World

OWNER = Principal.owner()


async def begin(world: World, name: str, *, title: str | None = None) -> Session:
    """Store a session with its first context."""
    now = world.clock.now()
    session = Session(SessionId(name), LOCAL, "owner", "test", now, now, title=title)
    context = Context(session.id, 1, "chat", "m", "t", b'{"model":"m"', None, "new", now)

    def work(tx: Tx) -> None:
        sessions.create(tx, OWNER, session)
        sessions.open_context(tx, OWNER, context)

    await world.store.write(work)
    return session


async def say(world: World, name: str, *words: str, role: str = "user") -> list[Message]:
    """Append messages to the head of a session."""
    said: list[Message] = []

    def work(tx: Tx) -> None:
        context = sessions.context(tx, OWNER, SessionId(name))
        parent = context.head if context else None
        for number, text in enumerate(words):
            at = world.clock.now()
            one = Message(MessageId(f"{name}-{text}-{number}"), role, (TextPart(text),), at, parent=parent)  # type: ignore[arg-type]
            said.append(one)
            parent = one.id
        messages.append(tx, OWNER, SessionId(name), 1, said)

    await world.store.write(work)
    return said


class SessionContract:
    """Sessions, contexts, messages, runs."""

    async def test_what_was_said_is_read_back_part_by_part(self, world: World) -> None:
        """Every kind of part, and what a vendor wants back."""
        await begin(world, "s")
        picture = ImagePart("image/png", "aGk=")
        call = CallPart(CallId("c1"), "read_file", '{"path":"a"}')
        result = ResultPart(CallId("c1"), "read_file", "text", is_error=True, images=(picture,))
        now = world.clock.now()
        first = Message(MessageId("1"), "user", (TextPart("look"), picture), now)
        second = Message(
            MessageId("2"),
            "assistant",
            (ReasoningPart("hm"), TextPart("I look"), call),
            now,
            parent=first.id,
            opaque={"anthropic": '[{"signature":"x"}]'},
        )
        third = Message(MessageId("3"), "tool", (result,), now, status="uncertain", parent=second.id)
        await world.store.write(lambda tx: messages.append(tx, OWNER, SessionId("s"), 1, [first, second, third]))
        assert await world.store.read(lambda tx: messages.path(tx, OWNER, third.id)) == [first, second, third]

    async def test_appending_again_is_nothing(self, world: World) -> None:
        """A repeated write neither doubles a message nor moves the head back."""
        await begin(world, "s")
        old = await say(world, "s", "one")
        new = await say(world, "s", "two")
        await world.store.write(lambda tx: messages.append(tx, OWNER, SessionId("s"), 1, old))
        context = await world.store.read(lambda tx: sessions.context(tx, OWNER, SessionId("s")))
        assert context is not None
        assert context.head == new[-1].id
        found = await world.store.read(lambda tx: sessions.get(tx, OWNER, SessionId("s")))
        assert found is not None
        assert found.message_count == 2

    async def test_going_back_deletes_nothing(self, world: World) -> None:
        """The path follows the head; what was gone back from is still said."""
        await begin(world, "s")
        said = await say(world, "s", "a", "b", "c")
        await world.store.write(lambda tx: sessions.move_head(tx, OWNER, SessionId("s"), 1, said[0].id))
        (other,) = await say(world, "s", "d")
        path = await world.store.read(lambda tx: messages.path(tx, OWNER, other.id))
        assert [one.text for one in path] == ["a", "d"]
        whole = await world.store.read(lambda tx: messages.said(tx, OWNER, SessionId("s")))
        assert [one.text for _, one in whole] == ["a", "b", "c", "d"]

    async def test_a_prefix_is_written_once(self, world: World) -> None:
        """Opening a context again returns what is there."""
        session = await begin(world, "s")
        again = Context(session.id, 1, "chat", "other", "t", b"changed", None, "new", world.clock.now())
        kept = await world.store.write(lambda tx: sessions.open_context(tx, OWNER, again))
        assert (kept.model, kept.prefix) == ("m", b'{"model":"m"')

    async def test_a_title_names_one_session(self, world: World) -> None:
        """And finds it by its beginning, in any case; so does the id."""
        await begin(world, "s-one", title="Holiday in Rome")
        await begin(world, "s-two")
        taken = world.store.write(lambda tx: sessions.rename(tx, OWNER, SessionId("s-two"), "Holiday in Rome"))
        assert "already" in str(await raises(Conflict, taken))
        for word, wanted in (("holiday", ["s-one"]), ("s-t", ["s-two"]), ("s-", ["s-one", "s-two"]), ("x", [])):
            found = await world.store.read(lambda tx, word=word: sessions.called(tx, OWNER, word))  # type: ignore[misc]
            assert sorted(one.id for one in found) == wanted

    async def test_a_deleted_session_leaves_only_what_it_cost(self, world: World) -> None:
        """Messages, contexts and hits are gone; the ledger stays."""
        await begin(world, "s")
        await say(world, "s", "unforgettable")
        await world.store.write(
            lambda tx: ledger.write(tx, OWNER, Entry("e", LOCAL, "o", "turn", "m", Usage(7, 5), 12, SessionId("s")))
        )
        await world.store.write(lambda tx: search.index_more(tx, SYSTEM))
        assert await world.store.write(lambda tx: sessions.delete(tx, OWNER, SessionId("s"))) == 1
        assert await world.store.read(lambda tx: sessions.get(tx, OWNER, SessionId("s"))) is None
        assert await world.store.read(lambda tx: search.find(tx, OWNER, "unforgettable")) == []
        total = await world.store.read(lambda tx: ledger.of_session(tx, OWNER, SessionId("s")))
        assert (total.calls, total.usage.input, total.usage.output, total.cost) == (1, 7, 5, 12)

    async def test_a_run_ends_once(self, world: World) -> None:
        """The second end is refused."""
        await begin(world, "s")
        run = Run(RunId("r"), SessionId("s"), OWNER, "running", world.clock.now())
        await world.store.write(lambda tx: runs.start(tx, OWNER, run))
        assert [one.id for one in await world.store.read(lambda tx: runs.unfinished(tx, OWNER, run.session))] == ["r"]
        assert await world.store.write(lambda tx: runs.end(tx, OWNER, run.id, "done", None, steps=2))
        assert not await world.store.write(lambda tx: runs.end(tx, OWNER, run.id, "failed", "late", steps=3))
        (ended,) = await world.store.read(lambda tx: runs.of_session(tx, OWNER, run.session))
        assert (ended.state, ended.steps) == ("done", 2)
        assert await world.store.read(lambda tx: runs.get(tx, OWNER, run.id)) == ended
        assert await world.store.read(lambda tx: runs.get(tx, OWNER, RunId("none"))) is None

    async def test_nothing_is_appended_to_what_is_not_there(self, world: World) -> None:
        """A session that was deleted meanwhile is missed, by name."""
        message = Message(MessageId("1"), "user", (TextPart("x"),), world.clock.now())
        missed = world.store.write(lambda tx: messages.append(tx, OWNER, SessionId("gone"), 1, [message]))
        assert "there is no session 'gone'" in str(await raises(NotFound, missed))


class SearchContract:
    """Search among everything that was said."""

    async def test_words_phrases_prefixes_and_what_is_excluded(self, world: World) -> None:
        """As people write them."""
        await begin(world, "s")
        await say(world, "s", "the quick brown fox", "a brown quick dog", "Überraschung im Haus", "quickly gone")
        for query, wanted in (
            ("quick", {"the quick brown fox", "a brown quick dog"}),
            ('"quick brown"', {"the quick brown fox"}),
            ("quick*", {"the quick brown fox", "a brown quick dog", "quickly gone"}),
            ("quick -dog", {"the quick brown fox"}),
            ("haus überraschung", {"Überraschung im Haus"}),
            ("-quick", set()),
            ("'\"(*", set()),
        ):
            assert await self._found(world, query) == wanted, query

    async def test_scripts_without_spaces(self, world: World) -> None:
        """Any two neighbours are found, a longer run as a whole."""
        await begin(world, "s")
        await say(world, "s", "今日は天気がいいですね", "明日の天気予報", "我喜欢喝咖啡")
        for query, wanted in (
            ("天気", {"今日は天気がいいですね", "明日の天気予報"}),
            ("天気予報", {"明日の天気予報"}),
            ("咖啡", {"我喜欢喝咖啡"}),
            ("気天", set()),
        ):
            assert await self._found(world, query) == wanted, query

    async def test_a_hit_shows_why(self, world: World) -> None:
        """The words stand between marks, in the part of the text around them."""
        await begin(world, "s", title="long")
        await say(world, "s", "x " * 400 + "needle" + " y" * 400)
        (hit,) = await self._hits(world, "needle")
        assert "»needle«" in hit.snippet
        assert len(hit.snippet) < 250
        assert (hit.session, hit.title) == ("s", "long")

    async def test_the_index_is_made_again_from_the_messages(self, world: World) -> None:
        """Nothing depends on it."""
        await begin(world, "s")
        await say(world, "s", "remembered")
        assert await self._found(world, "remembered") == {"remembered"}
        await world.store.write(lambda tx: search.rebuild(tx, SYSTEM))
        assert await self._found(world, "remembered") == {"remembered"}

    async def test_copies_in_a_new_context_are_not_found_twice(self, world: World) -> None:
        """Compaction begins a context with copies."""
        await begin(world, "s")
        (original,) = await say(world, "s", "only once")
        copy = replace(original, id=MessageId("copy"), parent=None)
        await world.store.write(lambda tx: messages.append(tx, OWNER, SessionId("s"), 1, [copy], copy_of=[original.id]))
        assert len(await self._hits(world, "once")) == 1

    async def _hits(self, world: World, query: str) -> list[search.Hit]:
        await world.store.write(lambda tx: search.index_more(tx, SYSTEM))
        return await world.store.read(lambda tx: search.find(tx, OWNER, query))

    async def _found(self, world: World, query: str) -> set[str]:
        texts = set()
        for hit in await self._hits(world, query):
            message = await world.store.read(lambda tx, id_=hit.message: messages.get(tx, OWNER, id_))  # type: ignore[misc]
            assert message is not None
            texts.add(message.text)
        return texts
