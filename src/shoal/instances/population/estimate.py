"""The population behind a log: what people are like, and what the log can't tell."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from shoal.arrays import FloatArray
from shoal.errors import InvalidInputError
from shoal.instances.population.clusters import Clusters, compare_shapes, draw_clusters
from shoal.instances.population.held_out import HeldOut, check_held_out
from shoal.instances.population.moments import Moments, estimate_moments
from shoal.instances.population.pairs import PairTotals
from shoal.instances.population.posterior import CovariancePosterior, fit_posterior
from shoal.instances.population.power import MAX_TIMES, rows_to_show
from shoal.instances.population.worlds import World, draw_shape, posterior_means
from shoal.model.numbers import generator, whole_number
from shoal.model.plurals import count
from shoal.model.scale import UNCHANGED, Scale
from shoal.threads import one_thread

N_TASTE_WORLDS, MIN_WORLDS = 48, 16
"""Populations to draw: with tastes, and of each model of tastes that is left."""

ALIKE = [(False, 1.0, 32)]
"""Users without tastes are in no clusters, for certain; populations to draw."""

MIN_SHARE, EXCLUDED = 0.05, 0.01
"""Probabilities below which a rank, or a shape of tastes, is left out."""

OUTER, OUTERMOST = 0.026, 0.005
"""Probability of the outermost stratum of worlds, and the quantile at which its world lies."""

CHUNK_OF_USERS = 50_000
MAX_ESTIMATED_USERS = 200_000
"""Users of a log that are fitted; of more, a random sample."""

DETECTABLE = 0.001
"""A least gain over the best arm above this is more than rounding: users differ."""

WORTHWHILE = 0.05
"""A gain over the best arm that a log should be able to show."""


class Range(NamedTuple):
    """A median with a 95 % interval."""

    low: float
    median: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class Population:
    """A posterior over populations, from a log.

    Attributes
    ----------
    arm_means
        Mean reward of each arm over users, (n_arms,).
    arm_errors
        Their standard errors, (n_arms,).
    covariance
        Posterior mean of the covariance of users' means, (n_arms, n_arms).
    noise
        Variance of a reward around its user's mean, (n_arms,).
    taste
        Probability that users differ in which arms suit them; 1/2 before the log.
    rank
        The most probable rank of the covariance of tastes, if there are any.
    worlds
        Populations that the log allows, each with its probability.
    moments
        What was estimated first: means and covariances of users' rewards.
    pairs
        What that was estimated from: the rows of at most ``MAX_ESTIMATED_USERS`` users.
    held_out
        How well tastes predict rows that were not used, or None without repeated rows.
    doubts
        Why it may be wrong whatever its intervals say, a sentence each.
    rewards
        The kind of rewards to play: bernoulli if all rows have 0 or 1, else bounded.
    scale
        What rewards of 0 and 1 stand for in the log.
    """

    arm_means: FloatArray
    arm_errors: FloatArray
    covariance: FloatArray
    noise: FloatArray
    taste: float
    rank: int
    worlds: tuple[World, ...]
    n_users: int
    n_rows: int
    moments: Moments
    pairs: PairTotals
    held_out: HeldOut | None = None
    doubts: tuple[str, ...] = ()
    rewards: str = "bernoulli"
    scale: Scale = UNCHANGED

    def __repr__(self) -> str:
        return (
            f"Population(n_users={self.n_users}, n_arms={self.n_arms}, n_rows={self.n_rows}, "
            f"taste={self.taste:.3g})"
        )

    @property
    def n_arms(self) -> int:
        """Arms of the log."""
        return len(self.arm_means)

    @property
    def best_arm(self) -> float:
        """Mean reward of the best single arm."""
        return float(self.arm_means.max())

    @property
    def gain(self) -> Range:
        """What full knowledge would earn above the best single arm, per user and round."""
        return self.range_of(np.array([world.gain for world in self.worlds]))

    def range_of(self, values: FloatArray) -> Range:
        """Return the median and interval of a quantity that has one value in each world.

        The upper end is the highest of those of all models: where a log can't tell, "no taste" is
        probable for being simple, but its opposite is not excluded.
        """
        probabilities = np.array([world.probability for world in self.worlds])
        models = np.array([world.model for world in self.worlds])
        low, median = (weighted_quantile(values, probabilities, q) for q in (0.025, 0.5))
        ends = [
            weighted_quantile(values[models == model], probabilities[models == model], 0.975)
            for model in np.unique(models)
        ]
        return Range(low, median, max(median, *ends))

    def draw(
        self, n_users: int, rng: np.random.Generator, *, world: int | None = None
    ) -> FloatArray:
        """Draw users' means from one of the worlds, by default a random one."""
        n_users, rng = whole_number("n_users", n_users), generator("rng", rng)
        if world is None:
            probabilities = np.array([world.probability for world in self.worlds])
            world = int(rng.choice(len(self.worlds), p=probabilities / probabilities.sum()))
        return self.worlds[world].draw(n_users, rng)

    def expected_means(self, pairs: PairTotals) -> FloatArray:
        """Return the expected means of users with these rows, (n_users, n_arms), in [0, 1]."""
        steps = range(0, pairs.n_users, CHUNK_OF_USERS)
        chunks = [np.arange(i, min(i + CHUNK_OF_USERS, pairs.n_users)) for i in steps]
        means = [
            posterior_means(pairs.of_users(users), self.moments, self.covariance, self.arm_means)[0]
            for users in chunks
        ]
        return np.clip(np.concatenate(means), 0.0, 1.0)

    @property
    def shows_tastes(self) -> bool:
        """Whether the log shows that users differ in which arms suit them."""
        return self.gain.low > DETECTABLE * self.best_arm

    @property
    def shows_agreement(self) -> bool:
        """Whether the log shows that users hardly differ in which arms suit them."""
        return not self.shows_tastes and self.gain.high <= WORTHWHILE * self.best_arm

    @property
    def tells(self) -> str:
        """What the log can and can't tell, in words."""
        low, median, high = self.scale.parts_in_words(self.gain, self.best_arm)
        noun = "row" if self.n_rows == self.n_users else "rows"
        rows = f"{self.n_rows / self.n_users:.3g} {noun} a user on {count(self.n_arms, 'arm')}"
        if self.shows_tastes:
            differ = "seem to differ" if self.doubts else "differ"
            return (
                f"Users {differ} in which arms suit them: with full knowledge of everyone, "
                f"{median} more than the best single arm could be earned ({low} to {high})."
            )
        if self.shows_agreement:
            return (
                f"Users hardly differ in which arms suit them: even full knowledge of everyone "
                f"would earn at most {high} more than the best single arm."
            )
        return (
            f"{rows} can't distinguish users who agree from users with tastes: full knowledge of "
            f"everyone might earn nothing, or up to {high} more than the best single arm. "
            f"{self._advice}"
        )

    @property
    def _advice(self) -> str:
        gain = self.scale.in_words(WORTHWHILE * self.best_arm, self.best_arm)
        if not any(world.taste for world in self.worlds):
            return f"It allows no tastes from which to say how many rows show a gain of {gain}."
        if self.more_rows is None:
            return (
                f"Even {MAX_TIMES:.0f} times as many rows of these users would not reliably "
                f"show a gain of {gain}."
            )
        return (
            f"To see a gain of {gain} if there is one, collect about "
            f"{count(self.more_rows, 'more row')} a user."
        )

    @cached_property
    def more_rows(self) -> int | None:
        """Further rows a user with which most logs would show a gain of ``WORTHWHILE``.

        Simulated with tastes of several shapes that the log allows (``power``); None where the log
        would have to be more than ``MAX_TIMES`` as long, or has no choice of arms.
        """
        tastes = sorted((world for world in self.worlds if world.taste), key=lambda w: w.gain)
        if not tastes:
            return None
        rng = np.random.default_rng([self.n_users, self.n_rows])
        places = np.linspace(0.1, 0.9, 6) * (len(tastes) - 1)
        shapes = [tastes[round(place)] for place in places.tolist()]
        gain = WORTHWHILE * self.best_arm
        times = rows_to_show(gain, shapes, self.moments, self.pairs, rng)
        if times is None:
            return None
        exact = (times - 1) * self.n_rows / self.n_users
        digits = max(0, int(np.log10(max(exact, 1.0))) - 1)
        return max(1, int(round(exact, -digits)))

    @property
    def held_out_tells(self) -> str:
        """What the rows that were held out say, in words."""
        if self.held_out is None:
            return "No user has rows to hold out: tastes are not checked."
        gain, error = self.held_out
        verdict = "predict" if gain > 2 * error else "are not shown to predict"
        return (
            f"Check on half of each user's rows: tastes {verdict} rows that were held out "
            f"({gain:+.2f} ± {2 * error:.2f} nats per 1,000 rows)."
        )


@one_thread
def estimate_population(
    pairs: PairTotals,
    rng: np.random.Generator,
    *,
    halves: tuple[PairTotals, PairTotals] | None = None,
) -> Population:
    """Estimate the population behind a log.

    Parameters
    ----------
    pairs
        Totals of the log's rewards, which lie in [0, 1].
    halves
        Totals of two random halves of each user's rows, for the check on rows held out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> counts = np.full((500, 3), 10.0)
    >>> sums = rng.binomial(10, 0.2, (500, 3)).astype(float)  # everyone is alike
    >>> population = estimate_population(PairTotals(counts, sums, sums), rng)
    >>> population.gain.low, round(population.gain.median, 3)
    (0.0, 0.0)
    """
    if not pairs.counts.any():
        raise InvalidInputError("a population needs at least one row; got none.")
    n_users, n_rows = pairs.n_users, int(pairs.counts.sum())
    if n_users > MAX_ESTIMATED_USERS:
        sample = rng.choice(n_users, MAX_ESTIMATED_USERS, replace=False)
        pairs = pairs.of_users(sample)
        halves = halves and (halves[0].of_users(sample), halves[1].of_users(sample))
    moments = estimate_moments(pairs)
    posterior = fit_posterior(moments, rng)
    covariance = posterior.covariance
    tastes = [
        (probability, model.rank)
        for model, probability in zip(posterior.models, posterior.probabilities, strict=True)
        if model.rank
    ]
    return Population(
        arm_means=moments.arm_means,
        arm_errors=np.sqrt(np.diag(moments.arm_covariance)),
        covariance=covariance,
        noise=moments.noise(np.diag(covariance)),
        taste=posterior.taste,
        rank=max(tastes, default=(0.0, 0))[1],
        worlds=_worlds(pairs, moments, posterior, rng),
        n_users=n_users,
        n_rows=n_rows,
        moments=moments,
        pairs=pairs,
        held_out=halves and check_held_out(*halves, rng),
    )


def _worlds(
    pairs: PairTotals, moments: Moments, posterior: CovariancePosterior, rng: np.random.Generator
) -> tuple[World, ...]:
    """Draw populations from every model that the log leaves; taste has the most of them.

    Where it leaves both shapes of tastes, each counts as a model of its own.
    """
    clusters = compare_shapes(pairs, moments, posterior.covariance, rng)
    worlds = []
    for place, (model, chance) in enumerate(
        zip(posterior.models, posterior.probabilities, strict=True)
    ):
        taste = model.rank > 0
        share = chance / max(posterior.taste, 1e-300)
        for clustered, of_shape, n_worlds in _shapes(share, clusters) if taste else ALIKE:
            number = place + len(posterior.models) * clustered
            quantiles, shares = _strata(n_worlds)
            covariances = posterior.at_quantiles(place, quantiles)
            for covariance, part in zip(covariances, shares, strict=True):
                if clustered:
                    shape = draw_clusters(pairs, moments, covariance, clusters, rng)
                else:
                    shape = draw_shape(pairs, moments, covariance, rng, fitted=taste)
                worlds.append(World(*shape, chance * of_shape * part, number, taste))
    return tuple(worlds)


def _shapes(share: float, clusters: Clusters) -> list[tuple[bool, float, int]]:
    """Return whether a model's tastes are in clusters, how probably, and how many worlds to draw.

    ``share`` is the model's part of all taste.
    """
    if share <= MIN_SHARE:
        return []
    shapes = ((False, 1.0 - clusters.probability), (True, clusters.probability))
    return [
        (clustered, chance, max(MIN_WORLDS, round(N_TASTE_WORLDS * share * chance)))
        for clustered, chance in shapes
        if chance > EXCLUDED
    ]


def _strata(n_worlds: int) -> tuple[FloatArray, FloatArray]:
    """Return the quantiles at which worlds are drawn, and the probability that each stands for.

    The outermost have just more than the interval leaves out, and lie at its far end: intervals
    that ended at 2.5 % held the truth in 88 % of the logs with which this was made.

    >>> quantiles, shares = _strata(4)
    >>> quantiles, shares
    (array([0.005, 0.263, 0.737, 0.995]), array([0.026, 0.474, 0.474, 0.026]))
    """
    edges = np.concatenate([[0.0], np.linspace(OUTER, 1 - OUTER, n_worlds - 1), [1.0]])
    quantiles = (edges[1:] + edges[:-1]) / 2
    quantiles[0], quantiles[-1] = OUTERMOST, 1 - OUTERMOST
    shares: FloatArray = np.diff(edges)
    return quantiles, shares


def weighted_quantile(values: FloatArray, weights: FloatArray, probability: float) -> float:
    """Return the least value up to which the weights reach a share of their total.

    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]), 0.5)
    2.0
    """
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order])
    place = int(np.searchsorted(cumulative, probability * cumulative[-1]))
    return float(values[order[min(place, len(values) - 1)]])
