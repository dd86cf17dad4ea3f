"""The configuration of a sweep: lists of values, and every combination of them as a cell."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Self

import numpy as np

from shoal import __version__
from shoal.errors import InvalidInputError, ShoalError, UnknownNameError
from shoal.experiments.cells import Cell, combinations, runs_per_cell, split_runs
from shoal.experiments.setting import GIVEN, PAPER_SETTING, Setting
from shoal.experiments.sweep.toml import Toml
from shoal.instances import INSTANCES
from shoal.model import Problem
from shoal.model.numbers import as_path, plain, truth_value, whole_number
from shoal.policies import POLICIES, find_policy, make_policy
from shoal.policies.own import code_hash, importable
from shoal.policies.tuned import check_played, options_by_policy, resolve_options

MAX_CELLS = 1_000_000
MAX_USERS_TO_TRY = 10_000

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
    """The values of a grid, one or several of each; a cell is one of each.

    A policy of your own is ``module:Class``, or the class itself, from a module that other
    processes can import. ``options`` holds, by policy and option, the values to try. ``runs`` is
    the number of runs of every combination. Options that are not listed are the tuned ones, or with
    ``tuned=False`` the policy's defaults; None leaves it to the folder, and is True in a new one.
    """

    policies: Any
    instances: Sequence[str] | str = ("uniform",)
    users: Sequence[int] | int = (50,)
    arms: Sequence[int] | int = (5,)
    min_group_size: Sequence[int] | int = (4,)
    horizon: Sequence[int] | int = (100_000,)
    rewards: Sequence[str] | str = ("bernoulli",)
    participation: Sequence[float] | float = (1.0,)
    seed: Sequence[int] | int = (0,)
    options: Mapping[Any, Mapping[str, Any]] = field(default_factory=dict)
    runs: int = 20
    tuned: bool | None = None

    def __new__(cls, **values: Any) -> Self:
        """Refuse an unknown name, with the nearest one that is known."""
        known = [part.name for part in fields(cls)]
        for name in values:
            if name not in known:
                raise UnknownNameError("argument of Configuration", name, known)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Name policies so that a later process finds them; refuse a grid that no memory holds."""
        for key in ("policies", *AXES):
            values = _as_tuple(getattr(self, key))
            if not values:
                raise InvalidInputError(f"{key} must have at least one value; got none.")
            object.__setattr__(self, key, values)
        object.__setattr__(self, "runs", whole_number("runs", self.runs))
        if self.tuned is not None:
            object.__setattr__(self, "tuned", truth_value("tuned", self.tuned))
        for n_users in _as_tuple(self.users):
            whole_number("users", n_users, minimum=None)
        policies = tuple(importable(policy) for policy in self.policies)
        object.__setattr__(self, "policies", policies)
        named = {
            policy: {name: _as_tuple(values) for name, values in options.items()}
            for policy, options in options_by_policy(self.options, importable).items()
        }
        object.__setattr__(self, "options", named)
        for policy in named:
            check_played("policy with options", policy, policies)
        if self.n_cells > MAX_CELLS:
            raise InvalidInputError(
                f"a sweep must have at most {MAX_CELLS:,} cells; got {self.n_cells:,}."
            )

    @property
    def n_cells(self) -> int:
        """Settings × points × blocks of runs."""
        settings = math.prod(len(getattr(self, key)) for key in AXES if key != "users")
        n_cells: int = 0
        for policy, n_users in product(self.policies, _as_tuple(self.users)):
            points = math.prod(map(len, self.options.get(policy, {}).values()))
            size = runs_per_cell(n_users, takes_shards=find_policy(policy).takes_shards)
            n_cells += settings * points * -(-self.runs // size)
        return n_cells

    def code(self) -> dict[str, str]:
        """Return a hash of the file that defines each policy that is not Shoal's own."""
        return {name: code_hash(name) for name in self.policies if name not in POLICIES}

    def cells(
        self, *, version: str = __version__, code: Mapping[str, str] | None = None
    ) -> list[Cell]:
        """Return every cell of the grid, in its order, as this version of Shoal plays it.

        ``code`` is what the policies' code was, by default what it is.
        """
        hashes = self.code() if code is None else code
        tuned = self.tuned is not False
        takes_shards = {policy: find_policy(policy).takes_shards for policy in self.policies}
        points = {
            name: [
                (policy, resolve_options(policy, point, instance=name, tuned=tuned))
                for policy in self.policies
                for point in combinations(self.options.get(policy, {}))
            ]
            for name in self.instances
        }
        grid = {field: getattr(self, key) for key, field in AXES.items()}
        return [
            Cell(
                setting,
                policy,
                options,
                first_run,
                n_runs,
                version=version,
                code=hashes.get(policy),
            )
            for setting in (Setting(**values) for values in combinations(grid))
            for policy, options in points[setting.instance]
            for first_run, n_runs in split_runs(
                setting.n_users, self.runs, takes_shards=takes_shards[policy]
            )
        ]

    def as_json(self) -> dict[str, Any]:
        """Return everything that the results depend on, as JSON has it."""
        more = {"tuned": self.tuned is not False, "shoal": __version__}
        more |= {"code": code} if (code := self.code()) else {}
        content: dict[str, Any] = json.loads(json.dumps(asdict(self) | more))
        return content


def _as_tuple(values: Any) -> tuple[Any, ...]:
    """Return several values, or one, as a tuple with Python's numbers."""
    several = isinstance(values, list | tuple | range | np.ndarray)
    return tuple(plain(value) for value in values) if several else (plain(values),)


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Say in one line what differs between two configurations.

    >>> differences({"horizon": [100], "runs": 2}, {"horizon": [200], "runs": 2})
    'horizon was [100], is [200]'
    """
    return "; ".join(
        f"{key} was {json.dumps(before.get(key))}, is {json.dumps(now.get(key))}"
        for key in {**before, **now}
        if before.get(key) != now.get(key)
    )


def read_configuration(path: str | Path) -> Configuration:
    """Read a sweep's TOML file; an error names the line."""
    file = Toml(as_path("path", path))
    known = [f.name for f in fields(Configuration)]
    for key in file.content:
        if key not in known:
            raise UnknownNameError(f"key in {file.place(key)}", key, known)
    if "policies" not in file.content:
        raise InvalidInputError(f"{path} must name policies; got none.")
    values: dict[str, Any] = {"policies": _values(file, _policy_name, "policies")}
    for key, name in AXES.items():
        if key in file.content:
            smallest = min(values.get("users", Configuration.users))
            values[key] = _values(file, partial(_setting_value, name, smallest), key)
    if "runs" in file.content:
        values["runs"] = whole_number(file.where("runs"), file.content["runs"])
    tuned = values["tuned"] = file.content.get("tuned")
    if tuned is not None:
        truth_value(file.where("tuned"), tuned)
    if "options" in file.content:
        values["options"] = _options(file, values["policies"])
    configuration = Configuration(**values)
    _try_options(file, configuration)
    return configuration


def _values(file: Toml, check: Callable[[Any], Any], *keys: str) -> tuple[Any, ...]:
    """Return a key's values, one or a list, each checked."""
    content = file.value(*keys)
    if not isinstance(content, list):
        return (_checked(file.where(*keys), check, content),)
    if not content:
        raise InvalidInputError(f"{file.where(*keys)} must have at least one value; got none.")
    values: list[Any] = []
    for i, value in enumerate(content):
        where = file.where(*keys, item=i)
        values.append(_checked(where, check, value))
        if values[-1] in values[:-1]:
            raise InvalidInputError(f"{where} must differ from those before it; got {value!r}.")
    return tuple(values)


def _checked(where: str, check: Callable[[Any], Any], value: Any) -> Any:
    """Return what a check returns. Our messages begin with the name: the place replaces it."""
    try:
        return check(value)
    except UnknownNameError as error:
        raise UnknownNameError(where, *error.args[1:]) from None
    except ShoalError as error:
        raise InvalidInputError(f"{where} {str(error).partition(' ')[2]}") from None


def _policy_name(value: Any) -> str:
    find_policy(str(value))
    return str(value)


def _setting_value(name: str, n_users: int, value: Any) -> Any:
    """Return a value as a setting of the fewest users has it; means can't be given in a file."""
    scalar = value if isinstance(value, int | float) else str(value)
    if name == "instance" and scalar == GIVEN:
        raise UnknownNameError(name, scalar, INSTANCES)
    values = vars(PAPER_SETTING) | {"min_group_size": 1, "n_users": n_users, name: scalar}
    return getattr(Setting(**values), name)


def _option_value(value: Any) -> Any:
    """An option is what JSON can hold and compare."""
    if isinstance(value, list):
        return [_option_value(item) for item in value]
    if isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise InvalidInputError(f"option must be a word, a number, true or false; got {value}.")


def _options(file: Toml, policies: Sequence[str]) -> dict[str, dict[str, tuple[Any, ...]]]:
    options: dict[str, dict[str, tuple[Any, ...]]] = {}
    for policy in _table(file, "options"):
        place = file.place("options", policy)
        check_played(f"policy with options in {place}", policy, policies)
        entry = find_policy(policy)
        options[policy] = {}
        for name in _table(file, "options", policy):
            keys = ("options", policy, name)
            if not entry.takes(name):
                raise UnknownNameError(file.where(*keys), name, entry.options())
            options[policy][name] = _values(file, _option_value, *keys)
    return options


def _table(file: Toml, *keys: str) -> dict[str, Any]:
    table = file.value(*keys)
    if not isinstance(table, dict):
        raise InvalidInputError(f"{file.where(*keys)} must be a table; got {table!r}.")
    return table


def _try_options(file: Toml, configuration: Configuration) -> None:
    """Make each policy once with each of its options, so that a bad value is refused now."""
    keys = ("users", "arms", "min_group_size", "horizon")
    n_users, n_arms, size, horizon = (getattr(configuration, key)[0] for key in keys)
    n_users = min(n_users, max(MAX_USERS_TO_TRY, size + 1))
    problem = Problem(n_users, n_arms, size, horizon)
    for policy, options in configuration.options.items():
        for point in combinations(options):
            try:
                make_policy(policy, problem, rng=np.random.default_rng(0), options=point)
            except ShoalError as error:
                name, _, rule = str(error).partition(" ")
                if name in point:  # others are about the problem, not the option
                    where = file.where("options", policy, name)
                    raise InvalidInputError(f"{where} {rule}") from None
                if error.__cause__ is not None:  # what the constructor of one's own class raised
                    raise
