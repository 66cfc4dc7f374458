"""The tool with which a model finds what was said in its session before, also what was left out since.

Invariant: it sees its own session and nothing else.
"""

from typing import Annotated

import msgspec

from hermes.agent.session import Sessions
from hermes.agent.transcript import lines
from hermes.domain.message import MessageId
from hermes.domain.tool import ToolContext, ToolRetry, Toolset
from hermes.effects.tool import tool
from hermes.effects.toolset import Tools

_MOST_HITS = 20
_LONGEST_HIT = 2_000
_LONGEST_MESSAGE = 40_000


def recall(sessions: Sessions) -> Toolset:
    """Make the toolset `session`."""

    @tool(toolset="session", access="read")
    async def recall(
        context: ToolContext,
        query: Annotated[str, 'words, "a phrase" or begin*'] = "",
        id: Annotated[str, "a message, whole"] = "",  # noqa: A002 - as summaries and pointers write it
        limit: int = 5,
    ) -> str | ToolRetry:
        """Find earlier messages of this conversation, also those left out of a summary."""
        if id:
            found = await sessions.message(context.principal, context.session, MessageId(id.strip("[] ")))
            if found is None:
                return ToolRetry(f"there is no message {id!r} in this conversation; search for its words with query")
            return "\n".join(lines([found], longest=_LONGEST_MESSAGE))
        if not query.strip():
            return ToolRetry("give a query or an id")
        hits = await sessions.search(
            context.principal, query, limit=min(max(limit, 1), _MOST_HITS), session=context.session
        )
        messages = [await sessions.message(context.principal, context.session, hit.message) for hit in hits]
        texts = list(lines([one for one in messages if one is not None], longest=_LONGEST_HIT))
        return msgspec.json.encode({"found": texts}).decode()

    return Tools("session", (recall,))
