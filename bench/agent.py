"""The assistant against one model server: a process of its own, prints one JSON line.

    python -m bench.agent (ours|httpx) turns COUNT HISTORY     CPU of a call of the model and the tool it orders
    python -m bench.agent (ours|socket) many AGENTS TURNS      turns a second of so many agents, three tool calls each
    python -m bench.agent (ours|bare) idle AGENTS              memory of agents that wait, and the most there was
    python -m bench.agent search MESSAGES                      full-text search, the worst of three kinds of words
    python -m bench.agent port                                 serve, and print where

The server orders a tool as often as the path says, then answers. It runs in another process and is not counted. What is
ours writes every message to its database; the floors write nothing.
"""

import asyncio
import contextlib
import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio

from bench.model import WORDS, Server, used

CALLS_A_TURN = 10
CALLS_OF_MANY = 3


def chunks(*deltas: dict[str, object], finish: str) -> bytes:
    about = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    events = [{**about, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events.append({**about, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    events.append({**about, "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}})
    body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


FINAL = chunks({"role": "assistant", "content": "All done."}, finish="stop")


class Orders(Server):
    """Orders a tool until there are as many results after the last word of the user as the path says."""

    count = 0

    def data_received(self, data: bytes) -> None:
        self._body = getattr(self, "_body", b"") + data
        head, found, rest = self._body.partition(b"\r\n\r\n")
        if not found:
            return
        lines = head.split(b"\r\n")
        length = next(int(line.partition(b":")[2]) for line in lines if line.lower().startswith(b"content-length"))
        if len(rest) < length:
            return
        self._body = rest[length:]
        wanted = int(head.split(b" ", 2)[1].split(b"/")[1])
        done = rest.count(b'"role":"tool"', max(rest.rfind(b'"role":"user"'), 0))
        done = done or rest.count(b'"role": "tool"', max(rest.rfind(b'"role": "user"'), 0))
        self._transport.write(FINAL if done >= wanted else self._order())

    def _order(self) -> bytes:
        Orders.count += 1
        number = Orders.count
        call = {"index": 0, "id": f"c{number}", "type": "function"}
        call["function"] = {"name": "echo", "arguments": json.dumps({"text": str(number)})}
        return chunks({"role": "assistant", "content": None, "tool_calls": [call]}, finish="tool_calls")


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(lambda: Orders({}), "127.0.0.1", 0, backlog=2000)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


@contextlib.contextmanager
def serving() -> Iterator[int]:
    command = [sys.executable, "-m", "bench.agent", "port"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())


@contextlib.asynccontextmanager
async def assistants(url: str, folder: Path, flags: dict[str, str] | None = None) -> AsyncIterator["Bench"]:
    """Open an assistant whose one tool gives back what it is told."""
    from hermes.agent.agent import Agent
    from hermes.agent.beginning import Parts
    from hermes.agent.compaction import Terms
    from hermes.agent.house import House
    from hermes.agent.model import Model
    from hermes.agent.session import Sessions
    from hermes.app import open_app
    from hermes.app.workbench import surroundings_of
    from hermes.config import load
    from hermes.domain.model import Reply, Request, Show
    from hermes.effects.executor import Executor
    from hermes.effects.spill import Spill
    from hermes.effects.tool import tool
    from hermes.effects.toolset import Tools
    from hermes.jobs.lane import Lane
    from hermes.llm.asking import ask
    from hermes.llm.choice import choose
    from hermes.llm.opening import open_provider
    from hermes.llm.prices import cost
    from hermes.machines.local import LocalMachine, open_local

    @tool(toolset="bench", access="read")
    async def echo(text: str) -> str:
        """Give back a text."""
        return text

    own = {"model.provider": "custom", "model.base_url": url, "model.default": "m", "model.api_key": "k"}
    settings = load(home=folder, environ={}, flags={**own, **(flags or {})})
    async with open_app(settings) as app, open_provider(choose(settings), settings, app.clock) as provider:
        machine = open_local(settings, app.clock)
        opened: list[LocalMachine] = []

        async def opening() -> LocalMachine:
            if not opened:
                opened.append(await stack.enter_async_context(machine))
            return opened[0]

        async def asking(request: Request, show: Show) -> Reply:
            return await ask(provider, request, show, clock=app.clock)

        lane = Lane.of_this_process(app.store)
        spill = Spill(settings.home, app.clock)
        async with contextlib.AsyncExitStack() as stack:
            parts = Parts(
                store=app.store,
                clock=app.clock,
                lane=lane,
                model=Model(provider, asking, cost),
                hands=Executor(Tools("bench", (echo,)), surroundings_of(app, spill)),
                machine=opening,
                house=House(settings.home, app.clock, has_files=False),
                compaction=Terms(is_on=False),
            )
            await opening()
            yield Bench(Agent(parts), Sessions(app.store, app.clock, lane), app.store, folder)


class Bench:
    """One assistant, and turns for it."""

    def __init__(self, agent: object, sessions: object, store: object, folder: Path) -> None:
        self.agent, self.sessions, self.store = agent, sessions, store
        self.workspace = folder / "work"
        self.workspace.mkdir(exist_ok=True)

    def session(self) -> object:
        from hermes.domain.principal import Principal

        return self.sessions.make(Principal.owner(), source="bench", workspace=self.workspace)  # type: ignore[attr-defined]

    async def run(self, session: object, text: str, *, is_new: bool) -> None:
        from hermes.agent.turn import Turn
        from hermes.domain.message import TextPart
        from hermes.domain.principal import Principal

        parts = (TextPart(text),)
        turn = Turn(
            principal=Principal.owner(),
            session=session,  # type: ignore[arg-type]
            parts=parts,
            workspace=self.workspace,
            is_new=is_new,
        )
        ended = await self.agent.run(turn)  # type: ignore[attr-defined]
        if ended.text != "All done.":
            sys.exit(f"a run went wrong: {ended}")


async def fill(bench: Bench, session: object, count: int) -> None:
    """Store a long history in one go, as if it had been said."""
    from hermes.domain.message import Message, MessageId, TextPart
    from hermes.domain.principal import Principal
    from hermes.store import message as messages

    owner = Principal.owner()
    path = await bench.sessions.path(owner, session.id)  # type: ignore[attr-defined]
    parent, said = path[-1].id, []
    for number in range(count):
        role = ("user", "assistant")[number % 2]
        parts = (TextPart(f"{number} {WORDS}"),)
        said.append(Message(MessageId(f"h{number}"), role, parts, path[-1].at, parent=parent))  # type: ignore[arg-type]
        parent = said[-1].id
    await bench.store.write(lambda tx: messages.append(tx, owner, session.id, 1, said))  # type: ignore[attr-defined]


async def turns(url: str, count: int, history: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        async with assistants(f"{url}/{CALLS_A_TURN}/v1", Path(name)) as bench:
            session = bench.session()
            await bench.run(session, "warm up", is_new=True)
            if history > 30:
                await fill(bench, session, history)
            await bench.run(session, "warm up again", is_new=False)
            before = used()
            for _ in range(count):
                await bench.run(session, "go", is_new=False)
            return {"cpu_us": (used() - before) / count / (CALLS_A_TURN + 1) * 1e6}


async def httpx_turns(url: str, count: int, history: int) -> dict[str, float]:
    """What a loop over httpx does, with json for each request: the same calls, nothing stored."""
    import httpx2

    messages: list[dict[str, object]] = [{"role": "system", "content": "You help."}]
    if history > 30:
        messages += [{"role": ("user", "assistant")[n % 2], "content": f"{n} {WORDS}"} for n in range(history)]
    tools = [{"type": "function", "function": {"name": "echo", "parameters": {"type": "object", "properties": {}}}}]
    async with httpx2.AsyncClient(headers={"Authorization": "Bearer k"}) as client:

        async def call() -> dict[str, object]:
            asked = {"model": "m", "stream": True, "tools": tools, "messages": messages}
            found: dict[str, object] = {"role": "assistant", "content": None}
            address = f"{url}/{CALLS_A_TURN}/v1/chat/completions"
            async with client.stream("POST", address, content=json.dumps(asked).encode()) as response:
                async for line in response.aiter_lines():
                    if line.startswith("data: ") and line != "data: [DONE]":
                        for choice in json.loads(line[6:])["choices"]:
                            found |= choice["delta"]
            return found

        async def turn() -> None:
            messages.append({"role": "user", "content": "go"})
            while True:
                said = await call()
                messages.append(said)
                if not said.get("tool_calls"):
                    return
                for order in said["tool_calls"]:  # type: ignore[attr-defined]
                    text = json.loads(order["function"]["arguments"])["text"]
                    messages.append({"role": "tool", "tool_call_id": order["id"], "content": text})

        await turn()
        await turn()
        before = used()
        for _ in range(count):
            await turn()
        return {"cpu_us": (used() - before) / count / (CALLS_A_TURN + 1) * 1e6}


async def many(url: str, agents: int, each: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        async with assistants(f"{url}/{CALLS_OF_MANY}/v1", Path(name)) as bench:
            sessions = [bench.session() for _ in range(agents)]

            async def work(session: object, count: int, *, is_new: bool) -> None:
                for _ in range(count):
                    await bench.run(session, "go", is_new=is_new)
                    is_new = False

            async def all_of_them(count: int, *, is_new: bool) -> None:
                async with anyio.create_task_group() as group:
                    for session in sessions:
                        group.start_soon(lambda one=session: work(one, count, is_new=is_new))

            await all_of_them(1, is_new=True)
            before, cpu = time.monotonic(), used()
            await all_of_them(each, is_new=False)
            seconds = time.monotonic() - before
            return {"per_second": agents * each / seconds, "cpu_ms": (used() - cpu) / agents / each * 1e3, "mb": peak()}


async def socket_many(url: str, agents: int, each: int) -> dict[str, float]:
    """The same requests over bare sockets, the history encoded once, the answer looked at for what it orders."""
    port = int(url.rpartition(":")[2])
    head = b"POST /%d/v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"

    async def work() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        history = [b'{"model":"m","stream":true,"messages":[{"role":"system","content":"You help."}']
        for _ in range(each):
            history.append(b'{"role":"user","content":"go"}')
            while True:
                body = b",".join(history) + b"]}"
                writer.write(head % (CALLS_OF_MANY, len(body)) + body)
                said = await reader.readuntil(b"[DONE]\n\n")
                if b'"tool_calls"' not in said.partition(b"finish_reason")[0]:
                    history.append(b'{"role":"assistant","content":"All done."}')
                    break
                order = json.loads(said.partition(b"data: ")[2].partition(b"\n\n")[0])["choices"][0]["delta"]
                history.append(json.dumps(order, separators=(",", ":")).encode())
                name = order["tool_calls"][0]["id"]
                history.append(b'{"role":"tool","tool_call_id":"%s","content":"x"}' % name.encode())
        writer.close()

    before = time.monotonic()
    async with anyio.create_task_group() as group:
        for _ in range(agents):
            group.start_soon(work)
    return {"per_second": agents * each / (time.monotonic() - before)}


def peak() -> float:
    """The most memory this process ever had, in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1000


def resident() -> float:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4.096


async def idle(url: str, agents: int, _each: int) -> dict[str, float]:
    """Agents that have had a turn each, and wait."""
    with tempfile.TemporaryDirectory() as name:
        async with assistants(f"{url}/0/v1", Path(name)) as bench:
            first = bench.session()
            for number in range(50):
                await bench.run(first, "hello", is_new=not number)
            before = resident()
            sessions = [bench.session() for _ in range(agents)]
            for session in sessions:
                await bench.run(session, "hello", is_new=True)
            return {"kb": (resident() - before) / agents, "mb": peak()}


async def bare(_url: str, _agents: int, _each: int) -> dict[str, float]:
    return {"kb": 1.0, "mb": peak()}


async def search(_url: str, count: int, _each: int) -> dict[str, float]:
    """Search among so many messages; the floor takes the newest that hold a word, unranked."""
    import random

    from hermes.agent.session import Sessions
    from hermes.app import open_app
    from hermes.config import load
    from hermes.domain.clock import SystemClock
    from hermes.domain.message import Message, MessageId, TextPart
    from hermes.domain.principal import Principal
    from hermes.domain.session import Context, Session, SessionId
    from hermes.jobs.lane import Lane
    from hermes.store import message as messages
    from hermes.store import session as sessions

    chance, owner, clock = random.Random(1), Principal.owner(), SystemClock()
    words = [f"w{number}" for number in range(20_000)]
    with tempfile.TemporaryDirectory() as name:
        settings = load(home=Path(name), environ={}, flags={"database.synchronous": "normal"})
        async with open_app(settings) as app:
            ours = Sessions(app.store, clock, Lane.of_this_process(app.store))
            for block in range(count // 1000):
                made = Session(SessionId(f"s{block}"), owner.tenant, "owner", "bench", clock.now(), clock.now())
                said = []
                for number in range(1000):
                    # Some words are everywhere, most are rare: as in speech.
                    text = " ".join(words[int(len(words) * chance.random() ** 4)] for _ in range(26)) + " common"
                    said.append(Message(MessageId(f"{block}-{number}"), "user", (TextPart(text),), clock.now()))

                def store(tx, made=made, said=said) -> None:  # noqa: ANN001
                    sessions.create(tx, owner, made)
                    context = Context(made.id, 1, "chat", "m", "t", b"{}", None, "new", clock.now())
                    sessions.open_context(tx, owner, context)
                    messages.append(tx, owner, made.id, 1, said)

                await app.store.write(store)
            await ours.search(owner, "common")
            queries = ["common", "w0", "w19999", "w1 w2", "common w3", '"w0 w1"', "w12*"]
            return {"ms": max([await _median(ours, owner, query) for query in queries])}


async def _median(ours: object, owner: object, query: str) -> float:
    taken = []
    for _ in range(15):
        before = time.perf_counter()
        await ours.search(owner, query)  # type: ignore[attr-defined]
        taken.append((time.perf_counter() - before) * 1000)
    return statistics.median(taken)


WORKERS = {
    ("ours", "turns"): turns,
    ("httpx", "turns"): httpx_turns,
    ("ours", "many"): many,
    ("socket", "many"): socket_many,
    ("ours", "idle"): idle,
    ("bare", "idle"): bare,
    ("ours", "search"): search,
}


def main(words: list[str]) -> None:
    if words == ["port"]:
        asyncio.run(serve())
        return
    who, what, first, second = words[0], words[1], int(words[2]), int(words[3])
    with serving() as port:
        measured = anyio.run(WORKERS[who, what], f"http://127.0.0.1:{port}", first, second)
    sys.stdout.write(json.dumps(measured) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
