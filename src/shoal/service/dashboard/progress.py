"""A campaign's progress: what its page shows, and the route that keeps the page up to date.

The same view is the page's first content and, from the point where it last changed, the answer of
the route, which may also be read for other charts.
"""

import math
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Depends, Query, Request, Response

from shoal.arrays import FloatArray
from shoal.service.aggregator import Aggregator
from shoal.service.campaign import Campaign, Frozen
from shoal.service.dashboard.auth import require_reader
from shoal.service.dashboard.formatting import (
    NOT_MEASURED,
    OTHERS,
    REWARD,
    number,
    page_texts,
    round_state,
    utc_minute,
)
from shoal.service.dashboard.rendering import compressed
from shoal.service.dashboard.series import Series, read_released
from shoal.service.web.access import Name, Service

router = APIRouter(prefix="/v1/campaigns/{name}", tags=["campaigns"])

MAX_CHARTED_ARMS = 10  # that a chart can tell apart
TABLE_ROWS = 12

AfterRound = Annotated[int, Query(ge=0, le=2**31 - 1, description="The last round that is known.")]
Width = Annotated[int, Query(ge=0, le=2**31 - 1, description="Rounds to a point in what is known.")]
Column = list[float | None]


class RoundNow(Frozen):
    """The last round; nothing about who has reported."""

    number: int
    state: str
    since: int | None


class Points(Frozen):
    """Columns of one value per point; null where there is none."""

    round: list[int]
    time: list[int | None]
    reward: Column
    holdout: Column
    best: Column
    crowd: Column
    group: Column
    total: Column
    typical: Column
    whole: Column
    merged: Column
    withheld: Column
    homogeneous: Column
    shares: list[Column]


class ArmEstimates(Frozen):
    """Each arm's mean reward over all users and the ends of its 95 % interval.

    ``best`` is the share of users for whom the arm is the best, and ``spread`` how they differ on
    it, as a deviation, where the policy says so.
    """

    by_learner: bool
    arm: list[str]
    mean: Column
    low: Column
    high: Column
    best: Column
    spread: Column


class HoldoutLift(Frozen):
    """How much more others get than those held out, with its 95 % interval."""

    mean: float
    low: float
    high: float
    reference: float  # the reward of those held out
    rounds: int
    users: int  # held out, who reported in a round on average
    by_blocks: bool


class RoundNote(Frozen):
    """What an operator wrote at a round."""

    id: int
    round: int
    at: int
    author: str
    text: str


class View(Frozen):
    """A campaign from ``start`` on: points before it are as they were.

    Where ``heard`` is false, there may be more than is shown: the learner has yet to tell how far
    it is. ``first`` is the reward of the first rounds, ``least`` is C.
    """

    campaign: str
    now: RoundNow
    heard: bool
    first: float | None
    least: int  # C and the assumed colluders
    shown: int
    width: int
    start: int
    arms: list[str]
    points: Points
    estimates: ArmEstimates
    lift: HoldoutLift | None
    notes: list[RoundNote]
    words: dict[str, str]
    tables: dict[str, list[list[str]]]


@router.get("/progress", dependencies=[Depends(require_reader)], response_model=View)
def read_progress(
    name: Name, request: Request, aggregator: Service, after: AfterRound = 0, width: Width = 0
) -> Response:
    """Read a campaign's curves: all of them, or what has changed since round ``after``."""
    body = campaign_view(aggregator, name, after=after, width=width).model_dump_json().encode()
    return compressed(request, body, "application/json")


def campaign_view(aggregator: Aggregator, name: str, *, after: int = 0, width: int = 0) -> View:
    """Return what has changed since round ``after`` was shown, in steps of ``width`` rounds."""
    campaign, now = aggregator.directory.campaign(name), _round_now(aggregator, name)
    complete, series = read_released(aggregator, name)
    start = int(np.searchsorted(series.ends, after)) if width == series.width else 0
    if after > series.last:  # what was shown is not known any more
        start = 0
    charted, members = _charted_arms(series, campaign.arms)
    estimates = _estimates(series, campaign.arms, charted)
    points = _points(series, campaign, members)
    texts = page_texts(series, campaign, charted, complete=complete) | {
        "state": round_state(now.number, now.state, now.since),
        "users": number(sum(aggregator.directory.roster(name).active)),
    }
    first = _rounded(series.first_reward, 4)
    changed = {key: column[start:] for key, column in points if key != "shares"}
    return View(
        campaign=name,
        now=now,
        heard=complete,
        first=first,
        least=campaign.min_reporters,
        shown=series.last,
        width=series.width,
        start=start,
        arms=charted,
        points=Points(**changed, shares=[column[start:] for column in points.shares]),
        estimates=estimates,
        lift=_lift(series),
        notes=[
            RoundNote(id=note.id, round=note.number, at=note.at, author=note.author, text=note.text)
            for note in aggregator.notes.read(name)
        ],
        words=texts,
        tables=_tables(points, estimates, first, campaign.min_reporters),
    )


def _round_now(aggregator: Aggregator, name: str) -> RoundNow:
    last = aggregator.rounds.latest(name)
    if last is None:
        return RoundNow(number=0, state="new", since=None)
    since = last.closed_at or last.opened_at or last.wanted_at
    return RoundNow(number=last.number, state=last.state, since=since)


def _charted_arms(series: Series, arms: list[str]) -> tuple[list[str], list[list[int]]]:
    """Return the names in the charts and the arms behind each: the most played, and the rest."""
    if len(arms) <= MAX_CHARTED_ARMS:
        return arms, [[arm] for arm in range(len(arms))]
    recent_users = series.sums["users"][-max(1, len(series.starts) // 4) :].sum(axis=0)
    most_played = sorted(np.argsort(-recent_users, kind="stable")[: MAX_CHARTED_ARMS - 1].tolist())
    rest = [arm for arm in range(len(arms)) if arm not in most_played]
    return [*(arms[arm] for arm in most_played), OTHERS], [*([arm] for arm in most_played), rest]


def _points(series: Series, campaign: Campaign, members: list[list[int]]) -> Points:
    n_rounds = series.n_rounds
    users = series.sums["users"]
    n_users = np.maximum(users.sum(axis=1), 1)
    names = ("totals", "merged", "withheld", "homogeneous")
    per_round = {name: series.per_point(name) / n_rounds for name in names}
    n_totals = np.maximum(series.per_point("totals"), 1)
    crowds = np.nanmin(series.minima["users"], axis=1, initial=np.inf)
    exact = campaign.noise is None
    return Points(
        round=series.ends.tolist(),
        time=series.times,
        reward=_column(series.reward),
        holdout=_column(series.holdout_reward),
        best=_column(series.best),
        crowd=_column(crowds),
        group=_column(series.minima_per_point("smallest_group")),
        total=_column(series.minima_per_point("smallest_total")),
        typical=_column(
            np.where(per_round["totals"] > 0, series.per_point("reporters") / n_totals, np.nan), 1
        ),
        whole=_column(per_round["totals"] - per_round["merged"], 2),
        merged=_column(per_round["merged"], 2),
        withheld=_column(per_round["withheld"], 2),
        homogeneous=_column(per_round["homogeneous"], 2) if exact else [None] * len(n_rounds),
        shares=[_column(users[:, arms].sum(axis=1) / n_users, 3) for arms in members],
    )


def _estimates(series: Series, arms: list[str], charted: list[str]) -> ArmEstimates:
    listed = [arm for arm, name in enumerate(arms) if name in charted]
    means, half_widths = series.estimates.means[listed], series.estimates.half_widths[listed]
    return ArmEstimates(
        by_learner=series.estimates.by_learner,
        arm=[arms[arm] for arm in listed],
        # With noise, a mean may be outside of [0, 1].
        mean=_column(np.clip(means, 0, 1)),
        low=_column(np.clip(means - half_widths, 0, 1)),
        high=_column(np.clip(means + half_widths, 0, 1)),
        best=_column(series.estimates.best[listed]),
        spread=_column(series.estimates.spread[listed]),
    )


def _lift(series: Series) -> HoldoutLift | None:
    lift = series.lift
    if lift is None:
        return None
    return HoldoutLift(
        mean=round(lift.mean, 4), low=round(lift.low, 4), high=round(lift.high, 4),
        reference=round(lift.reference, 4), rounds=lift.n_rounds, users=lift.n_users,
        by_blocks=lift.by_blocks,
    )  # fmt: skip


def _tables(
    points: Points, estimates: ArmEstimates, first: float | None, min_size: int
) -> dict[str, list[list[str]]]:
    """Return the rows of each chart's table: a few rounds, evenly spread, the last one included."""
    n_points = len(points.round)
    spread = np.linspace(0, n_points - 1, TABLE_ROWS) if n_points else ()
    listed = sorted({round(i) for i in spread})

    def rows(columns: list[Column], spec: str) -> list[list[str]]:
        return [
            [
                number(points.round[i]),
                utc_minute(points.time[i]),
                *(number(column[i], spec) for column in columns),
            ]
            for i in listed
        ]

    def measured(row: list[str], i: int) -> list[str]:
        reward = number(points.reward[i], REWARD, missing=NOT_MEASURED)
        return [*row[:2], reward, *row[3:]]

    intervals = zip(
        estimates.arm, estimates.mean, estimates.low, estimates.high, estimates.best,
        estimates.spread, strict=True,
    )  # fmt: skip
    rewards = rows([points.reward, points.holdout, points.best, [first] * n_points], REWARD)
    groups = [points.whole, points.merged, points.withheld, points.homogeneous]
    ranked = sorted(intervals, key=lambda row: -(row[1] or 0.0))
    return {
        "reward": list(map(measured, rewards, listed)),
        "shares": rows(points.shares, ".0%"),
        "sizes": rows(
            [points.total, points.typical, points.group, points.crowd, [min_size] * n_points],
            ",.0f",
        ),
        "groups": rows(groups, ",.0f" if _are_whole(groups) else ",.1f"),
        "estimates": [
            [arm, *(number(x, REWARD) for x in ends), number(best, ".0%"), number(spread, REWARD)]
            for arm, *ends, best, spread in ranked
        ],
    }


def _are_whole(columns: list[Column]) -> bool:
    """Return whether these are counts; where a point stands for several rounds, they are means."""
    return all(float(value).is_integer() for column in columns for value in column if value)


def _column(values: FloatArray, digits: int = 4) -> Column:
    return [_rounded(value, digits) for value in values]


def _rounded(value: float, digits: int) -> float | None:
    return round(float(value), digits) if math.isfinite(value) else None
