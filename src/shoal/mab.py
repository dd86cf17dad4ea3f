"""``fit``, ``partial_fit`` and ``predict``, in the manner of MABWiser and scikit-learn.

The arguments are those of ``mabwiser.mab.MAB``, with users in place of contexts. Rewards go in one
by one and are added up at once, by ``Roster.add_up``; the learner gets the totals of groups, which
``feedback`` shows. The round's single rewards are not kept, but for rounds of a plan that is
repeated, until its last.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from shoal.errors import InvalidInputError
from shoal.frames import as_array
from shoal.model import Feedback, Roster
from shoal.model.numbers import plain, shortened, whole_number
from shoal.model.totals import check_reward
from shoal.policies import Policy, make_policy
from shoal.policies.own import PolicyLike, label


class MAB:
    """A bandit that personalises for users and learns from totals of groups.

    Parameters
    ----------
    arms
        The arms' names.
    learning_policy
        The learner, as ``simulate`` takes it, with its ``options``.
    users
        Everyone's id.
    min_group_size
        Least number of users behind a total.
    seed
        Same seed, same predictions.
    horizon
        Rounds to play, where that is known.

    Attributes
    ----------
    feedback : Feedback or None
        The totals that were learnt from last: all that the learner saw of the rewards.
    n_unused : int
        Decisions so far that were not the planned ones, and so taught nothing.

    Examples
    --------
    >>> mab = MAB(["a", "b"], users=range(40), min_group_size=5, seed=0)
    >>> decisions = mab.predict()
    >>> mab.partial_fit(decisions, [1 if arm == "a" else 0 for arm in decisions], range(40))
    >>> mab.feedback
    Feedback(n_groups=8, n_released=8, n_reported=40)
    """

    def __init__(
        self,
        arms: Sequence[Hashable],
        learning_policy: PolicyLike = "shoal",
        *,
        users: Iterable[Hashable],
        min_group_size: int,
        seed: int = 123456,
        horizon: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.roster = Roster(users, arms=arms)
        self.learning_policy, self.options = learning_policy, dict(options or {})
        self.seed = whole_number("seed", seed, minimum=0)
        self._problem = self.roster.problem(min_group_size=min_group_size, horizon=horizon)
        self.feedback: Feedback | None = None
        self.n_unused = 0
        self._gathered: list[dict[Any, float]] = []
        self._start()

    def __repr__(self) -> str:
        return (
            f"MAB({shortened(self.arms)}, {label(self.learning_policy)!r}, "
            f"n_users={len(self.roster)}, min_group_size={self._problem.min_group_size}, "
            f"rounds={self.policy.rounds})"
        )

    @property
    def arms(self) -> list[Any]:
        """The arms' names."""
        return list(self.roster.arms)

    def fit(self, decisions: Any, rewards: Any, users: Any) -> None:
        """Forget everything, and learn from a history; see ``partial_fit``."""
        rounds = self._rounds(decisions, rewards, users, n_played=0)
        self._start()
        self._play(rounds)

    def partial_fit(self, decisions: Any, rewards: Any, users: Any) -> None:
        """Learn from rewards: those of the arms that ``predict`` returned, or from a history.

        A user's first row belongs to the next round, its second to the one after it, and so on. In
        each of them the learner makes its plan, and users who did otherwise count as if they had
        not reported: a history of random arms is replayed without bias, but of K arms only one row
        in K teaches anything.

        Parameters
        ----------
        decisions, rewards, users
            The arm that was played, the reward in [0, 1] and the user's id: a row each. If one of
            them is refused, nothing is learnt from any.
        """
        n_played = self.policy.rounds + len(self._gathered)
        self._play(self._rounds(decisions, rewards, users, n_played=n_played))

    def predict(self, users: Any = None) -> list[Any]:
        """Return an arm for each user, in order; by default for everyone."""
        plan = self.policy.ask()
        arms, names = plan.arms.tolist(), self.roster.arms
        ids = self.roster.users if users is None else _column("users", users)
        return [names[arms[self.roster.seat(user)]] for user in ids]

    def _start(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.policy: Policy = make_policy(
            self.learning_policy, self._problem, rng=rng, options=self.options
        )
        self.feedback, self.n_unused, self._gathered = None, 0, []

    def _play(self, rounds: list[dict[Any, tuple[Any, float]]]) -> None:
        """Play each round; one that fails leaves no reward behind."""
        for rewards_by_user in rounds:
            plan = self.policy.ask()
            arms = plan.arms
            as_planned = {
                user: reward
                for user, (arm, reward) in rewards_by_user.items()
                if self.roster.arms[arms[self.roster.seat(user)]] == arm
            }
            gathered = [*self._gathered, as_planned]
            if len(gathered) == plan.repeats:
                feedback = self.roster.add_up(plan, *gathered)
                self.policy.tell(feedback)
                self.feedback, gathered = feedback, []
            self._gathered = gathered
            self.n_unused += len(rewards_by_user) - len(as_planned)

    def _rounds(
        self, decisions: Any, rewards: Any, users: Any, *, n_played: int
    ) -> list[dict[Any, tuple[Any, float]]]:
        """Return round by round each user's arm and reward, or refuse them all."""
        columns = {"decisions": decisions, "rewards": rewards, "users": users}
        rows = {name: _column(name, values) for name, values in columns.items()}
        if len({len(values) for values in rows.values()}) > 1:
            lengths = {name: len(values) for name, values in rows.items()}
            raise InvalidInputError(f"decisions, rewards and users must match; got {lengths}.")
        counts: dict[Any, int] = defaultdict(int)
        rounds: list[dict[Any, tuple[Any, float]]] = []
        for arm, reward, user in zip(*rows.values(), strict=True):
            self.roster.seat(user)
            if arm not in self.roster.arms:
                raise InvalidInputError(
                    f"decisions must be of arms={self.arms}; got {shortened(arm)}."
                )
            check_reward(shortened(user), reward, bounded=self._problem.bounded)
            if counts[user] == len(rounds):
                rounds.append({})
            rounds[counts[user]][user] = (arm, reward)
            counts[user] += 1
        horizon = self._problem.horizon
        if horizon is not None and n_played + len(rounds) > horizon:
            raise InvalidInputError(
                f"rounds must be at most {horizon=} in all; got {n_played + len(rounds)}."
            )
        return rounds


def _column(name: str, values: Any) -> list[Any]:
    """Return a column of any kind as a list: a list, an array, a series, a range."""
    if isinstance(values, list | tuple | range):
        return [plain(value) for value in values]
    array = as_array(name, values)
    if array.ndim != 1:
        raise InvalidInputError(f"{name} must be one value a row; got {shortened(values)}.")
    column: list[Any] = array.tolist()
    return column
