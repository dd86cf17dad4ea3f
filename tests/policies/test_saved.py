"""A saved policy goes on bit for bit; a file that is no such thing is refused, and runs nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.policies import Greedy

from shoal.errors import InvalidInputError
from shoal.model import Problem, Roster
from shoal.model.container import pack
from shoal.policies import Policy, load_policy, make_policy
from shoal.policies.contract import Arena
from shoal.policies.own import PolicyLike

PROBLEM = Problem(n_users=12, n_arms=2, min_group_size=3, horizon=40, bounded=False)


def plans(policy: Policy, arena: Arena, n: int) -> list[bytes]:
    played = []
    for _ in range(n):
        plan = policy.ask()
        played.append(plan.arms.tobytes() + plan.groups.tobytes())
        policy.tell(arena.play(plan))
    return played


@pytest.mark.parametrize(
    ("policy", "options"),
    [("shoal", {"drift": 1e-4}), (Greedy, {"epsilon": np.float64(0.3)})],
    ids=["shoal", "own"],
)
@pytest.mark.parametrize("bits", ["PCG64", "MT19937"])
def test_a_saved_policy_goes_on_bit_for_bit(
    policy: PolicyLike, options: dict[str, float], bits: str, tmp_path: Path
) -> None:
    rng = np.random.Generator(getattr(np.random, bits)(3))
    learner = make_policy(policy, PROBLEM, rng=rng, options=options)
    plans(learner, Arena(PROBLEM), 5)
    pending = learner.ask()  # saved between ask and tell
    learner.save(tmp_path / "learner")
    again = load_policy(tmp_path / "learner", policy=None if policy == "shoal" else policy)
    assert again.problem == PROBLEM
    assert again.ask().groups.tobytes() == pending.groups.tobytes()
    assert plans(learner, Arena(PROBLEM), 8) == plans(again, Arena(PROBLEM), 8)
    assert pack(learner.state()) == pack(again.state())
    assert [path.name for path in tmp_path.iterdir()] == ["learner"]


def test_several_threads_may_save_to_one_path(tmp_path: Path) -> None:
    policy = make_policy("shoal", PROBLEM, rng=np.random.default_rng(0))
    roster = Roster(range(12), arms=["a", "b"])
    with ThreadPoolExecutor(4) as pool:
        saves = [pool.submit(policy.save, tmp_path / "learner.shoal") for _ in range(100)]
        saves += [pool.submit(roster.save, tmp_path / "roster.json") for _ in range(100)]
    assert not any(save.exception() for save in saves)
    assert {file.name for file in tmp_path.iterdir()} == {"learner.shoal", "roster.json"}
    assert load_policy(tmp_path / "learner.shoal").problem == PROBLEM


def test_what_is_no_saved_policy_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "learner"
    with pytest.raises(InvalidInputError, match="it does not exist"):
        load_policy(path)
    with pytest.raises(InvalidInputError, match="must be a readable file"):
        load_policy(tmp_path)
    make_policy("random", PROBLEM, rng=np.random.default_rng(0)).save(path)
    whole = path.read_bytes()
    assert whole.startswith(b"shoal-policy 1 ")
    for data, message in (
        (b"", "must be a policy that Policy.save wrote; got another file"),
        (b"PK\x03\x04 1 2\n", "got another file"),
        (whole[:-1], "got a damaged file"),
        (whole.replace(b"random", b"rundom"), "got a damaged file"),
        (whole.replace(b" 1 ", b" 2 ", 1), "of version 1 at most; got 2, which a later release"),
    ):
        path.write_bytes(data)
        with pytest.raises(InvalidInputError, match=message):
            load_policy(path)


def test_a_file_never_decides_what_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "learner"
    make_policy(Greedy, PROBLEM, rng=np.random.default_rng(0)).save(path)
    with pytest.raises(
        InvalidInputError, match=r"policy must be given for .*own;.*policies:Greedy"
    ):
        load_policy(path)
    with pytest.raises(InvalidInputError, match=r"the one that was saved, .*Greedy'; got 'random'"):
        load_policy(path, policy="random")
    assert isinstance(load_policy(path, policy="tests.support.policies:Greedy"), Greedy)


def test_a_policy_that_cannot_be_made_again_or_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInputError, match=r"must be made by make_policy.*Greedy made directly"
    ):
        Greedy(PROBLEM, rng=np.random.default_rng(0)).save(tmp_path / "learner")
    policy = make_policy("random", PROBLEM, rng=np.random.default_rng(0))
    with pytest.raises(InvalidInputError, match="path must be a file that can be written"):
        policy.save(tmp_path / "nowhere" / "learner")


class Spawning(Greedy):
    """Draws from a list of generators."""

    changing = (*Greedy.changing, "generators")

    def __init__(self, problem: Problem, *, rng: np.random.Generator) -> None:
        super().__init__(problem, rng=rng)
        self.generators = rng.spawn(3)

    def _choose(self) -> Any:
        arms = self.generators[1].integers(2, size=self.problem.n_users)
        return arms, np.full(len(arms), -1), 1


def test_a_list_of_generators_goes_on(tmp_path: Path) -> None:
    policy = make_policy(Spawning, PROBLEM, rng=np.random.default_rng(0))
    plans(policy, Arena(PROBLEM), 3)
    policy.save(tmp_path / "learner")
    again = load_policy(tmp_path / "learner", policy=Spawning)
    assert plans(again, Arena(PROBLEM), 3) == plans(policy, Arena(PROBLEM), 3)


def test_a_part_of_another_kind_is_named_when_it_is_saved(tmp_path: Path) -> None:
    policy: Any = make_policy(Spawning, PROBLEM, rng=np.random.default_rng(0))
    policy.generators.append(np.random.default_rng(1))
    with pytest.raises(InvalidInputError, match=r"generators\[3\] must be of the kind"):
        policy.save(tmp_path / "learner")


class Other(Greedy):
    """Another class with the same options."""


def test_a_partial_is_saved_as_its_class_with_its_keywords(tmp_path: Path) -> None:
    path, often = tmp_path / "learner", partial(Greedy, epsilon=0.5)
    policy = make_policy(often, PROBLEM, rng=np.random.default_rng(0))
    plans(policy, Arena(PROBLEM), 3)
    policy.save(path)
    same: tuple[PolicyLike, ...] = (often, Greedy, "tests.support.policies:Greedy")
    for maker in same:
        again: Any = load_policy(path, policy=maker)
        assert again.epsilon == 0.5
        again.save(tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == path.read_bytes()
    with pytest.raises(
        InvalidInputError, match=r"epsilon must be as it was saved, 0\.5; got .* 0\.7"
    ):
        load_policy(path, policy=partial(Greedy, epsilon=0.7))
    with pytest.raises(InvalidInputError, match=r"the one that was saved, .*Greedy'; got .*Other'"):
        load_policy(path, policy=partial(Other, epsilon=0.5))
    make_policy(Greedy, PROBLEM, rng=np.random.default_rng(0)).save(path)
    load_policy(path, policy=partial(Greedy, epsilon=0.1))  # the default
    with pytest.raises(InvalidInputError, match=r"epsilon must be as it was saved, 0\.1; got"):
        load_policy(path, policy=often)


def test_an_option_that_a_file_cannot_hold_is_named(tmp_path: Path) -> None:
    maker = partial(Greedy, epsilon=len)  # type: ignore[arg-type]
    policy = make_policy(maker, PROBLEM, rng=np.random.default_rng(0))
    with pytest.raises(InvalidInputError, match="option epsilon can't be saved"):
        policy.save(tmp_path / "learner")
