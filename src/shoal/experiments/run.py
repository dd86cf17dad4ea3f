"""One policy against one environment, round by round."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from shoal.arrays import FloatArray, IntArray, LongArray
from shoal.environments import REWARDS, make_environment
from shoal.environments.stochastic import read_means
from shoal.errors import InvalidInputError
from shoal.experiments.record import Run, join_shards
from shoal.experiments.seeds import stream
from shoal.experiments.setting import (
    GIVEN,
    Setting,
    SettingOptions,
    check_arguments,
    check_shape,
    make_setting,
    named_instance,
)
from shoal.kernels import compilation_notice, kernel
from shoal.model import Plan, Problem, State, Stateful
from shoal.model.numbers import function_or_none, whole_number
from shoal.policies import find_policy, make_policy
from shoal.policies.own import PolicyLike, all_options, label
from shoal.policies.tuned import resolve_options

N_CHECKPOINTS = 200
"""Checkpoints of a run, unless the caller says otherwise."""

MAX_SILENT = 1_000
"""Rounds at most between two calls of ``progress``: a long run must hear of Ctrl-C."""

STEPS = 20
"""An engine that keeps states saves so many in a run: a kill costs at most one part."""


def simulate(
    policy: PolicyLike,
    means: ArrayLike | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    tuned: bool = True,
    n_checkpoints: int = N_CHECKPOINTS,
    progress: Callable[[int], None] | None = None,
    **setting: Unpack[SettingOptions],
) -> Run:
    """Play a policy for ``horizon`` rounds.

    Parameters
    ----------
    policy
        A name from ``shoal policies``, a subclass of ``Policy`` or anything else that makes one
        from ``(problem, rng=..., **options)``, or its ``module:Class`` (``find_policy``).
    means
        Expected rewards, (n_users, n_arms), an array or a dataframe; or (n_shards, n_users,
        n_arms) for shards that learn alone, for example replications; a policy that does not take
        shards plays them one after the other. By default they are drawn from the setting's
        instances.
    options
        Options of the policy.
    tuned
        Start from the options that ``shoal tune`` chose for the class of instances (beside means,
        ``instance`` names it), "uniform" where none were; False starts from the policy's defaults.
    n_checkpoints
        Rounds, evenly spread, at which the regret is recorded.
    progress
        Called with the rounds just played, about a hundred times in a run.
    **setting
        ``min_group_size``, ``horizon``, without means also ``n_users`` and ``n_arms``; and what
        has a default: ``rewards``, ``participation``, ``turnover``, ``seed``, ``instance`` and
        ``instance_options``, the fields of a ``Setting``, or a whole one as ``setting``. A policy
        that is not anonymous plays with a ``min_group_size`` of 1.

    Examples
    --------
    >>> from shoal.instances import uniform
    >>> means = uniform(50, 5, rng=np.random.default_rng(0))
    >>> run = simulate("explore-then-commit", means, min_group_size=4, horizon=10_000)
    >>> run.options, run.rounds[-1], run.smallest_group
    ({'exploration': 0.18}, np.int64(10000), 4)
    """
    check_arguments(simulate, setting)
    if means is None:
        whole = make_setting(setting)
        stack = whole.draw()[None]
    else:
        stack = _stack(means)
        _, n_users, n_arms = stack.shape
        check_shape(setting, n_users, n_arms)
        instance = named_instance(setting) or GIVEN
        whole = make_setting(setting, n_users=n_users, n_arms=n_arms, instance=instance)
    chosen = resolve_options(policy, options, instance=whole.instance, tuned=tuned)
    with compilation_notice():
        if len(stack) == 1 or find_policy(policy).takes_shards:
            return make_play(policy, stack, whole, chosen, n_checkpoints).finish(progress)
        return _one_by_one(policy, stack, whole, chosen, n_checkpoints, progress)


def _one_by_one(
    policy: PolicyLike,
    stack: FloatArray,
    setting: Setting,
    options: Mapping[str, Any],
    n_checkpoints: int,
    progress: Callable[[int], None] | None,
) -> Run:
    """Play the shards of a policy that takes none as problems of their own."""
    setting.check_one_participation()  # one a user would be split over the runs
    runs = []
    for number, shard in enumerate(stack):
        alone = replace(setting, seed=int(stream(setting.seed, "shard", number).integers(2**32)))
        play = make_play(policy, shard[None], alone, options, n_checkpoints)
        runs.append(play.finish(progress))
    return join_shards(runs)


def _stack(means: ArrayLike) -> FloatArray:
    """Return means of any number of shards, (n_shards, n_users, n_arms)."""
    stack = read_means(means)
    if stack.ndim not in (2, 3) or stack.dtype.kind not in "fiub":
        raise InvalidInputError(
            "means must be numbers of shape (n_users, n_arms) or (n_shards, n_users, n_arms); "
            f"got shape {stack.shape} of {stack.dtype}."
        )
    return stack[None] if stack.ndim == 2 else stack


class Play(Stateful):
    """A run in progress, a ``Job``: it can be saved and restored, bit for bit.

    The means, (n_shards, n_users, n_arms), are not part of the state: restore it into a ``Play``
    made with the same arguments. The setting's seed is that of the policy and of the rewards.
    """

    changing: ClassVar[tuple[str, ...]] = ("learner", "environment", "meter", "played", "seconds")

    def __init__(
        self,
        policy: PolicyLike,
        means: FloatArray,
        setting: Setting,
        options: Mapping[str, Any],
        n_checkpoints: int = N_CHECKPOINTS,
    ) -> None:
        n_shards, shard_size, n_arms = means.shape
        entry = find_policy(policy)
        problem = Problem(
            n_users=n_shards * shard_size,
            n_arms=n_arms,
            min_group_size=setting.min_group_size,
            horizon=setting.horizon,
            n_shards=n_shards,
            bounded=REWARDS[setting.rewards].bounded,
        )
        if not entry.anonymous:
            problem = replace(problem, min_group_size=1)
        flat = np.ascontiguousarray(means.reshape(-1, n_arms), dtype=np.float64)
        self.environment = make_environment(
            setting.rewards,
            problem,
            flat,
            rng=stream(setting.seed, "rewards"),
            participation=setting.participation,
        )
        self.options = all_options(policy, options)
        known = {"arm": means.sum(axis=1).argmax(axis=1)} if entry.hindsight else {}
        rng = stream(setting.seed, "policy")
        self.learner = make_policy(policy, problem, rng=rng, options={**known, **options})
        self.policy = label(policy)
        self.horizon = setting.horizon
        n_checkpoints = whole_number("n_checkpoints", n_checkpoints)
        self.checkpoints = spread_checkpoints(self.horizon, n_checkpoints)
        self.meter = RegretMeter(flat, problem, self.checkpoints)
        self.played = 0
        self.seconds = 0.0
        self.begin(setting)

    def begin(self, setting: Setting) -> None:
        """Prepare what happens after each plan: by default nothing."""

    def advance(self, rounds: int) -> int:
        """Play that many rounds, and more where a plan is repeated for longer; return how many."""
        learner, environment, meter = self.learner, self.environment, self.meter
        ask, play, tell, add = learner.ask, environment.play, learner.tell, meter.add
        after = self.after_plan
        before = self.played
        end = min(before + rounds, self.horizon)
        start = perf_counter()
        while self.played < end:
            plan = ask()
            tell(play(plan))
            add(plan)
            after(plan.repeats)
            self.played += plan.repeats
        self.seconds += perf_counter() - start
        return self.played - before

    def after_plan(self, rounds: int) -> None:
        """Do what happens after a plan's rounds: by default nothing."""

    def step(self) -> int:
        """Play one part of the rounds; return how many were played."""
        return self.advance(max(1, self.horizon // STEPS))

    def finish(self, progress: Callable[[int], None] | None = None) -> Run:
        """Play all rounds that are left, and return the record."""
        function_or_none("progress", progress, "rounds_played")
        while rounds := self.advance(max(1, min(self.horizon // 100, MAX_SILENT))):
            if progress:
                progress(rounds)
        return self.result()

    def result(self) -> Run:
        """Return the record so far."""
        return Run(
            policy=self.policy,
            options=self.options,
            problem=self.learner.problem,
            rounds=self.checkpoints,
            curves=self.meter.curves,
            smallest_group=self.environment.smallest_group,
            withheld=self.environment.withheld,
            seconds=self.seconds,
        )


class ChangingPlay(Play):
    """A run in which tastes move and the population stays: users exchange their means.

    In every round each user is chosen with the setting's ``turnover``; those chosen exchange their
    means among themselves, within their shard. Over n rounds a user's means keep a correlation of
    (1 - turnover)^n, and the best arm and full knowledge earn what they did.
    """

    changing: ClassVar[tuple[str, ...]] = (*Play.changing, "owners", "rng")

    def begin(self, setting: Setting) -> None:
        """Let everyone have their own means."""
        self.turnover = setting.turnover
        self.rng = stream(setting.seed, "turnover")
        self._first_means = self.environment.means
        self.owners = np.arange(len(self._first_means))  # whose first means each user has

    def after_plan(self, rounds: int) -> None:
        """Let as many users change as do in so many rounds."""
        chance = 1.0 - (1.0 - self.turnover) ** rounds
        chosen = np.flatnonzero(self.rng.random(len(self.owners)) < chance)
        shards = chosen // self.learner.problem.shard_size
        others = chosen[np.lexsort((self.rng.random(len(chosen)), shards))]
        self.owners[chosen] = self.owners[others]
        self._apply()

    def restore(self, state: State) -> None:
        """Continue from ``state``, with the means that users had then."""
        super().restore(state)
        self._apply()

    def _apply(self) -> None:
        means = self._first_means[self.owners]
        self.environment.means = means
        self.meter.set_means(means)


def make_play(
    policy: PolicyLike,
    means: FloatArray,
    setting: Setting,
    options: Mapping[str, Any],
    n_checkpoints: int = N_CHECKPOINTS,
) -> Play:
    """Return a run of people who change, if the setting says so."""
    kind = ChangingPlay if setting.turnover else Play
    return kind(policy, means, setting, options, n_checkpoints)


class RegretMeter(Stateful):
    """Adds up pseudo-regret per shard and records it at checkpoints, increasing up to the horizon.

    A plan that is repeated costs the same in each of its rounds, so that its curve is a straight
    line and the value at every checkpoint is exact.
    """

    changing = ("_so_far", "_per_round", "_rounds", "_ahead", "curves")

    def __init__(self, means: FloatArray, problem: Problem, checkpoints: LongArray) -> None:
        self.set_means(means)
        self._so_far = np.zeros(problem.n_shards)
        self._per_round = np.zeros(problem.n_shards)
        self._rounds = 0
        self._ahead = checkpoints.tolist()[::-1]  # the next checkpoint is the last
        self.curves: FloatArray = np.zeros((problem.n_shards, len(checkpoints)))

    def set_means(self, means: FloatArray) -> None:
        """Measure against these means from now on."""
        self._gaps = np.ascontiguousarray(means.max(axis=1, keepdims=True) - means)

    def add(self, plan: Plan) -> None:
        """Count the rounds of ``plan``."""
        _add_regret(self._gaps, plan.arms, plan.repeats, self._per_round, self._so_far)
        self._rounds += plan.repeats
        while self._ahead and self._ahead[-1] <= self._rounds:
            column = self.curves.shape[1] - len(self._ahead)
            rounds_ago = self._rounds - self._ahead.pop()
            self.curves[:, column] = self._so_far - rounds_ago * self._per_round


@kernel()
def _add_regret(
    gaps: FloatArray, arms: IntArray, repeats: int, per_round: FloatArray, so_far: FloatArray
) -> None:
    """Set each shard's regret of a round, and add ``repeats`` times it to that so far."""
    shard_size = len(arms) // len(so_far)
    for shard in range(len(so_far)):
        cost = 0.0
        for user in range(shard * shard_size, (shard + 1) * shard_size):
            cost += gaps[user, arms[user]]
        per_round[shard] = cost
        so_far[shard] += repeats * cost


def spread_checkpoints(horizon: int, n_checkpoints: int) -> LongArray:
    """Return at most ``n_checkpoints`` evenly spread rounds, the last one the horizon.

    >>> spread_checkpoints(10, 4).tolist()
    [3, 5, 8, 10]
    """
    even = np.linspace(0, horizon, min(horizon, n_checkpoints) + 1)[1:]
    return np.unique(np.ceil(even - 1e-9).astype(np.int64))
