"""What to do about a CSV file that can't be read as it is; each hint begins with a space."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from shoal.instances.names import is_number_or_truth

WORDS = (("yes", "no"), ("y", "n"), ("ja", "nein"), ("oui", "non"), ("t", "f"), ("on", "off"))
"""Words for 1 and 0, in lower case."""

THOUSANDS = r"^\s*[+-]?\d{1,3}(,\d{3})+\s*$"
DECIMAL_COMMA = r"^\s*[+-]?[\d.\s]*\d,\d+\s*$"
UNIT = r"^\s*[^\d\s+.,-]{0,3}\s*[+-]?[\d.,]*\d\s*[^\d\s.,]{0,3}\s*$"
"""A number with a unit or the sign of a currency before or after it."""


def separator_hint(header: str) -> str:
    """Return what to say of a header that is a single cell.

    >>> separator_hint("user;arm;reward")
    " Cells must be separated by commas; these seem to be by ';'."
    """
    for separator in (";", "\t", "|"):
        if separator in header:
            return f" Cells must be separated by commas; these seem to be by {separator!r}."
    return ""


def header_hint(names: Sequence[str]) -> str:
    """Return what to say of a header that seems to be a row: one of its cells could be a reward.

    >>> header_hint(["u162", "a0", "0"])
    ' The file seems to have no header: write one above its first row, such as user,arm,reward.'
    """
    if not any(map(is_number_or_truth, names)):
        return ""
    return (
        " The file seems to have no header: write one above its first row, such as user,arm,reward."
    )


def encoding_hint(error: Exception) -> str:
    """Return what to say of a file whose text is not UTF-8."""
    return " Save it as UTF-8." if "utf-8" in str(error).lower() else ""


def number_hint(texts: pl.Series) -> str:
    """Return what to say of rewards that are no numbers.

    >>> number_hint(pl.Series(["Yes", "no"]))
    " Write 1 for 'Yes' and 0 for 'no'."
    """
    if texts.dtype != pl.String or texts.is_empty():
        return ""
    by_word = {str(text).strip().lower(): str(text) for text in texts.unique().sort().head(1000)}
    for yes, no in WORDS:
        if set(by_word) <= {yes, no}:
            return f" Write 1 for {by_word.get(yes, yes)!r} and 0 for {by_word.get(no, no)!r}."
    if texts.str.contains(THOUSANDS).mean() == 1.0:
        return " Write 1390 for 1,390 if its comma separates thousands, else 1.390."
    if texts.str.contains(DECIMAL_COMMA).mean() == 1.0:
        return " Write decimals with a point, 39.00 and not 39,00."
    if texts.str.contains(UNIT).mean() == 1.0:
        return " Leave out units and signs of currencies."
    return ""
