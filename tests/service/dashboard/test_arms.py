from __future__ import annotations

from tests.service.dashboard.visits import Visitor, create, play
from tests.service.live import Live, learning


def test_arms_are_added_and_retired(live: Live, operator: Visitor) -> None:
    create(live, "arms")
    place = "/campaigns/arms"
    assert "Add the arm culture" in operator.send(f"{place}/arms", arm="culture").text
    assert operator.send(f"{place}/arms", arm="culture", sure="yes").status_code == 303
    assert "All slots are taken" in operator.http.get(f"{place}/arms").text
    again = operator.send(f"{place}/arms", arm="culture", sure="yes")
    assert (again.status_code, "There is an arm culture already" in again.text) == (422, True)
    full = operator.send(f"{place}/arms", arm="one more", sure="yes")
    assert (full.status_code, "no free slot" in full.text) == (422, True)
    assert "can&#39;t be brought back" in operator.send(f"{place}/arms/retire", arm="sport").text
    assert operator.send(f"{place}/arms/retire", arm="sport", sure="yes").status_code == 303
    found = {arm.name: arm.until for arm in live.aggregator.directory.arms("arms")}
    assert found == {"world": None, "sport": 1, "science": None, "culture": None}
    with learning(live):
        play(live, 1, "arms")
        assert "retired before round 1" in operator.http.get(f"{place}/arms").text
