from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import ray

from shoal.engines import LocalEngine, Steps
from shoal.engines.ray import RayEngine
from shoal.errors import InvalidInputError, LostTaskError
from shoal.model import State


@pytest.fixture(scope="module")
def engine(ray_cluster: str) -> Iterator[RayEngine]:
    yield RayEngine(address=ray_cluster)
    ray.shutdown()


@dataclass
class Deadly:
    """Where to note what was done, and the steps that kill the process: once, or every time."""

    folder: Path
    deaths: tuple[int, ...] = ()
    every_time: bool = False
    n_steps: int = 6


class Counting:
    """Add up the numbers of its steps, from 1."""

    def __init__(self, task: Deadly) -> None:
        if task.n_steps < 1:
            raise InvalidInputError(f"n_steps must be at least 1; got {task.n_steps}.")
        self.task = task
        self.steps, self.total = 0, 0

    def step(self) -> int:
        if self.steps == self.task.n_steps:
            return 0
        number = self.steps + 1
        tried = self.task.folder / str(number)
        before = tried.exists()
        with tried.open("a") as file:
            file.write(f"{os.getpid()}\n")
        if number in self.task.deaths and (self.task.every_time or not before):
            os.kill(os.getpid(), signal.SIGKILL)
        self.steps, self.total = number, self.total + number
        return 10

    def state(self) -> State:
        return {"steps": self.steps, "total": self.total}

    def restore(self, state: State) -> None:
        self.steps, self.total = state["steps"], state["total"]

    def result(self) -> int:
        return self.total


def tries(folder: Path) -> list[int]:
    """Return how often each step was tried."""
    files = sorted(folder.iterdir(), key=lambda file: int(file.name))
    return [len(file.read_text().split()) for file in files]


def folder(path: Path, name: str) -> Path:
    (path / name).mkdir()
    return path / name


def test_a_killed_actor_costs_one_step_and_a_job_that_gets_on_is_never_given_up(
    engine: RayEngine, tmp_path: Path
) -> None:
    calm, hard = folder(tmp_path, "calm"), folder(tmp_path, "hard")
    ticks: list[int] = []
    tasks = [Deadly(hard, (2, 3, 5)), Deadly(calm)]  # as many as give up a job that gets nowhere
    done = dict(engine.run(Steps(Counting), tasks, tick=ticks.append))
    assert done == {0: 21, 1: 21} == dict(LocalEngine(n_workers=1).run(Steps(Counting), [
        Deadly(folder(tmp_path, "a")), Deadly(folder(tmp_path, "b"))
    ]))  # fmt: skip
    assert tries(hard) == [1, 2, 2, 1, 2, 1]
    assert tries(calm) == [1] * 6
    assert sum(ticks) == 120


def test_a_job_that_kills_its_actor_at_the_same_step_every_time_is_given_up_and_others_go_on(
    engine: RayEngine, tmp_path: Path
) -> None:
    errors: list[LostTaskError] = []

    def lost(index: int, error: LostTaskError) -> int:
        errors.append(error)
        return -1

    tasks = [
        Deadly(folder(tmp_path, "doomed"), (2,), every_time=True),
        Deadly(folder(tmp_path, "calm")),
    ]
    assert sorted(engine.run(Steps(Counting), tasks, lost=lost)) == [(0, -1), (1, 21)]
    assert "task 0 killed its worker 3 times" in str(errors[0])


def test_an_error_in_an_actor_is_raised_here_as_it_is(engine: RayEngine, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="n_steps must be at least 1; got 0"):
        list(engine.run(Steps(Counting), [Deadly(tmp_path, n_steps=0)]))
