"""Numbers, times and states as people read them."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime

Say = Callable[[float | None], str]

NONE = "–"


def count(value: float) -> str:
    """Return a whole number.

    >>> count(12345)
    '12,345'
    """
    return f"{value:,.0f}"


def whole(value: float | None) -> str:
    """Return a whole number, or a dash for none."""
    return NONE if value is None else count(value)


def decimal(value: float | None) -> str:
    """Return a number with one decimal, or a dash for none."""
    return NONE if value is None else f"{value:,.1f}"


def reward(value: float | None) -> str:
    """Return a mean reward, or a dash for none.

    >>> reward(0.41234), reward(None), reward(float("nan"))
    ('0.412', '–', '–')
    """
    return NONE if value is None or math.isnan(value) else f"{value:.3f}"


def percent(value: float | None) -> str:
    """Return a share in per cent, or a dash for none."""
    return NONE if value is None else f"{value:.0%}"


def share(part: int, whole: int) -> str:
    """Return a share in per cent; the first digits of small ones.

    >>> share(1, 3), share(3, 10_000), share(0, 0)
    ('33.3 %', '0.03 %', 'none')
    """
    if not whole:
        return "none"
    value = 100 * part / whole
    return f"{value:.2g} %" if 0 < value < 1 else f"{value:.1f} %"


def gain(now: float, before: float, what: str) -> str:
    """Return how much more or less ``now`` is.

    >>> gain(0.6, 0.4, "the first 10 rounds")
    '+50 % on the first 10 rounds'
    >>> gain(0.4, 0.4, "the first 10 rounds")
    'as in the first 10 rounds'
    """
    change = _change(now, before)
    if change is None:
        return ""
    if abs(change) < 0.5:
        return f"as in {what}"
    return f"{change:+.0f} % on {what}".replace("-", "−")


def apart(now: float, other: float) -> str:
    """Return where the reward is from another one.

    >>> apart(0.3, 0.4), apart(0.4, 0.4)
    ('reward is 25 % below', 'reward is the same')
    """
    change = _change(now, other)
    if change is None:
        return ""
    if abs(change) < 0.5:
        return "reward is the same"
    return f"reward is {abs(change):.0f} % {'above' if change > 0 else 'below'}"


def _change(now: float, before: float) -> float | None:
    if math.isnan(now) or math.isnan(before) or before <= 0:
        return None
    return 100 * (now / before - 1)


def moment(milliseconds: int | None) -> str:
    """Return a time, in UTC.

    >>> moment(1_700_000_000_000)
    '14 Nov 2023, 22:13:20 UTC'
    """
    if milliseconds is None:
        return "never"
    when = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"{when.day} {when:%b %Y, %H:%M:%S} UTC"


def state(number: int, name: str, since: int | None) -> str:
    """Return the state of a campaign's last round."""
    said = {
        "wanted": "the learner is planning, since",
        "open": "open since",
        "released": "released",
        "abandoned": "abandoned",
    }
    if name not in said:
        return "No round yet"
    return f"Round {count(number)}: {said[name]} {moment(since)}"
