from __future__ import annotations

import pytest

from shoal.errors import InvalidInputError
from shoal.experiments import simulate


def test_thompson_refuses_rewards_that_its_model_cannot_have() -> None:
    with pytest.raises(InvalidInputError, match=r"rewards must be in \[0, 1\] for model='beta'"):
        simulate("thompson", [[0.0, 5.0]], min_group_size=1, horizon=50, rewards="gaussian")
    run = simulate(
        "thompson",
        [[0.0, 5.0]],
        min_group_size=1,
        horizon=50,
        rewards="gaussian",
        options={"model": "gaussian"},
    )
    assert run.regret < 50
