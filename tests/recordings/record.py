"""Write the recordings again: ``python -m tests.recordings.record [GROUP ...]``.

For a change that is meant, and that the changelog lists; anything else that differs is a fault.
What version 0.1 wrote (``v0_1/``) stays as it is.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.recordings.pinned import Recording, compute

FOLDER = Path(__file__).parent
GROUPS = ("commands", "earlier", "experiments", "policies", "service")


def recorded(group: str) -> Recording:
    """Return what is recorded of a group, by its key."""
    recording: Recording = json.loads((FOLDER / f"{group}.json").read_text(encoding="utf-8"))
    return recording


def write(group: str) -> None:
    """Record a group as the present code computes it."""
    text = json.dumps(compute(group), indent=1, sort_keys=True, ensure_ascii=False)
    (FOLDER / f"{group}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:] or GROUPS:
        write(name)
