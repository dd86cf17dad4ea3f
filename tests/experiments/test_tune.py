from __future__ import annotations

import numpy as np
import pytest

from shoal.engines import LocalEngine
from shoal.errors import UnknownNameError
from shoal.experiments import Setting
from shoal.experiments.tune import GRID, tune
from shoal.policies import POLICIES
from shoal.policies.tuned import shipped

HERE = LocalEngine(n_workers=1)


def test_tuning_picks_the_best_point_on_instances_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(GRID, "explore-then-commit", {"exploration": [0.001, 0.3, 50.0]})
    choices = tune(
        instances=["uniform"],
        policies=["explore-then-commit"],
        n_users=12,
        n_arms=3,
        min_group_size=2,
        horizon=20_000,
        n_runs=4,
        engine=HERE,
    )
    choice = choices["chosen"]["uniform"]["explore-then-commit"]
    assert choice["options"] == {"exploration": 0.3}
    drawn = Setting(n_users=12, n_arms=3, min_group_size=2, horizon=1)
    assert not np.array_equal(drawn.draw(), drawn.draw(purpose="validation"))
    with pytest.raises(UnknownNameError, match="policy with options to tune"):
        tune(policies=["ucb"], engine=HERE)


def test_the_shipped_file_holds_choices_grid_and_seeds() -> None:
    file = shipped()
    assert file["setting"]["seed"] == 0
    assert file["setting"]["n_users"] == 50
    assert file["grid"] == GRID
    for instance in ("uniform", "linear"):
        assert set(file["chosen"][instance]) == set(GRID)
        for policy, choice in file["chosen"][instance].items():
            assert set(choice["options"]) == set(GRID[policy])
            for name, value in choice["options"].items():
                assert name in POLICIES[policy].options()
                assert value in GRID[policy][name]
