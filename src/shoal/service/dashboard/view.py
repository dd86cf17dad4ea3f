"""What a campaign's page shows, as numbers for the charts and as words for everyone.

The same view is the page's first content and, from the point where it last changed, the answer of
the route that keeps the page fresh.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from shoal.arrays import FloatArray
from shoal.service.aggregator import Aggregator
from shoal.service.campaign import Campaign, Frozen
from shoal.service.dashboard import series, words
from shoal.service.dashboard.series import FEW, Series

MOST_ARMS = 10  # that a chart can tell apart
OTHERS = "all others"
ROWS = 12  # of a chart's table

Column = list[float | None]


class RoundNow(Frozen):
    """The last round; nothing about who has reported."""

    number: int
    state: str
    since: int | None


class Points(Frozen):
    """Columns of one value per point; null where there is none."""

    round: list[int]
    reward: Column
    best: Column
    crowd: Column
    group: Column
    total: Column
    whole: Column
    merged: Column
    withheld: Column
    homogeneous: Column
    shares: list[Column]


class ArmEstimates(Frozen):
    """Each arm's mean reward over all users and the ends of its 95 % interval."""

    by_learner: bool
    arm: list[str]
    mean: Column
    low: Column
    high: Column


class View(Frozen):
    """A campaign from ``start`` on: points before it are as they were.

    Where ``heard`` is false, there may be more than is shown: the learner has yet to tell how far
    it is. ``first`` is the reward of the first rounds, ``least`` is C.
    """

    campaign: str
    now: RoundNow
    heard: bool
    first: float | None
    least: int
    shown: int
    width: int
    start: int
    arms: list[str]
    points: Points
    estimates: ArmEstimates
    words: dict[str, str]
    tables: dict[str, list[list[str]]]


def read(aggregator: Aggregator, name: str, *, after: int = 0, width: int = 0) -> View:
    """Return what has changed since round ``after`` was shown, in steps of ``width`` rounds."""
    campaign = aggregator.directory.campaign(name)
    arms, now = campaign.arms, _now(aggregator, name)
    heard, found = released(aggregator, name)
    start = int(np.searchsorted(found.ends, after)) if width == found.width else 0
    if after > found.last:  # what was shown is not known any more
        start = 0
    charted, members = _charted(found, arms)
    estimates = _estimates(found, arms, charted)
    points = _points(found, campaign, members)
    said = _words(found, campaign, charted, heard=heard) | {
        "state": words.state(now.number, now.state, now.since),
        "users": words.count(sum(aggregator.directory.roster(name).active)),
    }
    first = _number(found.first_reward, 4)
    return View(
        campaign=name,
        now=now,
        heard=heard,
        first=first,
        least=campaign.least,
        shown=found.last,
        width=found.width,
        start=start,
        arms=charted,
        points=_from(points, start),
        estimates=estimates,
        words=said,
        tables=_tables(points, estimates, first, campaign.least),
    )


def released(aggregator: Aggregator, name: str) -> tuple[bool, Series]:
    """Return what people may see of a campaign, and whether that is all there is."""
    campaign, shown = aggregator.directory.campaign(name), aggregator.releases.shown(name)
    with aggregator.database.read() as connection:
        found = series.read(connection, name, campaign, shown=shown or 0)
    return shown is not None or aggregator.rounds.latest(name) is None, found


def _now(aggregator: Aggregator, name: str) -> RoundNow:
    last = aggregator.rounds.latest(name)
    if last is None:
        return RoundNow(number=0, state="new", since=None)
    since = last.closed_at or last.opened_at or last.wanted_at
    return RoundNow(number=last.number, state=last.state, since=since)


def _charted(found: Series, arms: list[str]) -> tuple[list[str], list[list[int]]]:
    """Return the names in the charts and the arms behind each: the most played, and the rest."""
    if len(arms) <= MOST_ARMS:
        return arms, [[arm] for arm in range(len(arms))]
    lately = found.sums["users"][-max(1, len(found.starts) // 4) :].sum(axis=0)
    most = sorted(np.argsort(-lately, kind="stable")[: MOST_ARMS - 1].tolist())
    rest = [arm for arm in range(len(arms)) if arm not in most]
    return [*(arms[arm] for arm in most), OTHERS], [*([arm] for arm in most), rest]


def _points(found: Series, campaign: Campaign, members: list[list[int]]) -> Points:
    n_points = len(found.starts)
    rounds = found.ends - found.starts + 1
    users = found.sums["users"]
    everyone = np.maximum(users.sum(axis=1), 1)

    none = np.full(n_points, np.nan)

    def a_round(column: str) -> FloatArray:
        return np.asarray(found.sums[column].sum(axis=1) / rounds)

    def smallest(column: str) -> FloatArray:
        known = np.c_[found.least[column], np.full(n_points, np.inf)]
        return np.asarray(np.nanmin(known, axis=1))

    def tell(values: FloatArray, digits: int = 4) -> Column:
        return [_number(value, digits) for value in values]

    return Points(
        round=found.ends.tolist(),
        reward=tell(found.reward),
        best=tell(found.best),
        crowd=tell(smallest("users")),
        group=tell(smallest("smallest_group")),
        total=tell(smallest("smallest_total")),
        whole=tell(a_round("totals") - a_round("merged"), 2),
        merged=tell(a_round("merged"), 2),
        withheld=tell(a_round("withheld"), 2),
        homogeneous=tell(a_round("homogeneous") if campaign.noise is None else none, 2),
        shares=[tell(users[:, arms].sum(axis=1) / everyone, 3) for arms in members],
    )


def _from(points: Points, start: int) -> Points:
    columns = points.model_dump()
    shares = [own[start:] for own in columns.pop("shares")]
    return Points(**{name: column[start:] for name, column in columns.items()}, shares=shares)


def _estimates(found: Series, arms: list[str], charted: list[str]) -> ArmEstimates:
    means, halves = found.estimates.means, found.estimates.half_widths
    listed = [arm for arm, name in enumerate(arms) if name in charted]
    return ArmEstimates(
        by_learner=found.estimates.by_learner,
        arm=[arms[arm] for arm in listed],
        mean=[_number(np.clip(means[arm], 0, 1), 4) for arm in listed],  # noise knows no bounds
        low=[_number(np.clip(means[arm] - halves[arm], 0, 1), 4) for arm in listed],
        high=[_number(np.clip(means[arm] + halves[arm], 0, 1), 4) for arm in listed],
    )


def _words(found: Series, campaign: Campaign, charted: list[str], *, heard: bool) -> dict[str, str]:
    """Return the page's figures and the description of each chart."""
    first, latest = found.first_reward, found.latest_reward
    best = float(found.best[-1]) if len(found.best) else math.nan
    whose = "the learner's estimate" if found.estimates.by_learner else "released averages"
    said = {
        "rounds": words.count(found.last),
        "reward": words.reward(latest),
        "gain": "",
        "best": words.reward(best),
        "best_gain": words.apart(latest, best),
        "whose": whose,
        "smallest": words.whole(found.smallest("smallest_total")),
        "totals": words.count(found.count("totals")),
        "withheld": words.count(found.count("withheld")),
        "merged": words.count(found.count("merged")),
    }
    if found.last >= 2 * FEW:  # before that, the first rounds are among the latest
        said["gain"] = words.gain(latest, first, f"the first {FEW} rounds")
    if campaign.noise and len(found.starts):
        said["gain"] = f"noise alone moves it by ±{words.reward(found.latest_noise)}"
        said["best_gain"] = f"epsilon {campaign.noise.epsilon:g} a round"
    if not heard:  # what is not known is not zero
        said |= dict.fromkeys(("rounds", "totals", "withheld", "merged"), words.NONE)
    return said | _captions(said, found, campaign, charted)


def homogeneous(found: Series, campaign: Campaign) -> str:
    """Return how many totals were homogeneous, as far as that can be known."""
    if campaign.noise:
        return "not counted: noise hides them"
    number, totals = found.count("homogeneous"), found.count("totals")
    return f"{words.count(number)} ({words.share(number, totals)})"


def _captions(
    said: dict[str, str], found: Series, campaign: Campaign, charted: list[str]
) -> dict[str, str]:
    if not len(found.starts):
        return {}
    noise = (
        f" Every total carries noise, with epsilon {campaign.noise.epsilon:g} a round: a mean may "
        "lie below 0 or above 1."
        if campaign.noise
        else ""
    )
    few = f"The {len(charted) - 1} most played arms of {len(campaign.arms)}. "
    some = few if OTHERS in charted else ""
    return {
        "caption_reward": f"Mean reward of those behind released totals: {said['reward']} over "
        f"the last {min(FEW, found.last)} rounds, {words.reward(found.first_reward)} over the "
        f"first. The best single arm, by {said['whose']}: {said['best']}.{noise}",
        "caption_shares": "What users play, as a share of everyone in the round.",
        "caption_sizes": f"The smallest of each in every round. No total may lie below C = "
        f"{campaign.least}; the smallest ever had {said['smallest']} reporters. A crowd may: it "
        "is then in no group, and nothing of it is released.",
        "caption_groups": f"{said['totals']} totals were released, {said['merged']} of them over "
        f"merged groups; {said['withheld']} groups were withheld for ever. Homogeneous totals, "
        f"all 0 or all 1: {homogeneous(found, campaign)}.",
        "caption_estimates": some + _whose_estimates(found, campaign),
    }


def _whose_estimates(found: Series, campaign: Campaign) -> str:
    if found.estimates.by_learner:
        return (
            "The learner's own estimate of each arm's mean over all users, with the 95 % interval "
            "of its model. Where few still play an arm, it rests on those who like it."
        )
    noise = ", noise and all" if campaign.noise else ""
    return (
        f"The released average of those who played each arm, with a 95 % interval{noise}. This "
        "policy gives no estimate of its own; who plays an arm is not everyone."
    )


def _tables(
    points: Points, estimates: ArmEstimates, first: float | None, least: int
) -> dict[str, list[list[str]]]:
    """Return the rows of each chart's table: a few rounds, evenly spread, the last one included."""
    n_points = len(points.round)
    constant: dict[str, Column] = {"first": [first] * n_points, "least": [least] * n_points}
    some = sorted({round(i) for i in np.linspace(0, n_points - 1, ROWS)}) if n_points else []

    def rows(columns: Iterable[Column], say: words.Say) -> list[list[str]]:
        shown = list(columns)
        return [[words.count(points.round[i]), *(say(column[i]) for column in shown)] for i in some]

    spans = zip(estimates.arm, estimates.mean, estimates.low, estimates.high, strict=True)
    ranked = sorted(spans, key=lambda row: -(row[1] or 0.0))
    return {
        "reward": rows((points.reward, points.best, constant["first"]), words.reward),
        "shares": rows(points.shares, words.percent),
        "sizes": rows((points.crowd, points.group, points.total, constant["least"]), words.whole),
        "groups": rows(
            (points.whole, points.merged, points.withheld, points.homogeneous), words.decimal
        ),
        "estimates": [[arm, *map(words.reward, values)] for arm, *values in ranked],
    }


def _number(value: float, digits: int) -> float | None:
    return round(float(value), digits) if math.isfinite(value) else None
