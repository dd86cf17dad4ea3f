from __future__ import annotations

import csv
import io

from tests.service.dashboard.test_progress import fill
from tests.support.live import Live
from tests.support.visits import CAMPAIGN, Visitor

from shoal.wire import LearnerProgress


def test_every_chart_is_a_file_of_all_points_and_no_cell_is_a_formula(
    live: Live, operator: Visitor
) -> None:
    fill(live.aggregator, 300, spare=1)
    live.aggregator.epochs.sync_learner({CAMPAIGN: LearnerProgress(300, 300)})
    place = f"/campaigns/{CAMPAIGN}/charts"

    def rows(chart: str) -> list[list[str]]:
        answer = operator.http.get(f"{place}/{chart}.csv")
        assert answer.status_code == 200
        assert f"{CAMPAIGN}-{chart}.csv" in answer.headers["content-disposition"]
        return list(csv.reader(io.StringIO(answer.text)))

    assert rows("reward")[0] == ["round", "released_at", "reward", "holdout", "best"]
    assert rows("reward")[1][0::2][:2] == ["2", "0.0375"]
    assert {len(rows(chart)) for chart in ("reward", "shares", "sizes", "groups")} == {151}
    assert rows("estimates")[1][:2] == ["arm 0", "0.025"]
    assert operator.http.get(f"{place}/people.csv").status_code == 404
