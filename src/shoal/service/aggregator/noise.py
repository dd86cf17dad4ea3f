"""Noise on released totals, where a campaign asks for it: OpenDP's discrete Laplace mechanism.

A user is in at most one total of a round and moves it by at most ``reward_steps``. So whole-number
Laplace noise of scale reward_steps / epsilon on every total makes a round's totals
epsilon-differentially private in what one user reported. It is drawn once, when the round is
released, and stored with it (threat 16).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec

from shoal.errors import ShoalError
from shoal.service.campaign import Campaign


def need_noise() -> None:
    """Refuse to go on without the package that makes noise."""
    if find_spec("opendp") is None:
        raise ShoalError("noise needs an extra: pip install 'shoal[service,dp]'.")


def scale_of(campaign: Campaign) -> float:
    """Return the scale of the noise in steps of the grid, 0 where there is none."""
    return campaign.reward_steps / campaign.noise.epsilon if campaign.noise else 0.0


def variance_of(campaign: Campaign) -> float:
    """Return the variance of a total's noise in squared steps of the grid, 0 where there is none.

    Discrete Laplace noise of scale s is k with a probability in proportion to exp(-|k| / s); its
    variance is 2a / (1 - a)^2 with a = exp(-1 / s).
    """
    if campaign.noise is None:
        return 0.0
    decay = 1 / scale_of(campaign)
    return 2 * math.exp(-decay) / math.expm1(-decay) ** 2


def add_noise(totals: Sequence[int], campaign: Campaign) -> list[int]:
    """Return the totals as they may be released."""
    if campaign.noise is None or not totals:
        return list(totals)
    need_noise()
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    mechanism = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale_of(campaign))
    noisy: list[int] = mechanism(list(totals))
    return noisy
