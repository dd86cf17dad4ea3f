from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
import ray
from tests.engines.test_local import fragile, square, until

from shoal.engines import LocalEngine, Tick, make_engine
from shoal.engines.ray import RayEngine
from shoal.errors import InvalidInputError, LostTaskError, ShoalError
from shoal.simulation import Comparison, compare


@pytest.fixture(scope="module")
def engine(ray_cluster: str) -> Iterator[RayEngine]:
    yield RayEngine(address=ray_cluster)
    ray.shutdown()


def small(engine: LocalEngine | RayEngine) -> Comparison:
    return compare(
        instances=["linear"],
        policies=["elimination-lp", "ucb", "random"],
        n_users=30,
        n_arms=3,
        horizon=200,
        n_runs=25,
        participation=0.9,
        engine=engine,
    )


def test_records_are_the_same_bytes_on_every_engine(engine: RayEngine) -> None:
    ours, theirs = small(LocalEngine(n_workers=1)), small(engine)
    assert ours.records.equals(theirs.records)
    assert ours.config == theirs.config


def test_work_is_spread_over_both_nodes_and_ticks_come_back(engine: RayEngine) -> None:
    ticks: list[int] = []
    done = dict(engine.run(square, range(40), tick=ticks.append))
    assert {index: result[0] for index, result in done.items()} == {i: i * i for i in range(40)}
    assert sum(ticks) == sum(range(40))
    assert len({result[1] for result in done.values()}) >= 2


def slow(task: Path, tick: Tick) -> str:
    """Wait to be killed the first time; be quick the second."""
    tick(5)
    if not task.exists():
        task.write_text(str(os.getpid()))
        time.sleep(600)
    return task.name


def kill_when_named(file: Path) -> None:
    until(lambda: file.exists() and bool(file.read_text()))
    os.kill(int(file.read_text()), signal.SIGKILL)


def test_a_worker_killed_in_mid_run_costs_only_its_task(engine: RayEngine, tmp_path: Path) -> None:
    ticks: list[int] = []
    run = engine.run(slow, [tmp_path / "victim"], tick=ticks.append)
    killer = Thread(target=kill_when_named, args=(tmp_path / "victim",))
    killer.start()
    assert list(run) == [(0, "victim")]
    killer.join()
    assert sum(ticks) == 5


def test_a_task_that_kills_its_worker_every_time_is_given_up_and_the_others_go_on(
    engine: RayEngine, tmp_path: Path
) -> None:
    errors: list[LostTaskError] = []

    def lost(index: int, error: LostTaskError) -> int:
        errors.append(error)
        return -1

    done = list(engine.run(fragile, [(tmp_path, n) for n in (1, 2, 4)], lost=lost))
    assert sorted(done) == [(0, 1), (1, -1), (2, 4)]
    assert "task 1 killed its worker 3 times" in str(errors[0])


def test_an_error_on_a_node_is_raised_here_as_it_is(engine: RayEngine) -> None:
    with pytest.raises(InvalidInputError, match="task must be at least 0; got -1"):
        list(engine.run(square, [3, -1, 2]))


def join(address: str, **environment: str) -> subprocess.CompletedProcess[str]:
    arguments = ["compare", "--policies", "random", "--runs", "1", "--horizon", "10"]
    return subprocess.run(
        [sys.executable, "-m", "shoal.cli", *arguments, "--engine", "ray", "--address", address],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_command_line_joins_a_cluster_and_says_nothing_of_it(ray_cluster: str) -> None:
    done = join(ray_cluster)
    assert done.returncode == 0, done.stderr
    assert "random" in done.stdout
    assert "ray" not in done.stderr.lower()


def test_a_wrong_token_is_refused_in_one_line(ray_cluster: str) -> None:
    done = join(ray_cluster, RAY_AUTH_TOKEN="0" * 64)
    assert done.returncode == 2
    assert "got a refusal of the token" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_token_can_not_be_switched_off(ray_cluster: str) -> None:
    done = join(ray_cluster, RAY_AUTH_MODE="disabled")
    assert "RAY_AUTH_MODE must be token, or not set; got 'disabled'" in done.stderr


def test_an_unreachable_cluster_is_refused_with_what_to_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ray.shutdown()
    monkeypatch.setattr("shoal.engines.cluster.PATIENCE", 2.0)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    with pytest.raises(ShoalError, match="must answer within 2 s; got no answer") as refusal:
        list(RayEngine(address="127.0.0.1:1").run(square, [1]))
    for word in ("address", "token", "firewall", "version"):
        assert word in str(refusal.value)


def test_joining_without_a_token_says_where_it_must_be(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ray.shutdown()
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ShoalError, match="must be in RAY_AUTH_TOKEN"):
        list(RayEngine(address="127.0.0.1:1").run(square, [1]))


@pytest.mark.parametrize("address", ["nowhere", "ray://10.0.0.1:10001", ":6379", "host:"])
def test_an_address_is_a_host_and_a_port(address: str) -> None:
    with pytest.raises(InvalidInputError, match="address must be HOST:PORT"):
        RayEngine(address=address)


def test_an_address_without_ray_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="address must be left out without --engine ray"):
        make_engine("local", address="10.0.0.1:6379")
