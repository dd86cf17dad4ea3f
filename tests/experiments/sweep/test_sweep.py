from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from shoal.engines import Engine, LocalEngine
from shoal.engines.base import MAX_DEATHS, Results, TaskBatch
from shoal.errors import InvalidInputError, ShoalError
from shoal.experiments import compare
from shoal.experiments.sweep import Configuration, SweepSummary, read_sweep, status, sweep
from shoal.experiments.sweep.folder import SweepFolder, write_result
from shoal.experiments.sweep.results import summarise
from shoal.experiments.sweep.run import defer_interrupt

SMALL = Configuration(
    policies=("elimination-lp", "random"),
    users=(12, 20),
    arms=(3,),
    min_group_size=(2,),
    horizon=(60,),
    runs=2,
)


class Here(Engine):
    """An engine of this process, which gives up the tasks that ``lose`` picks."""

    def __init__(self, lose: Callable[[Any], bool] = lambda task: False) -> None:
        self.lose = lose
        self.played: list[str] = []

    def capacity(self) -> int:
        return 1

    def _run(self, batch: TaskBatch[Any, Any]) -> Results[Any]:
        for index, task in enumerate(batch.tasks):
            if self.lose(task):
                for _ in range(MAX_DEATHS):
                    yield from ((index, reason) for reason in batch.count_death(index, "lost"))
                continue
            self.played.append(task.name)
            yield index, batch.work(task, batch.tick)


def records(folder: Path) -> pl.DataFrame:
    return read_sweep(folder).drop("seconds")


def test_a_sweep_keeps_the_records_of_a_comparison(tmp_path: Path) -> None:
    sweep(SMALL, tmp_path / "out", engine=Here())
    found = records(tmp_path / "out").filter(pl.col("n_users") == 12)
    assert _is_comparison(found, policies=SMALL.policies, n_users=12, n_arms=3, horizon=60)


def test_untuned_options_are_those_of_an_untuned_comparison(tmp_path: Path) -> None:
    sweep(replace(SMALL, users=(12,), tuned=False), tmp_path, engine=Here())
    assert status(tmp_path).done == 2
    setting = {"policies": SMALL.policies, "n_users": 12, "n_arms": 3, "horizon": 60}
    assert _is_comparison(records(tmp_path), **setting, tuned=False)


def test_a_folder_of_version_0_1_continues_untuned(tmp_path: Path) -> None:
    untuned = replace(SMALL, tuned=False)
    sweep(untuned, tmp_path, engine=Here())
    file = tmp_path / "sweep.json"
    content = json.loads(file.read_text())
    assert content.pop("tuned") is False
    file.write_text(json.dumps(content))
    (tmp_path / "cells" / f"{untuned.cells()[0].name}.parquet").unlink()
    assert status(tmp_path).done == 3
    assert sweep(SMALL, tmp_path, engine=Here()) == SweepSummary(4, 3, 0, 1, 0)
    with pytest.raises(InvalidInputError, match="tuned was false, is true"):
        sweep(replace(SMALL, tuned=True), tmp_path, engine=Here())


def test_so_it_does_where_users_are_too_many_for_all_runs_to_be_one_cell(tmp_path: Path) -> None:
    large = Configuration(
        policies=("random",), users=(400_000,), arms=(2,), min_group_size=(2,), horizon=(2,), runs=3
    )
    assert sweep(large, tmp_path, engine=Here()).done == 2
    found = records(tmp_path)
    assert _is_comparison(found, policies=["random"], n_users=400_000, n_arms=2, horizon=2)


def _is_comparison(found: pl.DataFrame, **setting: Any) -> bool:
    same = compare(
        instances=["uniform"], min_group_size=2, n_runs=found["run"].n_unique(),
        engine=LocalEngine(n_workers=1), **setting,
    )  # fmt: skip
    columns = ["instance", "policy", "run", "round", "regret"]
    return found.select(columns).equals(same.records.sort(columns[:-1]))


def test_a_cell_that_released_nothing_does_not_hide_the_smallest_group_of_the_others(
    tmp_path: Path,
) -> None:
    sweep(replace(SMALL, tuned=False), tmp_path, engine=Here())
    found = read_sweep(tmp_path).filter(pl.col("policy") == "elimination-lp")
    silent = pl.when(pl.col("run") == 0).then(0).otherwise("smallest_group")
    assert summarise(found)["smallest_group"].to_list() == [2, 2]
    assert (
        summarise(found.with_columns(smallest_group=silent))["smallest_group"].to_list() == [2] * 2
    )
    assert summarise(found.with_columns(smallest_group=0))["smallest_group"].to_list() == [0, 0]


def test_the_same_command_does_only_what_is_missing(tmp_path: Path) -> None:
    engine = Here()
    assert sweep(SMALL, tmp_path, engine=engine) == SweepSummary(4, 0, 0, 4, 0)
    first, before = engine.played.pop(), records(tmp_path)
    (tmp_path / "cells" / f"{first}.parquet").unlink()
    assert status(tmp_path).done == 3
    assert sweep(SMALL, tmp_path, engine=engine) == SweepSummary(4, 3, 0, 1, 0)
    assert engine.played.count(first) == 1
    assert len(set(engine.played)) == len(engine.played) == 4
    assert records(tmp_path).equals(before)


def test_a_changed_configuration_is_refused_with_the_difference(tmp_path: Path) -> None:
    sweep(SMALL, tmp_path / "out", engine=Here())
    changed = Configuration(**{**vars(SMALL), "users": (12, 30)})
    with pytest.raises(
        InvalidInputError, match=r"users was \[12, 20\], is \[12, 30\]\. To run the changed"
    ):
        sweep(changed, tmp_path / "out", engine=Here())
    engine = Here()
    new = tmp_path / "new"
    assert sweep(changed, tmp_path / "out", new=new, engine=engine) == SweepSummary(4, 0, 2, 2, 0)
    assert len(engine.played) == 2
    assert sorted(records(new)["n_users"].unique()) == [12, 30]
    assert sweep(changed, tmp_path / "out", new=new, engine=engine).before == 4
    with pytest.raises(InvalidInputError, match="new must be left out"):
        sweep(SMALL, tmp_path / "out", new=tmp_path / "newer", engine=Here())


def test_failed_cells_are_recorded_and_tried_again(tmp_path: Path) -> None:
    impossible = Configuration(**{**vars(SMALL), "users": (2, 12)})  # elimination needs N > C
    outcome = sweep(impossible, tmp_path, engine=Here(lose=lambda task: task.setting.n_users == 12))
    assert outcome == SweepSummary(4, 0, 0, 1, 3)
    found = status(tmp_path)
    assert (found.done, found.failed, found.waiting, found.running) == (1, 3, 0, 0)
    reasons = [why["reason"] for why in found.failures.values()]
    assert sum("n_users must be greater than" in reason for reason in reasons) == 1
    assert sum("killed its worker 3 times" in reason for reason in reasons) == 2
    assert sweep(impossible, tmp_path, engine=Here()) == SweepSummary(4, 1, 0, 2, 1)
    assert [f["cell"][:14] for f in status(tmp_path).failures.values()] == ["elimination-lp"]


def test_two_sweeps_on_one_folder_refuse_each_other(tmp_path: Path) -> None:
    sweep(SMALL, tmp_path, engine=Here())
    with SweepFolder(tmp_path).lock():
        assert status(tmp_path).at_work
        with pytest.raises(InvalidInputError, match="out must be used by one sweep at a time"):
            sweep(SMALL, tmp_path, engine=Here())
    assert not status(tmp_path).at_work


def test_what_a_killed_sweep_left_is_cleaned(tmp_path: Path) -> None:
    sweep(SMALL, tmp_path, engine=Here())
    next((tmp_path / "cells").iterdir()).unlink()
    (tmp_path / "cells" / "half.parquet.part").write_text("half")
    (tmp_path / "progress.json").write_text(json.dumps({"running": 2, "pid": 1}))
    found = status(tmp_path)
    assert (found.running, found.waiting, found.done) == (0, 1, 3)
    sweep(SMALL, tmp_path, engine=Here())
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "cells", "failed", "lock", "sweep.json",
    ]  # fmt: skip
    assert not list(tmp_path.rglob("*.part"))


def test_a_folder_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InvalidInputError, match="holds other files"):
        sweep(SMALL, tmp_path, engine=Here())
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(InvalidInputError, match="must be the folder of a sweep"):
        status(tmp_path)
    (tmp_path / "thesis.tex").rename(tmp_path / "thesis.part")
    with pytest.raises(InvalidInputError, match="holds other files"):
        sweep(SMALL, tmp_path, engine=Here())
    with pytest.raises(InvalidInputError, match=r"got '.*thesis\.part': Not a directory"):
        sweep(SMALL, tmp_path / "thesis.part", engine=Here())
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.part"]


@pytest.mark.parametrize(
    "content",
    ["[]", "{}", "nonsense", '{"options": {}, "users": [0], "policies": ["ucb"], "shoal": "1"}'],
)
def test_a_configuration_of_something_else_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "sweep.json").write_text(content)
    with pytest.raises(InvalidInputError, match="must be the folder of a sweep; got"):
        status(tmp_path)
    with pytest.raises(InvalidInputError):
        sweep(SMALL, tmp_path, engine=Here())


@pytest.mark.parametrize("name", ["run[a]", "run*", "run?"])
def test_a_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    other = Configuration(**{**vars(SMALL), "users": (14,)})
    sweep(other, tmp_path / "runa", engine=Here())
    sweep(SMALL, tmp_path / name, engine=Here())
    assert sorted(records(tmp_path / name)["n_users"].unique()) == [12, 20]


def test_an_empty_cell_is_played_again(tmp_path: Path) -> None:
    sweep(SMALL, tmp_path / "out", engine=Here())
    before = records(tmp_path / "out")
    next((tmp_path / "out" / "cells").iterdir()).write_bytes(b"")
    assert status(tmp_path / "out").done == 3
    assert records(tmp_path / "out")["cell"].n_unique() == 3
    changed = Configuration(**{**vars(SMALL), "seed": (0, 1)})
    assert sweep(changed, tmp_path / "out", new=tmp_path / "new", engine=Here()).taken == 3
    assert sweep(SMALL, tmp_path / "out", engine=Here()) == SweepSummary(4, 3, 0, 1, 0)
    assert records(tmp_path / "out").equals(before)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB, for real; only root may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or os.system(f"mount -t tmpfs -o size=64k tmpfs {disk} 2>/dev/null"):
        pytest.skip("a small file system can't be mounted here")
    yield disk
    os.system(f"umount -l {disk}")


def test_a_full_disk_leaves_nothing_half_written(tiny_disk: Path) -> None:
    many = Configuration(**{**vars(SMALL), "users": (12,), "seed": tuple(range(20))})
    with pytest.raises(ShoalError, match="must be writable; got: No space left on device"):
        sweep(many, tiny_disk / "out", engine=Here())
    assert not list(tiny_disk.rglob("*.part"))
    done = status(tiny_disk / "out").done
    assert 0 < done < 40
    assert records(tiny_disk / "out")["cell"].n_unique() == done
    os.system(f"mount -o remount,size=10m {tiny_disk}")
    assert sweep(many, tiny_disk / "out", engine=Here()).before == done
    os.system(f"mount -o remount,ro {tiny_disk}")
    with pytest.raises(InvalidInputError, match=r"folder that can be written; got .* Read-only"):
        sweep(many, tiny_disk / "out2", engine=Here())


def test_a_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    write_result(file, b"first")

    def stop(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        write_result(file, b"second")
    assert file.read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_one_interrupt_while_a_cell_is_written_is_one_and_comes_after_it() -> None:
    before, written = signal.getsignal(signal.SIGINT), list[str]()

    def write() -> None:
        with defer_interrupt():
            signal.raise_signal(signal.SIGINT)
            written.append("cell")

    with pytest.raises(KeyboardInterrupt):
        write()
    assert written == ["cell"]
    assert signal.getsignal(signal.SIGINT) is before
