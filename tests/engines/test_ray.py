from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import ray
from tests.engines.test_local import fragile, square, until
from tests.experiments.sweep.test_sweep import records

from shoal.engines import Engine, LocalEngine, Tick, make_engine
from shoal.engines.base import Result, Results, Task, TaskBatch
from shoal.engines.cluster import connect
from shoal.engines.ray import RayEngine
from shoal.errors import InvalidInputError, LostTaskError, ShoalError
from shoal.experiments.sweep import Configuration, sweep


@pytest.fixture(scope="module")
def engine(ray_cluster: str) -> Iterator[RayEngine]:
    yield RayEngine(address=ray_cluster)
    ray.shutdown()


class Deadly(Engine):
    """An engine whose workers are killed in the middle of each task, the first time."""

    def __init__(self, engine: RayEngine, folder: Path) -> None:
        self.engine = engine
        self.folder = folder

    def capacity(self) -> int:
        return self.engine.capacity()

    def _run(self, batch: TaskBatch[Task, Result]) -> Results[Result]:
        batch.work = partial(die_once, self.folder, batch.work)
        return self.engine._run(batch)


def die_once(folder: Path, work: Callable[[Task, Tick], Result], task: Task, tick: Tick) -> Result:
    mark = folder / hashlib.sha256(str(task).encode()).hexdigest()

    def deadly(done: int) -> None:
        tick(done)
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    return work(task, deadly)


def test_records_are_the_same_bytes_although_workers_are_killed_in_mid_run(
    engine: RayEngine, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    configuration = Configuration(
        policies=("elimination-lp",),
        instances=("linear",),
        users=(30,),
        arms=(3,),
        horizon=(200,),
        participation=(0.9,),
        runs=25,
    )
    marks = tmp_path / "marks"
    marks.mkdir()
    done: list[int] = []
    outcome = sweep(
        configuration,
        tmp_path / "cluster",
        engine=Deadly(engine, marks),
        progress=lambda finished, amount, total: done.append(total - amount),
    )
    assert (outcome.done, outcome.failed) == (2, 0)
    assert len(list(marks.iterdir())) == 2
    assert done[-1] == 0
    sweep(configuration, tmp_path / "here", engine=LocalEngine(n_workers=1))
    assert records(tmp_path / "cluster").equals(records(tmp_path / "here"))
    assert capfd.readouterr().out == ""


def meet(task: tuple[Path, int], tick: Tick) -> str:
    """Wait for the other task, so that both must run at once, each on a core of its own."""
    folder, number = task
    (folder / str(number)).touch()
    tick(3)
    until(lambda: (folder / str(1 - number)).exists())
    tick(4)
    return str(ray.get_runtime_context().get_node_id())


def test_work_is_spread_over_both_nodes_and_ticks_come_back(
    engine: RayEngine, tmp_path: Path
) -> None:
    ticks: list[int] = []
    nodes = dict(engine.run(meet, [(tmp_path, 0), (tmp_path, 1)], tick=ticks.append))
    assert sorted(nodes) == [0, 1]
    assert nodes[0] != nodes[1]
    assert sum(ticks) == 2 * 7


def test_a_task_that_kills_its_worker_every_time_is_given_up_and_the_others_go_on(
    engine: RayEngine, tmp_path: Path
) -> None:
    errors: list[LostTaskError] = []

    def lost(index: int, error: LostTaskError) -> int:
        errors.append(error)
        return -1

    done = list(engine.run(fragile, [(tmp_path, n) for n in (1, 2)], lost=lost))
    assert sorted(done) == [(0, 1), (1, -1)]
    assert "task 1 killed its worker 3 times" in str(errors[0])


def test_an_error_on_a_node_is_raised_here_as_it_is(engine: RayEngine) -> None:
    with pytest.raises(InvalidInputError, match="task must be at least 0; got -1"):
        list(engine.run(square, [3, -1, 2]))


def test_the_command_line_joins_a_cluster_and_says_nothing_of_it(ray_cluster: str) -> None:
    arguments = ["compare", "--policies", "random", "--runs", "1", "--horizon", "10"]
    done = subprocess.run(
        [sys.executable, "-m", "shoal.cli", *arguments, "--engine=ray", f"--address={ray_cluster}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "random" in done.stdout
    assert "ray" not in done.stderr.lower()


def test_a_wrong_token_is_refused(ray_cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ray.shutdown()
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    with pytest.raises(ShoalError, match="got a refusal of the token"):
        connect(address=ray_cluster)


def test_the_token_can_not_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(InvalidInputError, match="RAY_AUTH_MODE must be token, or not set; got 'd"):
        connect(address="10.0.0.1:6379")


def test_an_unreachable_cluster_is_refused_with_what_to_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ray.shutdown()
    monkeypatch.setattr("shoal.engines.cluster.ANSWER_SECONDS", 2.0)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # takes connections, and is no cluster
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
        with pytest.raises(ShoalError, match="must answer within 2 s; got no answer") as refusal:
            list(RayEngine(address=address).run(square, [1]))
    for word in ("address", "token", "firewall", "version"):
        assert word in str(refusal.value)


@pytest.mark.parametrize(
    ("address", "problem"),
    [("127.0.0.1:1", "Connection refused"), ("nowhere.invalid:1", "[Nn]ame")],
)
def test_nobody_at_the_address_is_noticed_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, address: str, problem: str
) -> None:
    ray.shutdown()
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    grid = Configuration(policies=("random",), horizon=(10,), runs=1)
    with pytest.raises(ShoalError, match=f"must answer within 10 s; got no answer: .*{problem}"):
        sweep(grid, tmp_path / "sweep", engine=RayEngine(address=address))
    assert not (tmp_path / "sweep").exists()


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
    with pytest.raises(InvalidInputError, match="address must be left out of the engine"):
        make_engine("local", address="10.0.0.1:6379")
