from __future__ import annotations

import os
import signal
import time
from collections import defaultdict
from functools import cache, partial
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from tests.engines.test_local import until

from shoal.engines import LocalEngine
from shoal.engines.base import Engine
from shoal.engines.ray import RayEngine
from shoal.errors import InvalidInputError, UnknownNameError
from shoal.experiments import Run, Setting, simulate_shards
from shoal.experiments.run import STEPS, Play
from shoal.instances import INSTANCES, instance
from shoal.model import Problem
from shoal.policies.base import Choice
from shoal.policies.own import PolicyLike
from shoal.policies.shoal.population.policy import PopulationPolicy

HORIZON = 2 * STEPS
KILLED = (13, 26)  # rounds: one between two states, one right after


def shards(
    engine: Engine, policy: PolicyLike = "shoal", ticks: list[int] | None = None, **more: Any
) -> Run:
    settings: dict[str, Any] = {
        "n_users": 900, "n_arms": 4, "n_shards": 3, "min_group_size": 5, "horizon": HORIZON,
        "participation": 0.9, "seed": 7,
    }  # fmt: skip
    progress = None if ticks is None else ticks.append
    return simulate_shards(policy, **settings | more, engine=engine, progress=progress)


@cache
def undisturbed() -> Run:
    """The run that all others must equal."""
    return shards(LocalEngine(n_workers=1))


class Watched(PopulationPolicy):
    """The flagship, which notes where it plays, and twice waits to be killed."""

    def __init__(self, problem: Problem, *, rng: np.random.Generator, folder: str) -> None:
        super().__init__(problem, rng=rng)
        self._folder = Path(folder)
        self._name = str(self.shards[0].panel_ranks[0])  # drawn by the shard's seed

    def _choose(self) -> Choice:
        with (self._folder / f"{self._name}.log").open("a") as log:
            log.write(f"{os.getpid()} {self.rounds}\n")
        if self.rounds in KILLED:
            victim = self._folder / f"victim-{self.rounds}"
            try:
                victim.touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                victim.write_text(str(os.getpid()))
                time.sleep(600)
        return super()._choose()


def named(file: Path) -> bool:
    return file.exists() and bool(file.read_text())


def kill_victims(folder: Path) -> None:
    for number in KILLED:
        file = folder / f"victim-{number}"
        until(partial(named, file))
        os.kill(int(file.read_text()), signal.SIGKILL)


def test_a_shard_killed_in_mid_run_goes_on_and_gives_the_same_bytes(
    ray_cluster: str, tmp_path: Path
) -> None:
    import ray

    killer = Thread(target=kill_victims, args=(tmp_path,))
    killer.start()
    ticks: list[int] = []
    disturbed = shards(
        RayEngine(address=ray_cluster), Watched, ticks, options={"folder": str(tmp_path)}
    )
    killer.join()
    ray.shutdown()
    calm = undisturbed()
    assert disturbed.curves.tobytes() == calm.curves.tobytes()
    assert disturbed.withheld == calm.withheld > 0
    assert disturbed.smallest_group == calm.smallest_group
    assert sum(ticks) == 3 * HORIZON
    # No shard began again at round 0: each was taken up at its last state.
    taken_up = set()
    for log in tmp_path.glob("*.log"):
        by_process = defaultdict(list)
        for line in log.read_text().splitlines():
            pid, played = map(int, line.split())
            by_process[pid].append(played)
        starts = [played[0] for played in by_process.values()]
        assert starts[0] == 0
        taken_up |= set(starts[1:])
    assert taken_up == {12, 26}


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 2])
def test_shards_are_the_same_bytes_whatever_the_workers(n_workers: int) -> None:
    ticks: list[int] = []
    run = shards(LocalEngine(n_workers=n_workers), ticks=ticks)
    assert run.curves.tobytes() == undisturbed().curves.tobytes()
    assert run.problem.n_shards == 3
    assert sum(ticks) == 3 * HORIZON


@pytest.mark.slow
def test_another_seed_gives_another_run() -> None:
    other = shards(LocalEngine(n_workers=1), seed=8)
    assert other.curves.tobytes() != undisturbed().curves.tobytes()


def test_a_shard_depends_on_its_number_and_not_on_how_many_there_are() -> None:
    engine = LocalEngine(n_workers=1)
    three, two = undisturbed(), shards(engine, n_users=600, n_shards=2)
    assert np.array_equal(three.curves[:2], two.curves)
    assert not np.array_equal(three.curves[0], three.curves[1])


def test_every_shard_has_users_of_its_own_around_common_tastes() -> None:
    """The best single arm's regret depends on the users alone."""

    def regrets(seed: int) -> np.ndarray[Any, Any]:
        engine = LocalEngine(n_workers=1)
        return shards(engine, "best-arm", n_users=6_000, seed=seed).curves[:, -1]

    own = regrets(1)
    assert len(set(own)) == 3
    assert np.ptp(own) < 0.1 * own.mean()
    assert abs(regrets(2).mean() - own.mean()) > 0.2 * own.mean()


@pytest.mark.parametrize("policy", ["shoal", "elimination-lp", "pooled-thompson", "ucb"])
@pytest.mark.parametrize("rewards", ["bernoulli", "gaussian"])
def test_a_run_that_is_taken_up_elsewhere_goes_on_bit_for_bit(policy: str, rewards: str) -> None:
    def play() -> Play:
        means = instance("linear", 40, 3, rng=np.random.default_rng(1))[None]
        setting = Setting(
            n_users=40, n_arms=3, min_group_size=3, horizon=300, rewards=rewards, participation=0.8
        )
        return Play(policy, means, setting, {})

    whole, first, second = play(), play(), play()
    whole.advance(300)
    first.advance(130)
    second.restore(first.state())
    first.advance(5)  # what was taken out is a copy
    second.advance(300)
    assert second.played == 300
    assert whole.result().curves.tobytes() == second.result().curves.tobytes()
    assert whole.result().withheld == second.result().withheld
    assert whole.result().smallest_group == second.result().smallest_group


@pytest.mark.parametrize("name", INSTANCES)
def test_parts_of_a_population_share_what_is_common(name: str) -> None:
    """Averages over many users differ between tastes far more than between users."""

    def part(users: int, common: int) -> np.ndarray[Any, Any]:
        rng, shared = np.random.default_rng([1, users]), np.random.default_rng([2, common])
        return instance(name, 2_000, 4, rng=rng, common=shared)

    assert not np.array_equal(part(1, 1), part(2, 1))
    moments = [np.cov(part(*key).T) for key in ((1, 1), (2, 1), (2, 2))]
    same, other = (np.abs(moments[0] - moments[i]).max() for i in (1, 2))
    if name == "uniform":
        assert np.array_equal(part(1, 1), part(1, 2))
    else:
        assert other > 3 * same


def test_bad_shards_are_refused() -> None:
    engine = LocalEngine(n_workers=1)
    with pytest.raises(InvalidInputError, match="n_users must be a multiple of n_shards=7"):
        shards(engine, n_shards=7)
    with pytest.raises(InvalidInputError, match="min_group_size must be between 1 and n_users=300"):
        shards(engine, min_group_size=301)
    with pytest.raises(UnknownNameError, match="did you mean 'clustered'"):
        shards(engine, instance="clusterd")
    with pytest.raises(UnknownNameError, match="did you mean 'shoal'"):
        shards(engine, "shoall")
