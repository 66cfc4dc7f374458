"""What every toolset promises, whoever made it: to the model, and to the choke point."""

import json
import re

from hermes.domain.errors import HermesError
from hermes.domain.event import JSON
from hermes.domain.tool import Tool, ToolContext, Toolset

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LONGEST_DESCRIPTION = 1_000
_NONSENSE: tuple[dict[str, JSON], ...] = (
    {},
    {"no_such_argument": 1},
    {"path": None},
    {"path": ["a", {"b": None}]},
    {"command": {"deep": [[[[1]]]]}},
    {"": ""},
    {"path": "\0", "command": "\0", "pattern": "\0"},
    {"limit": 10**30, "path": "a"},
)


class ToolsetContract:
    """`toolset` and `context` are fixtures."""

    def test_its_tools_have_names_of_their_own(self, toolset: Toolset) -> None:
        """As every vendor takes them."""
        names = [one.spec.name for one in toolset.tools()]
        assert names
        assert len(set(names)) == len(names)
        assert all(_NAME.fullmatch(name) for name in names)

    def test_it_says_the_same_each_time(self, toolset: Toolset) -> None:
        """A prefix never changes by itself."""
        first = [_told(one) for one in toolset.tools()]
        assert [_told(one) for one in toolset.tools()] == first
        assert toolset.instructions() == toolset.instructions()

    def test_the_model_is_told_what_a_tool_does_and_takes(self, toolset: Toolset) -> None:
        """In a sentence, and in a JSON schema of an object."""
        for one in toolset.tools():
            assert 0 < len(one.spec.description) <= _LONGEST_DESCRIPTION
            schema = json.loads(json.dumps(one.spec.parameters))
            assert schema["type"] == "object"
            assert set(schema.get("required", [])) <= set(schema["properties"])
            assert one.spec.timeout.total_seconds() > 0

    def test_nonsense_is_refused_in_words(self, toolset: Toolset, context: ToolContext) -> None:
        """And never in another way: the model reads the message."""
        for one in toolset.tools():
            for arguments in _NONSENSE:
                assert _plan(one, arguments, context)

    def test_planning_twice_gives_the_same_plan(self, toolset: Toolset, context: ToolContext) -> None:
        """It changes nothing."""
        for one in toolset.tools():
            for arguments in _NONSENSE:
                assert _plan(one, arguments, context) == _plan(one, arguments, context)


def _told(one: Tool[object]) -> str:
    spec = one.spec
    return json.dumps([spec.name, spec.description, spec.parameters, spec.access, spec.toolset])


def _plan(one: Tool[object], arguments: dict[str, JSON], context: ToolContext) -> str:
    try:
        return repr(one.plan(arguments, context).effects)
    except HermesError as error:
        return str(error)
