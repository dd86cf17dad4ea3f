"""Your users and arms by the ids that you know them by, in place of numbers.

A learner knows seats, 0 to N-1, and the roster alone knows who sits where: keep the two apart, as
the service does. A seat is never used again, so that what was learnt in it is about one person.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shoal.arrays import BoolArray
from shoal.errors import InvalidInputError, unwritable
from shoal.files import own_suffix, write_atomically
from shoal.frames import is_frame
from shoal.model.feedback import Feedback
from shoal.model.numbers import as_path, plain, shortened, whole_number
from shoal.model.plan import Plan
from shoal.model.problem import Problem
from shoal.model.totals import Rewards, check_reward, pairs

ROSTER_VERSION = 1


class Roster:
    """Who sits where.

    Parameters
    ----------
    users
        Ids, each once: any values that can be keys of a dict. They take the first seats.
    arms
        The arms' names, each once.
    seats
        Seats in all, for everyone who will ever join, those who leave included; by default as many
        as there are users.

    Examples
    --------
    >>> roster = Roster(["ana", "ben", "cem", "dua"], arms=["morning", "evening"])
    >>> problem = roster.problem(min_group_size=2)
    >>> plan = Plan([0, 0, 1, 1], [0, 0, 1, 1], problem=problem)
    >>> roster.assignments(plan)
    {'ana': 'morning', 'ben': 'morning', 'cem': 'evening', 'dua': 'evening'}
    >>> roster.add_up(plan, {"ana": 1.0, "ben": 0.0, "cem": 1.0}).totals
    array([1., 0.])
    """

    def __init__(
        self, users: Iterable[Hashable], *, arms: Sequence[Hashable], seats: int | None = None
    ) -> None:
        self.arms = tuple(_ids("arms", arms))
        if len(set(self.arms)) < len(self.arms) or not self.arms:
            raise InvalidInputError(f"arms must name at least one, each once; got {arms!r}.")
        self._seat_of: dict[Any, int] = {}
        self._taken = 0
        ids = _ids("users", users)
        self.n_seats = len(ids) if seats is None else whole_number("seats", seats)
        for user in ids:
            self.join(user)

    def __len__(self) -> int:
        return len(self._seat_of)

    def __contains__(self, user: object) -> bool:
        return plain(user) in self._seat_of

    def __repr__(self) -> str:
        arms = shortened(list(self.arms))
        seats = f"n_seats={self.n_seats}, n_used={self._taken}"
        return f"Roster(n_users={len(self)}, {seats}, arms={arms})"

    @property
    def users(self) -> list[Any]:
        """Who is there, in the order of the seats."""
        return list(self._seat_of)

    def seat(self, user: Hashable) -> int:
        """Return a user's number in plans."""
        try:
            return self._seat_of[plain(user)]
        except (KeyError, TypeError):
            raise InvalidInputError(f"user must be on the roster; got {shortened(user)}.") from None

    def join(self, user: Hashable) -> int:
        """Give a new user the next unused seat, and return it."""
        key = _check_id("users", user)
        if key in self:
            raise InvalidInputError(f"user must join once; got {shortened(user)} again.")
        if self._taken >= self.n_seats:
            raise InvalidInputError(
                f"user must have an unused seat to join; got {shortened(user)}, and all "
                f"{self.n_seats:,} seats are used, {self.n_seats - len(self):,} of them by users "
                "who have left."
            )
        self._seat_of[key] = self._taken
        self._taken += 1
        return self._taken - 1

    def leave(self, user: Hashable) -> None:
        """Let a user go; the seat stays empty for good."""
        self.seat(user)
        del self._seat_of[plain(user)]

    def problem(self, *, min_group_size: int, horizon: int | None = None) -> Problem:
        """Return the problem of a learner for all seats and arms."""
        return Problem(self.n_seats, len(self.arms), min_group_size, horizon)

    def eligible(self) -> BoolArray:
        """Return for ``Policy.allow`` that those who are there may play all arms.

        (n_seats, n_arms); call it after ``join`` and ``leave``, and where seats are left.
        """
        mask = np.zeros((self.n_seats, len(self.arms)), np.bool_)
        mask[list(self._seat_of.values())] = True
        return mask

    def assignments(self, plan: Plan) -> dict[Any, Any]:
        """Return the arm of each user who is there."""
        self._check(plan)
        arms = plan.arms.tolist()
        return {user: self.arms[arms[seat]] for user, seat in self._seat_of.items()}

    def add_up(self, plan: Plan, *rounds: Rewards) -> Feedback:
        """Return the totals of a plan's groups, as ``Plan.add_up`` does, from rewards by id.

        Parameters
        ----------
        plan
            One of this roster's ``problem``.
        *rounds
            As in ``Plan.add_up``, by the user's id: a dataframe too.
        """
        self._check(plan)
        return plan.add_up(*(self._by_seat(rewards, plan.problem.bounded) for rewards in rounds))

    def _by_seat(self, rewards: Rewards, bounded: bool) -> list[tuple[int, Any]]:
        """Return one round's rewards by seat; what is refused is refused by the user's id."""
        by_seat = []
        for user, reward in pairs(rewards):
            seat = self._reporter(user)
            check_reward(shortened(user), reward, bounded=bounded)
            by_seat.append((seat, reward))
        return by_seat

    def _reporter(self, user: Hashable) -> int:
        try:
            return self.seat(user)
        except InvalidInputError as error:
            remedy = "Leave out the rewards of users who have left."
            raise InvalidInputError(f"{error} {remedy}") from None

    def save(self, path: str | Path) -> None:
        """Write the roster as JSON; ids must be strings or whole numbers.

        Keep it apart from the learner's file, which knows seats only.
        """
        content = {
            "shoal_roster": ROSTER_VERSION,
            "arms": list(self.arms),
            "n_seats": self.n_seats,
            "taken": self._taken,
            "users": [[user, seat] for user, seat in self._seat_of.items()],
        }
        for key in (*self.arms, *self._seat_of):
            if not isinstance(key, str | int) or isinstance(key, bool):
                raise InvalidInputError(
                    f"ids must be strings or whole numbers to be saved; got {shortened(key)}."
                )
        try:
            data = (json.dumps(content) + "\n").encode()
            write_atomically(Path(path), data, suffix=own_suffix())
        except (OSError, TypeError, ValueError) as error:
            raise unwritable(path, error) from None

    @classmethod
    def load(cls, path: str | Path) -> Roster:
        """Read what ``save`` wrote."""
        try:
            content = json.loads(as_path("path", path).read_text(encoding="utf-8"))
            version = content["shoal_roster"]
            if version > ROSTER_VERSION:
                raise InvalidInputError(
                    f"{path} must be of version {ROSTER_VERSION} at most; got {version}, which a "
                    "later release of Shoal has written."
                )
            roster = cls([], arms=content["arms"], seats=content["n_seats"])
            roster._seat_of = {user: int(seat) for user, seat in content["users"]}
            roster._taken = int(content["taken"])
            seats = set(roster._seat_of.values())
            if not (seats <= set(range(roster._taken)) and roster._taken <= roster.n_seats):
                raise ValueError("a seat is beyond those that were taken")
            if len(seats) < len(content["users"]):
                raise ValueError("two users have one seat, or one has two")
        except FileNotFoundError:
            raise InvalidInputError(f"{path} must be a file to read; it does not exist.") from None
        except (OSError, ValueError, LookupError, TypeError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError(
                f"{path} must be a roster that Roster.save wrote; got something else."
            ) from None
        return roster

    def _check(self, plan: Plan) -> None:
        if not isinstance(plan, Plan) or (plan.problem.n_users, plan.problem.n_arms) != (
            self.n_seats, len(self.arms),
        ):  # fmt: skip
            raise InvalidInputError(
                f"plan must be for {self.n_seats} seats and {len(self.arms)} arms; "
                f"got {shortened(plan)}."
            )


def _ids(name: str, values: Any) -> list[Any]:
    """Return ids as a list, or refuse what holds none: a string, a number or a whole frame."""
    if isinstance(values, str) or not isinstance(values, Iterable) or is_frame(values):
        raise InvalidInputError(
            f"{name} must be a list of ids, such as frame['id']; got {shortened(values)}."
        )
    return [_check_id(name, value) for value in values]


def _check_id(name: str, value: Any) -> Any:
    """Return an id with Python's numbers, or refuse what can't be a key."""
    key = plain(value)
    try:
        hash(key)
    except TypeError:
        raise InvalidInputError(
            f"{name} must be ids that can be keys of a dict; got {shortened(value)}."
        ) from None
    return key
