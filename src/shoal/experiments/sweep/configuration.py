"""The configuration of a sweep: lists of values, and every combination of them as a cell."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from shoal import __version__
from shoal.environments import REWARDS
from shoal.errors import InvalidInputError, ShoalError, UnknownNameError
from shoal.experiments.cells import Cell, blocks, combinations, runs_per_cell
from shoal.experiments.setting import Setting
from shoal.experiments.sweep.toml import Toml
from shoal.instances import INSTANCES
from shoal.model import Problem
from shoal.model.numbers import share, whole_number
from shoal.policies import POLICIES, find_policy, make_policy
from shoal.policies.tuned import resolve_options

MOST_CELLS = 1_000_000
MOST_USERS_TO_TRY = 10_000

AXES = {
    "seed": "seed",
    "instances": "instance",
    "users": "n_users",
    "arms": "n_arms",
    "min_group_size": "min_group_size",
    "horizon": "horizon",
    "rewards": "rewards",
    "participation": "participation",
}
"""The field of ``Setting`` that each key of the file lists values of, in the order of the cells."""


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """The values of a grid; a cell is one of each.

    ``options`` holds, by policy and option, the values to try. ``runs`` is the number of runs of
    every combination. Options that are not listed are the tuned ones, or with ``tuned=False`` the
    policy's defaults; None leaves it to the folder, and is True in a new one.
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
    tuned: bool | None = None

    def __post_init__(self) -> None:
        """Refuse, before it is laid out, a grid that no memory holds."""
        if self.n_cells > MOST_CELLS:
            raise InvalidInputError(
                f"a sweep must have at most {MOST_CELLS:,} cells; got {self.n_cells:,}."
            )

    @property
    def n_cells(self) -> int:
        """Settings × points × blocks of runs."""
        settings = math.prod(len(getattr(self, key)) for key in AXES if key != "users")
        points = sum(
            math.prod(map(len, self.options.get(policy, {}).values())) for policy in self.policies
        )
        return settings * points * sum(-(-self.runs // runs_per_cell(n)) for n in self.users)

    def cells(self, *, version: str = __version__) -> list[Cell]:
        """Return every cell of the grid, in its order, as this version of Shoal plays it."""
        options = {
            name: [
                (
                    policy,
                    resolve_options(policy, point, instance=name, tuned=self.tuned is not False),
                )
                for policy in self.policies
                for point in combinations(self.options.get(policy, {}))
            ]
            for name in self.instances
        }
        grid = {field: getattr(self, key) for key, field in AXES.items()}
        return [
            Cell(setting, policy, resolved, first_run, n_runs, version=version)
            for setting in (Setting(**values) for values in combinations(grid))
            for policy, resolved in options[setting.instance]
            for first_run, n_runs in blocks(setting.n_users, self.runs)
        ]

    def as_json(self) -> dict[str, Any]:
        """Return everything that the results depend on, as JSON has it."""
        more = {"tuned": self.tuned is not False, "shoal": __version__}
        content: dict[str, Any] = json.loads(json.dumps(asdict(self) | more))
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
    """Read a sweep's TOML file; an error names the line."""
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
    tuned = values["tuned"] = file.content.get("tuned")
    if tuned is not None and not isinstance(tuned, bool):
        raise InvalidInputError(f"{file.where('tuned')} must be true or false; got {tuned!r}.")
    values["options"] = _options(file, values["policies"])
    configuration = Configuration(**values)
    for users, min_group_size in product(configuration.users, configuration.min_group_size):
        if min_group_size > users:
            raise InvalidInputError(
                f"{file.where('min_group_size')} must be at most every number of users; "
                f"got {min_group_size} with {users} users."
            )
    _try_options(file, configuration)
    return configuration


def _values(
    file: Toml, keys: tuple[str, ...], content: Any, check: Callable[[str, Any], Any]
) -> tuple[Any, ...]:
    """Return a key's values, one or a list, each checked."""
    if not isinstance(content, list):
        return (check(file.where(*keys), content),)
    if not content:
        raise InvalidInputError(f"{file.where(*keys)} must have at least one value; got none.")
    values = tuple(check(file.where(*keys, item=i), value) for i, value in enumerate(content))
    for i, value in enumerate(values):
        if value in values[:i]:
            raise InvalidInputError(
                f"{file.where(*keys, item=i)} must differ from those before it; got {value!r}."
            )
    return values


def _json_value(name: str, value: Any) -> Any:
    """An option is what JSON can hold and compare."""
    if isinstance(value, list):
        return [_json_value(name, item) for item in value]
    if isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise InvalidInputError(f"{name} must be a word, a number, true or false; got {value}.")


def _one_of(known: Mapping[str, object]) -> Callable[[str, Any], str]:
    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            raise UnknownNameError(name, str(value), known)
        return value

    return check


_NUMBERS = ("users", "arms", "min_group_size", "horizon")
_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "policies": _one_of(POLICIES),
    "instances": _one_of(INSTANCES),
    **dict.fromkeys(_NUMBERS, whole_number),
    "rewards": _one_of(REWARDS),
    "participation": share,
    "seed": partial(whole_number, least=0),
}


def _options(file: Toml, policies: tuple[str, ...]) -> dict[str, dict[str, tuple[Any, ...]]]:
    tables = file.content.get("options", {})
    if not isinstance(tables, dict):
        raise InvalidInputError(f"{file.where('options')} must be a table; got {tables!r}.")
    options: dict[str, dict[str, tuple[Any, ...]]] = {}
    for policy, table in tables.items():
        if policy not in policies:
            raise UnknownNameError(
                f"policy with options in {file.place('options', policy)}", policy, policies
            )
        if not isinstance(table, dict):
            raise InvalidInputError(
                f"{file.where('options', policy)} must be a table; got {table!r}."
            )
        known = find_policy(policy).options()
        options[policy] = {}
        for name, value in table.items():
            if name not in known:
                raise UnknownNameError(file.where("options", policy, name), name, known)
            options[policy][name] = _values(file, ("options", policy, name), value, _json_value)
    return options


def _try_options(file: Toml, configuration: Configuration) -> None:
    """Make each policy once with each of its options, so that a bad value is refused now."""
    min_group_size = configuration.min_group_size[0]
    n_users = min(configuration.users[0], max(MOST_USERS_TO_TRY, min_group_size + 1))
    problem = Problem(n_users, configuration.arms[0], min_group_size, configuration.horizon[0])
    for policy, options in configuration.options.items():
        for point in combinations(options):
            try:
                make_policy(policy, problem, rng=np.random.default_rng(0), options=point)
            except ShoalError as error:
                # Our messages begin with the name; others are about the problem, not the option.
                name, _, rule = str(error).partition(" ")
                if name in point:
                    where = file.where("options", policy, name)
                    raise InvalidInputError(f"{where} {rule}") from None
