"""Names of users and arms: which are one name in several spellings, and which mean no name."""

from __future__ import annotations

import re
from collections.abc import Iterable

import polars as pl

MISSING_TEXTS = frozenset({"", "na", "n/a", "#n/a", "null", "none", "nan"})
"""Texts that mean a missing value, in lower case."""

NUMBER = r"^[+-]?(\d{1,15}(\.\d*)?|\.\d+)$"
"""Numbers that a 64-bit float tells apart."""


def similar_names(names: Iterable[object]) -> tuple[tuple[str, ...], ...]:
    """Return groups of names that differ only in case, spaces, accents or a number's spelling.

    >>> similar_names(["Café", "cafe ", "tea", "1", "1.0"])
    (('Café', 'cafe '), ('1', '1.0'))
    """
    texts = pl.DataFrame({"name": list(map(str, names))}, schema={"name": pl.String})
    plain = pl.col("name").str.normalize("NFKD").str.replace_all(r"[\p{M}\s]", "")
    number = plain.str.contains(NUMBER)
    key = pl.when(number).then(plain.cast(pl.Float64, strict=False).cast(pl.String))
    keyed = texts.with_columns(key=key.otherwise(plain.str.to_lowercase()))
    again = keyed.filter(pl.col("key").is_duplicated())
    groups = again.group_by("key", maintain_order=True).agg("name")["name"]
    return tuple(tuple(group) for group in groups.to_list())


def is_number_or_truth(name: str) -> bool:
    """Say whether a name is what a reward would be.

    >>> is_number_or_truth("0.5"), is_number_or_truth("True"), is_number_or_truth("reward1")
    (True, True, False)
    """
    return name.strip().lower() in ("true", "false") or is_number_text(name)


def is_number_text(name: str) -> bool:
    """Say whether a name is a number."""
    return re.match(NUMBER, name.strip()) is not None


def looks_missing(name: object) -> bool:
    """Say whether a name is a text that means a missing value.

    >>> looks_missing("N/A"), looks_missing("Nantes")
    (True, False)
    """
    return isinstance(name, str) and name.strip().casefold() in MISSING_TEXTS
