"""A population larger than a machine's memory, played shard by shard.

Regret is a sum over users, and shards learn alone, so that no two of them need to be in memory
together. A shard is a cell that draws users of its own around tastes that the whole population
shares; its record depends on the seed and its number alone. On a Ray cluster each shard lives in
an actor that keeps its state, and continues after a kill as if nothing had happened.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Any, Unpack

from shoal.engines import Engine, Steps
from shoal.experiments.cells import Cell, choose_engine
from shoal.experiments.record import Run, join_shards
from shoal.experiments.run import N_CHECKPOINTS
from shoal.experiments.setting import (
    SettingOptions,
    check_arguments,
    check_instance,
    make_setting,
)
from shoal.kernels import compilation_notice
from shoal.model import Problem
from shoal.model.numbers import function_or_none
from shoal.policies.own import PolicyLike
from shoal.policies.tuned import resolve_options


def simulate_shards(
    policy: PolicyLike,
    *,
    n_shards: int,
    options: Mapping[str, Any] | None = None,
    tuned: bool = True,
    n_checkpoints: int = N_CHECKPOINTS,
    engine: Engine | None = None,
    progress: Callable[[int], None] | None = None,
    **setting: Unpack[SettingOptions],
) -> Run:
    """Play a policy on a population of any size, a few shards at a time.

    Parameters
    ----------
    n_shards
        Shards of equal size. A shard of 10,000 to 100,000 users learns what people have in common
        as well as all of them would.
    options, tuned, n_checkpoints
        As in ``simulate``.
    engine
        Where the shards run; by default a process per core.
    progress
        Called with the rounds just played, counted over all shards; below 0 where a worker died
        and they are played again.
    **setting
        ``n_users`` over all shards, ``n_arms``, ``min_group_size``, ``horizon`` and the other
        fields of a ``Setting``, or a whole one as ``setting``, with its instances. Otherwise they
        are "clustered" by default: users are drawn shard by shard, tastes or arms are the same for
        all.

    Examples
    --------
    >>> from shoal.engines import LocalEngine
    >>> run = simulate_shards("shoal", n_users=1_200, n_arms=3, n_shards=4, min_group_size=5,
    ...                       horizon=20, engine=LocalEngine(n_workers=1))
    >>> run.curves.shape, run.smallest_group
    ((4, 20), 5)
    """
    check_arguments(simulate_shards, setting)
    function_or_none("progress", progress, "rounds_played")
    if "setting" not in setting:
        setting.setdefault("instance", "clustered")
    whole = make_setting(setting)
    check_instance(whole.instance)
    problem = Problem(whole.n_users, whole.n_arms, whole.min_group_size, whole.horizon, n_shards)
    chosen = resolve_options(policy, options, instance=whole.instance, tuned=tuned)
    shard = replace(whole, n_users=problem.shard_size)
    cells = [
        Cell(shard, policy, chosen, number, purpose="shard", n_checkpoints=n_checkpoints)
        for number in range(problem.n_shards)
    ]
    results = choose_engine(cells, engine).run(Steps(Cell.start), cells, tick=progress)
    with compilation_notice():
        return join_shards([run for _, run in sorted(results, key=itemgetter(0))])
