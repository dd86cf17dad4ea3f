"""A campaign: what the operator decides once, and nobody can change afterwards.

C is part of it, so C is never lowered. A campaign has a fixed number of seats, which
is the policy's ``n_users``; a user who joins takes the next free seat and keeps it for good, so
that what was learnt in a seat is always about one person. It has a fixed number of slots for arms
in the same way, which is the policy's ``n_arms``: arms may be added to free slots and retired.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from shoal.arrays import IntArray
from shoal.errors import InvalidInputError, ShoalError
from shoal.model import Problem
from shoal.policies import make_policy
from shoal.policies.base import Policy
from shoal.policies.registry import find_policy

DEFAULT_POLICY = "shoal"

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
# A "." or ".." is no name: it would vanish from an address. The engine knows no look-ahead.
_OF_USER, _OF_WORD = r"A-Za-z0-9_~@:+=-", r"\x00-\x1f\x7f"
USER = rf"^([.{_OF_USER}]{{3,128}}|[{_OF_USER}][.{_OF_USER}]?|\.[{_OF_USER}])$"
WORD = rf"^([^{_OF_WORD}]{{3,64}}|[^{_OF_WORD}.][^{_OF_WORD}]?|\.[^{_OF_WORD}.])$"
PATTERN_RULES = {
    NAME: "must be 1 to 64 ASCII letters, digits or ._-, the first one a letter or digit",
    USER: 'must be 1 to 128 ASCII letters, digits or ._~@:+=-, but not "." or ".."',
    WORD: 'must be 1 to 64 characters in one line, but not "." or ".."',
}
# They turn the direction of what is written beside them: a name could look like another.
BIDIRECTIONAL = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
MAX_SEATS = 10_000_000
MAX_ARMS = 1000
NEAR_REPEATS = 10  # by default, within the rounds that are remembered

Word = Annotated[str, StringConstraints(pattern=WORD)]


def _is_no_module(policy: str) -> str:
    """Refuse ``module:Class``: who may create a campaign does not decide what is imported."""
    if ":" in policy:
        raise ValueError(f"must be the name of an installed policy; got {policy!r}")
    return policy


class Frozen(BaseModel):
    """Strict, closed and unchangeable."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Schedule(Frozen):
    """A campaign that runs by itself."""

    open_every_hours: float = Field(gt=0, le=10_000, description="From one opening to the next.")
    close_after_hours: float = Field(gt=0, le=10_000, description="From opening to release.")
    close_when_all_reported: bool = False

    @model_validator(mode="after")
    def _in_order(self) -> Schedule:
        if self.close_after_hours > self.open_every_hours:
            raise ValueError(
                "close_after_hours must be at most open_every_hours; "
                f"got {self.close_after_hours:g} and {self.open_every_hours:g}"
            )
        return self


class Noise(Frozen):
    """Noise on every released total."""

    epsilon: float = Field(ge=0.001, le=100, description="Of each round; rounds add up.")


class Campaign(Frozen):
    """The definition of a campaign."""

    arms: list[Word] = Field(min_length=1, max_length=MAX_ARMS, description="Names of the arms.")
    arm_slots: int | None = Field(
        default=None, ge=1, le=MAX_ARMS, description="Most arms over the whole campaign."
    )
    min_group_size: int = Field(ge=1, le=MAX_SEATS, description="C: least users behind a total.")
    seats: int = Field(ge=1, le=MAX_SEATS, description="Most users over the whole campaign.")
    colluders: int = Field(
        default=0, ge=0, le=MAX_SEATS, description="Users who may pool what they know; raises C."
    )
    reward_steps: int = Field(default=1000, ge=1, le=100_000_000, description="The public grid.")
    horizon: int | None = Field(default=None, ge=1, le=2**31 - 1, description="Rounds to play.")
    policy: Annotated[Word, AfterValidator(_is_no_module)] = DEFAULT_POLICY
    options: dict[str, bool | int | float | str] = Field(default_factory=dict, max_length=50)
    seed: int = Field(default=0, ge=0, le=2**63 - 1)
    schedule: Schedule | None = None
    noise: Noise | None = None
    contested: Literal["count", "refuse"] = Field(
        default="count",
        description="Contested reports are refused; count: their number is shown, refuse: the "
        "round is withheld as well.",
    )
    grouping: Literal["aggregator", "learner"] | None = Field(
        default=None, description="Who draws the groups: by default the aggregator where it can."
    )
    measure: Literal["all", "planned"] | None = Field(
        default=None, description="Who is in a group: by default everyone who can be."
    )
    near_repeats: int | None = Field(
        default=None,
        ge=0,
        le=1000,
        description="Most earlier groups that a chosen one may differ from by fewer than C.",
    )
    capabilities: bool = Field(default=False, description="Reports carry their user's capability.")
    holdout: float | None = Field(
        default=None, gt=0, le=0.5, description="Share of seats that play the best arm so far."
    )

    @model_validator(mode="after")
    def _whole(self) -> Campaign:
        if len(set(self.arms)) != len(self.arms):
            repeated = next(arm for arm in self.arms if self.arms.count(arm) > 1)
            raise ValueError(f"arms must have different names; got {repeated[:40]!r} twice")
        if self.n_arms < len(self.arms):
            raise ValueError(
                "arm_slots must be at least the number of arms; "
                f"got {self.n_arms} for {len(self.arms)} arms"
            )
        if self.min_reporters > self.seats:
            raise ValueError(
                "min_group_size + colluders must be at most seats; "
                f"got {self.min_group_size} + {self.colluders} and {self.seats} seats"
            )
        if self.holdout and min(self.n_held_out, self.seats - self.n_held_out) < self.min_reporters:
            raise ValueError(
                "holdout must leave at least min_group_size + colluders seats inside and outside; "
                f"got {self.n_held_out} inside and {self.seats - self.n_held_out} outside"
            )
        return self

    @property
    def min_reporters(self) -> int:
        """Return the least reporters behind any total: C and the assumed colluders."""
        return self.min_group_size + self.colluders

    @property
    def n_held_out(self) -> int:
        """Return the number of seats that are held out."""
        return round((self.holdout or 0.0) * self.seats)

    @property
    def n_arms(self) -> int:
        """Return the number of slots for arms."""
        return self.arm_slots or len(self.arms)

    def problem(self) -> Problem:
        """Return the problem that the policy plays: one user per seat, one arm per slot."""
        bounded = self.noise is None  # a noisy total may be below 0, or above its reports
        return Problem(
            self.seats, self.n_arms, min_group_size=self.min_reporters,  # also among colluders
            horizon=self.horizon, bounded=bounded,
        )  # fmt: skip

    def check_new(self) -> None:
        """Refuse what no new campaign may have; stored ones go on as they are."""
        for arm in self.arms:
            check_arm(arm)
        if self.n_arms < 2:
            raise InvalidInputError(
                "arms must be at least two, or arm_slots more than one: with one arm there is "
                f"nothing to choose, and people would be measured for nothing; got {self.n_arms}."
            )

    def is_flexible(self) -> bool:
        """Return whether the policy can restrict who plays what; others plan for all seats."""
        return find_policy(self.policy).allows

    def resolved(self) -> Campaign:
        """Return the campaign with what it does not say of groups; one of 0.1 says nothing of them.

        A policy whose groups are part of its method draws them itself, without a limit on repeats
        unless the campaign has one.
        """
        grouping = self.grouping or (
            "aggregator" if find_policy(self.policy).regroups else "learner"
        )
        limit = self.near_repeats
        if limit is None and grouping == "aggregator":
            limit = NEAR_REPEATS
        measure = self.measure or "all"
        changed = {"grouping": grouping, "measure": measure, "near_repeats": limit}
        return self.model_copy(update=changed)

    def make_policy(self) -> Policy:
        """Make the policy, or refuse a name, an option or a size that it can't work with."""
        entry = find_policy(self.policy)
        if not entry.anonymous or entry.hindsight:
            raise InvalidInputError(f"policy must be anonymous; got {self.policy!r}.")
        options: dict[str, Any] = dict(self.options)
        rng = np.random.default_rng(self.seed)
        try:
            policy = make_policy(self.policy, self.problem(), rng=rng, options=options)
        except TypeError as error:
            raise ShoalError(f"options must fit the policy {self.policy!r}.") from error
        if self.n_arms > len(self.arms) and not entry.allows:
            raise InvalidInputError(
                f"arm_slots must be the number of arms for {self.policy!r}, whose arms are fixed; "
                f"got {self.n_arms}."
            )
        if self.grouping == "aggregator" and not entry.regroups:
            raise InvalidInputError(
                f"grouping must be learner for {self.policy!r}, whose groups are part of its "
                "method; got 'aggregator'."
            )
        if self.holdout and policy.arm_means(np.ones(self.seats, bool)) is None:
            raise InvalidInputError(
                f"holdout must be left out for {self.policy!r}, which estimates no arm; "
                f"got {self.holdout:g}."
            )
        return policy


def check_arm(name: str) -> None:
    """Refuse a new arm whose name could look like another's."""
    if BIDIRECTIONAL.search(name):
        raise InvalidInputError(
            f"arms must have no characters that change the writing direction; got {name!a}."
        )


def plan_hash(arms: IntArray, groups: IntArray) -> str:
    """Return the hash by which a plan is frozen; both roles compute it."""
    return sha256(arms.tobytes() + groups.tobytes()).hexdigest()
