"""The story that ``shoal demo`` plays: a learning app, its reminders, and learners with tastes.

Once a round the app sends every learner one reminder, and a learner comes back or not. Each
reminder is the favourite of some learners, the others hardly notice it: no reminder is best for
everyone, and all of them are worth sending.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.arrays import FloatArray, IntArray

PLOT = {
    "morning nudge": "early birds",
    "evening recap": "night owls",
    "streak in danger": "streak keepers",
    "three questions": "quizzers",
    "a friend is ahead": "competitors",
    "word of the day": "browsers",
    "weekly goal": "planners",
    "new lesson": "explorers",
    "your last mistakes": "perfectionists",
    "five-minute podcast": "listeners",
    "note from a coach": "coached learners",
    "badge in reach": "collectors",
}
"""Each reminder, and those whom it suits."""

FAVOURITE, SECOND, OTHER = 0.7, 0.25, 0.15  # probability to come back, by what was sent
LEARNER_SPREAD = 0.2  # of a learner around the taste, on the scale of the logarithm


@dataclass(frozen=True, eq=False)
class Story:
    """Reminders, tastes, and the probability that each learner comes back after each reminder."""

    reminders: list[str]
    tastes: list[str]
    taste: IntArray  # (n_users,), of each learner
    means: FloatArray  # (n_users, n_arms)


def draw_story(n_users: int, n_arms: int, *, rng: np.random.Generator) -> Story:
    """Draw learners: as many tastes as reminders, each with one that suits it.

    >>> draw_story(500, 3, rng=np.random.default_rng(0)).reminders
    ['morning nudge', 'evening recap', 'streak in danger']
    """
    pairs = [*PLOT.items()][:n_arms]
    pairs += [(f"reminder {i + 1}", f"taste {i + 1}") for i in range(len(pairs), n_arms)]
    taste = rng.integers(n_arms, size=n_users)
    rates = np.full((n_arms, n_arms), OTHER)
    np.fill_diagonal(rates, FAVOURITE)
    rates[np.arange(n_arms), (np.arange(n_arms) + 1) % n_arms] = SECOND
    factors = np.exp(rng.normal(0.0, LEARNER_SPREAD, size=(n_users, n_arms)))
    means = np.minimum(rates[taste] * factors, 0.95)
    return Story([r for r, _ in pairs], [t for _, t in pairs], taste.astype(np.int32), means)


def favourite_shares(story: Story, arms: IntArray) -> FloatArray:
    """Return the share of each taste's learners who get each reminder, (n_tastes, n_arms)."""
    n_arms = len(story.reminders)
    counts = np.bincount(story.taste * n_arms + arms, minlength=n_arms**2).reshape(n_arms, n_arms)
    shares: FloatArray = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    return shares
