from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shoal.errors import InvalidInputError, UnknownNameError
from shoal.experiments.sweep import Configuration, read_configuration

WHOLE = """
# a comment = with a sign
policies = ["elimination-lp", "random"]
instances = "linear"
users = [
    20,
    40,
]
min_group_size = [2, 4]
horizon = 100
runs = 25

[options.elimination-lp]
gamma = [4, 8]
grid = "minimax"
"""


def read(folder: Path, text: str) -> Configuration:
    file = folder / "sweep.toml"
    file.write_text(text)
    return read_configuration(file)


def test_a_grid_is_every_combination_in_blocks_of_runs(tmp_path: Path) -> None:
    configuration = read(tmp_path, WHOLE)
    assert configuration.users == (20, 40)
    assert configuration.arms == (5,)
    cells = configuration.cells()
    assert len(cells) == 2 * 2 * (2 + 1) * 2
    assert len({cell.name for cell in cells}) == len(cells)
    assert {(c.first_run, c.n_runs) for c in cells} == {(0, 20), (20, 5)}
    assert {c.options["gamma"] for c in cells if c.policy != "random"} == {4, 8}


def test_a_cell_is_named_by_its_content_alone(tmp_path: Path) -> None:
    names = {cell.name for cell in read(tmp_path, WHOLE).cells()}
    fewer = {cell.name for cell in read(tmp_path, WHOLE.replace("[2, 4]", "4")).cells()}
    assert fewer < names
    assert not names & {
        cell.name for cell in read(tmp_path, WHOLE.replace("= 100", "= 101")).cells()
    }


def test_cells_are_named_and_described_as_in_version_0_1() -> None:
    """Folders that version 0.1 wrote continue: the hashes are those that it gave."""
    configuration = Configuration(
        policies=("elimination-lp", "random"), users=(12,), arms=(3,), min_group_size=(2,),
        horizon=(60,), participation=(0.7,), options={"elimination-lp": {"gamma": (4,)}}, runs=23,
        tuned=False,
    )  # fmt: skip
    cells = configuration.cells(version="0.1.0")
    assert [cell.name for cell in cells] == [
        "1b6c7263a82476de3f1d", "046594bc8b45191a71f3", "bd5b2a803d2a0fff0ee2",
        "af2caeab1453d12a28df",
    ]  # fmt: skip
    assert str(cells[0]) == (
        "elimination-lp on uniform, runs 0 to 19 (options={'gamma': 4}, n_users=12, n_arms=3, "
        "min_group_size=2, horizon=60, rewards=bernoulli, participation=0.7, seed=0)"
    )


def test_large_populations_are_played_in_smaller_blocks() -> None:
    cells = Configuration(policies=("random",), users=(400_000,), runs=5).cells()
    assert [c.n_runs for c in cells] == [2, 2, 1]


def test_bad_options_are_told_however_many_the_users_are(tmp_path: Path) -> None:
    many = WHOLE.replace(" 20,", " 200_000,").replace(" 40,", " 400_000,")
    read(tmp_path, many)
    with pytest.raises(InvalidInputError, match=r"gamma in line 14 of .* must be a positive"):
        read(tmp_path, many.replace("[4, 8]", "-1"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("horizon", "horizn"), "key in line 10 of {} must be a known name; got 'horizn': did you"),
        (("= 100", "= 'long'"), "horizon in line 10 of {} must be a whole number of at least 1"),
        (("    40", "    4.5"), r"users\[1\] in lines 5 to 8 of {} must be a whole number"),
        (
            ("    40", "    20"),
            r"users\[1\] in lines 5 to 8 of {} must differ from those before it",
        ),
        (('"random"', '"randm"'), r"policies\[1\] in line 3 of {} .* did you mean 'random'"),
        (('"linear"', '"liner"'), "instances in line 4 of {} .* did you mean 'linear'"),
        (('"linear"', '"given"'), "instances in line 4 of {} must be a known name; got 'given'"),
        (("[2, 4]", "[]"), "min_group_size in line 9 of {} must have at least one value"),
        (
            ("[2, 4]", "[2, 30]"),
            r"size\[1\] in line 9 of {} must be between 1 and n_users=20; got 30",
        ),
        (("= 25", "= true"), "runs in line 11 of {} must be a whole number"),
        (("gamma", "gama"), "options.elimination-lp.gama in line 14 of {} .* did you mean 'gamma'"),
        (("[4, 8]", "'much'"), "options.elimination-lp.gamma in line 14 of {} must be a positive"),
        (("[4, 8]", "[4, 8, 4]"), r"gamma\[2\] in line 14 of {} must differ from those before it"),
        (("[4, 8]", "[4, nan]"), r"gamma\[1\] in line 14 of {} must be a word, a number"),
        (("[4, 8]", "1979-05-27"), "gamma in line 14 of {} must be a word, a number, true or"),
        (('"linear"', "[[2]]"), r"instances\[0\] in line 4 of {} must be a known name"),
        (("elimination-lp]", "ucb]"), "policy with options in line 13 of {} must be one of"),
        (("= 25", "="), r"{} must be TOML; got: .*line 11"),
        (("policies", "#"), "{} must name policies; got none"),
        (("runs = 25", "participation = 1.5"), "participation in line 11 .* between 0 and 1"),
        (
            ("gamma = [4, 8]", 'robust = "false"'),
            "options.elimination-lp.robust in line 14 of {} must be true or false; got 'false'",
        ),
        (("runs = 25", "tuned = 1"), "tuned in line 11 of {} must be true or false; got 1"),
        (("runs = 25", "seed = -1"), "seed in line 11 of {} must be a whole number of at least 0"),
        (("= 25", f"= {2**63}"), r"runs in line 11 of {} must lie between .* got .* of 64 bits"),
        (("[4, 8]", f"[4, [0x{'f' * 5000}]]"), r"gamma in line 14 of {} must lie .* 20000 bits"),
        (("= 25", "= 1" + "0" * 5000), "{} must be TOML; got: .* 5001 digits"),
        (("= 25", "= " + "[" * 5000), "{} must be TOML; got: .* recursion"),
        (("= 25", "= 1000000000000"), "at most 1,000,000 cells; got 600,000,000,000"),
    ],
)
def test_bad_input_is_told_with_its_line(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message.format(tmp_path / "sweep.toml")):
        read(tmp_path, WHOLE.replace(*change))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('policies = "ucb"\n\noptions.ubc.c = 1\n', "in line 3 of"),
        (
            'policies = "ucb"\noptions = {\'ucb\' = {"b.d" = 1}}\n',
            r"options\.ucb\.b\.d in line 2 of",
        ),
        ('policies = """\nuserz = 3\n"""\n# [\nuserz = 3\n', "key in line 5 of .* 'userz'"),
        ('policies = [ # ]\n "ucb"]\n[options]\n[options.ucb]\nb = 1\n', "b in line 5 of"),
    ],
)
def test_lines_are_those_of_the_key_however_it_is_written(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read(tmp_path, text)


def test_the_greatest_seed_is_taken_and_a_mark_before_the_text_is_skipped(tmp_path: Path) -> None:
    configuration = read(tmp_path, f'\ufeffpolicies = "random"\nseed = {2**63 - 1}\n')
    assert configuration.seed == (2**63 - 1,)


def test_cells_are_counted_as_they_are_laid_out(tmp_path: Path) -> None:
    configuration = read(tmp_path, WHOLE.replace("40,", "400_000,"))
    assert configuration.n_cells == len(configuration.cells()) == 2 * 3 * (2 + 13)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"nowhere\.toml must be a file to read"):
        read_configuration(tmp_path / "nowhere.toml")


def test_too_few_users_for_the_groups_that_are_not_named_are_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="between 1 and n_users=2; got 4"):
        read(tmp_path, 'policies = "random"\nusers = 2\n').cells()


def test_an_unknown_reward_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'gaussian'"):
        read(tmp_path, 'policies = "random"\nrewards = "gausian"\n')


def test_single_values_are_taken_as_in_a_file() -> None:
    one = Configuration(
        policies="shoal", users=12, horizon=20, participation=np.float64(0.5),
        options={"shoal": {"drift": 0.1}},
    )  # fmt: skip
    several = Configuration(
        policies=["shoal"], users=[12], horizon=(20,), participation=[0.5],
        options={"shoal": {"drift": [0.1]}},
    )  # fmt: skip
    assert one == several
    assert one.as_json() == several.as_json()


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"got 'n_users': did you mean 'users'"):
        Configuration(policies="random", n_users=12)  # type: ignore[call-arg]
    with pytest.raises(UnknownNameError, match=r"policy with options .*got 'shoal'"):
        Configuration(policies="random", options={"shoal": {"drift": 0.1}})
