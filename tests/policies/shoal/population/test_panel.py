"""The panel: what it may cost, and the expected best arm behind it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shoal.policies.shoal.population.belief import PopulationBelief
from shoal.policies.shoal.population.panel import best_panel_share, expected_best


def test_panel_is_paid_for_by_what_may_still_be_found() -> None:
    belief = PopulationBelief(100, 5, 10)
    belief.means = np.array([0.2, 0.25, 0.3, 0.35, 0.4])
    sizes = {}
    for hidden in (1e-8, 1e-3, 1e-2):
        belief.hidden = np.full(5, hidden)
        for others in (0.4, 0.6):
            rng = np.random.default_rng(0)
            sizes[hidden, others] = best_panel_share(belief, 10, 500.0, others, rng=rng)
    assert sizes[1e-8, 0.4] < 1e-3
    assert sizes[1e-8, 0.4] < sizes[1e-3, 0.4] < sizes[1e-2, 0.4] <= 0.5
    # A panellist loses 0.1 where others earn 0.4, and 0.3 where they earn 0.6.
    assert sizes[1e-3, 0.6] == pytest.approx(sizes[1e-3, 0.4] / 3)


def test_expected_best_is_that_of_simulated_users() -> None:
    # Two independent arms, alike a priori: E[max] = mean + deviation / sqrt(pi). The tolerance is
    # beyond six standard errors of the average over the draws.
    normals = np.random.default_rng(8).standard_normal((200_000, 2))
    found = expected_best(np.full(2, 0.5), np.eye(2) * 0.04, np.full(2, 75.0), normals)
    deviation = math.sqrt(0.04**2 / (0.04 + 1 / 75))
    assert found == pytest.approx(0.5 + deviation / math.sqrt(math.pi), abs=0.003)
