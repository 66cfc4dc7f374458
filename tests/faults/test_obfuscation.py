"""However a dangerous command is written, the sandbox holds it: nothing has an effect outside."""

import dataclasses
import os
import random
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import obfuscation
import pytest
from outside import Outside

from hermes.config import Settings
from hermes.config.variables import process_environment
from hermes.domain.clock import SystemClock
from hermes.domain.machine import Command
from hermes.machines.local import open_local

SEED = int(process_environment().get("HERMES_SEED", "20261"))
FEW, MANY = 200, 2_000
AT_ONCE = 20


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="hermes-world-", dir="/var/tmp") as made:
        yield Path(made)


def does_what_it_should(line: str, folder: Path, number: int) -> bool:
    effect = folder / f"effect-{number}"
    script = folder / f"script-{number}"
    script.write_text(line)
    subprocess.run(["bash", script], cwd=folder, timeout=20, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    return effect.exists()


def check_meaning(lines: list[str], folder: Path) -> None:
    broken = [line for number, line in enumerate(lines) if not does_what_it_should(line, folder, number)]
    assert broken == []


def harmless(folder: Path, number: int) -> list[str]:
    return ["touch", str(folder / f"effect-{number}")]


def test_every_disguise_does_what_the_command_did(folder: Path) -> None:
    chance = random.Random(SEED)
    lines = [spell(harmless(folder, n), chance) for n, spell in enumerate(obfuscation.SPELLINGS)]
    for wrap in obfuscation.WRAPPINGS:
        lines.append(wrap("touch " + str(folder / f"effect-{len(lines)}")))
    check_meaning(lines, folder)


@pytest.mark.faults
def test_layers_of_disguises_do_what_the_command_did(folder: Path) -> None:
    chance = random.Random(SEED)
    lines = [obfuscation.disguised(harmless(folder, n), chance) for n in range(400)]
    broken = [line for number, line in enumerate(lines) if not does_what_it_should(line, folder, number)]
    # A few meet each other badly (a trap in a trap, an alias within a line); the rest must be what it says.
    assert len(broken) < len(lines) // 20, broken[:5]


async def campaign(folder: Path, count: int) -> None:
    chance = random.Random(SEED)
    outside = Outside(folder)
    outside.build()
    effects: list[str] = []
    with outside.watching():
        settings = Settings(home=outside.hermes)
        async with open_local(settings, SystemClock(), environment=outside.person()) as machine:
            if machine.protection != "sandbox":
                pytest.skip(machine.describe())
            commands = obfuscation.commands(outside.env, outside.token)
            lines = [obfuscation.disguised(commands[n % len(commands)], chance) for n in range(count)]
            outside.look()
            for first in range(0, count, AT_ONCE):
                some = lines[first : first + AT_ONCE]
                for number, line in enumerate(some):
                    (outside.work / f"attempt-{number}").write_text(line)
                text = "for x in attempt-*; do timeout -k 1 9 bash $x </dev/null; echo did $x; done"
                one = Command(text, outside.work, "s", outside.work, timeout=timedelta(seconds=120))
                done = await machine.run(dataclasses.replace(one, environment=outside.marked("mark-of-this")), _heed)
                printed = done.spilled.read_bytes() if done.spilled else done.output
                assert not done.is_timed_out
                assert printed.count(b"did attempt-") == len(some), printed[-2000:]
                effects += [f"seed {SEED}, lines {first}: {effect}" for effect in outside.look(printed)]
                outside.innocent()
                effects += [f"seed {SEED}, after lines {first}: {effect}" for effect in outside.look()]
                outside.renew()
                outside.look()
    print(f"{count} disguised commands of {len(commands)}, seed {SEED}, as user {os.getuid()}: {len(effects)} effects")
    assert effects == []


def _heed(_: bytes) -> None:
    return


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_some_disguised_commands_have_no_effect_outside(folder: Path) -> None:
    await campaign(folder, FEW)


@pytest.mark.anyio
@pytest.mark.faults
@pytest.mark.timeout(3600)
async def test_disguised_commands_have_no_effect_outside(folder: Path) -> None:
    await campaign(folder, MANY)


def test_there_are_enough_of_both() -> None:
    assert len(obfuscation.DANGEROUS.strip().splitlines()) >= 60
    assert len(obfuscation.SPELLINGS) + len(obfuscation.WRAPPINGS) >= 60
