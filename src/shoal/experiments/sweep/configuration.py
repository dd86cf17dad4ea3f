"""What a sweep plays: lists of values, and every combination of them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from shoal import __version__
from shoal.environments import REWARDS
from shoal.errors import InvalidInputError, ShoalError, UnknownNameError
from shoal.experiments.comparison import runs_per_cell
from shoal.experiments.sweep.toml import Toml
from shoal.instances import INSTANCES
from shoal.model import Problem
from shoal.model.numbers import share, whole_number
from shoal.policies import POLICIES, find_policy, make_policy

MOST_CELLS = 1_000_000
MOST_USERS_TO_TRY = 10_000


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """The values of a grid; a cell is one of each.

    ``options`` holds, by policy and option, the values to try. ``runs`` is the number of runs of
    every combination.
    """

    policies: tuple[str, ...]
    instances: tuple[str, ...] = ("uniform",)
    users: tuple[int, ...] = (50,)
    arms: tuple[int, ...] = (5,)
    min_group_size: tuple[int, ...] = (4,)
    horizon: tuple[int, ...] = (100_000,)
    rewards: tuple[str, ...] = ("bernoulli",)
    participation: tuple[float, ...] = (1.0,)
    seed: tuple[int, ...] = (0,)
    options: Mapping[str, Mapping[str, tuple[Any, ...]]] = field(default_factory=dict)
    runs: int = 20

    def __post_init__(self) -> None:
        """Refuse, before it is laid out, a grid that no memory holds."""
        if self.n_cells > MOST_CELLS:
            raise InvalidInputError(
                f"a sweep must have at most {MOST_CELLS:,} cells; got {self.n_cells:,}."
            )

    @property
    def n_cells(self) -> int:
        """Settings × points × blocks of runs."""
        settings = (
            self.seed, self.instances, self.arms, self.min_group_size, self.horizon, self.rewards,
            self.participation,
        )  # fmt: skip
        points = sum(
            math.prod(map(len, self.options.get(policy, {}).values())) for policy in self.policies
        )
        blocks = sum(-(-self.runs // runs_per_cell(users)) for users in self.users)
        return math.prod(map(len, settings)) * points * blocks

    def points(self, policy: str) -> list[dict[str, Any]]:
        """Return every combination of a policy's options."""
        tried = self.options.get(policy, {})
        return [dict(zip(tried, values, strict=True)) for values in product(*tried.values())]

    def as_json(self) -> dict[str, Any]:
        """Return everything that the results depend on, as JSON has it."""
        content: dict[str, Any] = json.loads(json.dumps({**asdict(self), "shoal": __version__}))
        return content


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Say in one line what differs between two configurations.

    >>> differences({"horizon": [100], "runs": 2}, {"horizon": [200], "runs": 2})
    'horizon was [100], is [200]'
    """
    changed = [
        f"{key} was {json.dumps(before.get(key))}, is {json.dumps(now.get(key))}"
        for key in [*before, *(key for key in now if key not in before)]
        if before.get(key) != now.get(key)
    ]
    return "; ".join(changed)


def read_configuration(path: str | Path) -> Configuration:
    """Read a sweep's TOML file; what is wrong is told with its line."""
    file = Toml(Path(path))
    known = [f.name for f in fields(Configuration)]
    for key in file.content:
        if key not in known:
            raise UnknownNameError(f"key in {file.place(key)}", key, known)
    if "policies" not in file.content:
        raise InvalidInputError(f"{path} must name policies; got none.")
    values: dict[str, Any] = {
        key: _values(file, (key,), file.content[key], check)
        for key, check in _CHECKS.items()
        if key in file.content
    }
    if "runs" in file.content:
        values["runs"] = whole_number(file.where("runs"), file.content["runs"])
    values["options"] = _options(file, values["policies"])
    read = Configuration(**values)
    for users, least in product(read.users, read.min_group_size):
        if least > users:
            raise InvalidInputError(
                f"{file.where('min_group_size')} must be at most every number of users; "
                f"got {least} with {users} users."
            )
    _try_options(file, read)
    return read


def _values(
    file: Toml, keys: tuple[str, ...], given: Any, check: Callable[[str, Any], Any]
) -> tuple[Any, ...]:
    """Return a key's values, one or a list, each checked."""
    if not isinstance(given, list):
        return (check(file.where(*keys), given),)
    if not given:
        raise InvalidInputError(f"{file.where(*keys)} must have at least one value; got none.")
    values = tuple(check(file.where(*keys, item=i), value) for i, value in enumerate(given))
    for i, value in enumerate(values):
        if value in values[:i]:
            raise InvalidInputError(
                f"{file.where(*keys, item=i)} must differ from those before it; got {value!r}."
            )
    return values


def _count(name: str, value: Any) -> int:
    return whole_number(name, value)


def _seed(name: str, value: Any) -> int:
    return whole_number(name, value, least=0)


def _plain(name: str, value: Any) -> Any:
    """An option is what JSON can hold and compare."""
    if isinstance(value, list):
        return [_plain(name, item) for item in value]
    if isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise InvalidInputError(f"{name} must be a word, a number, true or false; got {value}.")


def _one_of(known: Mapping[str, object]) -> Callable[[str, Any], str]:
    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            raise UnknownNameError(name, str(value), known)
        return value

    return check


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "policies": _one_of(POLICIES),
    "instances": _one_of(INSTANCES),
    "users": _count,
    "arms": _count,
    "min_group_size": _count,
    "horizon": _count,
    "rewards": _one_of(REWARDS),
    "participation": share,
    "seed": _seed,
}


def _options(file: Toml, policies: tuple[str, ...]) -> dict[str, dict[str, tuple[Any, ...]]]:
    given = file.content.get("options", {})
    if not isinstance(given, dict):
        raise InvalidInputError(f"{file.where('options')} must be a table; got {given!r}.")
    read: dict[str, dict[str, tuple[Any, ...]]] = {}
    for policy, table in given.items():
        if policy not in policies:
            raise UnknownNameError(
                f"policy with options in {file.place('options', policy)}", policy, policies
            )
        if not isinstance(table, dict):
            raise InvalidInputError(
                f"{file.where('options', policy)} must be a table; got {table!r}."
            )
        known = find_policy(policy).options()
        read[policy] = {}
        for name, value in table.items():
            if name not in known:
                raise UnknownNameError(file.where("options", policy, name), name, known)
            read[policy][name] = _values(file, ("options", policy, name), value, _plain)
    return read


def _try_options(file: Toml, read: Configuration) -> None:
    """Make each policy once with each of its options, so that a bad value is told now."""
    least = read.min_group_size[0]
    users = min(read.users[0], max(MOST_USERS_TO_TRY, least + 1))  # an option knows no size
    problem = Problem(users, read.arms[0], least, read.horizon[0])
    for policy in read.options:
        for point in read.points(policy):
            try:
                make_policy(policy, problem, rng=np.random.default_rng(0), options=point)
            except ShoalError as error:
                # Our messages begin with the name; others are about the problem, not the option.
                name, _, rule = str(error).partition(" ")
                if name in point:
                    where = file.where("options", policy, name)
                    raise InvalidInputError(f"{where} {rule}") from None
