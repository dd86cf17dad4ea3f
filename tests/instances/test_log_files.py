"""CSV files that spreadsheets and pandas write: what is refused, and what to do about it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from shoal.errors import InvalidInputError
from shoal.instances import from_log


def refusal(path: Path, text: str, *, encoding: str = "utf-8") -> str:
    path.write_text(text, encoding=encoding)
    with pytest.raises(InvalidInputError) as refused:
        from_log(path)
    message = str(refused.value)
    assert "\n" not in message
    return message


def test_semicolons_with_decimal_commas_are_told(tmp_path: Path) -> None:
    message = refusal(tmp_path / "log.csv", "user;arm;reward\na;x;0,5\nb;y;0,25\n")
    assert "line 2" in message
    assert message.endswith("Cells must be separated by commas; these seem to be by ';'.")


@pytest.mark.parametrize(
    ("cells", "hint"),
    [
        (['"39,00"', '"1.250,50"'], "Write decimals with a point, 39.00 and not 39,00."),
        (["39.00 €", "12.50 €"], "Leave out units and signs of currencies."),
        (["$39.00", "$12.50"], "Leave out units and signs of currencies."),
        (["50 %", "10%"], "Leave out units and signs of currencies."),
        (["yes", "no"], "Write 1 for 'yes' and 0 for 'no'."),
        (["Y", "N"], "Write 1 for 'Y' and 0 for 'N'."),
    ],
)
def test_rewards_that_are_no_numbers_are_refused_with_what_to_write(
    tmp_path: Path, cells: list[str], hint: str
) -> None:
    rows = [f"u{i},x,{cells[i % 2]}" for i in range(10)]
    message = refusal(tmp_path / "log.csv", "\n".join(["user,arm,reward", *rows]))
    assert "10 of 10 are not, such as" in message
    assert message.endswith(hint)


def test_other_words_get_no_hint(tmp_path: Path) -> None:
    message = refusal(tmp_path / "log.csv", "user,arm,reward\na,x,good\nb,y,bad\n")
    assert message.endswith("such as 'good', 'bad'.")


def test_a_file_in_another_encoding_is_refused_with_the_right_one(tmp_path: Path) -> None:
    text = "user,arm,reward\nJosé,x,1\nb,y,0\n"
    message = refusal(tmp_path / "log.csv", text, encoding="latin-1")
    assert message.endswith("Save it as UTF-8.")


def test_numbers_of_rows_have_one_style() -> None:
    rows = pl.DataFrame({"user": range(6_000), "arm": 1, "reward": 0.5})
    with pytest.raises(InvalidInputError, match="got 6,000 rows, 6,000 of them usable"):
        from_log(rows, min_user_rows=2)


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_the_index_of_pandas_hides_no_copies(tmp_path: Path, name: str) -> None:
    path = tmp_path / "log.csv"
    rows = [f"u{i % 9},{'ab'[i % 2]},{i % 5 // 4},{i}" for i in range(90)]
    numbered = [f"{number},{row}" for number, row in enumerate([*rows, *rows[:30]])]
    path.write_text("\n".join([f"{name},user,arm,reward,receipt", *numbered]), encoding="utf-8")
    assert from_log(path).profile.duplicates == 30
    assert from_log(path, drop_duplicates=True).report.duplicates_dropped == 30


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path / "log.csv", "user,arm,reward, reward\na,x,1,0\nb,y,0,1\n")
    assert message.endswith("log.csv must have different names; got user, arm, reward, reward.")
    assert message.startswith("columns of ")
    message = refusal(tmp_path / "bare.csv", "1,1,0\n2,1,1\n")
    assert "The file seems to have no header" in message


def test_columns_without_a_name_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("user,arm,reward,,\na,x,1,,\nb,y,0,,\n")
    assert from_log(path).report.rows_used == 2
