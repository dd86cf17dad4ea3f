"""Users from a CSV file: all of them, or none and the line that is wrong."""

import csv
import io
import re

from shoal.errors import InvalidInputError
from shoal.service.campaign import PATTERN_RULES, USER


def read_users(data: bytes) -> list[str]:
    r"""Return the users of a file with a column ``user``; other columns are not kept.

    >>> read_users(b"user,since\nann,2021\nbob,2022\n")
    ['ann', 'bob']
    >>> read_users(b"user\nann\nann\n")
    Traceback (most recent call last):
    shoal.errors.InvalidInputError: line 3: user must be new; 'ann' is on line 2 already.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInputError(f"line {line}: the file must be UTF-8 text.") from None
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    filled = (row for row in rows if any(cell.strip() for cell in row))
    lines: dict[str, int] = {}  # by user
    try:
        header = next(filled, None)
        column = _user_column(header) if header else 0
        for row in filled:
            user = row[column].strip() if column < len(row) else ""
            _check_user(user, rows.line_num, lines)
            lines[user] = rows.line_num
    except csv.Error as error:
        raise InvalidInputError(f"line {rows.line_num}: {error}.") from None
    if not lines:
        raise InvalidInputError("the file must have a first line with user, and a user below it.")
    return list(lines)


def _check_user(user: str, line: int, lines: dict[str, int]) -> None:
    if not re.fullmatch(USER, user):
        raise InvalidInputError(f"line {line}: user {PATTERN_RULES[USER]}; got {user[:40]!r}.")
    if user in lines:
        raise InvalidInputError(
            f"line {line}: user must be new; {user!r} is on line {lines[user]} already."
        )


def _user_column(header: list[str]) -> int:
    names = [cell.strip().lower() for cell in header]
    if "user" not in names:
        raise InvalidInputError(
            f"line 1: the first line must name a column user; got {', '.join(names)[:80]!r}."
        )
    return names.index("user")
