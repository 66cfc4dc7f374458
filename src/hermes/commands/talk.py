"""Commands about sessions: begin, find, go on, go back, name, branch, write down."""

from pathlib import Path

from hermes.agent.export import as_jsonl, as_markdown
from hermes.commands.port import Port
from hermes.commands.words import ago, count_in, many, one_line
from hermes.domain.errors import Misconfigured, NotFound, Unsupported
from hermes.domain.message import Message, TextPart
from hermes.machines.checkpoint import Checkpoints

_SHOWN = 15
_PEEK = 60


async def new(port: Port, rest: str) -> None:
    """Begin a session."""
    port.seat.begin_session(rest or None)
    port.say(f"a new session{f': {rest}' if rest else ''}; the one before is kept (/sessions)")


async def resume(port: Port, rest: str) -> None:
    """Go on with a session, by its id, its title, or its number in the list."""
    seat = port.seat
    if not rest:
        await sessions(port, "")
        return
    if rest.isdigit() and len(rest) <= 2:
        found = await seat.assistant.sessions.recent(seat.principal, limit=_SHOWN)
        if not 1 <= int(rest) <= len(found):
            raise NotFound(f"there is no session number {rest}; /sessions shows {many(len(found), 'session')}")
        session = found[int(rest) - 1]
    else:
        session = await seat.assistant.sessions.find(seat.principal, rest)
    seat.enter(session)
    said = await seat.assistant.sessions.path(seat.principal, session.id)
    port.replay(said)
    port.say(f"going on with {session.title or session.id} ({many(len(said), 'message')}) in {seat.workspace}")


async def sessions(port: Port, rest: str) -> None:
    """Show the latest sessions."""
    seat = port.seat
    limit = count_in(rest, _SHOWN, most=100)
    found = await seat.assistant.sessions.recent(seat.principal, limit=limit)
    if not found:
        port.say("nothing was said yet")
        return
    began = await seat.assistant.sessions.beginnings(seat.principal, found)
    now = seat.assistant.clock.now()
    rows = [
        (
            f"{number}{'*' if one.id == seat.session.id else ''}",
            one.title or one_line(began[one.id], _PEEK),
            str(one.message_count),
            ago(now, one.updated_at),
            one.id,
        )
        for number, one in enumerate(found, 1)
    ]
    port.table(("", "session", "messages", "last", "id"), rows)
    port.say("/resume NUMBER goes on with one")


async def history(port: Port, rest: str) -> None:
    """Show what was said in this session."""
    said = await _path(port)
    if not said:
        port.say("nothing was said in this session yet")
        return
    port.replay(said[-count_in(rest, 20, most=1_000) :])


async def search(port: Port, rest: str) -> None:
    """Find what was said in any session."""
    if not rest:
        raise Misconfigured('/search needs words, "a phrase" or a begin*')
    seat = port.seat
    hits = await seat.assistant.sessions.search(seat.principal, rest, limit=_SHOWN)
    if not hits:
        port.say(f"nothing was found for {rest!r}")
        return
    now = seat.assistant.clock.now()
    rows = [(hit.role, one_line(hit.snippet, 200), ago(now, hit.at), hit.session) for hit in hits]
    port.table(("who", "what", "when", "session"), rows)


async def title(port: Port, rest: str) -> None:
    """Show or give the title of this session."""
    seat = port.seat
    if not rest:
        port.say(seat.session.title or "this session has no title; /title WORDS gives it one")
        return
    if seat.is_new:
        seat.begin_session(rest)
    else:
        await seat.assistant.sessions.rename(seat.principal, seat.session.id, rest)
        seat.session = await seat.assistant.sessions.find(seat.principal, seat.session.id)
    port.say(f"this session is called {' '.join(rest.split())!r}")


async def branch(port: Port, rest: str) -> None:
    """Go on in a new session from here; the old one stays as it is."""
    seat = port.seat
    _require_words(port)
    before = seat.session
    seat.enter(await seat.assistant.sessions.branch(seat.principal, before.id, title=rest or None))
    port.say(f"a branch of {before.title or before.id}; /resume {before.id} goes back to that")


async def undo(port: Port, rest: str) -> None:
    """Go back before the last turns."""
    _require_words(port)
    turns = count_in(rest, 1, most=100)
    undone = await port.seat.assistant.sessions.undo(port.seat.principal, port.seat.session.id, turns)
    words = "".join(part.text for part in undone.parts if isinstance(part, TextPart))
    port.say(f"went back {many(turns, 'turn')}, before {one_line(words, _PEEK)!r}; files are as they are (/rollback)")


async def retry(port: Port, rest: str) -> None:  # noqa: ARG001 - as every command
    """Go back before the last turn, and ask the same again."""
    _require_words(port)
    undone = await port.seat.assistant.sessions.undo(port.seat.principal, port.seat.session.id, 1)
    port.submit(undone.parts)


async def rollback(port: Port, rest: str) -> None:
    """Show the checkpoints of the workspace, or bring its files back to one."""
    seat = port.seat
    kept = Checkpoints(seat.assistant.settings.home, seat.assistant.clock)
    found = await kept.find(seat.workspace)
    if not found:
        port.say("there is no checkpoint of this folder; one is made before the first change of a run")
        return
    if not rest:
        rows = [
            (str(number), one.at[:19].replace("T", " "), str(one.files), one.why) for number, one in enumerate(found, 1)
        ]
        port.table(("", "when (UTC)", "files", "why"), rows)
        port.say("/rollback NUMBER brings the files back; /rollback NUMBER diff shows what that would change")
        return
    word, _, what = rest.partition(" ")
    name = found[int(word) - 1].id if word.isdigit() and 1 <= int(word) <= len(found) else word
    if what.strip() == "diff":
        changes = await kept.diff(seat.workspace, name)
        port.say("\n".join(f"{one.kind:<8} {one.path}" for one in changes) or "everything is as it was")
        return
    done = await kept.restore(seat.workspace, name)
    port.say(f"{many(len(done.differences) - len(done.failed), 'file')} brought back; /rollback {done.undo} undoes it")
    for failed in done.failed:
        port.say(f"not brought back: {failed}")


async def compress(port: Port, rest: str) -> None:  # noqa: ARG001 - as every command
    """Make what the model is sent shorter now."""
    _require_words(port)
    port.say("making the conversation shorter …")
    ended = await port.seat.compact()
    if ended.error is not None:
        raise ended.error
    port.say(f"{ended.ending.reason or 'done'}; nothing is lost, `recall` finds what was left out")


async def save(port: Port, rest: str) -> None:
    """Write the session to a file: Markdown, or JSON lines when the name ends so."""
    seat = port.seat
    _require_words(port)
    said = await seat.assistant.sessions.said(seat.principal, seat.session.id)
    path = (seat.workspace / Path(rest or f"hermes_{seat.session.id}.md")).expanduser()
    make = as_jsonl if path.suffix == ".jsonl" else as_markdown
    try:
        with path.open("x", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(f"{line}\n" for line in make(seat.session, said))
    except FileExistsError:
        raise Misconfigured(f"{str(path)!r} exists already; name another file: /save NAME") from None
    except OSError as error:
        raise Misconfigured(f"{str(path)!r} cannot be written: {error.strerror}; name another file") from error
    port.say(f"wrote {many(len(said), 'message')} to {path}")


async def copy(port: Port, rest: str) -> None:
    """Put an answer into the clipboard; the last, or the N-th from the end."""
    if port.look is None:
        raise Unsupported("/copy is for a terminal")
    answers = [m.text for m in await _path(port) if m.role == "assistant" and m.text.strip()]
    number = count_in(rest, 1, most=1_000)
    if number > len(answers):
        raise NotFound(f"there are {many(len(answers), 'answer')} in this session, not {number}")
    port.look.copy(answers[-number])
    port.say(f"copied {many(len(answers[-number]), 'character')}")


async def _path(port: Port) -> list[Message]:
    seat = port.seat
    return [] if seat.is_new else await seat.assistant.sessions.path(seat.principal, seat.session.id)


def _require_words(port: Port) -> None:
    if port.seat.is_new:
        raise Misconfigured("nothing was said in this session yet; say something first, or /resume another")
