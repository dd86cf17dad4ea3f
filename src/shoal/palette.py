"""The colours of all figures: command line, report, dashboard and documentation.

The first colour is that of the flagship, or of the one line that matters. The first six stay apart
for people who see no red, no green or no blue; `tests/test_palette.py` computes it. Beyond six,
lines are told apart by their labels and dashes.
"""

from typing import NamedTuple


class Palette(NamedTuple):
    """Colours for one background."""

    background: str
    text: str
    muted: str  # axes and their labels
    line: str  # the grid
    colours: tuple[str, ...]


LIGHT = Palette(
    background="#ffffff",
    text="#1d2b2e",
    muted="#52646a",
    line="#dde5e6",
    colours=(
        "#0b7a75", "#d14500", "#26348b", "#c154c1", "#5c2a0a", "#a8842c",
        "#3b8fd1", "#7a9e3f", "#b0477e", "#4a4a68", "#7d8790",
    ),
)  # fmt: skip

DARK = Palette(
    background="#1a2325",
    text="#e3ecec",
    muted="#a3b3b6",
    line="#2c3a3d",
    colours=(
        "#3fbfb5", "#ff7a33", "#6f86e8", "#d98cf0", "#c08a70", "#ffe066",
        "#77aef0", "#a9cc6c", "#e585b5", "#9a9ad0", "#79868a",
    ),
)  # fmt: skip
