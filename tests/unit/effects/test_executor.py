"""The choke point: what is planned is judged, what is judged is done, and every call has one result."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.effects.conftest import Person, Stage

from hermes.domain.approval import Decision
from hermes.domain.effect import Connect, Effect, ReadPath, RunCommand, WritePath
from hermes.domain.errors import LimitReached, NotFound
from hermes.domain.event import JSON
from hermes.domain.message import CallId, CallPart
from hermes.domain.tool import Access, Deferred, Outcome, ToolContext, ToolFailed, ToolRetry
from hermes.effects.executor import Performed
from hermes.effects.tool import Effects, FunctionTool, tool

pytestmark = pytest.mark.anyio
ONE = '{"path": "a"}'
HOSTS = ("github.com", "example.com", "169.254.169.254")


@dataclass(frozen=True)
class Where:
    path: Annotated[str, "a path"]
    times: int = 1


def plan_write(arguments: Where, context: ToolContext) -> Sequence[Effect]:
    return (WritePath(context.workspace / arguments.path),)


def plan_read(arguments: Where, context: ToolContext) -> Sequence[Effect]:
    return (ReadPath(context.workspace / arguments.path),)


def writer(done: list[str]) -> FunctionTool:
    @tool(toolset="t", access="write", effects=plan_write)
    async def put(arguments: Where, effects: Effects) -> str:
        """Put a file."""
        assert isinstance(effects[0], WritePath)
        done.append(str(effects[0].path))
        return "put"

    return put


def reader(answer: object = "got", *, name: str = "look", seconds: float = 0) -> FunctionTool:
    see_also = {"put": "Write with put.", "gone": "Or gone."}

    @tool(toolset="t", access="read", effects=plan_read, name=name, see_also=see_also)
    async def look(arguments: Where) -> Outcome | str | Mapping[str, JSON]:
        """Look at a file."""
        await anyio.sleep(seconds)
        if isinstance(answer, BaseException):
            raise answer
        return answer  # type: ignore[return-value] # whatever the test says

    return look


def text(done: Performed) -> str:
    return done.result.text


def error(done: Performed) -> str:
    assert done.result.is_error
    said = json.loads(done.result.text)
    assert set(said) == {"error"}
    return str(said["error"])


async def test_specs_are_sorted_and_speak_only_of_tools_that_are_there(stage: Stage) -> None:
    executor = stage.executor(writer([]), reader())
    assert [one.name for one in executor.specs] == ["look", "put"]
    assert executor.specs[0].description == "Look at a file. Write with put."
    assert (executor.access("put"), executor.access("look"), executor.access("none")) == ("write", "read", "read")


async def test_what_is_refused_is_not_done_and_the_rule_is_named(stage: Stage) -> None:
    done: list[str] = []
    (said,) = await stage.perform(stage.executor(writer(done)), ("put", '{"path": "/etc/x"}'))
    assert done == []
    assert "refused by the rule 'started-outside'" in error(said)
    assert not any(switch in error(said) for switch in ("mode", "setting", "config", "--", "approv"))


async def test_a_yes_lets_it_be_done_once_and_only_what_was_shown(stage: Stage) -> None:
    done: list[str] = []
    stage.approver = person = Person()
    executor = stage.executor(writer(done))
    await stage.perform(executor, ("put", '{"path": "/x/a"}'), ("put", '{"path": "/x/b"}'))
    assert done == ["/x/a", "/x/b"]
    assert [asked.shown for asked in person.asked] == ["write: /x/a", "write: /x/b"]


async def test_a_yes_for_the_session_covers_the_pattern(stage: Stage) -> None:
    done: list[str] = []
    stage.approver = person = Person(Decision("given", "session"))
    executor = stage.executor(writer(done))
    await stage.perform(executor, *[("put", json.dumps({"path": path})) for path in ("/x/a", "/x/a", "/x/b")])
    assert done == ["/x/a", "/x/a", "/x/b"]
    assert len(person.asked) == 2


async def test_the_person_s_reason_reaches_the_model(stage: Stage) -> None:
    stage.approver = Person(Decision("denied", reason="put it under docs instead"))
    (said,) = await stage.perform(stage.executor(writer([])), ("put", '{"path": "/x/a"}'))
    assert "put it under docs instead" in error(said)


@pytest.mark.parametrize(
    ("name", "said"),
    [("lok", "did you mean 'look'"), ("zzz", "there are: look"), ("", "there are"), ("look\n" * 9_000, "no tool")],
)
async def test_a_tool_that_is_not_there_names_the_nearest(stage: Stage, name: str, said: str) -> None:
    (done,) = await stage.perform(stage.executor(reader()), (name, "{}"))
    assert said in error(done)
    assert len(text(done)) < 1_000


@pytest.mark.parametrize(
    "given",
    [
        ONE,
        ' {"path": "a",} ',
        '```json\n{"path": "a"}\n```',
        '"{\\"path\\": \\"a\\"}"',
        '{"path": "a", "times": "5"}',
        '{"path": "a", "times": null}',
        '{"path": "a", "times": 5.0}',
        '{"path": 5}',
    ],
)
async def test_small_mistakes_of_form_are_mended(stage: Stage, given: str) -> None:
    (done,) = await stage.perform(stage.executor(reader()), ("look", given))
    assert text(done) == "got"


async def test_what_a_text_holds_is_not_mended(stage: Stage) -> None:
    done: list[str] = []
    await stage.perform(stage.executor(writer(done)), ("put", '{"path": "a,}b,]c",}'))
    assert done == ["/w/a,}b,]c"]


async def test_a_newline_that_stands_as_it_is_inside_a_text_is_kept(stage: Stage) -> None:
    done: list[str] = []
    await stage.perform(stage.executor(writer(done)), ("put", '{"path": "a\nb"}'))
    assert done == ["/w/a\nb"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "'path' is missing"),
        ("{}", "'path' is missing. Expected: path (string, required), times (integer)"),
        ('{"path": "a", "tims": 2}', "there is no argument 'tims', did you mean 'times'?"),
        ('{"path": "a", "times": "many"}', "$.times"),
        ('{"path": ["a"]}', "$.path"),
        ('{"path": null}', "'path' is missing"),
        ("[1]", "no JSON object"),
        ("nonsense", "no JSON object: 'nonsense'"),
        ('{"path": "a"', "were cut off"),
        ('{"path": "a', 'were cut off at \'{"path": "a\', so nothing was done; send the whole call again'),
        ('{"path": "a}', "were cut off"),
        ("{'path': 'a", "were cut off"),
        ('{"path": "a"}{"path": "b"}', "two objects one after the other"),
        ('{"path": "a"}\n{"path": "a"}', "two objects one after the other"),
        ('"{\\"path\\": \\"a"', "were cut off"),
        ("[" * 100_000, "no JSON object"),
        ('{"path":' * 50_000, "were cut off"),
        ('{"path": "' + "x" * 10_000_000 + '"}', "10,000,012 characters"),
        ('{"path": "\\ud800"}', "no JSON object"),
    ],
    ids=range(19),
)
async def test_arguments_that_cannot_be_are_told_of(stage: Stage, given: str, said: str) -> None:
    (done,) = await stage.perform(stage.executor(reader()), ("look", given))
    assert said in error(done)
    assert len(text(done)) < 2_000


_ANY_JSON = st.recursive(st.none() | st.integers() | st.text(), st.lists)


@given(st.text() | st.dictionaries(st.text(), _ANY_JSON).map(json.dumps))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
async def test_nothing_that_a_model_writes_makes_it_raise(stage: Stage, given: str) -> None:
    (done,) = await stage.perform(stage.executor(reader(), writer([])), ("look", given))
    done.result.text.encode()


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (ToolRetry("try b"), "try b"),
        (ToolFailed("no way"), "no way"),
        (NotFound("there is no 'x'"), "there is no 'x'"),
        (ValueError("a detail"), "'look' failed: ValueError: a detail"),
        (RecursionError("deep"), "RecursionError"),
        (ExceptionGroup("several", [ValueError("x")]), "ExceptionGroup"),
    ],
)
async def test_what_goes_wrong_in_a_tool_is_a_result(stage: Stage, outcome: object, said: str) -> None:
    (done,) = await stage.perform(stage.executor(reader(outcome)), ("look", ONE))
    assert said in error(done)


async def test_known_secrets_do_not_reach_the_model(stage: Stage) -> None:
    stage.clean = lambda text: text.replace("hunter2", "[secret]")
    for answer in ("it is hunter2", NotFound("hunter2"), ValueError("hunter2"), ToolFailed("hunter2")):
        (done,) = await stage.perform(stage.executor(reader(answer)), ("look", ONE))
        assert "hunter2" not in text(done)


async def test_an_answer_that_comes_later_says_so(stage: Stage) -> None:
    (done,) = await stage.perform(stage.executor(reader(Deferred("job-7"))), ("look", ONE))
    assert done.deferred == "job-7"
    assert json.loads(text(done))["deferred"] == "job-7"


async def test_a_tool_has_its_time(stage: Stage) -> None:
    @tool(toolset="t", access="read", timeout=timedelta(milliseconds=20))
    async def sleep() -> str:
        """Sleep."""
        await anyio.sleep(60)
        return "late"

    (done,) = await stage.perform(stage.executor(sleep), ("sleep", "{}"))
    assert "took longer than 0.02 s" in error(done)


async def test_reads_run_side_by_side_and_writes_in_order_after_what_came_before(stage: Stage) -> None:
    log: list[str] = []
    now = most = 0

    def one(name: str, access: Access) -> FunctionTool:
        @tool(toolset="t", access=access, name=name, effects=lambda _arguments, _context: ())
        async def work(n: int) -> str:
            """Work."""
            nonlocal now, most
            now, most = now + 1, max(most, now + 1)
            log.append(f"{name}{n}")
            await anyio.sleep(0.001)
            now -= 1
            return f"{name}{n}"

        return work

    calls = [("r", 1), ("r", 2), ("r", 3), ("w", 4), ("w", 5), ("r", 6), *[("r", n) for n in range(10, 40)]]
    await stage.perform(stage.executor(one("r", "read"), one("w", "write")), *[(n, f'{{"n": {v}}}') for n, v in calls])
    noted = [done.result.text for done in stage.noted]
    assert sorted(noted[:3]) == ["r1", "r2", "r3"]
    assert noted[3:5] == ["w4", "w5"]
    assert log.index("w4") > log.index("r3")
    assert log.index("r6") > log.index("w5")
    assert 3 <= most <= 8
    assert len(noted) == len(calls)


@pytest.mark.parametrize("count", [1, 5])
async def test_what_the_loop_raises_stops_it_as_it_was(stage: Stage, count: int) -> None:
    async def note(_call: CallPart, _done: Performed) -> None:
        raise LimitReached("no more steps")

    calls = [CallPart(CallId(str(n)), "look", ONE) for n in range(count)]
    with pytest.raises(LimitReached, match="no more steps"):
        await stage.executor(reader()).perform(calls, stage.context(), note)


async def test_what_is_cancelled_is_not_noted(stage: Stage) -> None:
    executor = stage.executor(reader(), reader(name="slow", seconds=60))
    with anyio.move_on_after(0.05):
        await stage.perform(executor, ("look", ONE), ("slow", ONE))
    assert [done.result.name for done in stage.noted] == ["look"]


async def test_a_long_answer_goes_to_a_file_that_can_be_read(stage: Stage) -> None:
    lines = "\n".join(f"line {n}" for n in range(30_000))
    answers: list[object] = [lines, {"output": lines, "more": [1, 2]}]
    for answer in answers:
        (done,) = await stage.perform(stage.executor(reader(answer)), ("look", ONE))
        assert len(text(done).encode()) <= 50_000
        said = json.loads(text(done))
        assert said["truncated"] is True
        assert "line 0\n" in said["content"]
        assert "line 29999" in said["content"]
        look_at(Path(said["file"]), stage.folder / "sessions" / "s" / "results")


def look_at(whole: Path, folder: Path) -> None:
    assert whole.is_relative_to(folder)
    assert whole.read_text().count("\nline ") >= 29_999
    assert whole.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "answer",
    ["\x00" * 60_000, "\ud800" * 20_000, '"' * 60_000, "x" * 60_000, "\n" * 3_000, '{"a": "' + "\\n" * 40_000 + '"}'],
    ids=range(6),
)
async def test_whatever_an_answer_holds_it_comes_short_enough(stage: Stage, answer: str) -> None:
    (done,) = await stage.perform(stage.executor(reader(answer)), ("look", ONE))
    assert len(text(done).encode()) <= 50_000


async def test_before_a_write_there_is_time_to_keep_what_will_change(stage: Stage) -> None:
    kept: list[str] = []

    async def before(context: ToolContext, outside: Sequence[Path]) -> str | None:
        kept.append(f"{context.run} {[str(path) for path in outside]}")
        return "kept"

    stage.before_write = before
    executor = stage.executor(writer([]), reader())
    await stage.perform(executor, ("look", ONE))
    assert kept == []
    await stage.perform(executor, ("put", ONE), ("put", '{"path": "/etc/x"}'))
    assert kept == ["r []"]
    assert stage.lines == ["read /w/a", "write /w/a", "kept"]
    stage.approver = Person()
    await stage.perform(stage.executor(writer([])), ("put", '{"path": "/data/x"}'))
    assert kept == ["r []", "r ['/data/x']"]


async def test_a_function_that_does_not_say_what_it_touches_is_asked_about(stage: Stage) -> None:
    @tool(toolset="t", access="external")
    async def send(to: str, words: Annotated[str, "what to say"] = "hi") -> dict[str, JSON]:
        """Send."""
        return {"sent": to, "words": words}

    executor = stage.executor(send)
    assert "'unseen-tool'" in error((await stage.perform(executor, ("send", '{"to": "me"}')))[0])
    stage.approver = person = Person()
    (done,) = await stage.perform(stage.executor(send), ("send", '{"to": "me\u202e"}'))
    assert json.loads(text(done)) == {"sent": "me\u202e", "words": "hi"}
    assert "\u202e" not in person.asked[0].shown


async def test_what_a_tool_starts_connects_under_the_same_policy(stage: Stage) -> None:
    seen: list[bool] = []

    @tool(toolset="t", access="read", effects=lambda _arguments, context: (RunCommand("x", context.workspace),))
    async def fetch(context: ToolContext) -> str:
        """Fetch."""
        assert context.may_connect is not None
        seen.extend([await context.may_connect(Connect(host, 443)) for host in HOSTS])
        return "done"

    await stage.perform(stage.executor(fetch), ("fetch", "{}"))
    assert seen == [True, False, False]
    stage.approver = Person()
    seen.clear()
    await stage.perform(stage.executor(fetch), ("fetch", "{}"))
    assert seen == [True, True, False]
