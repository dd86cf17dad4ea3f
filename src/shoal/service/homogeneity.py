"""How often a total will show everyone's reward, before a campaign begins.

Where a share p of rewards is 1 and the others are 0, a total over C users is all 0 or all 1 with
probability p^C + (1 - p)^C. It then says what each of them did.
"""

ALARMING = 0.1
"""Share of homogeneous totals above which a larger C or noise is recommended."""
TYPICAL_RATES = (0.01, 0.03, 0.1, 0.3)
MAX_REPORTERS = 1_000_000


def homogeneous_share(rate: float, min_size: int) -> float:
    """Return the expected share of totals over ``min_size`` users that are all 0 or all 1.

    >>> round(homogeneous_share(0.03, 20), 3)
    0.544
    """
    return float(rate**min_size + (1 - rate) ** min_size)


def least_users(rate: float) -> int | None:
    """Return the least C with no more homogeneous totals than ``ALARMING``, None where none is.

    >>> least_users(0.03), least_users(0.5), least_users(0.0)
    (76, 5, None)
    """
    low, high = 0, MAX_REPORTERS
    if homogeneous_share(rate, high) > ALARMING:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        enough = homogeneous_share(rate, middle) <= ALARMING
        low, high = (low, middle) if enough else (middle, high)
    return high


def is_alarming(rate: float, min_size: int, *, noise: bool) -> bool:
    """Return whether many totals will show everyone's reward.

    >>> is_alarming(0.03, 20, noise=False), is_alarming(0.03, 20, noise=True)
    (True, False)
    """
    return not noise and homogeneous_share(rate, min_size) > ALARMING


def advice(rate: float, min_size: int, *, noise: bool, seats: int = MAX_REPORTERS) -> str:
    """Return what to expect in one sentence, and what to do about it with so many ``seats``."""
    share = homogeneous_share(rate, min_size)
    text = (
        f"Where {rate:.1%} of rewards are 1 and C = {min_size}, {share:.1%} of totals show "
        "everyone's reward."
    )
    if share <= ALARMING:
        return text
    if noise:
        return f"{text} The noise hides it."
    enough = least_users(rate)
    if enough is not None and enough > seats:
        return f"{text} Take noise: C = {enough:,} is more than the {seats:,} seats."
    return f"{text} Take {f'C = {enough:,}' if enough else 'a larger C'} or noise."
