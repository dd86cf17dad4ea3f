from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from shoal.engines import LocalEngine, Tick
from shoal.engines.local import _Worker
from shoal.errors import InvalidInputError, LostTaskError, ShoalError, UnknownNameError
from shoal.kernels import kernel, on_compile

ROOT = Path(__file__).parents[2]


def until(condition: Callable[[], bool], *, patience: float = 60.0) -> None:
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def square(task: int, tick: Tick) -> tuple[int, int]:
    if task < 0:
        raise InvalidInputError(f"task must be at least 0; got {task}.")
    tick(task)
    return task * task, os.getpid()


def run_in_one_worker(work: Callable[[int, Tick], object], tasks: list[int]) -> None:
    """Run tasks in a process of their own, as ``lost`` asks for, and in no second one."""
    assert list(LocalEngine(n_workers=1).run(work, tasks, lost=lambda index, error: None))


@pytest.mark.parametrize("n_workers", [1, 2])
def test_every_task_is_done_once_whatever_the_number_of_workers(n_workers: int) -> None:
    ticks: list[int] = []
    engine = LocalEngine(n_workers=n_workers)
    done = dict(engine.run(square, range(6), tick=ticks.append))
    assert {index: result[0] for index, result in done.items()} == {i: i * i for i in range(6)}
    assert sum(ticks) == sum(range(6))
    elsewhere = {result[1] for result in done.values()} - {os.getpid()}
    assert bool(elsewhere) == (n_workers > 1)


def compile_one(task: int, tick: Tick) -> int:
    """Compile a function that no cache holds: it has no file."""
    namespace: dict[str, Callable[[int], int]] = {}
    exec("def twice(x):\n    return 2 * x", namespace)
    return kernel()(namespace["twice"])(task)


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 2])
def test_who_watches_is_told_of_compilation_here_or_in_workers(n_workers: int) -> None:
    announced: list[int] = []
    engine = LocalEngine(n_workers=n_workers)
    with on_compile(lambda: announced.append(1)):
        done = dict(engine.run(compile_one, [2, 3]))
    assert done == {0: 4, 1: 6}
    n_announced = len(announced)
    assert n_announced >= 2
    compile_one(1, lambda done: None)  # nobody watches any more
    assert len(announced) == n_announced


def blocks_ctrl_c(task: int, tick: Tick) -> bool:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])


FIRST_WORKER = """
from shoal.engines import LocalEngine
from tests.engines.test_local import blocks_ctrl_c

print(*LocalEngine(n_workers=1).run(blocks_ctrl_c, [0], lost=lambda index, error: None))
"""


def test_ctrl_c_reaches_no_worker_not_even_the_first_of_a_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_WORKER], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "(0, True)\n"


def test_an_error_in_a_worker_is_raised_here_as_it_is() -> None:
    with pytest.raises(InvalidInputError, match="task must be at least 0; got -1"):
        run_in_one_worker(square, [3, -1, 2])


def test_workers_must_be_positive() -> None:
    with pytest.raises(InvalidInputError, match="workers must be a whole number of at least 1"):
        LocalEngine(n_workers=0)


def die(task: int, tick: Tick) -> int:
    os._exit(3)


@pytest.mark.slow
def test_a_task_that_kills_its_worker_every_time_is_named() -> None:
    with pytest.raises(LostTaskError, match=r"task \d killed its worker 3 times \(exit code 3\)"):
        list(LocalEngine(n_workers=2).run(die, [1, 2]))


def many(task: int, tick: Tick) -> int:
    for _ in range(10_000):
        tick(1)
    return task


@pytest.mark.slow
def test_workers_tell_how_far_they_are_only_now_and_then() -> None:
    ticks: list[int] = []
    list(LocalEngine(n_workers=2).run(many, range(4), tick=ticks.append))
    assert sum(ticks) == 40_000
    assert len(ticks) < 400


def fragile(task: tuple[Path, int], tick: Tick) -> int:
    folder, number = task
    tick(1)
    with (folder / f"{number}").open("a") as tries:
        tries.write("x")
    if number == 2 or (number == 4 and (folder / "4").read_text() == "x"):
        os.kill(os.getpid(), signal.SIGKILL)
    tick(1)
    return number


@pytest.mark.slow
def test_a_killed_worker_costs_only_its_unfinished_task(tmp_path: Path) -> None:
    ticks: list[int] = []
    errors: list[LostTaskError] = []
    tasks = [(tmp_path, number) for number in range(7)]

    def lost(index: int, error: LostTaskError) -> int:
        errors.append(error)
        return -1

    engine = LocalEngine(n_workers=2)
    done = list(engine.run(fragile, tasks, tick=ticks.append, lost=lost))
    assert sorted(done) == [(0, 0), (1, 1), (2, -1), (3, 3), (4, 4), (5, 5), (6, 6)]
    tries = {path.name: len(path.read_text()) for path in tmp_path.iterdir()}
    assert tries == {"0": 1, "1": 1, "2": 3, "3": 1, "4": 2, "5": 1, "6": 1}
    assert sum(ticks) == 2 * 6
    assert "signal 9" in str(errors[0])
    assert f"{tasks[2]}" in str(errors[0])


def linger(task: Path, tick: Tick) -> None:
    task.write_text(str(os.getpid()))
    while True:
        signal.pause()


@pytest.mark.slow
def test_workers_end_with_the_engine_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\n"
        "from shoal.engines import LocalEngine\n"
        "from tests.engines.test_local import linger\n"
        "if __name__ == '__main__':\n"
        f"    list(LocalEngine(n_workers=2).run(linger, [Path('{tmp_path}/{{i}}'.format(i=i))"
        " for i in range(2)]))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, str(script)], env=environment) as engine:
        files = [tmp_path / str(i) for i in range(2)]
        until(lambda: all(file.exists() and file.read_text() for file in files))
        pids = [int(file.read_text()) for file in files]
        engine.kill()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def unsendable(task: int, tick: Tick) -> object:
    return lambda: task


def test_a_result_that_can_not_be_sent_is_told_in_one_line() -> None:
    with pytest.raises(ShoalError, match="a worker's result must be sendable"):
        run_in_one_worker(unsendable, [1, 2])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "in_one_process"),
    [("n_workers=2).run(add, [1, 2])", True), ("n_workers=1).run(add, [1], lost=add)", False)],
    ids=["tasks", "tasks that need a worker"],
)
def test_a_script_without_a_main_guard_is_told_so(
    call: str, in_one_process: bool, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from operator import add\n"
        "from shoal.engines import LocalEngine\n"
        f"list(LocalEngine({call})\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=240
    )
    assert "must start workers under `if __name__ == '__main__':`" in done.stderr
    assert ("or run with LocalEngine(n_workers=1)" in done.stderr) == in_one_process
    assert done.stderr.count("Traceback") == 1


def unknown(task: int, tick: Tick) -> int:
    raise UnknownNameError("policy", "ucbb", ["ucb"])


def test_an_unknown_name_in_a_worker_keeps_its_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'ucb'"):
        run_in_one_worker(unknown, [1, 2])


@pytest.mark.slow
def test_a_second_interrupt_does_not_keep_workers_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, interrupts, end = list[object](), [KeyboardInterrupt()], _Worker.end

    def hit(worker: _Worker) -> None:
        if interrupts:
            raise interrupts.pop()
        end(worker)
        ended.append(worker)

    monkeypatch.setattr(_Worker, "end", hit)
    results = LocalEngine(n_workers=2).run(square, [1, 2, 3, 4])
    next(results)
    results.close()
    assert len(ended) == 2


@pytest.mark.parametrize(("guarded", "sendable"), [(True, False), (False, True)])
def test_a_class_under_a_main_guard_is_not_sent_to_workers(
    guarded: bool, sendable: bool, tmp_path: Path
) -> None:
    lines = ["from shoal.policies import Policy", "from shoal.policies.own import is_sendable"]
    lines += ["if __name__ == '__main__':"] * guarded
    lines += [" " * 4 * guarded + line for line in ("class Mine(Policy): pass", "mine = Mine")]
    script = tmp_path / "script.py"
    script.write_text("\n".join([*lines, "print(is_sendable(mine))"]))
    assert subprocess.check_output([sys.executable, script], text=True).strip() == str(sendable)
