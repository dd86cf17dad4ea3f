"""UCB1 in other libraries, one at a time: pulls per second as one number on standard output.

Run by ``throughput.py`` with an interpreter that has the peers; Shoal is not needed here. Every
peer plays the same way: one policy object per user, one Bernoulli reward per pull.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from time import perf_counter

N_USERS, N_ARMS = 50, 5


def river(rounds: int, means: list[list[float]]) -> None:
    from river import bandit

    arms = list(range(N_ARMS))
    policies = [bandit.UCB(delta=1, seed=user) for user in range(N_USERS)]
    for _ in range(rounds):
        for policy, mean in zip(policies, means, strict=True):
            arm = policy.pull(arms)
            policy.update(arm, random.random() < mean[arm])


def mabwiser(rounds: int, means: list[list[float]]) -> None:
    from mabwiser.mab import MAB, LearningPolicy

    arms = list(range(N_ARMS))
    policies = [MAB(arms, LearningPolicy.UCB1(alpha=1.0), seed=user) for user in range(N_USERS)]
    for policy, mean in zip(policies, means, strict=True):
        policy.fit(arms, [float(random.random() < p) for p in mean])
    for _ in range(rounds):
        for policy, mean in zip(policies, means, strict=True):
            arm = policy.predict()
            policy.partial_fit([arm], [float(random.random() < mean[arm])])


def smpybandits(rounds: int, means: list[list[float]]) -> None:
    from SMPyBandits.Policies import UCB

    policies = [UCB(N_ARMS) for _ in range(N_USERS)]
    for policy in policies:
        policy.startGame()
    for _ in range(rounds):
        for policy, mean in zip(policies, means, strict=True):
            arm = policy.choice()
            policy.getReward(arm, float(random.random() < mean[arm]))


PEERS: dict[str, Callable[[int, list[list[float]]], None]] = {
    "river": river,
    "mabwiser": mabwiser,
    "smpybandits": smpybandits,
}


def main(name: str) -> None:
    random.seed(0)
    means = [[random.random() for _ in range(N_ARMS)] for _ in range(N_USERS)]
    play = PEERS[name]
    play(2, means)
    rounds, seconds = 20, 0.0
    while seconds < 2:
        rounds *= 2
        start = perf_counter()
        play(rounds, means)
        seconds = perf_counter() - start
    print(N_USERS * rounds / seconds)


if __name__ == "__main__":
    main(sys.argv[1])
