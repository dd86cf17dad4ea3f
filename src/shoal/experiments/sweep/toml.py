"""TOML with the lines of every key, so that a refusal can say where to look."""

import re
import tomllib
from collections.abc import Iterator
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

from shoal.errors import InvalidInputError

MAX_BITS = 63
"""TOML's whole numbers have 64 bits with their sign, and so have those of the records."""

_MAY_END = re.compile(r"[\]}]|\"\"\"|'''")


class Toml:
    """A TOML file: its content, and where each key stands."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            text = path.read_text(encoding="utf-8-sig")
            self.content: dict[str, Any] = tomllib.loads(text)
        except FileNotFoundError:
            raise InvalidInputError(f"{path} must be a file to read; it does not exist.") from None
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"{path} must be a readable text file; got: {error}.") from None
        except (ValueError, RecursionError) as error:  # digits and depth have limits too
            raise InvalidInputError(f"{path} must be TOML; got: {error}.") from None
        self._lines = _lines(text)
        for keys, value in _leaves(self.content):
            if isinstance(value, int) and value.bit_length() > MAX_BITS:
                raise InvalidInputError(
                    f"{self.where(*keys)} must lie between -2^{MAX_BITS} and 2^{MAX_BITS}; "
                    f"got a number of {value.bit_length()} bits."
                )

    def value(self, *keys: str) -> Any:
        """Return what a key of a table within tables has."""
        return reduce(getitem, keys, self.content)

    def where(self, *keys: str, item: int | None = None) -> str:
        """Name a key, or an item of its list, with its place."""
        name = ".".join(keys) + ("" if item is None else f"[{item}]")
        return f"{name} in {self.place(*keys)}"

    def place(self, *keys: str) -> str:
        """Return the line or lines where a key is given first, and the file."""
        first, last = self._lines[keys]
        lines = f"line {first}" if first == last else f"lines {first} to {last}"
        return f"{lines} of {self.path}"


def _lines(text: str) -> dict[tuple[str, ...], tuple[int, int]]:
    """Return the first and last line of each key: a statement ends where it is TOML by itself."""
    lines: dict[tuple[str, ...], tuple[int, int]] = {}
    table: tuple[str, ...] = ()
    statement, first = "", 1
    for number, line in enumerate(text.split("\n"), start=1):
        going_on = bool(statement)
        statement += line + "\n"
        if going_on and not _MAY_END.search(line):
            continue
        try:
            content = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        is_header = statement.lstrip().startswith("[")
        keys = list(_keys(content))
        for key in keys:
            lines.setdefault(key if is_header else (*table, *key), (first, number))
        if is_header:
            table = keys[-1]
        statement, first = "", number + 1
    return lines


def _keys(content: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the keys of tables within tables, the outer before the inner."""
    for key, value in content.items():
        yield (key,)
        if isinstance(value, dict):
            yield from ((key, *inner) for inner in _keys(value))


def _leaves(value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each value that is no table and no list, with its keys."""
    if isinstance(value, dict):
        for key, within in value.items():
            yield from (((key, *keys), leaf) for keys, leaf in _leaves(within))
    elif isinstance(value, list):
        for item in value:
            yield from (((), leaf) for _, leaf in _leaves(item))
    else:
        yield (), value
