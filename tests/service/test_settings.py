from __future__ import annotations

from pathlib import Path

import pytest

from shoal.errors import InvalidInputError
from shoal.service.settings import AggregatorSettings, load_settings
from shoal.service.store import Database


def test_settings_come_from_a_file_and_the_environment_wins(tmp_path: Path) -> None:
    file = tmp_path / "shoal.toml"
    file.write_text('data = "/srv/shoal"\n[aggregator]\nport = 9000\nhost = "::1"\n')
    found = load_settings({"SHOAL_AGGREGATOR_PORT": "9001"}, file=file)
    assert (found.aggregator.port, found.aggregator.host) == (9001, "::1")
    assert found.database("aggregator") == "sqlite:////srv/shoal/aggregator.db"
    assert found.key_file == Path("/srv/shoal/aggregator.key")
    assert load_settings({}).aggregator.min_group_size_floor == 5


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("[agregator]\nport = 1\n", "setting must be a known name"),
        ("[aggregator]\nprot = 1\n", "setting of aggregator must be a known name"),
        ('[learner]\nport = "x"\n', "learner.port must be a whole number"),
        ("[aggregator]\nmin_group_size_floor = 1\n", "floor must be at least 2; got 1"),
        ("port = [", "config must be a readable TOML file"),
    ],
)
def test_settings_that_are_not_understood_are_refused(tmp_path: Path, text: str, rule: str) -> None:
    file = tmp_path / "shoal.toml"
    file.write_text(text)
    with pytest.raises(InvalidInputError, match=rule):
        load_settings({}, file=file)


def test_a_misspelt_variable_is_refused_and_the_nearest_named() -> None:
    with pytest.raises(InvalidInputError, match="did you mean 'SHOAL_AGGREGATOR_MIN_GROUP_SIZE_FL"):
        load_settings({"SHOAL_AGGREGATOR_MIN_GROUP_SIZE_FLOR": "50"})
    load_settings({"SHOAL_OPERATOR_TOKEN": "for a client"})


@pytest.mark.parametrize("name", ["a%20b", "a?b", "a b", "a#b", "ü@:"])
def test_a_data_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    settings = load_settings({"SHOAL_DATA": str(tmp_path / name)})
    for url, file in (
        (settings.database("aggregator"), "aggregator.db"),
        (settings.database("learner"), "learner.db"),
    ):
        assert Database(url).file == tmp_path / name / file


def test_the_learner_is_given_an_address_of_either_kind() -> None:
    assert AggregatorSettings(host="::1").address == "http://[::1]:8000"
    assert AggregatorSettings(host="localhost").address == "http://localhost:8000"


def test_a_service_that_listens_everywhere_is_reached_at_the_loopback_address() -> None:
    assert AggregatorSettings(host="0.0.0.0").address == "http://127.0.0.1:8000"
    assert AggregatorSettings(host="::").address == "http://[::1]:8000"
