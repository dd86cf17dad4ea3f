from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.support.commands import PRICE, run


def test_price_shows_a_table_with_a_recommendation_and_writes_json_and_a_figure(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    arguments = [*PRICE, "--users", "60", "--arms", "3", "--rate", "0.2"]
    done = run(*arguments, "--out", str(out))
    assert done.exit_code == 0, done.output
    for words in (
        "shoal: 60 users, 3 arms, 40 rounds",
        "All alike: totals that reveal",
        "Best single arm for everyone: 0.",
        "Populations of 60 users were drawn: six tastes each",
        "Recommendation: ",
    ):
        assert words in done.output
    assert {path.name for path in out.iterdir()} == {"price.json", "price.png", "price.svg"}
    answer = json.loads((out / "price.json").read_text())
    assert answer == json.loads(run(*arguments, "--json").stdout)
    assert [cost["min_group_size"] for cost in answer["costs"]] == [2, 5]
    assert answer["recommendation"] in " ".join(done.output.split())
    assert "out must be a new folder" in run(*arguments, "--out", str(out)).stderr


def test_price_takes_ones_own_means_or_a_log(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "means.npy", rng.random((30, 2)))
    log = tmp_path / "log.csv"
    rows = [f"u{user},a{arm},{int(rng.random() < 0.4)}" for user in range(30) for arm in (1, 2, 3)]
    log.write_text("\n".join(["who,what,clicked", *rows, "u1,a1,often"]) + "\n")
    done = run(*PRICE, "--means", str(tmp_path / "means.npy"))
    assert "30 users, 2 arms" in done.output
    assert "Every run played 30 of the 30 users given" in done.output
    done = run(*PRICE, "--log", str(log), "--columns", "who,what,clicked")
    assert done.exit_code == 0, done.output
    assert "30 users, 3 arms, 90 rows (3 a user, 1 a pair of user and arm" in done.stderr
    assert "90 of 91 rows used; dropped: 1 not numbers" in " ".join(done.stderr.split())
    assert "Every run played 30 users of a population that the log allows" in done.stdout
    assert "3 rows a user on 3 arms can't distinguish" in done.stdout
    assert "columns must name user, arm and reward" in run(
        *PRICE, "--log", str(log), "--columns", "who,what"
    ).stderr  # fmt: skip


def test_price_refuses_a_dirty_log_with_one_message_and_writes_nothing(tmp_path: Path) -> None:
    log, out = tmp_path / "log.csv", tmp_path / "out"
    rows = [f"u{i % 9},a{i % 3},{i}" for i in range(60)]
    log.write_text("\n".join(["user,arm,minutes", *rows]) + "\n")
    arguments = [*PRICE, "--log", str(log), "--columns", "user,arm,minutes", "--out", str(out)]
    done = run(*arguments)
    assert done.exit_code == 2
    message = " ".join(done.stderr.split())
    assert "column 'minutes' must lie in [0, 1]; 58 of 60 do not, such as 2.0, 3.0" in message
    assert "Choose a --scale: percent (divide by 100)" in message
    assert not out.exists()
    assert run(*arguments, "--drop-duplicates").exit_code == 2
    done = run(*arguments, "--scale", "range", "--min-user-rows", "2")
    assert done.exit_code == 0, done.output
    assert out.exists()
    drawn = [*PRICE, "--rate", "0.2", "--users", "60", "--arms", "3"]
    assert "--scale needs --log beside it" in run(*drawn, "--scale", "range").stderr


def write_log(path: Path, header: str, rows: list[str]) -> list[str]:
    """Write a log; return the command that prices it."""
    path.write_text("\n".join([header, *rows]) + "\n")
    return [*PRICE, "--log", str(path)]


def refusal(*arguments: str) -> str:
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    return " ".join(done.stderr.split())


def test_price_names_the_option_in_refusals_of_a_log(tmp_path: Path) -> None:
    rows = [f"c{i % 9},o{i % 3},{i % 2}" for i in range(60)]
    command = write_log(tmp_path / "log.csv", "customer,offer,bought", rows)
    assert (
        "--columns must name the log's columns for user, arm and reward, in this order; it has "
        "customer,offer,bought; got 'user' for the user."
    ) in refusal(*command)
    named = [*command, "--columns", "customer,offer,bought"]
    assert "--min-user-rows must be a whole number" in refusal(*named, "--min-user-rows", "0")
    few = refusal(*named, "--min-user-rows", "100")
    assert "min_arm_rows" not in few
    assert "60 of them usable, with --min-user-rows 100 and, for an arm, at least 1 row" in few
    assert "--arms must be left out beside --log; got 3." in refusal(*named, "--arms", "3")
    assert "--runs must be a whole number of at least 2" in refusal(*named, "--runs", "1")
    header = write_log(tmp_path / "header.csv", "user,arm,reward", [])
    assert refusal(*header).endswith("header.csv has a header and no rows.")
    zeros = write_log(tmp_path / "zeros.csv", "user,arm,reward", [row[:-1] + "0" for row in rows])
    assert "nothing can be learnt from this log" in refusal(*zeros)


def test_price_takes_a_name_with_a_comma_in_quotes(tmp_path: Path) -> None:
    rows = [f"c{i % 9},o{i % 3},{i % 2}" for i in range(60)]
    command = write_log(tmp_path / "log.csv", 'customer,offer,"bought, yes"', rows)
    assert """it has 'customer,offer,"bought, yes"';""" in refusal(*command)
    done = run(*command, "--columns", 'customer,offer,"bought, yes"')
    assert done.exit_code == 0, done.output
    assert "A name with a comma needs double quotes." in refusal(*command, "--columns", "a,b,c,d,e")


def test_price_leaves_out_default_sizes_above_the_users(tmp_path: Path) -> None:
    means = tmp_path / "means.csv"
    means.write_text("a,b\n" + "0.2,0.6\n0.6,0.2\n" * 15)
    done = run("price", "--means", str(means), "--rounds", "20", "--runs", "2", "--json")
    assert done.exit_code == 0, done.output
    assert "There are 30 users: groups of 50 are left out." in done.stderr
    sizes = [cost["min_group_size"] for cost in json.loads(done.stdout)["costs"]]
    assert sizes == [1, 5, 10, 20]
    chosen = ["--min-group-size", "50"]
    message = "--min-group-size must be between 1 and n_users=30; got 50"
    assert message in refusal("price", "--means", str(means), "--rounds", "9", *chosen)


def test_price_refuses_bad_numbers_before_it_reads_a_log(tmp_path: Path) -> None:
    command = ["price", "--log", str(tmp_path / "none.csv")]
    assert "--rounds must be a whole number" in refusal(*command, "--rounds", "0")
    assert "--runs must be" in refusal(*command, "--rounds", "9", "--runs", "1")
    assert "at least 1; got 0" in refusal(*command, "--rounds", "9", "--min-group-size", "0")


def test_price_refuses_a_seed_below_0_and_the_length_of_rounds_without_a_time(
    tmp_path: Path,
) -> None:
    rows = [f"u{i % 9},a{i % 3},{i % 2}" for i in range(60)]
    command = write_log(tmp_path / "log.csv", "user,arm,reward", rows)
    message = "seed must be a whole number of at least 0; got -1."
    assert refusal(*command, "--seed", "-1").endswith(message)
    assert refusal(*command, "--round-length", "1d").endswith(
        "--round-length needs a column for the time beside it; got '1d' alone."
    )


def test_price_plays_rewards_like_those_of_the_log(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    users, arms = np.arange(3_000) % 100, np.arange(3_000) // 100 % 3
    bought = rng.random(3_000) < np.where(users % 3 == arms, 0.7, 0.1)
    euros = np.where(bought, rng.lognormal(3.5, 0.7, 3_000), 0.0).round(2)
    for rewards, scale, kind in (
        (bought.astype(int), [], "bernoulli"),
        (euros, ["--scale", "p99"], "bounded"),
    ):
        rows = [f"u{i % 100},a{i // 100 % 3},{reward}" for i, reward in enumerate(rewards)]
        command = [
            *write_log(tmp_path / "log.csv", "user,arm,reward", rows),
            *scale,
            "--json",
            "--runs",
            "2",
        ]
        done = run(*command)
        assert done.exit_code == 0, done.output
        assert f"Rewards are played as {kind}; --rewards changes that." in done.stderr
        answer = json.loads(done.stdout)
        assert answer["config"]["rewards"] == kind
        assert (answer["costs"][0]["homogeneous"] is None) == (kind == "bounded")
        assert not any("times the variance" in note for note in answer["notes"])
    chosen = json.loads(run(*command, "--rewards", "bernoulli").stdout)
    assert chosen["config"]["rewards"] == "bernoulli"
    assert any("learning would be faster" in note for note in chosen["notes"])


def test_price_prints_each_warning_of_a_log_once(tmp_path: Path) -> None:
    rows = [f"u{i % 9},{'Tea' if i % 3 else 'tea'},{i % 2}" for i in range(60)]
    done = run(*write_log(tmp_path / "log.csv", "user,arm,reward", rows))
    assert done.exit_code == 0, done.output
    assert done.stderr.count("differ only in case") == 1


def test_price_prints_a_dash_for_the_share_of_no_gap(tmp_path: Path) -> None:
    np.save(tmp_path / "means.npy", np.full((30, 2), 0.4))
    done = run(*PRICE, "--means", str(tmp_path / "means.npy"), "--rounds", "1")
    assert done.exit_code == 0, done.output
    assert "30 users, 2 arms, 1 round" in done.stdout
    assert "1 rounds" not in done.stdout
    assert "–" in done.stdout
    assert not {"+0%", "-0%"} & set(done.stdout.split())


def test_price_records_how_the_log_was_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"u{n % 30},a{n % 3},{rng.integers(100)},{n // 9}" for n in range(270)]
    log = write_log(tmp_path / "log.csv", "user,arm,reward,day", rows)
    given = ("--columns", "user,arm,reward,day", "--scale", "percent", "--min-user-rows", "2")
    done = run(*log, *given, "--drop-duplicates", "--json")
    config = json.loads(done.stdout)["config"]
    assert {name: config[name] for name in ("scale", "min_user_rows", "drop_duplicates")} == {
        "scale": "percent", "min_user_rows": 2, "drop_duplicates": True,
    }  # fmt: skip
    assert "round_length" not in config


def test_price_says_of_a_log_that_it_has_no_header_or_no_choice(tmp_path: Path) -> None:
    log = write_log(tmp_path / "bare.csv", "u162,a0,0", ["u1,a1,1", "u2,a0,0"])
    message = refusal(*log)
    assert "The file seems to have no header" in message
    one = write_log(tmp_path / "one.csv", "user,arm,reward", ["u1,tea,1", "u2,tea,0"])
    assert refusal(*one).endswith(
        "arm column 'arm' must name at least 2 arms, for there to be a choice; got 'tea' alone."
    )


def test_price_proposes_no_order_of_columns_and_names_one_in_another_case(tmp_path: Path) -> None:
    rows = [f"{i % 2},m{i % 3},k{i % 9}" for i in range(60)]
    message = refusal(*write_log(tmp_path / "log.csv", "Klick,Mittel,Kunde", rows))
    assert "in this order; it has Klick,Mittel,Kunde; got 'user' for the user." in message
    assert "such as" not in message
    rows = [f"u{i % 9},m{i % 3},{i % 2}" for i in range(60)]
    message = refusal(*write_log(tmp_path / "log.csv", "user,arm,Reward", rows))
    assert message.endswith(
        "got 'reward' for the reward. The log has 'Reward': only the case differs."
    )


@pytest.mark.parametrize("sizes", [[], ["--min-group-size", "10"]])
def test_price_asks_whether_user_and_arm_are_exchanged(sizes: list[str], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"u{rng.integers(60)},m{i % 3},{rng.integers(2)}" for i in range(600)]
    log = write_log(tmp_path / "log.csv", "user,arm,reward", rows)
    log = [*log[:3], *sizes, *log[5:]]  # PRICE has sizes of its own
    message = refusal(*log, "--columns", "arm,user,reward")
    assert "--min-group-size must be at most 3, the number of users; got " in message
    assert message.endswith(
        "There are more arms (60) than users: are user and arm exchanged in --columns?"
    )


def test_price_says_what_a_rate_in_percent_is_as_a_share() -> None:
    drawn = [*PRICE, "--users", "60", "--arms", "3", "--rate", "5"]
    assert refusal(*drawn).endswith("at most 0.5; got 5.0: 5 % is 0.05.")


def test_the_recommendation_names_copies_that_are_still_in_the_log(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"u{rng.integers(60)},m{i % 3},{int(rng.random() < 0.2)},r{i}" for i in range(1_800)]
    log = write_log(tmp_path / "log.csv", "user,arm,reward,receipt", rows + rows[:360])
    answer = json.loads(run(*log, "--json").stdout)
    (doubt,) = (doubt for doubt in answer["doubts"] if "360 rows repeat" in doubt)
    assert "--drop-duplicates leaves them out. The price takes copies for tastes." in doubt
    assert doubt in answer["notes"]
    assert "doubts about this log" in answer["recommendation"]
    clean = json.loads(run(*log, "--drop-duplicates", "--json").stdout)
    assert clean["doubts"] == []
    assert "doubts" not in clean["recommendation"]


def test_no_interval_of_the_table_is_broken_in_a_terminal_of_80_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    drawn = [*PRICE, "--users", "60", "--arms", "3", "--rate", "0.2", "--runs", "3"]
    answer = json.loads(run(*drawn, "--json").stdout)
    lines = run(*drawn).stdout.splitlines()
    for cost in answer["costs"]:
        gain, best = cost["gain"], answer["best_arm"]
        line = next(text for text in lines if text.split()[:1] == [str(cost["min_group_size"])])
        assert re.search(rf" {gain['mean'] / best:.0%}".replace("%", r"(\.\d)?% \("), line)
        assert line.count("(") == line.count(")") == 1


def test_price_compares_sizes_in_the_units_of_the_log(tmp_path: Path) -> None:
    """Of 90 to 99 points, no size loses a tenth against another, as it would from a least of 0."""
    rng = np.random.default_rng(0)
    rows = [f"u{n % 40},a{n % 3},{90 + 9 * (n % 40 % 3 == n % 3)}" for n in range(1_200)]
    rows += [f"u{rng.integers(40)},a{rng.integers(3)},{rng.integers(90, 100)}" for _ in range(99)]
    log = write_log(tmp_path / "log.csv", "user,arm,reward", rows)
    answer = json.loads(run(*log, "--scale", "range", "--json").stdout)
    first, last = (cost["reward"]["mean"] for cost in answer["costs"])
    part = (last - first) / (first + 10)  # 90 points are 10 times the width
    assert abs(part) > 0.001
    assert f"{part:+.1%} ±" in run(*log, "--scale", "range").stdout
