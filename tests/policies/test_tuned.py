from __future__ import annotations

import pytest

from shoal.errors import UnknownNameError
from shoal.policies.tuned import resolve_options, tuned_options


def test_the_callers_options_override_the_tuned_ones() -> None:
    tuned = tuned_options("linear", "elimination-lp")
    assert resolve_options("elimination-lp", {"gamma": 3}, instance="linear") == {
        **tuned,
        "gamma": 3,
    }
    assert resolve_options("elimination-lp", {"gamma": 3}, tuned=False) == {"gamma": 3}


def test_a_class_that_nothing_was_tuned_on_takes_the_choices_of_uniform() -> None:
    chosen = tuned_options("uniform", "elimination-lp")
    assert chosen != tuned_options("linear", "elimination-lp")
    for instance in ("given", "clustered"):
        assert resolve_options("elimination-lp", instance=instance) == chosen


def test_a_policy_without_a_grid_has_its_defaults() -> None:
    assert resolve_options("shoal") == {}


def test_unknown_policies_and_options_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'shoal'"):
        resolve_options("shoall")
    with pytest.raises(UnknownNameError, match="did you mean 'gamma'"):
        resolve_options("elimination-lp", {"gama": 1})
