"""Commands about what goes on now: stop, queue, steer, state, cost, help, leave."""

from hermes import __version__
from hermes.commands.port import Port
from hermes.commands.words import many, money, one_line
from hermes.domain.errors import Misconfigured, Unsupported
from hermes.domain.message import TextPart


async def stop(port: Port, rest: str) -> None:  # noqa: ARG001 - as every command
    """Stop what goes on, and let nothing follow."""
    seat = port.seat
    dropped = len(seat.waiting)
    seat.waiting.clear()
    was_working = seat.interrupt()
    said = ["stopping" if was_working else "nothing runs"]
    said += [f"{many(dropped, 'waiting message')} dropped"] if dropped else []
    port.say("; ".join(said))


async def queue(port: Port, rest: str) -> None:
    """Say something that is read after this turn; without words, show what waits."""
    seat = port.seat
    if rest:
        port.submit((TextPart(rest),))
        return
    if not seat.waiting:
        port.say("nothing waits")
    for number, parts in enumerate(seat.waiting, 1):
        words = "".join(part.text for part in parts if isinstance(part, TextPart))
        port.say(f"{number}. {one_line(words, 100) or 'a picture'}")


async def steer(port: Port, rest: str) -> None:
    """Say something that the model reads at its next step, without stopping it."""
    if not rest:
        raise Misconfigured("/steer needs words for the model")
    if port.seat.steering is None:
        port.submit((TextPart(rest),))
        return
    port.seat.steering.steer(rest)
    port.say(f"will be read at the next step: {one_line(rest, 100)}")


async def status(port: Port, rest: str) -> None:  # noqa: ARG001 - as every command
    """Show the session, the model, the mode and what goes on."""
    seat = port.seat
    model, window = seat.assistant.model_name, seat.assistant.window
    lines = [
        ("Hermes", __version__),
        ("session", f"{seat.session.id}{f' ({seat.session.title})' if seat.session.title else ''}"),
        ("model", model),
        ("context", f"{seat.tokens:,} of {window:,} tokens ({seat.tokens * 100 // max(window, 1)} %)"),
        ("workspace", str(seat.workspace)),
        ("mode", seat.mode),
        ("tools", str(len(seat.assistant.specs))),
        ("now", "works" if seat.is_working else "waits for you"),
        ("queue", many(len(seat.waiting), "message")),
        ("cost", f"{money(seat.spent)} in this sitting"),
    ]
    port.say("\n".join(f"{name:<10} {value}" for name, value in lines))


async def usage(port: Port, rest: str) -> None:  # noqa: ARG001 - as every command
    """Show what this session has used and cost."""
    seat = port.seat
    total = await seat.assistant.sessions.usage(seat.principal, seat.session.id)
    used = total.usage
    cached = f" ({used.cache_read * 100 // used.input} % from the cache)" if used.input else ""
    lines = [
        f"model calls  {total.calls:,}",
        f"tokens in    {used.input:,}{cached}",
        f"tokens out   {used.output:,}" + (f" ({used.reasoning:,} of them thought)" if used.reasoning else ""),
        f"cost         {money(total.cost)}"
        + (f", and {total.unpriced} calls without a price" if total.unpriced else ""),
    ]
    port.say("\n".join(lines))


async def clear(port: Port, rest: str) -> None:  # noqa: ARG001 - as every command
    """Empty the screen; the session goes on."""
    if port.look is None:
        raise Unsupported("/clear is for a terminal")
    port.look.clear()


async def version(port: Port, rest: str) -> None:  # noqa: ARG001 - as every command
    """Say which Hermes this is."""
    port.say(f"hermes {__version__}")


async def leave(port: Port, rest: str) -> None:  # noqa: ARG001 - as every command
    """Leave; the session is kept."""
    port.close()
