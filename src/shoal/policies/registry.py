"""The policies by name: what each needs, what it can do and what it guarantees."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.errors import UnknownNameError
from shoal.model import Problem
from shoal.policies.base import Policy
from shoal.policies.baselines import UCB, BestArm, RandomPlay, Thompson
from shoal.policies.paper.batched_elimination import BatchedElimination
from shoal.policies.paper.explore_then_commit import ExploreThenCommit
from shoal.policies.pooled.elimination import PooledElimination
from shoal.policies.pooled.explore_then_commit import PooledExploreThenCommit
from shoal.policies.pooled.thompson import PooledThompson
from shoal.policies.shoal import make_shoal


@dataclass(frozen=True)
class Entry:
    """What is known of a policy without making it."""

    policy: Callable[..., Policy]  # makes it from (problem, rng=..., **options)
    summary: str
    needs: str
    guarantee: str  # how regret grows
    anonymous: bool = True  # False: it sees every reward, and plays with min_group_size = 1
    hindsight: bool = False  # the means must be known beforehand
    allows: bool = False  # Policy.allow can restrict which arms users play
    regroups: bool = False  # Policy.regroup can take groups that were drawn elsewhere
    fixed: Mapping[str, Any] = field(default_factory=dict)  # options that the name decides

    def options(self) -> dict[str, Any]:
        """Return the options that may be set, with their defaults."""
        parameters = inspect.signature(self.policy).parameters.values()
        return {
            p.name: p.default
            for p in parameters
            if p.name not in ("problem", "rng") and p.name not in self.fixed
        }


def _algorithm_1(decomposition: str, summary: str, regret: str, clusters: str = "") -> Entry:
    # The default gamma is the paper's order without C, which its analysis needs.
    guarantee = f"{regret} if {clusters} and gamma ≥ (4C+1)·log(NKT)" if clusters else regret
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
    "ucb": Entry(
        UCB, "UCB1, each user alone", "every reward: not anonymous", "Õ(N·√(K·T))", anonymous=False
    ),
    "thompson": Entry(
        Thompson,
        "Thompson sampling, each user alone",
        "every reward: not anonymous",
        "Õ(N·√(K·T))",
        anonymous=False,
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


def find_policy(name: str) -> Entry:
    """Return a policy's entry, or refuse the name with the nearest known ones."""
    if name not in POLICIES:
        raise UnknownNameError("policy", name, POLICIES)
    return POLICIES[name]


def make_policy(
    name: str,
    problem: Problem,
    *,
    rng: np.random.Generator,
    options: Mapping[str, Any] | None = None,
) -> Policy:
    """Make a policy by name.

    >>> problem = Problem(n_users=50, n_arms=5, min_group_size=4, horizon=1000)
    >>> policy = make_policy("explore-then-commit", problem, rng=np.random.default_rng(0))
    >>> policy.ask()
    Plan(n_users=50, n_groups=10, smallest_group=5, repeats=20)
    """
    chosen = options or {}
    check_options(name, chosen)
    entry = POLICIES[name]
    return entry.policy(problem, rng=rng, **entry.fixed, **chosen)


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Refuse an unknown policy, or options that it does not have."""
    known = find_policy(name).options()
    for option in options:
        if option not in known:
            raise UnknownNameError(f"option of {name!r}", option, known)
