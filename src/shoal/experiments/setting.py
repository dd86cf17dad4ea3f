"""The one list of what an experiment's result depends on, but for the policy.

``compare``, ``tune``, ``price``, ``sweep`` and shards are each a grid of settings; the functions
take the fields by name, or a whole ``Setting``. ``turnover`` is how people change; how much of that
a learner expects is an option of the policies that follow it, ``drift``.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from shoal.arrays import FloatArray
from shoal.environments import check_means, check_rewards
from shoal.errors import InvalidInputError, UnknownNameError
from shoal.experiments.seeds import stream
from shoal.instances import INSTANCES
from shoal.model import Problem
from shoal.model.numbers import share, shortened, whole_number

GIVEN = "given"
"""The class of a caller's own means."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Everything that an experiment's result depends on, but for the policy.

    Parameters
    ----------
    n_users, n_arms, min_group_size, horizon
        The problem, see ``Problem``.
    rewards
        "bernoulli", "gaussian", "bounded" or "deterministic".
    participation
        Probability that a user reports in a round; in ``simulate`` also one for each user.
    turnover
        Probability that a user changes in a round: those who do exchange their means.
    seed
        Same seed, same bytes.
    instance, instance_options
        Class of the instances, with options of the function that draws them; "given" for means
        of the caller's own.

    Examples
    --------
    >>> setting = Setting(n_users=20, n_arms=3, min_group_size=4, horizon=100)
    >>> print(setting)
    n_users=20, n_arms=3, min_group_size=4, horizon=100, rewards=bernoulli, participation=1.0, \
seed=0, instance=uniform
    >>> setting.draw().shape
    (20, 3)
    """

    n_users: int
    n_arms: int
    min_group_size: int
    horizon: int
    rewards: str = "bernoulli"
    participation: ArrayLike = 1.0
    seed: int = 0
    instance: str = "uniform"
    instance_options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    turnover: float = 0.0

    def __post_init__(self) -> None:
        check_rewards(self.rewards)
        if self.instance != GIVEN:
            check_instance(self.instance)
        check_instance_options(self.instance, self.instance_options)
        horizon = whole_number("horizon", self.horizon)
        problem = Problem(self.n_users, self.n_arms, self.min_group_size, horizon)
        names = ("n_users", "n_arms", "min_group_size", "horizon")
        plain: dict[str, Any] = {name: getattr(problem, name) for name in names}
        plain["seed"] = whole_number("seed", self.seed, minimum=0)
        if np.ndim(self.participation):
            plain["participation"] = tuple(np.asarray(self.participation).tolist())
        else:
            plain["participation"] = share("participation", self.participation)
        plain["turnover"] = share("turnover", self.turnover)
        for name, value in plain.items():
            object.__setattr__(self, name, value)

    def check_one_participation(self) -> None:
        """Refuse one for each user where several runs or shards are played side by side."""
        if np.ndim(self.participation):
            raise InvalidInputError(
                "participation must be one number here; one for each user is taken by simulate of "
                f"a single matrix; got {shortened(self.participation)}."
            )

    def as_json(self, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the fields by name, but for those in ``without`` and what is not set."""
        optional = ("instance_options", "turnover")
        absent = (*without, *(name for name in optional if not getattr(self, name)))
        return {name: value for name, value in vars(self).items() if name not in absent}

    def __str__(self) -> str:
        return spell(self.as_json())

    def draw(self, run: int = 0, *, purpose: str = "comparison") -> FloatArray:
        """Draw the means of one run, (n_users, n_arms).

        Each purpose has streams of its own, so that nothing is tuned on what is reported. The
        shards of one population share its tastes.
        """
        name = {"price": "population", "shard": "users"}.get(purpose, self.instance)
        rng, common = stream(self.seed, purpose, name, run), None
        if purpose == "shard":
            common = stream(self.seed, purpose, "population", self.instance)
        check_instance(self.instance)
        draw = INSTANCES[self.instance]
        return draw(self.n_users, self.n_arms, rng=rng, common=common, **self.instance_options)


def check_instance(name: Any) -> None:
    """Refuse what is not the name of a class of instances."""
    if not isinstance(name, str):
        raise InvalidInputError(
            f"instance must be a name, one of {', '.join(INSTANCES)}, and expected rewards of your "
            f"own are given as means=...; got {shortened(name)}."
        )
    if name not in INSTANCES:
        remedy = "means=... in simulate, compare or price" if name == GIVEN else ""
        raise UnknownNameError("instance", name, INSTANCES, remedy)


def check_instance_options(instance: str, options: Any) -> None:
    """Refuse options that the function which draws these instances does not have."""
    if not isinstance(options, Mapping):
        raise InvalidInputError(
            f"instance_options must be a mapping of names to values; got {shortened(options)}."
        )
    known: list[str] = []
    if instance in INSTANCES:  # after n_users, n_arms, rng and common
        known = list(signature(INSTANCES[instance]).parameters)[4:]
    for option in options:
        if option not in known:
            raise UnknownNameError(f"option of instance {instance!r}", option, known)


def spell(values: Mapping[str, Any]) -> str:
    """Return NAME=VALUE pairs as one line."""
    return ", ".join(f"{name}={value}" for name, value in values.items())


class SettingOptions(TypedDict, total=False):
    """The fields of a ``Setting`` as keyword arguments, and ``setting``, a whole one to change."""

    setting: Setting
    n_users: int
    n_arms: int
    min_group_size: int
    horizon: int
    rewards: str
    participation: ArrayLike
    seed: int
    instance: str
    instance_options: Mapping[str, Any]
    turnover: float


PAPER_SETTING = Setting(n_users=50, n_arms=5, min_group_size=4, horizon=100_000)
"""The setting of the paper's simulations."""


OTHER_NAMES = {
    "log": "population=from_log(log).population",
    "n_rounds": "horizon",
    "n_workers": "engine=LocalEngine(n_workers=...)",
    "rng": "seed",
    "rounds": "horizon",
    "runs": "n_runs",
    "workers": "engine=LocalEngine(n_workers=...)",
}
"""What arguments are called elsewhere, and here."""


def check_arguments(function: Callable[..., Any], options: SettingOptions) -> None:
    """Refuse an argument that neither the function nor a ``Setting`` has."""
    parameters = signature(function).parameters.values()
    known = [part.name for part in parameters if part.kind is not part.VAR_KEYWORD]
    known += SettingOptions.__annotations__
    for name in options:
        if name not in known:
            suggestion = OTHER_NAMES.get(name, "")
            if suggestion.partition("=")[0] not in known:
                suggestion = ""
            raise UnknownNameError(f"argument of {function.__name__}", name, known, suggestion)


def field_value(options: SettingOptions, name: str) -> Any:
    """Return a caller's value of a field, by name or in a whole setting, None where there is none.

    >>> setting = Setting(n_users=20, n_arms=3, min_group_size=4, horizon=100)
    >>> [field_value(options, "n_users") for options in ({"setting": setting, "n_users": 9},
    ...                                                  {"setting": setting}, {})]
    [9, 20, None]
    """
    value = options.get(name)
    return getattr(options.get("setting"), name, None) if value is None else value


def named_instance(options: SettingOptions) -> Any:
    """Return the class of instances that a caller asks for, None where there is none.

    A whole setting always has one: the default of ``Setting`` asks for nothing.
    """
    instance = field_value(options, "instance")
    is_default = "instance" not in options and instance == Setting.instance
    return None if is_default else instance


def check_shape(options: SettingOptions, n_users: int, n_arms: int) -> None:
    """Refuse what the caller's means decide: other numbers of users and arms, and how to draw."""
    instance_options = field_value(options, "instance_options")
    if instance_options:
        raise InvalidInputError(
            f"instance_options must be left out beside means; got {instance_options!r}."
        )
    for name, number in (("n_users", n_users), ("n_arms", n_arms)):
        value = field_value(options, name)
        if value not in (None, number):
            raise InvalidInputError(
                f"{name} must be left out beside means, or be their number, {number}; "
                f"got {value!r}."
            )


def make_setting(options: SettingOptions, *, base: Setting | None = None, **fields: Any) -> Setting:
    """Return the setting of a caller's options, which change ``base``; ``fields`` override both."""
    start = options.get("setting", base)
    named = {name: value for name, value in options.items() if name != "setting"}
    if start is not None and not isinstance(start, Setting):
        raise InvalidInputError(f"setting must be a Setting; got {shortened(start)}.")
    values = {**(vars(start) if start else {}), **named, **fields}
    for name in ("n_users", "n_arms", "min_group_size", "horizon"):
        if name not in values:
            raise InvalidInputError(
                f"{name} must be given, a whole number of at least 1; it is missing."
            )
    return Setting(**values)


def setting_and_means(
    options: SettingOptions,
    means: ArrayLike | None,
    *,
    base: Setting | None = None,
    **fields: Any,
) -> tuple[Setting, FloatArray | None]:
    """Return a setting, and the caller's own means as a checked matrix, if there are any."""
    if means is None:
        return make_setting(options, base=base, **fields), None
    start = options.get("setting", base)
    rewards = options.get("rewards", start.rewards if start else "bernoulli")
    matrix = check_means(means, rewards=rewards)
    check_shape(options, *matrix.shape)
    fields |= {"n_users": len(matrix), "n_arms": matrix.shape[1], "instance": GIVEN}
    return make_setting(options, base=base, **fields, instance_options={}), matrix


def means_hash(matrix: FloatArray | None) -> dict[str, str]:
    """Return what a configuration says of the caller's own means."""
    return {} if matrix is None else {"means_sha256": hashlib.sha256(matrix.tobytes()).hexdigest()}
