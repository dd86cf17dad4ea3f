"""Markdown pages and tables for what the benchmarks found."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shoal import __version__

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "benchmarks"
IMAGES = ROOT / "docs" / "images"
RECORDS = ROOT / "benchmarks" / "records"


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table; numbers stand on the right."""
    right = [bool(rows) and not isinstance(rows[0][i], str) for i in range(len(columns))]
    lines = [columns, ["---:" if r else "---" for r in right], *rows]
    return "\n".join("| " + " | ".join(_cell(value) for value in line) + " |" for line in lines)


def page(name: str, title: str, command: str, *parts: str) -> None:
    """Print a page and write it to the documentation."""
    made = (
        f"Written by `{command}` (Shoal {__version__}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores). Machines are shared and noisy: trust ratios, not absolutes."
    )
    text = "\n\n".join([f"# {title}", *parts, made]) + "\n"
    PAGES.mkdir(parents=True, exist_ok=True)
    (PAGES / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)


def record(name: str, data: Mapping[str, Any]) -> None:
    """Keep what a page and the paper are made from, as JSON."""
    RECORDS.mkdir(parents=True, exist_ok=True)
    text = json.dumps(data, ensure_ascii=False)
    (RECORDS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
