"""Programs of the system that some tests run: Debian packages, which ``make test`` installs."""

from __future__ import annotations

import os
import shutil

import pytest


def need(*programs: str) -> None:
    """Skip a test that needs a program, or fail it where all of them should be there."""
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        reason = f"{missing[0]} is missing; install it: sudo make programs"
        if "CI" in os.environ or "MAKELEVEL" in os.environ:
            pytest.fail(reason)
        pytest.skip(reason)
