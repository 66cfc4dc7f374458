"""Look at past conversations, find what was said in them, go back, branch off, export, forget.

A session is named by its id or its title, or by how one of them begins.
"""

import argparse
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.cli.action import Actions, add_json, count, duration, perform, text
from hermes.cli.opening import OWNER, print_with_app, with_app
from hermes.cli.progress import harmless
from hermes.cli.screen import document, local_times, many, pairs, say, table
from hermes.domain.errors import Misconfigured
from hermes.domain.ledger import Total
from hermes.domain.message import Message, MessageId
from hermes.domain.session import Session, SessionId

if TYPE_CHECKING:
    from hermes.agent.session import Sessions
    from hermes.app import App

run = perform


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = Actions.of(parser, "hermes sessions search 'build AND error'")
    listing = actions.add("list", _list, "show sessions, the latest first", "hermes sessions list --limit 5")
    listing.add_argument("--source", type=text, help="only those that began there, such as cli")
    listing.add_argument("--limit", metavar="N", type=count, default=20, help="show at most so many; 20 if not given")
    add_json(listing)
    show = _of_one(actions, "show", _show, "show what was said", "hermes sessions show 20270104")
    show.add_argument("--all", action="store_true", help="also what was gone back from, and before a summary")
    add_json(show)
    search = actions.add("search", _search, "find what was said", """hermes sessions search '"exact words" begin*'""")
    search.add_argument("query", metavar="QUERY", type=text, help='words, "a phrase", begin*, -not')
    search.add_argument("--session", type=text, help="only in this one")
    search.add_argument("--limit", metavar="N", type=count, default=20, help="show at most so many; 20 if not given")
    add_json(search)
    rename = _of_one(actions, "rename", _rename, "give a session its title", "hermes sessions rename 2027 'my project'")
    rename.add_argument("title", metavar="TITLE", type=text, help="what it is called from now on")
    branch = _of_one(actions, "branch", _branch, "begin a session that goes on from one", "hermes sessions branch mine")
    branch.add_argument("--title", type=text, help="what the new one is called")
    undo = _of_one(actions, "undo", _undo, "go back before the last turns", "hermes sessions undo mine --turns 2")
    undo.add_argument("--turns", metavar="N", type=count, default=1, help="how many; 1 if not given")
    usage = _of_one(actions, "usage", _usage, "show what a session has used and cost", "hermes sessions usage mine")
    add_json(usage)
    export = _of_one(
        actions, "export", _export, "write a session down", "hermes sessions export mine --format markdown"
    )
    export.add_argument("--format", choices=("jsonl", "markdown"), default="jsonl", help="jsonl if not given")
    export.add_argument("--output", metavar="FILE", type=Path, help="where to; standard output if not given")
    delete = actions.add("delete", _delete, "forget sessions for good", "hermes sessions delete 20270104_120000")
    delete.add_argument("names", metavar="SESSION", nargs="+", type=text, help="the id or title, or how it begins")
    prune = actions.add("prune", _prune, "forget sessions that are long quiet", "hermes sessions prune --older 90d")
    prune.add_argument("--older", metavar="TIME", type=duration, required=True, help="quiet for so long, such as 90d")


def _of_one(
    actions: Actions, name: str, act: "Callable[[argparse.Namespace], int]", summary: str, example: str
) -> argparse.ArgumentParser:
    parser = actions.add(name, act, summary, example)
    parser.add_argument("name", metavar="SESSION", type=text, help="the id or title, or how it begins")
    return parser


def _sessions(app: "App") -> "Sessions":
    from hermes.agent.session import Sessions
    from hermes.jobs.lane import Lane

    return Sessions(app.store, app.clock, Lane.of_this_process(app.store, app.settings.jobs.lease))


def _print(arguments: argparse.Namespace, work: "Callable[[App, Sessions], Awaitable[Sequence[str]]]") -> int:
    async def opened(app: "App") -> Sequence[str]:
        return await work(app, _sessions(app))

    return print_with_app(arguments, opened)


def _list(arguments: argparse.Namespace) -> int:
    async def work(app: "App", sessions: "Sessions") -> Sequence[str]:
        found = await sessions.recent(OWNER, limit=arguments.limit, source=arguments.source)
        began = await sessions.beginnings(OWNER, found)
        if arguments.json:
            return [document([_as_document(one, began[one.id]) for one in found])]
        if not found:
            return ["nothing was said yet; begin with `hermes chat -q 'hello'`"]
        shown = local_times(app.settings.time.zone)
        rows = [
            (one.id, shown(one.updated_at), str(one.message_count), one.title or "", " ".join(began[one.id].split()))
            for one in found
        ]
        return table(("id", "last", "messages", "title", "began with"), rows, whole=("id",))

    return _print(arguments, work)


def _as_document(session: Session, began: str) -> dict[str, object]:
    return {
        "id": session.id,
        "title": session.title,
        "source": session.source,
        "parent": session.parent,
        "workspace": session.workspace,
        "created_at": session.created_at,
        "updated_at": session.updated_at,
        "message_count": session.message_count,
        "began_with": began,
    }


def _show(arguments: argparse.Namespace) -> int:
    async def work(_app: "App", sessions: "Sessions") -> Sequence[str]:
        from hermes.agent.export import as_markdown, plain

        session = await sessions.find(OWNER, arguments.name)
        said = await _said(sessions, session, is_all=arguments.all)
        if arguments.json:
            return [document([plain(message) for message in said])]
        return [harmless(piece) for piece in as_markdown(session, said)]

    return _print(arguments, work)


async def _said(sessions: "Sessions", session: Session, *, is_all: bool) -> list[Message]:
    return await (sessions.said(OWNER, session.id) if is_all else sessions.path(OWNER, session.id))


def _search(arguments: argparse.Namespace) -> int:
    async def work(app: "App", sessions: "Sessions") -> Sequence[str]:
        within = (await sessions.find(OWNER, arguments.session)).id if arguments.session else None
        hits = await sessions.search(OWNER, arguments.query, limit=arguments.limit, session=within)
        if arguments.json:
            return [document([hit._asdict() for hit in hits])]
        if not hits:
            return [f"nothing was found for {arguments.query!r}"]
        shown = local_times(app.settings.time.zone)
        rows = [(hit.session, shown(hit.at), hit.role, hit.snippet) for hit in hits]
        return table(("session", "when", "who", "what"), rows, whole=("session",))

    return _print(arguments, work)


def _rename(arguments: argparse.Namespace) -> int:
    async def work(_app: "App", sessions: "Sessions") -> Sequence[str]:
        session = await sessions.find(OWNER, arguments.name)
        await sessions.rename(OWNER, session.id, arguments.title)
        return [f"{session.id} is now called {arguments.title!r}"]

    return _print(arguments, work)


def _branch(arguments: argparse.Namespace) -> int:
    async def work(_app: "App", sessions: "Sessions") -> Sequence[str]:
        session = await sessions.find(OWNER, arguments.name)
        made = await sessions.branch(OWNER, session.id, title=arguments.title)
        return [f"{made.id} goes on from {session.id}; `hermes chat --resume {made.id} -q …` works in it"]

    return _print(arguments, work)


def _undo(arguments: argparse.Namespace) -> int:
    async def work(_app: "App", sessions: "Sessions") -> Sequence[str]:
        session = await sessions.find(OWNER, arguments.name)
        undone = await sessions.undo(OWNER, session.id, arguments.turns)
        left = many(undone.count, "message")
        return [f"went back {many(arguments.turns, 'turn')}; {left} out of sight, none deleted (sessions show --all)"]

    return _print(arguments, work)


def _usage(arguments: argparse.Namespace) -> int:
    async def work(_app: "App", sessions: "Sessions") -> Sequence[str]:
        session = await sessions.find(OWNER, arguments.name)
        total = await sessions.usage(OWNER, session.id)
        told = _used(total)
        return [document(told)] if arguments.json else pairs([(name, str(value)) for name, value in told.items()])

    return _print(arguments, work)


def _used(total: Total) -> dict[str, object]:
    return {
        "calls": total.calls,
        "input_tokens": total.usage.input,
        "output_tokens": total.usage.output,
        "cache_read_tokens": total.usage.cache_read,
        "cache_write_tokens": total.usage.cache_write,
        "reasoning_tokens": total.usage.reasoning,
        "cost_usd": total.cost / 1_000_000,
        "calls_without_a_price": total.unpriced,
    }


def _export(arguments: argparse.Namespace) -> int:
    async def work(app: "App") -> "tuple[Session, list[Message], set[MessageId]]":
        sessions = _sessions(app)
        session = await sessions.find(OWNER, arguments.name)
        return session, *await sessions.whole(OWNER, session.id)

    session, said, gone = with_app(arguments, work)
    from hermes.agent.export import as_jsonl, as_markdown

    write = as_jsonl if arguments.format == "jsonl" else as_markdown
    lines = write(session, said, gone)
    if arguments.output is None:
        for line in lines:
            sys.stdout.write(f"{line}\n")
        return 0
    try:
        with arguments.output.open("x", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(f"{line}\n" for line in lines)
    except FileExistsError:
        raise Misconfigured(f"{str(arguments.output)!r} exists already; name another file, or remove it") from None
    say(f"wrote {many(len(said), 'message')} to {arguments.output}")
    return 0


def _delete(arguments: argparse.Namespace) -> int:
    async def work(app: "App", sessions: "Sessions") -> Sequence[str]:
        # All are found before the first is deleted: a slip of the pen deletes nothing. Branches go before their origin.
        found = [await sessions.find(OWNER, name) for name in arguments.names]
        told = []
        for name in dict.fromkeys(one.id for one in sorted(found, key=lambda one: one.created_at, reverse=True)):
            count = await sessions.delete(OWNER, name)
            await _forget_files(app, name)
            told.append(f"deleted {name}: {many(count, 'message')}")
        return told

    return _print(arguments, work)


def _prune(arguments: argparse.Namespace) -> int:
    async def work(app: "App", sessions: "Sessions") -> Sequence[str]:
        gone = await sessions.prune(OWNER, arguments.older)
        for name in gone:
            await _forget_files(app, name)
        return [f"deleted {many(len(gone), 'session')}"]

    return _print(arguments, work)


async def _forget_files(app: "App", session: "SessionId") -> None:
    """Remove what a session has left beside the database: its log, its long results, its outputs."""
    import anyio.to_thread

    from hermes.app.forgetting import forget_files

    await anyio.to_thread.run_sync(forget_files, app.settings.home, session)
