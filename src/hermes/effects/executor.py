"""The choke point: every call of a tool is parsed, planned, judged, asked about and bounded here.

Invariants: nothing is done that was not judged; every call that ends has exactly one result; nothing that a model
writes or a tool does makes `perform` raise.
"""

import difflib
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import groupby
from pathlib import Path
from typing import Literal, TypeAlias, assert_never

import anyio
import msgspec

from hermes.domain.effect import Connect, Effect
from hermes.domain.errors import Denied, HermesError, Misconfigured
from hermes.domain.event import JSON
from hermes.domain.message import CallPart, ResultPart, Status
from hermes.domain.records import dataclass
from hermes.domain.tool import (
    Access,
    Deferred,
    Outcome,
    Planned,
    Tool,
    ToolContext,
    ToolFailed,
    ToolResult,
    ToolRetry,
    Toolset,
    ToolSpec,
)
from hermes.effects.approving import Gate
from hermes.effects.places import Grounds
from hermes.effects.policy import Situation, Verdict, is_write, judge, outside
from hermes.effects.shown import in_a_line
from hermes.effects.spill import Spill
from hermes.effects.tool import to_json

_READS_AT_ONCE = 8
_LONGEST_ARGUMENTS = 4_000_000
_LONGEST_LINE = 500
_LAST_COMMA = re.compile(r",(\s*[}\]][\s}\]]*)\Z")
_log = logging.getLogger("hermes.effects")


@dataclass(frozen=True, slots=True)
class Performed:
    """How one call ended. `deferred` is the id under which the answer will come, `refused` the rule that stopped it."""

    result: ResultPart
    status: Status = "complete"
    deferred: str | None = None
    refused: str | None = None


Note: TypeAlias = Callable[[CallPart, Performed], Awaitable[None]]
BeforeWrite: TypeAlias = Callable[[ToolContext, Sequence[Path]], Awaitable[str | None]]
"""Called before each write of a run with the files outside the workspace that it names; returns a line for the person,
or None. It keeps what will be changed.
"""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every call has in common. `clean` takes known secrets out of what a model will read."""

    grounds: Grounds
    gate: Gate
    spill: Spill
    before_write: BeforeWrite | None = None
    clean: Callable[[str], str] = field(default=lambda text: text)


class _Refused(Denied):
    """An effect may not be."""

    def __init__(self, message: str, rule: str) -> None:
        super().__init__(message)
        self.rule = rule


class Executor:
    """Performs the calls of models with the tools of one toolset, as they were when it was made."""

    def __init__(self, toolset: Toolset, surroundings: Surroundings) -> None:
        self._tools: dict[str, Tool[object]] = {one.spec.name: one for one in toolset.tools()}
        self._names = frozenset(self._tools)
        self._around = surroundings
        self.specs: tuple[ToolSpec, ...] = tuple(
            _resolved(self._tools[name].spec, self._tools) for name in sorted(self._tools)
        )
        self.instructions = toolset.instructions()

    def access(self, name: str) -> Access:
        """Say how a tool is to be treated after a crash; one that is not there has done nothing."""
        return self._tools[name].spec.access if name in self._tools else "read"

    async def perform(self, calls: Sequence[CallPart], context: ToolContext, note: Note) -> None:
        """Perform calls, reads side by side and writes in order; `note` is awaited for each before the next write."""
        context = replace(context, session_tools=self._names)
        for is_read, group in groupby(calls, key=lambda call: self.access(call.name) == "read"):
            some = tuple(group)
            if is_read and len(some) > 1:
                await self._together(some, context, note)
            else:
                for call in some:
                    await note(call, await self._perform(call, context))

    async def _together(self, calls: Sequence[CallPart], context: ToolContext, note: Note) -> None:
        limit, turn = anyio.CapacityLimiter(_READS_AT_ONCE), anyio.Lock()

        async def one(call: CallPart) -> None:
            async with limit:
                done = await self._perform(call, context)
            async with turn:
                await note(call, done)

        try:
            async with anyio.create_task_group() as group:
                for call in calls:
                    group.start_soon(one, call)
        except BaseExceptionGroup as several:
            # What `note` raised is for whoever called, as it was.
            raise several.exceptions[0] from None

    async def _perform(self, call: CallPart, context: ToolContext) -> Performed:
        tool = self._tools.get(call.name)
        if tool is None:
            return _performed(call, ToolRetry(self._unknown(call.name)))
        try:
            outcome = await self._call(tool, call, context)
            done = _performed(call, outcome)
            text = self._around.clean(done.result.text)
            short = await self._around.spill.bounded(context.session, text, name=call.name)
            return done if short is done.result.text else replace(done, result=replace(done.result, text=short))
        except HermesError as error:
            done = _performed(call, ToolFailed(self._around.clean(str(error))))
            return replace(done, refused=error.rule) if isinstance(error, _Refused) else done
        except Exception as error:  # noqa: BLE001 - a tool is somebody else's; its failure is a result
            _log.exception("a tool failed", extra={"fields": {"tool": call.name}})
            said = f"{type(error).__name__}: {error}"[:_LONGEST_LINE]
            return _performed(call, ToolFailed(self._around.clean(f"{call.name!r} failed: {said}")))

    async def _call(self, tool: Tool[object], call: CallPart, context: ToolContext) -> Outcome:
        async def may_connect(effect: Connect) -> bool:
            try:
                await self._require(effect, self._situation(context), context)
            except _Refused:
                return False
            return True

        try:
            arguments = _decode(call.arguments)
            context = replace(context, call=call.id, may_connect=may_connect)
            planned = tool.plan(arguments, context)
        except Misconfigured as error:
            return ToolRetry(str(error))
        if planned.effects:
            situation = self._situation(context)
            for effect in planned.effects:
                await self._require(effect, situation, context)
            await self._prepare(planned, situation, context)
        else:
            context.progress(tool.spec.name)
        context.begin(context.call)

        limit = tool.spec.timeout.total_seconds()
        with anyio.move_on_after(limit):
            return await tool.call(planned, context)
        return ToolFailed(
            f"{call.name!r} took longer than {limit:g} s and was ended; whether it did its work is unknown"
        )

    def _situation(self, context: ToolContext) -> Situation:
        return Situation(
            principal=context.principal,
            mode=context.mode,
            protection=context.machine.protection,
            is_attended=self._around.gate.is_attended or context.approver is not None,
            workspace=context.machine.files.resolve(context.workspace),
            grounds=self._around.grounds,
            readable=(self._around.spill.folder(context.session),),
        )

    async def _require(self, effect: Effect, situation: Situation, context: ToolContext) -> None:
        """Raise when an effect may not be."""
        gate = self._around.gate
        verdict = judge(effect, situation)
        if verdict.decision != "allow" and await gate.is_granted(context, verdict.pattern):
            verdict = judge(effect, situation, {verdict.pattern})
        if verdict.decision == "ask":
            context.progress(f"asking: {in_a_line(effect)}")
            said = await gate.ask(context, effect, verdict)
            if said.state != "given":
                raise _refused(effect, verdict, said.reason or "the person said no")
        elif verdict.decision == "deny":
            raise _refused(effect, verdict, "")

    async def _prepare(self, planned: Planned[object], situation: Situation, context: ToolContext) -> None:
        context.progress(in_a_line(planned.effects[0]))
        before = self._around.before_write
        if before is not None and any(is_write(effect, situation) for effect in planned.effects):
            others = [path for effect in planned.effects if (path := outside(effect, situation)) is not None]
            told = await before(context, others)
            if told:
                context.progress(told)

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name[:100], self._tools, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(sorted(self._tools))}"
        return f"there is no tool {name[:100]!r}; {hint}"


def _resolved(spec: ToolSpec, there: Mapping[str, Tool[object]]) -> ToolSpec:
    """Add to the description what it says of other tools, where they are there."""
    said = [sentence for name, sentence in spec.see_also.items() if name in there]
    return replace(spec, description=" ".join((spec.description, *said)), see_also={}) if spec.see_also else spec


def _decode(text: str) -> Mapping[str, JSON]:
    if len(text) > _LONGEST_ARGUMENTS:
        raise Misconfigured(f"the arguments have {len(text):,} characters; at most {_LONGEST_ARGUMENTS:,} are taken")
    for attempt in _attempts(text):
        try:
            found = msgspec.json.decode(attempt)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            continue
        if isinstance(found, str):
            # Some models write the object as a text of JSON.
            return _decode(found) if found.lstrip().startswith("{") else _no_object(text)
        return found if isinstance(found, dict) else _no_object(text)
    return _no_object(text)


def _attempts(text: str) -> Iterator[str]:
    bare = text.strip()
    yield bare or "{}"
    yield _without_fence(bare)
    yield _escape_controls(_without_fence(bare))


def _without_fence(text: str) -> str:
    inner = text.removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    return _LAST_COMMA.sub(r"\1", inner)


def _escape_controls(text: str) -> str:
    """Escape newlines and tabs that stand as they are inside a text."""
    return text.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")


def _no_object(text: str) -> Mapping[str, JSON]:
    match _form(text):
        case "cut":
            raise Misconfigured(
                f"the arguments were cut off at {text.strip()[-60:]!r}, so nothing was done; send the whole call "
                "again, in smaller parts if it is long"
            )
        case "two":
            raise Misconfigured("the arguments are two objects one after the other; make one call of each")
    raise Misconfigured(f'the arguments are no JSON object: {text[:200]!r}; write one, such as {{"path": "a.txt"}}')


def _form(text: str) -> Literal["cut", "two", "other"]:
    """Say what is wrong with arguments: an object that begins and does not end, a second one after it, or else."""
    bare = text.strip()
    if not bare.startswith("{"):
        return "other"
    try:
        _, end = json.JSONDecoder(strict=False).raw_decode(bare)
    except (ValueError, RecursionError):
        return "cut" if _ends_early(bare) else "other"
    return "two" if bare[end:].lstrip().startswith("{") else "other"


def _ends_early(bare: str) -> bool:
    try:
        msgspec.json.decode(bare)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        return "truncated" in str(error) or not bare.endswith("}")
    return False


def _refused(effect: Effect, verdict: Verdict, said: str) -> _Refused:
    _log.info("an effect was refused", extra={"fields": {"rule": verdict.rule, "effect": in_a_line(effect)}})
    reason = f" {said}." if said else ""
    return _Refused(
        f"refused by the rule {verdict.rule!r}: {in_a_line(effect)}: {verdict.why}.{reason} "
        "Do it another way, or tell the person what you need and why",
        verdict.rule,
    )


def _performed(call: CallPart, outcome: Outcome) -> Performed:
    match outcome:
        case ToolResult(text, images):
            return Performed(ResultPart(call.id, call.name, text, images=images))
        case ToolRetry(text) | ToolFailed(text):
            return Performed(ResultPart(call.id, call.name, to_json({"error": text}), is_error=True))
        case Deferred(name):
            said = to_json({"deferred": name, "note": "the answer comes later, as a message"})
            return Performed(ResultPart(call.id, call.name, said), deferred=name)
        case _:
            assert_never(outcome)
