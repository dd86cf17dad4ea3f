"""TOML with the line of every key, so that a refusal can say where to look."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from shoal.errors import InvalidInputError

_TABLE = re.compile(r"\s*\[+([^\],]+)\]+\s*(?:#.*)?$")
_KEY = re.compile(r"\s*((?:[\w-]+|\"[^\"]*\"|'[^']*'|\s*\.\s*)+?)\s*=")
_PART = re.compile(r"[\w-]+|\"[^\"]*\"|'[^']*'")


class Toml:
    """A TOML file: its content, and where each key stands."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            text = path.read_text(encoding="utf-8")
            self.content: dict[str, Any] = tomllib.loads(text)
        except FileNotFoundError:
            raise InvalidInputError(f"{path} must be a file to read; got nothing there.") from None
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"{path} must be a readable text file; got: {error}.") from None
        except tomllib.TOMLDecodeError as error:
            raise InvalidInputError(f"{path} must be TOML; got: {error}.") from None
        self._lines = _lines(text)

    def where(self, *keys: str, item: int | None = None) -> str:
        """Name a key, or an item of its list, with its line and the file."""
        name = ".".join(keys) + ("" if item is None else f"[{item}]")
        return f"{name} in line {self.line(*keys)} of {self.path}"

    def line(self, *keys: str) -> int:
        """Return the line of a key, or of the nearest table around it."""
        while keys and keys not in self._lines:
            keys = keys[:-1]
        return self._lines.get(keys, 1)


def _lines(text: str) -> dict[tuple[str, ...], int]:
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _TABLE.match(line):
            table = _parts(header[1])
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            lines.setdefault((*table, *_parts(key[1])), number)
    return lines


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in _PART.findall(dotted))
