"""Small pieces that service tests share."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.rounds import FrozenPlan
from shoal.service.campaign import Campaign, Noise
from shoal.wire import LearnerProgress, StoredRelease

KEY = bytes(range(32))


class TestClock:
    """A clock that stands still until it is turned."""

    __test__ = False

    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now


def users(n: int) -> list[str]:
    return [f"user-{i}" for i in range(n)]


def frozen(arms: Sequence[int], groups: Sequence[int]) -> FrozenPlan:
    return FrozenPlan(np.array(arms, np.int32), np.array(groups, np.int32))


def even(n: int, *, size: int, n_arms: int = 2) -> FrozenPlan:
    """Groups of ``size`` neighbours; group g plays arm g mod ``n_arms``."""
    groups = np.arange(n) // size
    return frozen((groups % n_arms).tolist(), groups.tolist())


def start(
    aggregator: Aggregator,
    plan: FrozenPlan,
    *,
    name: str = "news",
    least: int = 3,
    number: int = 1,
    reward_steps: int = 1000,
    noise: Noise | None = None,
) -> None:
    """Open a round of a campaign whose seats are all taken."""
    n = len(plan.arms)
    campaign = Campaign(
        arms=["a", "b", "c"], min_group_size=least, seats=n, policy="random",
        reward_steps=reward_steps, noise=noise, grouping="learner", measure="planned",
    )  # fmt: skip
    aggregator.directory.create(name, campaign)
    aggregator.directory.enrol(name, users(n))
    aggregator.epochs.sync_learner({name: LearnerProgress(number - 1, number - 1)})
    aggregator.rounds.request(name, number)
    aggregator.rounds.freeze(name, number, plan)


def report(
    aggregator: Aggregator, rewards: dict[str, float], *, name: str = "news", number: int = 1
) -> list[tuple[int, str]]:
    refused = aggregator.reports.submit(name, number, list(rewards.items())).result(timeout=120)
    return [(index, reason.name) for index, reason in refused]


def close(aggregator: Aggregator, *, name: str = "news", number: int = 1) -> StoredRelease:
    aggregator.releases.close_round(name, number)
    aggregator.epochs.sync_learner({name: LearnerProgress(number, number)})
    return read(aggregator.releases.read(name, number))


def read(document: bytes) -> StoredRelease:
    return msgspec.json.decode(document, type=StoredRelease)
