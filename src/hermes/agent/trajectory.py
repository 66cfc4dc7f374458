"""A run as training data: turns of system, human, gpt and tool, with thoughts, calls and results in tags.

Invariant: the form is fixed, as pipelines read it: each gpt turn begins with its thoughts, empty ones too, and all
results that answer one gpt turn stand in one tool turn.
"""

from collections.abc import Sequence

import msgspec

from hermes.domain.event import JSON
from hermes.domain.message import Message
from hermes.domain.tool import ToolSpec

_PREAMBLE = (
    "You can call functions. Their signatures stand between <tools></tools>; use those that help, and assume nothing "
    "about the values of arguments.\n<tools>\n{tools}\n</tools>\n"
    'Write each call as JSON of the schema {{"title": "FunctionCall", "type": "object", "properties": {{"name": '
    '{{"type": "string"}}, "arguments": {{"type": "object"}}}}, "required": ["name", "arguments"]}} between '
    "<tool_call></tool_call>; the results come between <tool_response></tool_response>."
)


def conversations(said: Sequence[Message], specs: Sequence[ToolSpec]) -> list[dict[str, str]]:
    """Return the turns of a conversation."""
    tools = "\n".join(_dump({"type": "function", "function": _described(spec)}) for spec in specs)
    turns = [{"from": "system", "value": _PREAMBLE.format(tools=tools)}]
    for message in said:
        match message.role:
            case "user":
                turns.append({"from": "human", "value": message.text})
            case "assistant":
                turns.append({"from": "gpt", "value": _answer(message)})
            case "tool":
                if turns[-1]["from"] != "tool":
                    turns.append({"from": "tool", "value": ""})
                turns[-1]["value"] = "\n".join(filter(None, (turns[-1]["value"], *_results(message))))
    return turns


def _described(spec: ToolSpec) -> dict[str, JSON]:
    return {"name": spec.name, "description": spec.description, "parameters": spec.parameters}


def _answer(message: Message) -> str:
    parts = [f"<think>\n{message.reasoning}\n</think>"]
    if message.text:
        parts.append(message.text)
    for call in message.calls:
        order = _dump({"name": call.name, "arguments": _loaded(call.arguments)})
        parts.append(f"<tool_call>\n{order}\n</tool_call>")
    return "\n".join(parts)


def _results(message: Message) -> list[str]:
    return [
        "<tool_response>\n"
        + _dump({"tool_call_id": one.call, "name": one.name, "content": _loaded(one.text)})
        + "\n</tool_response>"
        for one in message.results
    ]


def _loaded(text: str) -> JSON:
    """Return what a text of JSON says; any other text is itself."""
    try:
        found: JSON = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return found


def _dump(value: JSON) -> str:
    return msgspec.json.encode(value).decode()
