from __future__ import annotations

import os

import pytest

from shoal.engines import LocalEngine, Tick
from shoal.errors import InvalidInputError, ShoalError, UnknownNameError


def square(task: int, tick: Tick) -> tuple[int, int]:
    if task < 0:
        raise InvalidInputError(f"task must be at least 0; got {task}.")
    tick(task)
    return task * task, os.getpid()


@pytest.mark.parametrize("n_workers", [1, 2])
def test_every_task_is_done_once_whatever_the_number_of_workers(n_workers: int) -> None:
    ticks: list[int] = []
    engine = LocalEngine(n_workers=n_workers)
    done = dict(engine.run(square, range(6), tick=ticks.append))
    assert {index: result[0] for index, result in done.items()} == {i: i * i for i in range(6)}
    assert sorted(ticks) == list(range(6))
    elsewhere = {result[1] for result in done.values()} - {os.getpid()}
    assert bool(elsewhere) == (n_workers > 1)


def test_an_error_in_a_worker_is_raised_here_as_it_is() -> None:
    with pytest.raises(InvalidInputError, match="task must be at least 0; got -1"):
        list(LocalEngine(n_workers=2).run(square, [3, -1, 2]))


def test_workers_must_be_positive() -> None:
    with pytest.raises(InvalidInputError, match="workers must be a whole number of at least 1"):
        LocalEngine(n_workers=0)


def die(task: int, tick: Tick) -> int:
    os._exit(3)


def test_a_worker_that_dies_is_told_in_one_line() -> None:
    with pytest.raises(ShoalError, match="a worker process died"):
        list(LocalEngine(n_workers=2).run(die, [1, 2]))


def unknown(task: int, tick: Tick) -> int:
    raise UnknownNameError("policy", "ucbb", ["ucb"])


def test_an_unknown_name_in_a_worker_keeps_its_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'ucb'"):
        list(LocalEngine(n_workers=2).run(unknown, [1, 2]))
