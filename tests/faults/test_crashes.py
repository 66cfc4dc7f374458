"""Nothing acknowledged is lost and nothing is done twice, whenever the process is killed."""

from pathlib import Path

import campaign
import pytest


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_file_survives_fifty_kills_at_random_times(tmp_path: Path) -> None:
    run = campaign.crashes(tmp_path)
    for _ in range(50):
        run.kill_at_random()

    campaign.judge(run, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_file_survives_kills_at_each_named_place(tmp_path: Path) -> None:
    run = campaign.crashes(tmp_path)
    for _ in range(3):
        assert run.kill_at("migration.worked").end == "probed"
    for place in campaign.PLACES:
        for nth in (1, 3, 8):
            # A life fires a schedule twice at most: it is due each second.
            life = run.kill_at(place, 1 if place == "schedule.fired" else nth)
            assert life.end == "probed", life

    campaign.judge(run, tmp_path)


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_a_file_survives_a_thousand_kills(tmp_path: Path) -> None:
    run = campaign.crashes(tmp_path, longest=0.6)
    for number in range(1000):
        if number % 4:
            run.kill_at_random()
        else:
            run.kill_at(campaign.PLACES[number // 4 % len(campaign.PLACES)], nth=1 + number % 5)

    campaign.judge(run, tmp_path)
