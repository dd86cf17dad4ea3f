"""Numbers with their nouns, for sentences."""


def count(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless there is one.

    >>> count(1, "user"), count(2_000, "user")
    ('1 user', '2,000 users')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
