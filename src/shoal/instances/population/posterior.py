"""A posterior over covariances of users' means, from their estimated moments.

Six models compete. *Alike*: all users have the arms' means. *Level*: some users like everything
more, by the same step on the logit scale, which is no taste. *Taste*, of rank 1, 2 or n_arms: a
covariance A A' beside the level, where A has that many columns; or with arms that are independent
of each other, a diagonal. Alike and level have prior probability 1/4 each, taste 1/2. Users'
deviation is uniform between 0 and the largest plausible, and each arm has a factor of its own
(lognormal, 0.5).

Each model is sampled by tempering: particles drawn from the prior are weighted, resampled and
moved while the likelihood's power grows from 0 to 1, which also gives the model's evidence.
(Del Moral, Doucet and Jasra, Sequential Monte Carlo samplers, 2006; the moves keep the normal
prior: Cotter, Roberts, Stuart and White, MCMC methods for functions, 2013.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from shoal.arrays import FloatArray
from shoal.instances.population.moments import Moments

PRIOR_TASTE = 0.5
"""Prior probability that users differ in which arms suit them."""

MAX_CORRELATION = 0.5
"""Largest share of a row's variance that may lie between users, in the prior."""

MAX_RELATIVE = 3.0
"""Largest deviation between users against the mean (or its distance to 1), in the prior."""

ARM_FACTOR = 0.5
"""Deviation of the logarithm of an arm's own factor, in the prior."""

N_PARTICLES = 600
N_MOVES = 8  # per temperature
N_GAIN_DRAWS = 256


@dataclass(frozen=True)
class Model:
    """How users may differ; particles are rows of standard normal scores in the prior."""

    moments: Moments
    level: bool
    rank: int
    independent: bool = False  # tastes on different arms

    @property
    def n_scores(self) -> int:
        """Parameters of the model."""
        n_arms = len(self.moments.arm_means)
        loadings = 0 if self.independent else n_arms * self.rank
        return int(self.level) + (self.rank > 0) * (1 + n_arms + loadings)

    def covariances(self, scores: FloatArray) -> FloatArray:
        """Return the covariance of users' means, (n, n_arms, n_arms)."""
        moments, n = self.moments, len(scores)
        n_arms = len(moments.arm_means)
        covariances: FloatArray = np.zeros((n, n_arms, n_arms))
        place = 0
        if self.level:
            covariances += self._share(scores[:, 0])[:, None, None] * self._level_covariance
            place = 1
        if self.rank:
            share = self._share(scores[:, place])
            factors = np.exp(ARM_FACTOR * scores[:, place + 1 : place + 1 + n_arms])
            scale = np.sqrt(share)[:, None] * factors * np.sqrt(moments.row_variance)
            if self.independent:
                covariances += np.eye(n_arms) * (scale**2)[:, None, :]
                return covariances
            scale /= np.sqrt(self.rank)
            loadings = scores[:, place + 1 + n_arms :].reshape(n, n_arms, self.rank)
            loadings = loadings * scale[:, :, None]
            covariances += loadings @ loadings.transpose(0, 2, 1)
        return covariances

    @cached_property
    def _level_covariance(self) -> FloatArray:
        """That of users who differ by a step on the logit scale: a mean × (1 - mean) of the arm."""
        moments = self.moments
        step = moments.arm_means * (1 - moments.arm_means)
        step = step / np.sqrt((step**2 / moments.row_variance).mean())
        return np.outer(step, step)

    def _share(self, scores: FloatArray) -> FloatArray:
        """Return the share of a row's variance that lies between users: its root is uniform."""
        share: FloatArray = self._largest_share * ndtr(scores) ** 2
        return share

    @cached_property
    def _largest_share(self) -> float:
        mean = float(self.moments.arm_means.mean())
        odds = min(mean, 1 - mean) / max(mean, 1 - mean)
        return min(MAX_CORRELATION, MAX_RELATIVE**2 * odds)

    def log_likelihood(self, scores: FloatArray) -> FloatArray:
        """Return the normal log likelihood of the estimated entries, (n,)."""
        moments = self.moments
        covariances = self.covariances(scores)
        entries = moments.entries_of(covariances)
        error = np.sqrt(moments.entry_variance(covariances, entries.T)).T * moments.inflation
        distance = np.where(moments.estimable, (moments.entries - entries) / error, 0.0)
        size = ((distance @ moments.whitening.T) ** 2).sum(axis=1)
        normaliser = (np.log(error) * moments.estimable).sum(axis=1)
        log_likelihood: FloatArray = -0.5 * size - normaliser
        return log_likelihood


@dataclass(frozen=True, slots=True, eq=False)
class CovariancePosterior:
    """Particles of every model, with the models' posterior probabilities."""

    models: tuple[Model, ...]
    particles: tuple[FloatArray, ...]
    probabilities: FloatArray  # (n_models,)

    @property
    def taste(self) -> float:
        """Probability that users differ in which arms suit them."""
        ranks = np.array([model.rank for model in self.models])
        return float(self.probabilities[ranks > 0].sum())

    @property
    def covariance(self) -> FloatArray:
        """CovariancePosterior mean of the covariance of users' means."""
        covariances = [
            model.covariances(particles).mean(axis=0)
            for model, particles in zip(self.models, self.particles, strict=True)
        ]
        mean: FloatArray = np.tensordot(self.probabilities, np.array(covariances), axes=1)
        return mean

    def at_quantiles(self, place: int, quantiles: FloatArray) -> FloatArray:
        """Return covariances of one model, (n, n_arms, n_arms), from the least to the most taste.

        They lie at these quantiles of what full knowledge would gain if tastes were normal.
        """
        covariances = self.models[place].covariances(self.particles[place])
        order = np.argsort(normal_gains(covariances, self.models[place].moments.arm_means))
        chosen = np.clip((quantiles * len(order)).astype(np.int64), 0, len(order) - 1)
        sorted_covariances: FloatArray = covariances[order[chosen]]
        return sorted_covariances


def normal_gains(covariances: FloatArray, means: FloatArray) -> FloatArray:
    """Return what full knowledge would gain over the best arm for normal tastes, (n,).

    The same 256 draws for all covariances: their order is what matters.
    """
    scores = np.random.default_rng(0).standard_normal((N_GAIN_DRAWS, len(means)))
    values, vectors = np.linalg.eigh(covariances)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    users = means + np.einsum("pjk,uk->puj", roots, scores)
    gains: FloatArray = users.max(axis=2).mean(axis=1) - users.mean(axis=1).max(axis=1)
    return gains


def fit_posterior(
    moments: Moments, rng: np.random.Generator, *, n_particles: int = N_PARTICLES
) -> CovariancePosterior:
    """Sample every model, and weigh them by their evidence."""
    n_arms = len(moments.arm_means)
    ranks = sorted({1, 2, n_arms}) if n_arms > 1 else []
    models = (
        Model(moments, level=False, rank=0),
        Model(moments, level=True, rank=0),
        *(Model(moments, level=True, rank=rank) for rank in ranks),
        *(Model(moments, level=True, rank=n_arms, independent=True) for _ in ranks[:1]),
    )
    n_tastes = len(models) - 2
    alike = (1 - PRIOR_TASTE) / 2
    priors = [alike, alike, *(PRIOR_TASTE / n_tastes for _ in range(n_tastes))]
    particles, evidence = zip(*(_sample(model, rng, n_particles) for model in models), strict=True)
    log_odds = np.array(evidence) + np.log(priors)
    probabilities = np.exp(log_odds - log_odds.max())
    return CovariancePosterior(models, particles, probabilities / probabilities.sum())


def _sample(model: Model, rng: np.random.Generator, n_particles: int) -> tuple[FloatArray, float]:
    """Return particles of the posterior under one model, and its log evidence."""
    scores = rng.standard_normal((n_particles, model.n_scores))
    log_likelihood = model.log_likelihood(scores)
    if not model.n_scores:
        return scores, float(log_likelihood[0])
    power, evidence, step = 0.0, 0.0, 0.5
    while power < 1.0:
        increase = _next_power(log_likelihood, 1.0 - power)
        power = 1.0 if power + increase > 1.0 - 1e-9 else power + increase
        top = log_likelihood.max()
        weights = np.exp(increase * (log_likelihood - top))
        evidence += increase * top + np.log(weights.mean())
        places = (np.arange(n_particles) + rng.random()) / n_particles
        kept_places = np.searchsorted(np.cumsum(weights) / weights.sum(), places)
        kept_places = np.minimum(kept_places, n_particles - 1)
        scores, log_likelihood = scores[kept_places], log_likelihood[kept_places]
        for _ in range(N_MOVES):
            proposals = np.sqrt(1 - step**2) * scores + step * rng.standard_normal(scores.shape)
            proposed = model.log_likelihood(proposals)
            accepted = np.log(rng.random(n_particles)) < power * (proposed - log_likelihood)
            scores = np.where(accepted[:, None], proposals, scores)
            log_likelihood = np.where(accepted, proposed, log_likelihood)
            share = np.count_nonzero(accepted) / n_particles
            step = min(max(step * float(np.exp(0.5 * (share - 0.3))), 1e-3), 0.95)
    return scores, float(evidence)


def _next_power(log_likelihood: FloatArray, max_power: float) -> float:
    """Return by how much the power may grow while half of the particles still count."""
    shifted = log_likelihood - log_likelihood.max()

    def counts(power: float) -> bool:
        weights = np.exp(power * shifted)
        return bool(weights.sum() ** 2 >= 0.5 * len(weights) * (weights**2).sum())

    if counts(max_power):
        return max_power
    low, high = 0.0, max_power
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if counts(middle) else (low, middle)
    return max(low, 1e-12)
