"""Run attempts to escape, one after the other, and print as JSON what was affected outside.

Usage: escaping.py FOLDER SCRIPTS ROUNDS [NAME]. FOLDER is empty; SCRIPTS holds the attempts.
"""

import json
import os
import socket
import sys
import time
from datetime import timedelta
from pathlib import Path

import anyio
from outside import Outside

from hermes.config import Settings
from hermes.config.sections import Sandbox
from hermes.domain.clock import SystemClock
from hermes.domain.effect import Connect
from hermes.domain.machine import Command
from hermes.machines.local import LocalMachine, open_local
from hermes.net.address import parse_listed
from hermes.net.checked import CheckedDial

LONGEST = timedelta(seconds=20)


def scripts(path: Path) -> dict[str, str]:
    """Read a file of attempts."""
    parts = path.read_text().split("\n=== ")[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2] for part in parts}


async def attempt(machine: LocalMachine, outside: Outside, text: str, mark: str) -> list[str]:
    """Run one attempt and what follows it, and say what it has affected."""
    host, port = outside.env["ALLOWED"].split(":")

    async def may_connect(connect: Connect) -> bool:
        return (connect.host, connect.port) == (host, int(port))

    one = Command(
        f"echo begun $MARK\n{text}", outside.work, mark, outside.work, timeout=LONGEST, environment=outside.marked(mark)
    )
    done = await machine.run(_judged(one, may_connect), lambda _: None)
    # The same session goes on, once inside and once outside of a sandbox; then the person looks at the project.
    again = await machine.run(Command("true; ls", outside.work, mark, outside.work), lambda _: None)
    free = Command("true; ls; git status", outside.work, mark, outside.work, "full")
    after = await machine.run(free, lambda _: None)
    await anyio.to_thread.run_sync(outside.innocent)
    await machine.end_session(mark)
    spilled = done.spilled.read_bytes() if done.spilled else b""
    if done.spilled:
        done.spilled.unlink()
    found = (
        []
        if f"begun {mark}-{outside.token}".encode() in done.output + spilled
        else [f"it never began: {done.output!r}"]
    )
    return found + await anyio.to_thread.run_sync(outside.look, done.output + spilled + again.output + after.output)


def _judged(command: Command, may_connect: object) -> Command:
    import dataclasses

    return dataclasses.replace(command, may_connect=may_connect)  # type: ignore[arg-type] # one who judges


async def campaign(base: Path, attempts: dict[str, str], rounds: int) -> dict[str, object]:
    """Run all attempts, `rounds` times."""
    outside = Outside(base)
    outside.build()
    effects: list[str] = []
    began, count = time.monotonic(), 0
    with outside.watching():
        listed = (outside.env["ALLOWED"],)
        settings = Settings(home=outside.hermes, sandbox=Sandbox(listed=listed, memory=1_000_000_000))
        checked = CheckedDial(parse_listed(listed))

        async def dial(host: str, port: int, deadline: float) -> socket.socket:
            if f"{host}:{port}" != outside.env["ALLOWED"]:
                effects.append(f"{host}:{port} was dialled")
            return await checked(host, port, deadline)

        async with open_local(settings, SystemClock(), environment=outside.person(), dial=dial) as machine:
            if machine.protection != "sandbox":
                return {"skipped": machine.describe()}
            outside.look()
            for turn in range(rounds):
                for name, text in attempts.items():
                    outside.renew()
                    outside.look()
                    found = await attempt(machine, outside, text, f"mark-of-this-{turn}-{name}")
                    effects += [f"{name}: {effect}" for effect in found]
                    count += 1
    return {"attempts": count, "effects": effects, "seconds": time.monotonic() - began, "user": os.getuid()}


def main() -> None:
    folder, path, rounds, *names = sys.argv[1:]
    chosen = {name: text for name, text in scripts(Path(path)).items() if not names or name in names}
    print(json.dumps(anyio.run(campaign, Path(folder), chosen, int(rounds))))


if __name__ == "__main__":
    main()
