"""Numbers, times and states as people read them."""

from __future__ import annotations

import math
from datetime import UTC, datetime

MISSING = "–"
REWARD = ".3f"

_STATES = {
    "wanted": "the learner is planning, since",
    "open": "open since",
    "released": "released",
    "abandoned": "abandoned",
}


def number(value: float | None, spec: str = ",.0f") -> str:
    """Return a number by its format specification, or a dash for none.

    >>> number(12345), number(0.41234, REWARD), number(None), number(float("nan"))
    ('12,345', '0.412', '–', '–')
    """
    return MISSING if value is None or math.isnan(value) else format(value, spec)


def share(part: int, whole: int) -> str:
    """Return a part of a whole in per cent, with two digits where it is small.

    >>> share(1, 3), share(3, 10_000), share(0, 0)
    ('33.3 %', '0.03 %', 'none')
    """
    if not whole:
        return "none"
    value = 100 * part / whole
    return f"{value:.2g} %" if 0 < value < 1 else f"{value:.1f} %"


def gain(reward: float, baseline: float, description: str) -> str:
    """Return by how much a reward differs from a baseline.

    >>> gain(0.6, 0.4, "the first 10 rounds")
    '+50 % on the first 10 rounds'
    >>> gain(0.4, 0.4, "the first 10 rounds")
    'as in the first 10 rounds'
    """
    change = _percent_change(reward, baseline)
    if change is None:
        return ""
    if abs(change) < 0.5:
        return f"as in {description}"
    return f"{change:+.0f} % on {description}".replace("-", "−")


def distance(reward: float, baseline: float) -> str:
    """Return how far a reward is above or below a baseline.

    >>> distance(0.3, 0.4), distance(0.4, 0.4)
    ('reward is 25 % below', 'reward is the same')
    """
    change = _percent_change(reward, baseline)
    if change is None:
        return ""
    if abs(change) < 0.5:
        return "reward is the same"
    return f"reward is {abs(change):.0f} % {'above' if change > 0 else 'below'}"


def _percent_change(reward: float, baseline: float) -> float | None:
    if math.isnan(reward) or math.isnan(baseline) or baseline <= 0:
        return None
    return 100 * (reward / baseline - 1)


def utc_time(milliseconds: int | None) -> str:
    """Return a time, in UTC.

    >>> utc_time(1_700_000_000_000)
    '14 Nov 2023, 22:13:20 UTC'
    """
    if milliseconds is None:
        return "never"
    time = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"{time.day} {time:%b %Y, %H:%M:%S} UTC"


def round_state(round_number: int, state: str, since: int | None) -> str:
    """Return the state of a campaign's last round."""
    if state not in _STATES:
        return "No round yet"
    return f"Round {number(round_number)}: {_STATES[state]} {utc_time(since)}"
