"""The checker complains about each kind of damage; otherwise its silence would prove nothing."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import campaign
import checker
import pytest


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a victim leaves that was killed twice and then came to rest."""
    folder = tmp_path_factory.mktemp("good")
    run = campaign.crashes(folder, longest=1.5)
    run.kill_at("schedule.fired", 3)
    run.kill_at("job.handled", 20)
    run.rest()
    assert checker.check(checker.look(folder)) == []
    return folder


def sql(statement: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        with closing(sqlite3.connect(folder / "state.db")) as db:
            db.execute("PRAGMA ignore_check_constraints = ON")
            assert db.execute(statement).rowcount > 0, "the damage did nothing"
            db.commit()

    return damage


def a_line(text: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        with (folder / "acknowledged.log").open("a") as file:
            file.write(text)

    return damage


def a_second_effect(folder: Path) -> None:
    log = folder / "calls.log"
    made = next(line for line in log.read_text().splitlines() if line.startswith("made"))
    with log.open("a") as file:
        file.write(made + "\n")


def a_missing_effect(folder: Path) -> None:
    next((folder / "effects").iterdir()).unlink()


def an_overlap_outside(folder: Path) -> None:
    with (folder / "calls.log").open("a") as file:
        file.write("begin one red 1.a 1\nbegin two red 1.a 2\n")


def flipped_bytes(folder: Path) -> None:
    """Turn a page in the middle into noise."""
    with (folder / "state.db").open("r+b") as file:
        file.seek(4096 * 20)
        file.write(bytes(range(256)) * 16)


IN_A_LANE = "SELECT id FROM jobs WHERE lane = 'red' ORDER BY number"
OF_THE_TICK = "SELECT number FROM jobs WHERE cause = (SELECT id FROM schedules WHERE name = 'tick') ORDER BY number"
DAMAGES: list[tuple[str, Callable[[Path], None]]] = [
    ("integrity", flipped_bytes),
    ("lost", a_line("job not-there\n")),
    ("lost", a_line("event not-there\n")),
    ("lost", sql("DELETE FROM jobs WHERE number = (SELECT max(number) FROM jobs WHERE kind = 'victim.work')")),
    ("unended", sql("UPDATE jobs SET state = 'queued' WHERE number = 3")),
    ("unended", sql("UPDATE jobs SET state = 'dead' WHERE number = 3")),
    ("doubled", sql("UPDATE events SET subject = (SELECT id FROM jobs WHERE number = 4) WHERE stream = 'jobs'")),
    ("doubled", a_second_effect),
    ("unmade", a_missing_effect),
    (
        "doubled",
        sql(
            "UPDATE events SET data = (SELECT data FROM events WHERE type = 'work.done' LIMIT 1) "
            "WHERE position = (SELECT max(position) FROM events WHERE type = 'work.done')"
        ),
    ),
    ("gap", sql("DELETE FROM events WHERE stream = 'jobs' AND seq = 2")),
    ("gap", sql("INSERT INTO streams (tenant, name, seq) VALUES ('local', 'seen', 1)")),
    ("order", sql("UPDATE events SET position = position + 1000000 WHERE stream = 'direct:0' AND seq = 1")),
    ("unseen", sql("DELETE FROM events WHERE stream = 'seen' AND seq = 2")),
    ("doubled", sql("UPDATE events SET data = (SELECT data FROM events WHERE stream = 'seen' AND seq = 1) "
                    "WHERE stream = 'seen' AND seq = 2")),
    ("order", sql("UPDATE events SET seq = CASE seq WHEN 2 THEN 1000003 ELSE seq END WHERE stream = 'seen'")),
    ("open", sql("UPDATE attempts SET ended_at = NULL WHERE rowid = 3")),
    ("overlap", sql(f"UPDATE attempts SET ended_at = ended_at + 1000000 WHERE job IN ({IN_A_LANE} LIMIT 1)")),
    ("overlap", an_overlap_outside),
    ("order", sql(f"UPDATE attempts SET started_at = 1, ended_at = 2 WHERE job IN ({IN_A_LANE} DESC LIMIT 1)")),
    ("order", sql(f"UPDATE jobs SET finished_at = 1 WHERE id IN ({IN_A_LANE} DESC LIMIT 1)")),
    ("lost", sql(f"DELETE FROM jobs WHERE number IN ({OF_THE_TICK} LIMIT 1 OFFSET 1)")),
    ("doubled", sql(f"UPDATE jobs SET dedupe_key = (SELECT replace(dedupe_key, '+00:00', 'Z') FROM jobs WHERE number "
                    f"IN ({OF_THE_TICK} LIMIT 1)) WHERE number IN ({OF_THE_TICK} LIMIT 1 OFFSET 1)")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("word", "damage"), DAMAGES, ids=[f"{number}-{word}" for number, (word, _) in enumerate(DAMAGES)]
)
def test_each_damage_draws_its_complaint(good: Path, tmp_path: Path, word: str, damage: Callable[[Path], None]) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(good, folder)

    damage(folder)

    assert word in {complaint.partition(":")[0] for complaint in checker.check(checker.look(folder))}
