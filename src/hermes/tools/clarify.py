"""The tool `clarify`: one question to the person."""

from datetime import timedelta
from typing import Annotated

from msgspec import Meta

from hermes.domain.records import dataclass
from hermes.domain.tool import Outcome, ToolContext, ToolFailed
from hermes.effects.tool import FunctionTool, answer, tool, touches_nothing


@dataclass(frozen=True, slots=True)
class Clarify:
    """What `clarify` takes."""

    question: str
    choices: Annotated[tuple[str, ...], Meta(max_length=4, description="answers to choose from")] = ()


def clarify_tool() -> FunctionTool:
    """Make the tool."""

    @tool(toolset="clarify", access="write", effects=touches_nothing, timeout=timedelta(minutes=30))
    async def clarify(arguments: Clarify, context: ToolContext) -> Outcome:
        """Ask the user, when the answer changes what you do and you cannot find it out."""
        said = await context.ask(arguments.question, arguments.choices)
        if said is None:
            return ToolFailed("nobody is there to be asked; choose what is safest and say what you took for granted")
        choices = list(arguments.choices)
        return answer({"question": arguments.question, "choices_offered": choices, "user_response": said})

    return clarify
