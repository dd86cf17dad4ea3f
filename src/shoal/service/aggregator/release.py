"""What is released of a round: totals over disjoint sets of at least C reporters.

So no smaller set can be derived from them (threats 1 and 7). Which groups are merged and which are
withheld depends on the numbers of reporters alone (``shoal.model.merging``).
"""

from __future__ import annotations

import logging

import msgspec
import numpy as np

from shoal.model.merging import merge_short
from shoal.service.aggregator.group_sums import Sums
from shoal.service.aggregator.noise import add_noise, scale_of
from shoal.service.aggregator.plans import FrozenPlan
from shoal.service.campaign import Campaign
from shoal.wire import Noise, Total

log = logging.getLogger("shoal.service")


class Document(msgspec.Struct, frozen=True):
    """All that is ever said about the rewards of one round."""

    campaign: str
    round: int
    plan: str
    reward_steps: int
    totals: tuple[Total, ...]
    withheld: int  # groups whose total is never released
    homogeneous: int  # totals that show everyone's reward: all 0 or all 1
    noise: Noise | None = None


def arm_by_group(plan: FrozenPlan) -> dict[int, int]:
    """Return the arm of each group, in the order of their numbers."""
    groups, first = np.unique(plan.groups, return_index=True)
    return {
        int(group): int(plan.arms[seat])
        for group, seat in zip(groups, first, strict=True)
        if group >= 0
    }


def make_document(
    name: str, number: int, plan: FrozenPlan, campaign: Campaign, sums: Sums
) -> Document:
    """Merge the sums of a round into a release; noise, if any, is drawn here."""
    arms, full = arm_by_group(plan), campaign.reward_steps
    valid = possible(sums, full)
    counts = {group: valid.get(group, (0, 0)) for group in arms}
    into = merge_short(
        np.array([reporters for _, reporters in counts.values()], np.int64),
        np.array(list(arms.values()), np.int64),
        campaign.least,
    )
    merged: dict[int, list[int]] = {}
    for group, place in zip(arms, into.tolist(), strict=True):
        if place >= 0:
            merged.setdefault(place, []).append(group)
    exact = [sum(counts[group][0] for group in parts) for parts in merged.values()]
    totals = tuple(
        Total(
            arm=campaign.arms[arms[parts[0]]],
            parts=tuple(parts),
            reporters=sum(counts[group][1] for group in parts),
            total=total,
        )
        for parts, total in zip(merged.values(), add_noise(exact, campaign), strict=True)
    )
    homogeneous, noise = 0, None
    if campaign.noise is None:
        homogeneous = sum(total.total in (0, total.reporters * full) for total in totals)
    else:  # the exact totals must not show in a count either
        noise = Noise(campaign.noise.epsilon, scale_of(campaign))
    withheld = int((into < 0).sum())
    return Document(name, number, plan.hash, full, totals, withheld, homogeneous, noise)


def possible(sums: Sums, reward_steps: int) -> Sums:
    """Return the sums that rewards can give; any other shows that the store is damaged."""
    valid = {
        group: (total, reporters)
        for group, (total, reporters) in sums.items()
        if 0 <= total <= reporters * reward_steps
    }
    for _ in range(len(sums) - len(valid)):
        log.error("a sum that no rewards could give is withheld")
    return valid
