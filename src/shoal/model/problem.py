"""The anonymous bandits problem (Section 2.1): N users, K arms, groups of at least C, T rounds.

``n_users``, ``n_arms``, ``min_group_size`` and ``horizon`` are the paper's N, K, C and T. A
population may be split into shards of equal size, which learn alone: groups never cross shards.
A shard is a unit of scale, and it is also how replications run: 20 runs of 50 users are one
problem of 1,000 users in 20 shards.
"""

from dataclasses import dataclass, field, fields

from shoal.errors import InvalidInputError
from shoal.model.numbers import truth_value, whole_number
from shoal.notebook import html_table


@dataclass(frozen=True, slots=True)
class Problem:
    """What a learner knows before the first round.

    Parameters
    ----------
    n_users
        Users over all shards; a multiple of ``n_shards``.
    n_arms
        Arms that each user may play.
    min_group_size
        Least number of users behind a total; at most a shard's users.
    horizon
        Rounds to play, or None where that is not known.
    n_shards
        Shards of equal size, each a contiguous range of users.
    bounded
        Whether rewards lie in [0, 1], so that any other total is impossible and refused.

    Examples
    --------
    >>> Problem(n_users=50, n_arms=5, min_group_size=4, horizon=100_000).shard_size
    50
    >>> Problem(n_users=10, n_arms=5, min_group_size=0, horizon=100)
    Traceback (most recent call last):
    shoal.errors.InvalidInputError: min_group_size must be between 1 and n_users=10; got 0.
    """

    n_users: int
    n_arms: int
    min_group_size: int
    horizon: int | None = None
    n_shards: int = 1
    bounded: bool = field(default=True, kw_only=True)
    shard_size: int = field(init=False, repr=False, compare=False)
    """Users in each shard."""

    def __post_init__(self) -> None:
        for name in ("n_users", "n_arms", "min_group_size", "horizon", "n_shards"):
            value = getattr(self, name)
            if name == "horizon" and value is None:
                continue
            minimum = None if name == "min_group_size" else 1
            object.__setattr__(self, name, whole_number(name, value, minimum=minimum))
        object.__setattr__(self, "bounded", truth_value("bounded", self.bounded))
        if self.n_users % self.n_shards:
            raise InvalidInputError(
                f"n_users must be a multiple of n_shards={self.n_shards}; got {self.n_users}."
            )
        object.__setattr__(self, "shard_size", self.n_users // self.n_shards)
        if not 1 <= self.min_group_size <= self.shard_size:
            per_shard = "" if self.n_shards == 1 else " per shard"
            raise InvalidInputError(
                f"min_group_size must be between 1 and n_users={self.shard_size}{per_shard}; "
                f"got {self.min_group_size}."
            )

    def __repr__(self) -> str:
        names = [part.name for part in fields(self) if part.repr]
        if self.bounded:
            names.remove("bounded")
        return f"Problem({', '.join(f'{name}={getattr(self, name)}' for name in names)})"

    def _repr_html_(self) -> str:
        values = (
            ("users", "N", self.n_users),
            ("arms", "K", self.n_arms),
            ("least group size", "C", self.min_group_size),
            ("rounds", "T", "not known" if self.horizon is None else self.horizon),
            ("shards", "", self.n_shards),
            ("rewards", "", "in [0, 1]" if self.bounded else "any number"),
        )
        return html_table("Problem", ["", "symbol", "value"], values)

    def as_json(self) -> dict[str, int | None]:
        """Return the fields by name, from which the same problem can be made."""
        return {part.name: getattr(self, part.name) for part in fields(self) if part.init}

    def shard(self, index: int) -> slice:
        """Return the users of one shard."""
        return slice(index * self.shard_size, (index + 1) * self.shard_size)
