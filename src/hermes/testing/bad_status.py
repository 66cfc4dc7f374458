"""Ways in which a model's server says no: every status, every shape of error, every form of Retry-After."""

import json
from collections.abc import Mapping

from anyio.abc import ByteStream

from hermes.domain.errors import Denied, HermesError, LimitReached, Misconfigured, NotFound, Unavailable
from hermes.domain.model import ContextOverflow
from hermes.testing.bad_transport import raw
from hermes.testing.model_server import Asked, Behave, chunk


def refusing(status: int, body: object, headers: str = "") -> Behave:
    """Answer with a status and a body, JSON unless it is bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    kind = "text/plain" if isinstance(body, bytes) else "application/json"
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\n{headers}Content-Length: {len(data)}\r\n\r\n"
    return raw(head.encode() + data)


def busy(header: str) -> Behave:
    """Say 429 with a Retry-After."""
    return refusing(429, _error("slow down", "rate_limit_error"), f"{header}\r\n")


def _error(words: str, kind: str, code: str | None = None) -> dict[str, object]:
    return {"type": "error", "error": {"message": words, "type": kind, "code": code}}


async def _endlessly(stream: ByteStream, _asked: Asked) -> None:
    await stream.send(b"HTTP/1.1 500 X\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        await stream.send(chunk(b'{"error":"' + b"x" * 65536))


STATUS: Mapping[str, tuple[Behave, type[HermesError] | None]] = {
    "429, seconds": (busy("Retry-After: 7"), Unavailable),
    "429, date": (busy("Retry-After: Fri, 31 Dec 2100 23:59:59 GMT"), Unavailable),
    "429, milliseconds": (busy("Retry-After-Ms: 1500"), Unavailable),
    "429, fraction": (busy("Retry-After: 0.5"), Unavailable),
    "429, nonsense": (busy("Retry-After: soon"), Unavailable),
    "429, negative": (busy("Retry-After: -5"), Unavailable),
    "429, not a number": (busy("Retry-After: nan"), Unavailable),
    "429, for ever": (busy("Retry-After: 99999999999999"), Unavailable),
    "429, nothing said": (refusing(429, b""), Unavailable),
    "429, quota used up": (refusing(429, _error("quota", "insufficient_quota", "insufficient_quota")), LimitReached),
    "408": (refusing(408, _error("too slow", "timeout_error")), Unavailable),
    "500": (refusing(500, _error("oops", "api_error")), Unavailable),
    "500 without end": (_endlessly, Unavailable),
    "503, plain text": (refusing(503, b"upstream connect error"), Unavailable),
    "529": (refusing(529, _error("overloaded", "overloaded_error")), Unavailable),
    "400, overloaded all the same": (refusing(400, _error("overloaded", "overloaded_error")), Unavailable),
    "401": (refusing(401, _error("no such key", "authentication_error", "invalid_api_key")), Denied),
    "401, key repeated": (refusing(401, _error("Incorrect API key provided: sk-fake.", "authentication_error")), Denied),
    "403": (refusing(403, _error("not for you", "permission_error")), Denied),
    "404, model": (refusing(404, _error("no such model", "not_found_error", "model_not_found")), NotFound),
    "400, model": (refusing(400, _error("no such model", "invalid_request_error", "model_not_found")), NotFound),
    "404, plain text": (refusing(404, b"404 page not found"), NotFound),
    "402": (refusing(402, _error("pay first", "billing_error")), LimitReached),
    "400, no credit, in words": (refusing(400, _error("Your credit balance is too low", "invalid_request_error")), LimitReached),
    "400, context, by code": (refusing(400, _error("no", "invalid_request_error", "context_length_exceeded")), ContextOverflow),
    "400, context, in words": (
        refusing(400, {"object": "error", "message": "This model's maximum context length is 4096 tokens."}),
        ContextOverflow,
    ),
    "400, context, as llama.cpp says it": (
        refusing(400, {"error": {"code": 400, "message": "the request exceeds", "type": "exceed_context_size_error"}}),
        ContextOverflow,
    ),
    "413": (refusing(413, b"Request Entity Too Large"), ContextOverflow),
    "400": (refusing(400, _error("tools are not supported", "invalid_request_error")), Misconfigured),
    "422, a list": (refusing(422, {"detail": [{"loc": ["body"], "msg": "field required"}]}), Misconfigured),
    "400, error in a list": (refusing(400, [{"error": {"message": "bad", "status": "INVALID_ARGUMENT"}}]), Misconfigured),
    "400, error is a text": (refusing(400, {"error": "model is required"}), Misconfigured),
    "400, nothing": (refusing(400, b""), Misconfigured),
    "400, endless words": (refusing(400, _error("x " * 100_000, "invalid_request_error")), Misconfigured),
    "418": (refusing(418, {"a": None}), Misconfigured),
    "200, error inside": (refusing(200, {"error": {"message": "upstream failed", "code": 502}}), Unavailable),
    "200, no credit inside": (refusing(200, {"error": {"message": "pay", "code": 402}}), LimitReached),
    "200, JSON of another kind": (refusing(200, {"status": "ok"}), Unavailable),
    "200, a list": (refusing(200, []), Unavailable),
    "200, half JSON": (raw(b'HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{"choices"'), Unavailable),
    "200, JSON nested too deeply": (refusing(200, b"data: " + b"[" * 200_000 + b"\n\n"), Unavailable),
}  # fmt: skip
