"""Numbers, times, states and a campaign page's captions, as people read them."""

import math
from datetime import UTC, datetime

import numpy as np

from shoal.model.plurals import count
from shoal.service.campaign import Campaign
from shoal.service.dashboard.series import AVERAGED_ROUNDS, Series
from shoal.service.homogeneity import ALARMING

MISSING = "–"
NOT_MEASURED = "not measured"
REWARD = ".3f"

_STATES = {
    "wanted": "the learner is planning, since",
    "open": "open since",
    "released": "released",
    "abandoned": "abandoned",
}

OTHERS = "all others"

_FIRST_ROUNDS = f"the first {AVERAGED_ROUNDS} rounds"
_TO_THE_FIRST = (
    f"as in {_FIRST_ROUNDS}",
    f"+{{:.0f}} % on {_FIRST_ROUNDS}",
    f"−{{:.0f}} % on {_FIRST_ROUNDS}",
)
_TO_THE_BEST = ("reward is the same", "reward is {:.0f} % above", "reward is {:.0f} % below")


def number(value: float | None, spec: str = ",.0f", *, missing: str = MISSING) -> str:
    """Return a number by its format specification, or a dash for none.

    >>> number(12345), number(0.41234, REWARD), number(None), number(float("nan"))
    ('12,345', '0.412', '–', '–')
    """
    return missing if value is None or math.isnan(value) else format(value, spec)


def share(part: int, whole: int) -> str:
    """Return a part of a whole in per cent, with two digits where it is small.

    >>> share(1, 3), share(3, 10_000), share(0, 0)
    ('33.3 %', '0.03 %', 'none')
    """
    if not whole:
        return "none"
    value = 100 * part / whole
    return f"{value:.2g} %" if 0 < value < 1 else f"{value:.1f} %"


def compare(reward: float, baseline: float, words: tuple[str, str, str]) -> str:
    """Return how a reward differs from a baseline, in words for the same, above and below.

    >>> compare(0.6, 0.4, _TO_THE_FIRST), compare(0.4, 0.4, _TO_THE_FIRST)
    ('+50 % on the first 10 rounds', 'as in the first 10 rounds')
    >>> compare(0.3, 0.4, _TO_THE_BEST), compare(0.4, 0.4, _TO_THE_BEST)
    ('reward is 25 % below', 'reward is the same')
    """
    if math.isnan(reward) or math.isnan(baseline) or baseline <= 0:
        return ""
    same, above, below = words
    change = 100 * (reward / baseline - 1)
    if abs(change) < 0.5:
        return same
    return (above if change > 0 else below).format(abs(change))


def utc_time(milliseconds: int | None) -> str:
    """Return a time, in UTC.

    >>> utc_time(1_700_000_000_000)
    '14 Nov 2023, 22:13:20 UTC'
    """
    if milliseconds is None:
        return "never"
    time = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"{time.day} {time:%b %Y, %H:%M:%S} UTC"


def utc_minute(milliseconds: int | None) -> str:
    """Return a time to the minute, in UTC, for a table.

    >>> utc_minute(1_700_000_000_000), utc_minute(None)
    ('14 Nov 2023, 22:13', '–')
    """
    return MISSING if milliseconds is None else utc_time(milliseconds)[:-7]


def round_state(round_number: int, state: str, since: int | None) -> str:
    """Return the state of a campaign's last round."""
    if state not in _STATES:
        return "No round yet"
    return f"Round {number(round_number)}: {_STATES[state]} {utc_time(since)}"


def page_texts(
    series: Series, campaign: Campaign, charted: list[str], *, complete: bool
) -> dict[str, str]:
    """Return the page's figures and the caption of each chart.

    ``charted`` names what the charts show; if not ``complete``, counts are not known.
    """
    latest = series.latest_reward
    if len(series.reward) and math.isnan(series.reward[-1]):  # an older one is not the present one
        latest = math.nan
    best = series.best_offered
    unknown = NOT_MEASURED if series.n_released else MISSING
    texts = {
        "rounds": number(series.n_released),
        "reward": number(latest, REWARD, missing=unknown),
        "gain": "",
        "best": number(best, REWARD, missing=unknown),
        "best_gain": compare(latest, best, _TO_THE_BEST),
        "whose": "the learner's estimate" if series.estimates.by_learner else "released averages",
        "smallest": number(series.smallest("smallest_total"), missing="none yet"),
        "totals": number(series.count("totals")),
        "withheld": number(series.count("withheld")),
        "merged": number(series.count("merged")),
    }
    if series.n_released >= 2 * AVERAGED_ROUNDS:  # else the first rounds are among the latest
        texts["gain"] = compare(latest, series.first_reward, _TO_THE_FIRST)
    if campaign.noise and len(series.starts):
        texts["gain"] = f"noise alone moves it by ±{number(series.latest_noise, REWARD)}"
        texts["best_gain"] = f"epsilon {campaign.noise.epsilon:g} a round"
    texts |= _lift(series, campaign, measured=not math.isnan(latest))
    if not complete:  # what is not known is not zero
        names = ("rounds", "totals", "withheld", "merged", "smallest", "lift")
        texts |= dict.fromkeys(names, MISSING)
    return texts | (_captions(texts, series, campaign, charted) if len(series.starts) else {})


def _lift(series: Series, campaign: Campaign, *, measured: bool) -> dict[str, str]:
    """Return what personalisation gives, as it was measured or, without a holdout, by the model.

    The model's is that of the reward now: there is none where that was not ``measured``.
    """
    if not campaign.holdout:
        return _estimated_lift(series, measured=measured)
    lift = series.lift
    if lift is None:
        unknown = NOT_MEASURED if series.n_released else MISSING
        return {"lift": unknown, "lift_note": "no round with totals of the holdout yet"}
    return {
        "lift": signed(lift.mean),
        "lift_note": f"{signed(lift.low)} to {signed(lift.high)} (95 %), measured against holdout, "
        f"last {count(lift.n_rounds, 'round')}",
    }


def _estimated_lift(series: Series, *, measured: bool) -> dict[str, str]:
    mean, half_width = series.estimated_lift()
    if series.n_released and not measured:
        return {"lift": MISSING, "lift_note": "the reward now is not measured; no holdout"}
    if math.isnan(half_width):
        return {"lift": NOT_MEASURED if series.n_released else MISSING, "lift_note": "no holdout"}
    low, high = signed(max(-1.0, mean - half_width)), signed(min(1.0, mean + half_width))
    how = "estimated" if series.estimates.by_learner else "estimated from released averages"
    return {
        "lift": signed(mean),
        "lift_note": f"{low} to {high} (95 %), {how}: there is no holdout",
    }


def signed(value: float) -> str:
    """Return a difference with its sign.

    >>> signed(0.1), signed(-0.1)
    ('+0.100', '−0.100')
    """
    return f"{value:+.3f}".replace("-", "−")


def homogeneous(series: Series, campaign: Campaign) -> str:
    """Return how many totals were homogeneous, as far as that can be known."""
    if campaign.noise:
        return "not counted: noise hides them"
    n_homogeneous, n_totals = series.count("homogeneous"), series.count("totals")
    return f"{number(n_homogeneous)} ({share(n_homogeneous, n_totals)})"


def is_alarming(series: Series) -> bool:
    """Return whether so many totals show everyone's reward that something should be done."""
    return series.count("homogeneous") > ALARMING * series.count("totals")


def _captions(
    texts: dict[str, str], series: Series, campaign: Campaign, charted: list[str]
) -> dict[str, str]:
    noise = (
        f" Every total carries noise, with epsilon {campaign.noise.epsilon:g} a round: a mean may "
        "lie below 0 or above 1."
        if campaign.noise
        else ""
    )
    few = f"The {len(charted) - 1} most played arms of {len(campaign.arms)}. "
    return {
        "caption_reward": f"{_reward(texts, series)} {_best_arm(texts, series)}"
        f"{_reference(series, campaign)}{noise}",
        "caption_shares": "What users play, as a share of everyone in the round"
        + (" who is not held out." if campaign.holdout else "."),
        "caption_sizes": "How many users reported behind each total: the fewest in a round, and "
        f"the mean. Nothing is released of fewer than C = {campaign.min_reporters}: short groups "
        f"are merged or withheld. {_smallest(texts, series)}",
        "caption_groups": f"Totals released: {texts['totals']}, of which over merged groups: "
        f"{texts['merged']}. Groups withheld for good: {texts['withheld']}. Homogeneous totals, "
        f"all 0 or all 1: {homogeneous(series, campaign)}.",
        "caption_estimates": (few if OTHERS in charted else "") + _estimates(series, campaign),
    }


def _reward(texts: dict[str, str], series: Series) -> str:
    if texts["reward"] == NOT_MEASURED:
        return (
            "Mean reward of those behind released totals: not measured of late, nobody was in one."
        )
    if series.n_released < 2 * AVERAGED_ROUNDS:  # the first rounds are among the latest
        span = "the only round" if series.n_released == 1 else f"the last {_latest(series)} rounds"
        return f"Mean reward of those behind released totals: {texts['reward']} over {span}."
    first = number(series.first_reward, REWARD, missing=NOT_MEASURED)
    return (
        f"Mean reward of those behind released totals: {texts['reward']} over the last "
        f"{AVERAGED_ROUNDS} rounds, {first} over the first."
    )


def _latest(series: Series) -> int:
    return min(AVERAGED_ROUNDS, series.n_released)


def _best_arm(texts: dict[str, str], series: Series) -> str:
    if texts["best"] == NOT_MEASURED:
        return "There is no estimate of a best single arm yet."
    return f"The best single arm, by {texts['whose']}: {texts['best']}."


def _reference(series: Series, campaign: Campaign) -> str:
    if not campaign.holdout:
        return ""
    lift = series.lift
    if lift is None:
        return " Nothing has been measured of the holdout yet."
    how = (
        "from how blocks of them differ"
        if lift.by_blocks
        else "at its widest: too few are held out to measure how they differ"
    )
    return (
        f" The holdout, users drawn at random who play the best arm so far: {lift.reference:.3f} "
        f"over the last {count(lift.n_rounds, 'round')}, about {number(lift.n_users)} reporters in "
        f"each. Others differ from that by {signed(lift.mean)}, with 95 % confidence "
        f"{signed(lift.low)} to {signed(lift.high)}; the interval is {how}."
    )


def _smallest(texts: dict[str, str], series: Series) -> str:
    if series.smallest("smallest_total") is None:
        return "No total has been released yet."
    return f"The smallest total ever had {texts['smallest']} reporters."


def _estimates(series: Series, campaign: Campaign) -> str:
    if series.estimates.by_learner:
        users = (
            " The table and the CSV file also say for which share of users the arm is their best, "
            "and how much users differ on it (a deviation), by the learner's belief over a sample "
            "of users."
            if np.isfinite(series.estimates.best).any()
            else ""
        )
        return (
            "The learner's own estimate of each arm's mean over all users, with the 95 % interval "
            "of its model. Where few still play an arm, it rests on those who like it." + users
        )
    noise = ", noise and all" if campaign.noise else ""
    which = (
        "An estimate of the learner's own, where its policy gives one, comes with the next plan"
        if series.n_released == 1
        else "This policy gives no estimate of its own"
    )
    return (
        f"The released average of those who played each arm, with a 95 % interval{noise}. {which}; "
        "who plays an arm is not everyone."
    )
