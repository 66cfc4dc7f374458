"""Commands about what the assistant can do and may do, and where it does it."""

from collections import defaultdict

from hermes.commands.port import Port
from hermes.commands.words import ago, choice, many, one_line
from hermes.domain.errors import Misconfigured

_WHAT_HOLDS = {
    "sandbox": "a sandbox holds commands",
    "confined": "writes are held, reads and the network are not",
    "none": "NOTHING holds commands here",
}


async def tools(port: Port, rest: str) -> None:
    """List the tools, or switch some for this sitting."""
    assistant = port.seat.assistant
    if rest:
        word, *names = rest.replace(",", " ").split()
        action = choice(word, ("list", "enable", "disable"))
        if action != "list":
            if not names:
                raise Misconfigured(f"/tools {action} needs names of tools or toolsets; /tools lists them")
            await assistant.use_tools(**{"on" if action == "enable" else "off": names})
            port.say(f"{', '.join(names)}: {'on' if action == 'enable' else 'off'} for this sitting")
            return
    there = {one.name for one in assistant.specs}
    known = sorted(assistant.known, key=lambda one: (one.toolset, one.name))
    rows = [
        (one.name, one.toolset, "on" if one.name in there else "off", one.access, one_line(one.description, 80))
        for one in known
    ]
    port.table(("tool", "toolset", "", "does", "what for"), rows)


async def toolsets(port: Port, rest: str) -> None:  # noqa: ARG001 - as every command
    """List the toolsets, and which of their tools are on."""
    there = {one.name for one in port.seat.assistant.specs}
    groups: dict[str, list[str]] = defaultdict(list)
    for one in port.seat.assistant.known:
        groups[one.toolset].append(one.name)
    rows = [
        (name, f"{len(there.intersection(tools))} of {len(tools)} on", ", ".join(sorted(tools)))
        for name, tools in sorted(groups.items())
    ]
    port.table(("toolset", "", "tools"), rows)


async def approvals(port: Port, rest: str) -> None:  # noqa: ARG001 - as every command
    """Show what was asked of you lately, and what you said."""
    seat = port.seat
    found = await seat.assistant.approvals(seat.principal)
    if not found:
        port.say("nothing had to be asked yet")
        return
    now = seat.assistant.clock.now()
    said = {"given": "yes", "denied": "no", "expired": "no answer", "requested": "waits"}
    rows = [
        (
            f"{said[one.state]}{f', {one.scope}' if one.state == 'given' else ''}",
            one_line(one.shown, 100),
            one.rule,
            ago(now, one.created_at),
        )
        for one in found
    ]
    port.table(("answer", "what", "rule", "when"), rows)


async def terminal(port: Port, rest: str) -> None:
    """Say where commands run and what holds them; list or end what runs in the background."""
    seat = port.seat
    if rest:
        choice(rest, ("stop",))
        ended = await seat.assistant.stop(seat.session.id)
        port.say(f"ended {many(ended, 'background process', 'background processes')}")
        return
    machine = await seat.assistant.machine()
    holds = "mode full: nothing holds commands" if seat.mode == "full" else _WHAT_HOLDS[machine.protection]
    port.say(f"{machine.name}, in {seat.workspace}, mode {seat.mode}: {holds}")
    port.say(machine.describe())
    running = machine.processes(seat.session.id)
    rows = [
        (
            one.id,
            "runs" if one.exit_code is None else f"ended with {one.exit_code}",
            f"{one.seconds:.0f} s",
            one_line(one.command, 100),
        )
        for one in running
    ]
    if rows:
        port.table(("process", "state", "for", "command"), rows)
