from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from shoal.errors import InvalidInputError
from shoal.instances import load_means

MEANS = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])


@pytest.mark.parametrize("head", ["", "red,green,blue\n", "\ufeffred,green,blue\r\n", "\n"])
def test_a_csv_reads_with_or_without_a_header(tmp_path: Path, head: str) -> None:
    path = tmp_path / "means.csv"
    path.write_text(head + "0.1,0.2,0.3\n0.4, 0.5,6e-1\n\n", encoding="utf-8")
    np.testing.assert_array_equal(load_means(path), MEANS)


def test_parquet_and_npy_read(tmp_path: Path) -> None:
    pl.DataFrame(MEANS, schema=["a", "b", "c"]).write_parquet(tmp_path / "means.parquet")
    np.save(tmp_path / "means.npy", np.asfortranarray(MEANS))
    for name in ("means.parquet", "means.npy"):
        means = load_means(str(tmp_path / name))
        np.testing.assert_array_equal(means, MEANS)
        assert means.flags.c_contiguous


NAMES = "the first line of {path} must hold the means of a user, or names of arms; got "
PANDAS = "In pandas, write it by to_csv(path, header=False, index=False)."


def test_a_user_whose_means_are_0_and_1_is_no_header(tmp_path: Path) -> None:
    path = tmp_path / "means.csv"
    path.write_text("0,1\n1,0\n1,1\n")
    assert load_means(path).tolist() == [[0, 1], [1, 0], [1, 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n0.1,x\n", "the cell in line 2, column 2 of {path} must be a number; got 'x'."),
        ("0.1,x\n0.1,0.2\n", "the cell in line 1, column 2 of {path} must be a number; got 'x'."),
        ("0.1,0.2\n,0.2\n", "the cell in line 2, column 1 of {path} must be a number; got ''."),
        ("0.1,0.2\n0.1\n", "line 2 of {path} must have 2 cells, as the first; got 1."),
        ("a,b\n0.1,0.2,0.3\n", "line 2 of {path} must have 2 cells, as the first; got 3."),
        ("0.1,0.2\n0.1,nan\n", "the mean in row 2, column 2 of {path} must be finite; got nan."),
        ("0,1,2\n0.1,0.2,0.3\n", NAMES + "the numbers of the columns. " + PANDAS),
        ("0,1\n0.1,0.2\n", NAMES + "the numbers of the columns. " + PANDAS),
        (",a,b\n0,0.1,0.2\n", NAMES + "an empty name, as of an index. " + PANDAS),
        (",0,1\n0,0.1,0.2\n", NAMES + "an empty name, as of an index. " + PANDAS),
        (
            "a,b\n",
            "{path} must hold a matrix with a row per user and a column per arm; got shape (0, 2).",
        ),
        (
            "",
            "{path} must hold a matrix with a row per user and a column per arm; got shape (0, 0).",
        ),
    ],
)
def test_a_bad_csv_is_refused_by_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "means.csv"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message.format(path=path))}$"):
        load_means(path)


def test_bad_parquet_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "means.parquet"
    pl.DataFrame({"a": [0.1, None], "b": [0.2, 0.3]}).write_parquet(path)
    with pytest.raises(InvalidInputError, match=r"mean in row 2, column 1 .* must be finite"):
        load_means(path)
    pl.DataFrame({"a": ["x"], "b": [0.2]}).write_parquet(path)
    with pytest.raises(InvalidInputError, match=r"column 'a' .* must hold numbers; got String"):
        load_means(path)


def test_bad_npy_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "means.npy"
    np.save(path, np.zeros(3))
    with pytest.raises(InvalidInputError, match=r"must hold a matrix .*; got shape \(3,\)"):
        load_means(path)
    np.save(path, np.array([["a"]]))
    with pytest.raises(InvalidInputError, match="must hold numbers; got dtype <U1"):
        load_means(path)
    np.save(path, np.array([[None]]), allow_pickle=True)
    with pytest.raises(
        InvalidInputError, match=r"must be a readable \.npy file; got: Object arrays"
    ):
        load_means(path)


@pytest.mark.parametrize("name", ["none.csv", "none.parquet", "none.npy"])
def test_a_file_that_is_not_there_is_refused_by_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{name} must be a file to read; it does"):
        load_means(tmp_path / name)


@pytest.mark.parametrize("name", ["torn.csv", "torn.parquet", "torn.npy"])
def test_a_file_of_other_bytes_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\xff\xfe\x00torn\x00")
    with pytest.raises(
        InvalidInputError, match=rf"^\S*{name} must be a readable \.\w+ file; got: .+\.$"
    ):
        load_means(tmp_path / name)


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"must end in \.csv, \.parquet or \.npy; got"):
        load_means(tmp_path / "means.xlsx")
