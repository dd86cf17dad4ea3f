"""The policies by name: what each needs, what it can do and what it guarantees.

``find_policy`` is the one rule by which a policy is found, wherever one is taken: a name below, a
name that an installed distribution brings, ``module:Class``, or a class or function (``own``).
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import InvalidInputError, ShoalError, UnknownNameError
from shoal.model import Problem
from shoal.model.numbers import as_path, generator, plain, shortened, truth_value
from shoal.policies.base import Origin, Policy
from shoal.policies.baselines import UCB, BestArm, RandomPlay, Thompson
from shoal.policies.own import (
    PolicyLike,
    PolicyMaker,
    all_options,
    check_maker,
    identity,
    installed,
    label,
    load_maker,
    own_place,
    unwrap,
)
from shoal.policies.paper.batched_elimination import BatchedElimination
from shoal.policies.paper.explore_then_commit import ExploreThenCommit
from shoal.policies.pooled.elimination import PooledElimination
from shoal.policies.pooled.explore_then_commit import PooledExploreThenCommit
from shoal.policies.pooled.thompson import PooledThompson
from shoal.policies.saved import read_saved
from shoal.policies.shoal import make_shoal

GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
"""NumPy's sources of randomness that a saved policy may have."""

_MANY = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


@dataclass(frozen=True)
class Entry:
    """What is known of a policy without making it."""

    policy: PolicyMaker  # makes it from (problem, rng=..., **options)
    summary: str
    needs: str
    guarantee: str  # how regret grows
    hindsight: bool = False  # the means must be known beforehand
    allows: bool = False  # Policy.allow can restrict which arms users play
    regroups: bool = False  # Policy.regroup can take groups that were drawn elsewhere
    takes_shards: bool = True  # it learns in each shard of a problem as if there were no other
    fixed: Mapping[str, Any] = field(default_factory=dict)  # options that the name decides

    @property
    def anonymous(self) -> bool:
        """Whether it sees totals alone; if not, it plays with a ``min_group_size`` of 1."""
        return bool(_attribute(self.policy, "anonymous", True))

    def options(self) -> dict[str, Any]:
        """Return the options that may be set, with their defaults."""
        return {
            p.name: p.default
            for p in self._parameters()
            if p.name not in ("problem", "rng", *self.fixed) and p.kind not in _MANY
        }

    def takes(self, option: str) -> bool:
        """Say whether an option may be set; a policy of one's own may take any (``**options``)."""
        return option in self.options() or any(
            p.kind is inspect.Parameter.VAR_KEYWORD for p in self._parameters()
        )

    def _parameters(self) -> list[inspect.Parameter]:
        return list(inspect.signature(self.policy).parameters.values())


def _algorithm_1(decomposition: str, summary: str, regret: str, clusters: str = "") -> Entry:
    # By default gamma is the paper's order without C, and arms are compared by the largest count.
    needed = f"{clusters}, untuned, pairwise=true and gamma = 3(4C+1)·log(NKT) (rewards in [0, 1])"
    guarantee = f"{regret} if {needed}" if clusters else regret
    fixed = {"decomposition": decomposition}
    return Entry(BatchedElimination, summary, "N > C, T", guarantee, fixed=fixed)


POLICIES: dict[str, Entry] = {
    "elimination-greedy": _algorithm_1(
        "greedy", "Algorithm 1, one arm at a time until the demand is met", "Õ(N·C·K·√T)", "U ≥ C+1"
    ),
    "elimination-greedy-printed": _algorithm_1(
        "greedy-printed", "Algorithm 1, one arm at a time, D times", "Õ(N·C·K·√T)", "U ≥ C+1"
    ),
    "elimination-random": _algorithm_1(
        "random", "Algorithm 1, random active arms", "none: crowds may be too small"
    ),
    "elimination-lp": _algorithm_1(
        "lp", "Algorithm 1, exact rounding by LP", "Õ(N·C·√(K·T))", "U ≥ K(C+1)"
    ),
    "elimination-blocks": _algorithm_1(
        "blocks", "Algorithm 1, blocks of arms", "Õ(N·C·K·√T)", "U ≥ C+1"
    ),
    "elimination-euler": _algorithm_1(
        "euler", "Algorithm 1, exact and even rounding", "Õ(N·C·K·√T)", "U ≥ C+1"
    ),
    "elimination-home-away": _algorithm_1(
        "home-away", "Algorithm 1, home users and visitors", "Õ(N·C·√(K·T))", "U ≥ C+1"
    ),
    "elimination-optimal": _algorithm_1(
        "optimal", "Algorithm 1, the fewest assignments", "Õ(N·C·√(K·T))", "U ≥ C+1"
    ),
    "pooled-elimination": Entry(
        PooledElimination,
        "Algorithm 1, all totals solved jointly",
        "N > C, T",
        "Õ(N·√(C·K·T)) if U ≥ 2C, untuned and with estimates=batch; none proved as shipped",
    ),
    "pooled-explore-then-commit": Entry(
        PooledExploreThenCommit,
        "Algorithm 2, all totals solved jointly",
        "N > C, T",
        "Õ(N·(C·K)^(1/3)·T^(2/3)) if N ≥ 2C",
    ),
    "pooled-thompson": Entry(
        PooledThompson,
        "Thompson sampling from totals",
        "nothing",
        "none: thin crowds starve it",
        regroups=True,
    ),
    "shoal": Entry(
        make_shoal,
        "the flagship, for every size",
        "nothing; T helps",
        "none proved, the best measured; with guarantee=true Õ(N·√(C·K·T)) if U ≥ 2C and "
        "Õ(N·(C·K)^(1/3)·T^(2/3)) if N ≥ 2C",
        allows=True,
        regroups=True,
    ),
    "explore-then-commit": Entry(
        ExploreThenCommit, "Algorithm 2", "N > C, T", "Õ(N·C^(2/3)·K^(1/3)·T^(2/3))"
    ),
    "ucb": Entry(UCB, "UCB1, each user alone", "every reward: not anonymous", "Õ(N·√(K·T))"),
    "thompson": Entry(
        Thompson,
        "Thompson sampling, each user alone",
        "every reward: not anonymous",
        "Õ(N·√(K·T))",
    ),
    "random": Entry(
        RandomPlay, "a random arm, every round", "nothing", "linear regret", regroups=True
    ),
    "best-arm": Entry(
        BestArm,
        "the best single arm in hindsight",
        "the means",
        "linear regret where tastes differ",
        hindsight=True,
    ),
}


def find_policy(policy: PolicyLike) -> Entry:
    """Return what is known of a policy.

    Parameters
    ----------
    policy
        A name of Shoal's or of an installed distribution's (entry points ``shoal.policies``);
        ``module:Class``, which is imported; a subclass of ``Policy``, or anything else that makes
        one from ``(problem, rng=..., **options)``. Shoal's own names come first.

    Examples
    --------
    >>> find_policy("shoal.policies.baselines:UCB").anonymous
    False
    >>> find_policy("shoall")
    Traceback (most recent call last):
    shoal.errors.UnknownNameError: policy must be a known name; got 'shoall': did you mean 'shoal'?
    """
    if isinstance(policy, str):
        if policy in POLICIES:
            return POLICIES[policy]
        if ":" not in policy and policy not in installed():
            if ("." in policy or policy != policy.lower()) and policy.lower() not in POLICIES:
                module, _, name = policy.rpartition(".")
                raise InvalidInputError(
                    f"policy must be a known name, or module:Class for one of your own, as in "
                    f"{module or 'module'}:{name}; got {policy!r}."
                )
            raise UnknownNameError("policy", policy, {*POLICIES, *installed()})
        maker = load_maker(policy)
    else:
        maker = check_maker(policy)
    # Not that of a base class, which inspect.getdoc would return.
    doc = getattr(unwrap(maker)[0], "__doc__", None)
    return Entry(
        maker,
        summary=inspect.cleandoc(doc or "").partition("\n")[0],
        needs="",
        guarantee="",
        allows=_attribute(maker, "_allow", Policy._allow) is not Policy._allow,
        regroups=bool(_attribute(maker, "takes_groups", False)),
        takes_shards=bool(_attribute(maker, "takes_shards", False)),
    )


def _attribute(maker: PolicyMaker, name: str, default: Any) -> Any:
    """Return an attribute of a class or function; a partial has that of what it calls."""
    return getattr(maker, name, getattr(unwrap(maker)[0], name, default))


def make_policy(
    policy: PolicyLike,
    problem: Problem,
    *,
    rng: np.random.Generator,
    options: Mapping[str, Any] | None = None,
) -> Policy:
    """Make a policy; see ``find_policy`` for what it may be given as.

    >>> problem = Problem(n_users=50, n_arms=5, min_group_size=4, horizon=1000)
    >>> policy = make_policy("explore-then-commit", problem, rng=np.random.default_rng(0))
    >>> policy.ask()
    Plan(n_users=50, n_groups=10, smallest_group=5, repeats=20)
    """
    if not isinstance(problem, Problem):
        raise InvalidInputError(f"problem must be a Problem; got {shortened(problem)}.")
    entry, chosen = find_policy(policy), check_options(policy, options or {})
    if problem.horizon is None and "T" in entry.needs.split(", "):
        raise InvalidInputError(f"policy {label(policy)!r} needs a horizon; got None.")
    keywords = {"rng": generator("rng", rng), **entry.fixed, **chosen}
    try:
        inspect.signature(entry.policy).bind(problem, **keywords)
    except TypeError as error:
        raise InvalidInputError(
            f"policy must be made from (problem, *, rng) and its options; got {label(policy)!r}: "
            f"{error}."
        ) from None
    try:
        learner = entry.policy(problem, **keywords)
    except Exception as error:
        is_refusal = isinstance(error, ShoalError | MemoryError | OSError)
        if is_refusal or identity(entry.policy).startswith("shoal."):
            raise
        place = own_place(error)
        reason = " ".join(str(error).split()).rstrip(".") + (f" ({place})" if place else "")
        raise InvalidInputError(
            f"policy {label(policy)!r} must take its problem and options; got "
            f"{type(error).__name__}: {reason}."
        ) from error
    if not isinstance(learner, Policy):
        raise InvalidInputError(
            f"policy must make a shoal.policies.Policy; got {shortened(learner)} of {policy!r}."
        )
    if not hasattr(learner, "problem"):
        raise InvalidInputError(
            f"{type(learner).__name__}.__init__ must call super().__init__(problem, rng=rng)."
        )
    learner.origin = Origin(identity(policy), all_options(policy, chosen), learner.parts())
    return learner


def load_policy(path: str | Path, *, policy: PolicyLike | None = None) -> Policy:
    """Return the policy that ``Policy.save`` wrote, which goes on bit for bit.

    Parameters
    ----------
    policy
        Your own class, or ``module:Class``, where the file is one of a policy of your own. It must
        have the name of the class that was saved. A file may name a policy of Shoal or of an
        installed distribution (``find_policy``); a ``module:Class`` in it is never imported.
    """
    content = read_saved(as_path("path", path))
    try:
        name, problem = content["policy"], Problem(**content["problem"])
        maker = _known_maker(name, policy, path)
        kind = content["state"]["rng"]["bit_generator"]
        if kind not in GENERATORS:
            raise LookupError(kind)
        rng = np.random.Generator(getattr(np.random, kind)())
        options = _options_beside(maker, content["options"])
        learner = make_policy(maker, problem, rng=rng, options=options)
    except InvalidInputError:
        raise
    except Exception as error:
        raise _other_version(path, error) from error
    try:
        learner.restore(content["state"])
    except Exception as error:  # a state of other code may break in any way
        raise _other_version(path, error) from error
    return learner


def _other_version(path: str | Path, error: Exception) -> InvalidInputError:
    reason = f"{type(error).__name__}: {error}".rstrip(".")
    return InvalidInputError(
        f"{path} must fit the policy as it is now; got the state of another version: {reason}."
    )


def _known_maker(name: str, policy: PolicyLike | None, path: str | Path) -> PolicyLike:
    """Return what makes the policy again: known by its name, or what the caller names."""
    if policy is None:
        if name in POLICIES or name in installed():
            return name
        raise InvalidInputError(
            f"policy must be given for a policy of your own; {path} holds one of {name!r}."
        )
    if identity(policy).rpartition(":")[2] != name.rpartition(":")[2]:
        raise InvalidInputError(
            f"policy must be the one that was saved, {name!r}; got {identity(policy)!r}."
        )
    return policy


def _options_beside(policy: PolicyLike, saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the saved options that a partial does not set; those that it sets must agree."""
    from shoal.model.container import pack

    maker, keywords = unwrap(policy)
    options, defaults = dict(saved), find_policy(maker).options()
    for name, value in keywords.items():
        was = options.pop(name, defaults.get(name))
        try:
            same = pack(was) == pack(value)
        except InvalidInputError:
            same = False
        if not same:
            raise InvalidInputError(
                f"{name} must be as it was saved, {shortened(was)}; got a partial of "
                f"{identity(maker)} with {shortened(value)}."
            )
    return options


def check_options(policy: PolicyLike, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with Python's numbers, or refuse one that the policy does not have.

    What a policy declares to be a ``bool`` must be one, also where a partial sets it.
    """
    entry = find_policy(policy)
    if not isinstance(options, Mapping):
        raise InvalidInputError(
            f"options must be a mapping of names to values; got {shortened(options)}."
        )
    for option in options:
        if not isinstance(option, str) or not entry.takes(option):
            raise UnknownNameError(f"option of {label(policy)!r}", option, entry.options())
    values = all_options(entry.policy, options)
    for parameter in entry._parameters():
        if parameter.annotation in (bool, "bool") and parameter.name in values:
            truth_value(parameter.name, values[parameter.name])
    return {name: plain(value) for name, value in options.items()}
