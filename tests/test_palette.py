"""The colours of figures can be told apart, whoever looks and on whichever background."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from shoal.arrays import FloatArray
from shoal.palette import DARK, LIGHT, Palette

# Machado, Oliveira and Fernandes (2009): how linear RGB looks to people who lack a kind of cone.
VISION = {
    "all": np.eye(3),
    "no red": np.array(
        [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]]
    ),
    "no green": np.array(
        [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]]
    ),
    "no blue": np.array(
        [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]]
    ),
}
MIN_DISTANCE = 9.0
"""In CIELAB; about 2.3 is just noticeable side by side."""


def linear(colour: str) -> FloatArray:
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(rgb: FloatArray) -> FloatArray:
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    scaled = to_xyz @ np.clip(rgb, 0, 1) / np.array([0.95047, 1, 1.08883])
    x, y, z = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("vision", VISION)
def test_six_colours_are_told_apart(palette: Palette, vision: str) -> None:
    seen = [lab(VISION[vision] @ linear(colour)) for colour in palette.colours[:6]]
    distances = [float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2)]
    assert min(distances) >= MIN_DISTANCE


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_stand_out_from_their_background(palette: Palette) -> None:
    def luminance(colour: str) -> float:
        return float(np.array([0.2126, 0.7152, 0.0722]) @ linear(colour)) + 0.05

    behind = luminance(palette.background)
    for colour in palette.colours:
        bright, dark = sorted((luminance(colour), behind), reverse=True)
        assert bright / dark >= 3, colour  # WCAG 1.4.11
