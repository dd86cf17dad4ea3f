"""An audience: a population that plays a campaign of a running service over HTTP.

It stands for your app and its users. As an environment does, it alone holds the means: each user's
reward on the assigned arm is drawn here and reported to the service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.arrays import FloatArray, IntArray
from shoal.errors import ShoalError

if TYPE_CHECKING:
    from shoal.client import Client


class Audience:
    """Users with tastes who take part in one campaign.

    ``means`` are the probabilities of a reward of 1, (n_users, n_arms); ``arms`` are those of the
    last round, (n_users,).
    """

    def __init__(
        self,
        means: FloatArray,
        arms: list[str],
        *,
        operator: Client,
        app: Client,
        rng: np.random.Generator,
    ) -> None:
        self._means = means
        self._operator, self._app, self._rng = operator, app, rng
        self._numbers = {name: arm for arm, name in enumerate(arms)}
        self.arms: IntArray = np.zeros(len(means), np.int32)
        self._users = [f"user-{i}" for i in range(len(means))]

    @property
    def best_single(self) -> float:
        """Reward per user and round where everyone plays the arm that is best for all together."""
        return float(self._means.mean(axis=0).max())

    @property
    def full_knowledge(self) -> float:
        """Reward per user and round where everyone plays the arm that is best for this user."""
        return float(self._means.max(axis=1).mean())

    def join(self, campaign: str, *, min_group_size: int, horizon: int | None = None) -> None:
        """Create the campaign, with the service's default policy, and enrol everyone."""
        self._operator.create_campaign(
            campaign,
            arms=list(self._numbers),
            min_group_size=min_group_size,
            seats=len(self._users),
            horizon=horizon,
            reward_steps=1,  # a click or none
        )
        self._operator.enrol(campaign, self._users)

    def play(self, campaign: str, number: int) -> float:
        """Play one round, from opening to release; return the reward per user."""
        while self._operator.open_round(campaign, number).state == "wanted":
            pass  # the learner is planning; each call waits for it
        assigned = self._app.assignments(campaign, number=number)
        arms = np.array([self._numbers[assigned[user]] for user in self._users], np.int32)
        self.arms = arms
        rewards = self._rng.random(len(arms)) < self._means[np.arange(len(arms)), arms]
        refused = self._app.report(
            campaign, number, zip(self._users, rewards.astype(float).tolist(), strict=True)
        )
        if refused:
            raise ShoalError(f"{len(refused)} reports were refused: {refused[0].reason}.")
        self._operator.close_round(campaign, number)
        return float(rewards.mean())
