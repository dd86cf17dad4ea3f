"""The figures and captions of a campaign's page, as text."""

from __future__ import annotations

import math

from shoal.service.campaign import Campaign
from shoal.service.dashboard.formatting import MISSING, REWARD, distance, gain, number, share
from shoal.service.dashboard.series import AVERAGED_ROUNDS, Series

OTHERS = "all others"


def page_texts(
    series: Series, campaign: Campaign, charted: list[str], *, complete: bool
) -> dict[str, str]:
    """Return the page's figures and the caption of each chart.

    ``charted`` names what the charts show; if not ``complete``, counts are not known.
    """
    latest = series.latest_reward
    best = float(series.best[-1]) if len(series.best) else math.nan
    texts = {
        "rounds": number(series.last),
        "reward": number(latest, REWARD),
        "gain": "",
        "best": number(best, REWARD),
        "best_gain": distance(latest, best),
        "whose": "the learner's estimate" if series.estimates.by_learner else "released averages",
        "smallest": number(series.smallest("smallest_total")),
        "totals": number(series.count("totals")),
        "withheld": number(series.count("withheld")),
        "merged": number(series.count("merged")),
    }
    if series.last >= 2 * AVERAGED_ROUNDS:  # before that, the first rounds are among the latest
        baseline = f"the first {AVERAGED_ROUNDS} rounds"
        texts["gain"] = gain(latest, series.first_reward, baseline)
    if campaign.noise and len(series.starts):
        texts["gain"] = f"noise alone moves it by ±{number(series.latest_noise, REWARD)}"
        texts["best_gain"] = f"epsilon {campaign.noise.epsilon:g} a round"
    if not complete:  # what is not known is not zero
        texts |= dict.fromkeys(("rounds", "totals", "withheld", "merged"), MISSING)
    return texts | (_captions(texts, series, campaign, charted) if len(series.starts) else {})


def homogeneous(series: Series, campaign: Campaign) -> str:
    """Return how many totals were homogeneous, as far as that can be known."""
    if campaign.noise:
        return "not counted: noise hides them"
    n_homogeneous, n_totals = series.count("homogeneous"), series.count("totals")
    return f"{number(n_homogeneous)} ({share(n_homogeneous, n_totals)})"


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
    first = number(series.first_reward, REWARD)
    return {
        "caption_reward": f"Mean reward of those behind released totals: {texts['reward']} over "
        f"the last {min(AVERAGED_ROUNDS, series.last)} rounds, {first} over the first. The best "
        f"single arm, by {texts['whose']}: {texts['best']}.{noise}",
        "caption_shares": "What users play, as a share of everyone in the round.",
        "caption_sizes": f"The smallest of each in every round. No total may lie below C = "
        f"{campaign.least}; the smallest ever had {texts['smallest']} reporters. A crowd may: it "
        "is then in no group, and nothing of it is released.",
        "caption_groups": f"{texts['totals']} totals were released, {texts['merged']} of them over "
        f"merged groups; {texts['withheld']} groups were withheld for ever. Homogeneous totals, "
        f"all 0 or all 1: {homogeneous(series, campaign)}.",
        "caption_estimates": (few if OTHERS in charted else "") + _estimates(series, campaign),
    }


def _estimates(series: Series, campaign: Campaign) -> str:
    if series.estimates.by_learner:
        return (
            "The learner's own estimate of each arm's mean over all users, with the 95 % interval "
            "of its model. Where few still play an arm, it rests on those who like it."
        )
    noise = ", noise and all" if campaign.noise else ""
    return (
        f"The released average of those who played each arm, with a 95 % interval{noise}. This "
        "policy gives no estimate of its own; who plays an arm is not everyone."
    )
