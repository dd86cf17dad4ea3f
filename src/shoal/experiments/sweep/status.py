"""The progress of a sweep: whether it runs, was stopped, was killed or is complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shoal.errors import InvalidInputError
from shoal.experiments.sweep.configuration import Configuration
from shoal.experiments.sweep.folder import SweepFolder


@dataclass(frozen=True)
class SweepStatus:
    """Counts of cells; ``seconds_left`` is None where no sweep runs or it has just begun.

    ``failures`` holds the failed cells by name: what each was, and why it failed.
    """

    total: int
    done: int
    running: int
    failed: int
    waiting: int
    at_work: bool
    seconds_left: float | None
    failures: Mapping[str, dict[str, str]] = field(default_factory=dict)


def status(folder: str | Path) -> SweepStatus:
    """Return the progress of a sweep; it counts as running only while its process lives."""
    files = SweepFolder(Path(folder))
    content = files.configuration()
    try:
        cells = configuration_from(content).cells(version=content["shoal"])
    except (ArithmeticError, AttributeError, LookupError, TypeError):
        raise InvalidInputError(
            f"{str(folder)!r} must be the folder of a sweep; got a sweep.json of something else."
        ) from None
    names = {cell.name: cell for cell in cells}
    done = len(files.done() & names.keys())
    failures = {name: why for name, why in files.failures().items() if name in names}
    at_work = files.at_work()
    progress = files.progress() if at_work else {}
    unfinished = len(cells) - done - len(failures)
    running = min(int(progress.get("running", 0)), unfinished)
    return SweepStatus(
        total=len(cells),
        done=done,
        running=running,
        failed=len(failures),
        waiting=unfinished - running,
        at_work=at_work,
        seconds_left=_seconds_left(progress),
        failures={
            name: {"cell": str(names[name]), "reason": str(why["reason"])}
            for name, why in failures.items()
        },
    )


def configuration_from(content: Mapping[str, Any]) -> Configuration:
    """Return the configuration that a folder was begun with."""
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in content.items()
        if key != "shoal"
    }
    fields["options"] = {
        policy: {name: tuple(values) for name, values in options.items()}
        for policy, options in content["options"].items()
    }
    return Configuration(**fields)


def _seconds_left(progress: Mapping[str, Any]) -> float | None:
    """Divide the work that is left by the speed so far."""
    done = progress.get("user_rounds_done", 0)
    if not done:
        return None
    left = progress["user_rounds"] - progress["user_rounds_before"] - done
    return float(max(left, 0) * progress["seconds"] / done)
