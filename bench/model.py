"""Model calls through Hermes and by httpx2 with json, against one server: a process of its own, prints one JSON line.

    python -m bench.model (ours|httpx) (tokens|calls) COUNT HISTORY

`tokens`: CPU for each token of answers of 4,000, all of it on the wire at once. `calls`: CPU for each call with so many
messages of history, each of 28 words; the floor encodes its history with json at each call, as the vendors' clients do.
The server runs in another process and is not counted.
"""

import asyncio
import contextlib
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio

from hermes.domain.clock import SystemClock
from hermes.domain.message import Message, MessageId, TextPart
from hermes.domain.model import Request

CLOCK = SystemClock()
TOKENS = 4000
WORDS = " ".join(["the quick brown fox jumps over a lazy dog while seven wizards mix potions"] * 2)
_ABOUT = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_800_000_000, "model": "m"}


def event(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return b"data: " + json.dumps({**_ABOUT, "choices": [choice]}).encode() + b"\n\n"


def answer(tokens: int) -> bytes:
    """A whole answer, a chunk for each event, as servers write them."""
    events = [event({"role": "assistant", "content": ""})]
    events += [event({"content": f" word{number % 100}"}) for number in range(tokens)]
    usage = {**_ABOUT, "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": tokens, "total_tokens": 9}}
    events += [event({}, "stop"), b"data: " + json.dumps(usage).encode() + b"\n\n", b"data: [DONE]\n\n"]
    body = b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in events)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + body + b"0\r\n\r\n"


class Server(asyncio.Protocol):
    """Reads a request to its end and writes the answer that its path names."""

    def __init__(self, answers: dict[bytes, bytes]) -> None:
        self._answers = answers
        self._left = 0
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if not self._left:
            self._head += data
            head, found, rest = self._head.partition(b"\r\n\r\n")
            if not found:
                return
            length = next(
                int(line.partition(b":")[2])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length")
            )
            self._path, self._head, data = head.split(b" ", 2)[1], b"", rest
            self._left = length
        self._left -= len(data)
        if not self._left:
            self._transport.write(self._answers[self._path.split(b"/")[1]])


async def serve() -> None:
    answers = {b"tokens": answer(TOKENS), b"calls": answer(1)}
    server = await asyncio.get_running_loop().create_server(lambda: Server(answers), "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


@contextlib.contextmanager
def serving() -> Iterator[int]:
    command = [sys.executable, "-m", "bench.model", "serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())


def used() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def history(count: int) -> list[tuple[str, str]]:
    return [(("user", "assistant")[number % 2], f"{number} {WORDS}") for number in range(count - 1)] + [("user", "Go.")]


async def ours(url: str, count: int, length: int) -> float:
    from hermes.config import load
    from hermes.llm.choice import choose
    from hermes.llm.opening import open_provider

    flags = {"model.provider": "custom", "model.base_url": url, "model.default": "m", "model.api_key": "k"}
    settings = load(home=Path(tempfile.gettempdir()) / "hermes-bench-none", environ={}, flags=flags)
    seen = [0]

    def show(_delta: object) -> None:
        seen[0] += 1

    async with open_provider(choose(settings), settings, CLOCK) as provider:
        encoded = [
            provider.encode(
                Message(MessageId("m"), "user" if role == "user" else "assistant", (TextPart(text),), CLOCK.now())
            )
            for role, text in history(length)
        ]
        request = Request(provider.prefix("You help.", []), encoded)
        await provider.call(request, show)
        before = used()
        for _ in range(count):
            await provider.call(request, show)
        return used() - before


async def httpx(url: str, count: int, length: int) -> float:
    import httpx2

    messages = [{"role": "system", "content": "You help."}]
    messages += [{"role": role, "content": text} for role, text in history(length)]
    asked = {"model": "m", "stream": True, "stream_options": {"include_usage": True}}
    seen = [0]
    async with httpx2.AsyncClient(headers={"Authorization": "Bearer k"}) as client:

        async def call() -> str:
            body = json.dumps({**asked, "messages": messages}).encode()
            pieces = []
            headers = {"Content-Type": "application/json"}
            async with client.stream("POST", f"{url}/chat/completions", content=body, headers=headers) as response:
                async for line in response.aiter_lines():
                    if not line.startswith("data: ") or line == "data: [DONE]":
                        continue
                    chunk = json.loads(line[6:])
                    if chunk["choices"] and (text := chunk["choices"][0]["delta"].get("content")):
                        pieces.append(text)
                        seen[0] += 1
            return "".join(pieces)

        await call()
        before = used()
        for _ in range(count):
            await call()
        return used() - before


def main(words: list[str]) -> None:
    if words == ["serve"]:
        asyncio.run(serve())
        return
    who, what, count, length = words[0], words[1], int(words[2]), int(words[3])
    with serving() as port:
        url = f"http://127.0.0.1:{port}/{what}"
        cpu = anyio.run({"ours": ours, "httpx": httpx}[who], url, count, length)
    each = cpu / count / (TOKENS if what == "tokens" else 1)
    sys.stdout.write(json.dumps({"cpu_us": each * 1e6}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
