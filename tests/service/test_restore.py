"""What ``shoal restore`` says of the next step."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.support.stores import Stores

from shoal.cli.main import main


def run(*arguments: str, **environment: str) -> Result:
    return CliRunner(env=environment).invoke(main, list(arguments))


@pytest.mark.parametrize("known", [True, False], ids=["a witness", "a new witness"])
def test_a_restore_says_what_a_witness_remembers(
    sqlite_stores: Stores, tmp_path: Path, known: bool
) -> None:
    stores = {
        "SHOAL_AGGREGATOR_DATABASE": sqlite_stores.aggregator,
        "SHOAL_LEARNER_DATABASE": sqlite_stores.learner,
    }
    witness = tmp_path / "elsewhere.json"
    if known:
        witness.touch()
    for role in ("aggregator", "learner"):
        sqlite_stores.open(role).close()
        file = str(tmp_path / role)
        assert run("backup", role, file, **stores).exit_code == 0
        new = {f"SHOAL_{role.upper()}_DATABASE": f"sqlite:///{tmp_path}/new-{role}.db"}
        setting = {"SHOAL_DATA": str(tmp_path), "SHOAL_AGGREGATOR_WITNESS": str(witness)}
        output = run("restore", role, file, **setting, **new).output
        assert (f"The witness {witness} remembers".lower() in output.lower()) is known
        assert ("campaigns go on" in output) is known
        assert ("begin new campaigns" in " ".join(output.split()).lower()) is not known
