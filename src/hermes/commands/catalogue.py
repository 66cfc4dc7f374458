"""The table of all commands, and the help that is made of it."""

from hermes.commands import flow, setting, talk, tooling
from hermes.commands.definition import CATEGORIES, CommandDef, Registry
from hermes.commands.port import Port


async def _help(port: Port, rest: str) -> None:
    """Show all commands, or one."""
    registry = CATALOGUE.at(port.place)
    if rest:
        one = registry.find(rest.lstrip("/").lower())
        port.say(f"{one.usage}\n  {one.summary}")
        if one.aliases:
            port.say(f"  also {', '.join(f'/{name}' for name in one.aliases)}")
        if one.choices:
            port.say(f"  words: {', '.join(one.choices)}")
        return
    for category in CATEGORIES:
        rows = [(one.usage, one.summary) for one in registry.commands if one.category == category]
        if rows:
            port.table((category, ""), rows)
    port.say("a beginning is enough where it can mean only one: /st is not, /sta is /status")


CATALOGUE = Registry(
    [
        CommandDef(
            name="new",
            act=talk.new,
            summary="begin a session",
            category="session",
            aliases=("reset",),
            arguments="[title]",
        ),
        CommandDef(
            name="resume",
            act=talk.resume,
            summary="go on with a session",
            category="session",
            arguments="[number, id or title]",
        ),
        CommandDef(
            name="sessions",
            act=talk.sessions,
            summary="show the latest sessions",
            category="session",
            arguments="[how many]",
            while_running=True,
        ),
        CommandDef(
            name="history",
            act=talk.history,
            summary="show what was said",
            category="session",
            arguments="[how many]",
            while_running=True,
        ),
        CommandDef(
            name="search",
            act=talk.search,
            summary="find what was said in any session",
            category="session",
            arguments="words",
            while_running=True,
        ),
        CommandDef(
            name="title",
            act=talk.title,
            summary="show or give the title",
            category="session",
            arguments="[title]",
        ),
        CommandDef(
            name="branch",
            act=talk.branch,
            summary="go on in a copy of this session",
            category="session",
            aliases=("fork",),
            arguments="[title]",
        ),
        CommandDef(
            name="undo",
            act=talk.undo,
            summary="go back before the last turns",
            category="session",
            arguments="[how many]",
        ),
        CommandDef(name="retry", act=talk.retry, summary="ask the last again", category="session"),
        CommandDef(
            name="rollback",
            act=talk.rollback,
            summary="files as they were before a run",
            category="session",
            arguments="[number [diff]]",
        ),
        CommandDef(
            name="compress",
            act=talk.compress,
            summary="make the conversation shorter now",
            category="session",
            aliases=("compact",),
        ),
        CommandDef(
            name="copy",
            act=talk.copy,
            summary="put an answer into the clipboard",
            category="session",
            arguments="[N-th from the end]",
            where="terminal",
            while_running=True,
        ),
        CommandDef(
            name="save",
            act=talk.save,
            summary="write the session to a file",
            category="session",
            arguments="[file.md or file.jsonl]",
            where="terminal",
            while_running=True,
        ),
        CommandDef(
            name="stop",
            act=flow.stop,
            summary="stop what goes on, drop what waits",
            category="session",
            while_running=True,
        ),
        CommandDef(
            name="queue",
            act=flow.queue,
            summary="say something for after this turn",
            category="session",
            aliases=("q",),
            arguments="[words]",
            while_running=True,
        ),
        CommandDef(
            name="steer",
            act=flow.steer,
            summary="say something into this turn",
            category="session",
            arguments="words",
            while_running=True,
        ),
        CommandDef(
            name="model",
            act=setting.model,
            summary="show or change the model",
            category="settings",
            arguments="[provider/name]",
        ),
        CommandDef(
            name="reasoning",
            act=setting.reasoning,
            summary="how long it thinks; show or hide it",
            category="settings",
            arguments="[effort, show or hide]",
            choices=(*setting.EFFORTS, "show", "hide"),
            while_running=True,
        ),
        CommandDef(
            name="personality",
            act=setting.personality,
            summary="how it speaks",
            category="settings",
            arguments="[name or none]",
        ),
        CommandDef(
            name="mode",
            act=setting.mode,
            summary="what tools may write",
            category="settings",
            arguments="[mode]",
            choices=setting.MODES,
            where="terminal",
        ),
        CommandDef(
            name="budget",
            act=setting.budget,
            summary="what one turn may use",
            category="settings",
            arguments="[0.50, 200k, 10min or none]",
            where="terminal",
        ),
        CommandDef(
            name="busy",
            act=setting.busy,
            summary="what happens to words said while it works",
            category="settings",
            arguments="[what]",
            choices=setting.BUSY,
            where="terminal",
            while_running=True,
        ),
        CommandDef(
            name="verbose",
            act=setting.verbose,
            summary="how much is shown of the work",
            category="settings",
            aliases=("details",),
            arguments="[how much]",
            choices=setting.DETAILS,
            where="terminal",
            while_running=True,
        ),
        CommandDef(
            name="skin",
            act=setting.skin,
            summary="colours and words of the screen",
            category="settings",
            arguments="[name]",
            where="terminal",
            while_running=True,
        ),
        CommandDef(
            name="config",
            act=setting.config,
            summary="explain or set a setting for good",
            category="settings",
            arguments="[key [value]]",
            where="terminal",
            while_running=True,
        ),
        CommandDef(
            name="tools",
            act=tooling.tools,
            summary="list tools, switch them",
            category="tools",
            arguments="[enable or disable names]",
            choices=("list", "enable", "disable"),
        ),
        CommandDef(
            name="toolsets",
            act=tooling.toolsets,
            summary="list groups of tools",
            category="tools",
            while_running=True,
        ),
        CommandDef(
            name="approvals",
            act=tooling.approvals,
            summary="what you were asked lately",
            category="tools",
            while_running=True,
        ),
        CommandDef(
            name="terminal",
            act=tooling.terminal,
            summary="where commands run; end those in the background",
            category="tools",
            arguments="[stop]",
            choices=("stop",),
            while_running=True,
        ),
        CommandDef(
            name="status",
            act=flow.status,
            summary="what is going on",
            category="info",
            while_running=True,
        ),
        CommandDef(
            name="usage",
            act=flow.usage,
            summary="what this session has used",
            category="info",
            aliases=("cost",),
            while_running=True,
        ),
        CommandDef(
            name="clear",
            act=flow.clear,
            summary="empty the screen",
            category="info",
            where="terminal",
            while_running=True,
        ),
        CommandDef(
            name="version",
            act=flow.version,
            summary="which Hermes this is",
            category="info",
            aliases=("v",),
            while_running=True,
        ),
        CommandDef(
            name="help",
            act=_help,
            summary="this list, or one command",
            category="info",
            aliases=("commands",),
            arguments="[command]",
            while_running=True,
        ),
        CommandDef(
            name="quit",
            act=flow.leave,
            summary="leave; the session is kept",
            category="info",
            aliases=("exit",),
            while_running=True,
        ),
    ]
)
