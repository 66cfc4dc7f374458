"""The engine that really reads weights. Only the process of the model imports this module.

Invariant: what it reads first, and what stays the same, is read once: its state is kept on disk under its digest.
"""

import hashlib
import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path

import msgspec
import xllamacpp

from hermes.domain.records import dataclass
from hermes.llm.local.frames import Ask, Done, Failed, Finish, Piece, Reading
from hermes.llm.local.serving import Refused, Tell

_BATCH = 64
"""Tokens that are read at once: after each batch it can tell how far it is, and stop."""
_KEPT_STATES = 8
_STATE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to load and how. `states` and `folder` are this user's own; `folder` goes with the process."""

    path: Path
    sha256: str
    states: Path
    threads: int
    window: int
    folder: Path


class Llama:
    """An Engine on llama.cpp, which listens for our own orders about its state on a socket in a private folder."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._held = ""
        wanted.states.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._socket = wanted.folder / "engine.sock"
        try:
            self._server = xllamacpp.Server(self._parameters())
        except Exception as error:
            raise Refused(Failed(0, "load", f"{type(error).__name__}: {error}")) from error

    def _parameters(self) -> xllamacpp.CommonParams:
        wanted, params = self._wanted, xllamacpp.CommonParams()
        params.model.path = str(wanted.path)
        params.n_ctx, params.n_parallel = wanted.window, 1
        params.n_batch = params.n_ubatch = _BATCH
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = wanted.threads
        params.warmup, params.verbosity, params.ui = False, -1, False
        # The weights stay in the file, which the system may share and drop; a copy in another order costs 600 MB.
        params.no_extra_bufts = True
        params.cache_ram_mib = params.n_ctx_checkpoints = 0
        params.slot_save_path = f"{wanted.states}/"
        params.hostnames = [str(self._socket)]
        return params

    def answer(self, ask: Ask, tell: Tell) -> Done:
        """Go on with a text."""
        known = self._read_prefix(ask, tell)
        fields: dict[str, object] = {"max_tokens": ask.most, "temperature": ask.temperature}
        if ask.schema:
            fields["json_schema"] = msgspec.json.decode(ask.schema)
        self._held = ""
        done = self._complete(ask.number, ask.prefix + ask.rest, fields, tell)
        self._held = ask.prefix
        return done if known else msgspec.structs.replace(done, known=0)

    def _read_prefix(self, ask: Ask, tell: Tell) -> bool:
        """See that the prefix is read; return whether it was already."""
        if not ask.prefix or self._held == ask.prefix:
            return True
        name = f"{self._digest(ask.prefix)}.state"
        path = self._wanted.states / name
        if path.exists() and self._state("restore", name):
            path.touch()
            return True
        done = self._complete(ask.number, ask.prefix, {"max_tokens": 0}, tell)
        unfinished = f".{name}.{os.getpid()}"
        if done.finish != "stopped" and self._state("save", unfinished):
            (self._wanted.states / unfinished).replace(path)
            self._forget_old()
        return False

    def _digest(self, prefix: str) -> str:
        parts = (prefix, self._wanted.sha256, str(self._wanted.window), xllamacpp.__version__)
        return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]

    def _forget_old(self) -> None:
        states = sorted(self._wanted.states.glob("*.state"), key=lambda path: path.stat().st_mtime)
        for path in states[:-_KEPT_STATES]:
            path.unlink(missing_ok=True)

    def _complete(self, number: int, text: str, fields: Mapping[str, object], tell: Tell) -> Done:
        heard = _Heard(number, tell)
        asked = {
            "prompt": text,
            "stream": True,
            "cache_prompt": True,
            "return_progress": True,
            "stream_options": {"include_usage": True},
            **fields,
        }
        try:
            refusal = self._server.handle_completions(json.dumps(asked), heard.take)
        except Exception as error:
            raise Refused(_failed(number, str(error))) from error
        if heard.failed is not None:
            raise Refused(heard.failed)
        if isinstance(refusal, str) and "error" in refusal and not heard.output:
            raise Refused(_failed(number, refusal))
        return Done(number, heard.finish, heard.input, heard.output, heard.known)

    def _state(self, action: str, name: str) -> bool:
        """Save or restore what was read; return whether it worked."""
        body = json.dumps({"filename": name}).encode()
        request = (
            f"POST /slots/0?action={action} HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        try:
            with socket.socket(socket.AF_UNIX) as line:
                line.settimeout(_STATE_SECONDS)
                line.connect(str(self._socket))
                line.sendall(request.encode() + body)
                status = line.recv(1 << 16)
        except OSError:
            return False
        return status.startswith(b"HTTP/1.1 200 ")


class _Heard:
    """Takes what the engine says while it reads and writes."""

    def __init__(self, number: int, tell: Tell) -> None:
        self._number = number
        self._tell = tell
        self.failed: Failed | None = None
        self.input = self.output = self.known = 0
        self.finish: Finish = "stop"

    def take(self, said: str) -> bool:
        """Hear one thing; return True when it is to stop."""
        news = json.loads(said)
        if "error" in news:
            self.failed = _failed(self._number, json.dumps(news["error"]))
            return True
        if usage := news.get("usage"):
            self.input, self.output = usage["prompt_tokens"], usage["completion_tokens"]
            self.known = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
        is_stopped = False
        if progress := news.get("prompt_progress"):
            self.input = progress["total"]
            is_stopped = self._tell(Reading(self._number, progress["processed"], progress["total"]))
        for choice in news.get("choices") or ():
            if text := choice.get("text"):
                self.output += not usage
                is_stopped = self._tell(Piece(self._number, text)) or is_stopped
            if choice.get("finish_reason") == "length":
                self.finish = "length"
        if is_stopped:
            self.finish = "stopped"
        return is_stopped


def _failed(number: int, said: str) -> Failed:
    """Sort what the engine says of a failure: a JSON object with a message, or words."""
    is_long = "exceed_context" in said
    try:
        told = json.loads(said)
        words = str(told.get("error", told)["message"])
    except (ValueError, KeyError, TypeError, AttributeError):
        words = said
    return Failed(number, "overflow" if is_long else "request", words[:500])
