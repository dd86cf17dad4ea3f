"""The key that blinds sums: it belongs to its store, and another one releases nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select, update
from tests.support.service import close, even, report, start, users
from tests.support.stores import Stores

from shoal.errors import ShoalError
from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.group_sums import block_mask
from shoal.service.aggregator.keys import RoundKeys, check_secrets, claim_key
from shoal.service.store import aggregator as store


def play(stores: Stores, key: bytes, *, number: int = 1) -> Aggregator:
    aggregator = Aggregator(stores.open("aggregator"), key=key)
    start(aggregator, even(12, size=4), least=4, number=number)
    report(aggregator, dict.fromkeys(users(12), 0.5), number=number)
    return aggregator


def claim(stores: Stores, file: Path, *, abandon_open_rounds: bool = False) -> bytes:
    database = stores.open("aggregator")
    try:
        return claim_key(database, file, now=0, abandon_open_rounds=abandon_open_rounds)
    finally:
        database.close()


def test_the_key_is_made_once_and_only_for_its_owner(sqlite_stores: Stores, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "key"
    key = claim(sqlite_stores, file)
    again = claim(sqlite_stores, file)
    assert (len(key), again, file.stat().st_mode & 0o777) == (32, key, 0o600)
    assert file.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("lost", ["is missing", "holds another"])
def test_a_store_with_reports_starts_with_its_own_key_or_not_at_all(
    stores: Stores, tmp_path: Path, lost: str
) -> None:
    file = tmp_path / "key"
    key = claim(stores, file)
    play(stores, key).close()
    assert claim(stores, file) == key
    file.unlink()
    if lost == "holds another":
        file.write_bytes(bytes(32))
    for _ in range(2):
        with pytest.raises(ShoalError, match=f"key_file must hold the key of this store.*{lost}"):
            claim(stores, file)
        assert file.exists() == (lost == "holds another")
    other = claim(stores, file, abandon_open_rounds=True)
    assert other != key
    aggregator = Aggregator(stores.open("aggregator"), key=other)
    assert aggregator.rounds.get("news", 1).state == "abandoned"
    aggregator.close()
    aggregator = play(stores, other, number=2)
    assert len(close(aggregator, number=2).totals) == 3
    aggregator.close()
    assert claim(stores, file) == other


def test_a_store_without_reports_takes_another_key(sqlite_stores: Stores, tmp_path: Path) -> None:
    aggregator = play(sqlite_stores, claim(sqlite_stores, tmp_path / "key"))
    close(aggregator)
    aggregator.close()
    assert claim(sqlite_stores, tmp_path / "other") != claim(sqlite_stores, tmp_path / "third")


def test_a_key_of_another_length_is_refused(sqlite_stores: Stores, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"short")
    with pytest.raises(ShoalError, match="key_file must hold 32 bytes"):
        claim(sqlite_stores, tmp_path / "key")


def test_a_sum_that_no_rewards_could_give_is_withheld(
    stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    aggregator = play(stores, bytes(32))
    with aggregator.database.write() as connection:
        row = connection.execute(select(store.sum_blocks)).one()
        blinded = np.frombuffer(row.blinded, "<u8").copy()
        blinded[0] -= np.uint64(2001)  # each sum is 2000 of 0 to 4000
        blinded[2] += np.uint64(2001)
        connection.execute(update(store.sum_blocks).values(blinded=blinded.tobytes()))
    document = close(aggregator)
    assert [(total.parts, total.total) for total in document.totals] == [((1,), 2000)]
    assert document.withheld == 2
    assert "a sum that no rewards could give is withheld" in caplog.text
    assert "2001" not in caplog.text
    aggregator.close()


def test_a_wrong_key_releases_nothing(sqlite_stores: Stores) -> None:
    play(sqlite_stores, bytes(32)).close()
    aggregator = Aggregator(sqlite_stores.open("aggregator"), key=bytes(31) + b"x")
    aggregator.epochs.sync_learner({})
    document = aggregator.releases.close_round("news", 1)
    assert document is not None
    assert (document.totals, document.withheld) == ([], 3)
    aggregator.close()


def written(aggregator: Aggregator) -> tuple[bytes, bytes]:
    """Return what the store holds of sums now, as its log would keep it: salt, blinded totals."""
    with aggregator.database.read() as connection:
        row = connection.execute(select(store.sum_blocks)).one()
    return bytes(row.salt), bytes(row.blinded)


def revealed(kept: tuple[bytes, bytes], key: bytes) -> list[int]:
    """Return the three groups' sums under a key."""
    salt, blinded = kept
    sums: list[int] = (np.frombuffer(blinded, "<u8") - block_mask(key, salt, 0))[:3].tolist()
    return sums


def test_after_the_release_no_key_is_left_for_what_a_log_may_keep(
    stores: Stores, tmp_path: Path
) -> None:
    key, folder = bytes(range(32)), tmp_path / "key.rounds"
    aggregator = Aggregator(stores.open("aggregator"), key=key, secrets=folder)
    start(aggregator, even(12, size=4), least=4)
    kept = []
    for user in users(12):  # one by one: every first sum is a reward, every difference another
        report(aggregator, {user: 0.5})
        kept.append(written(aggregator))
    (secret,) = folder.iterdir()
    assert secret.stat().st_mode & 0o777 == 0o600
    with aggregator.database.write() as connection:
        known = RoundKeys(aggregator.database, key, folder).get(connection, 1)
    assert sorted(revealed(kept[0], known)) == [0, 0, 500]
    assert len(close(aggregator).totals) == 3
    assert list(folder.iterdir()) == []
    sums = {500, 1000, 1500, 2000}
    assert not any(sums.intersection(revealed(blinded, key)) for blinded in kept)
    aggregator.close()


def test_a_round_goes_on_with_its_secret_or_is_given_up(stores: Stores, tmp_path: Path) -> None:
    key, folder = bytes(range(32)), tmp_path / "key.rounds"
    aggregator = Aggregator(stores.open("aggregator"), key=key, secrets=folder)
    start(aggregator, even(12, size=4), least=4)
    report(aggregator, dict.fromkeys(users(12)[:6], 0.5))
    aggregator.close()
    aggregator = Aggregator(stores.open("aggregator"), key=key, secrets=folder)
    check_secrets(aggregator.database, folder, now=0)
    aggregator.epochs.sync_learner({})
    report(aggregator, dict.fromkeys(users(12), 0.5))
    (secret,) = folder.iterdir()
    secret.rename(tmp_path / "elsewhere")
    missing = "missing is that of round 1 of news. A secret is removed .*--abandon-open-rounds"
    with pytest.raises(ShoalError, match=missing):
        check_secrets(aggregator.database, folder, now=0)
    (tmp_path / "elsewhere").rename(secret)
    assert [total.total for total in close(aggregator).totals] == [2000] * 3
    start(aggregator, even(12, size=4), least=4, number=2)
    report(aggregator, dict.fromkeys(users(12), 0.5), number=2)
    (secret,) = folder.iterdir()
    secret.unlink()
    start(aggregator, even(12, size=4), least=4, name="other")
    report(aggregator, dict.fromkeys(users(12), 0.5), name="other")
    check_secrets(aggregator.database, folder, now=0, abandon_open_rounds=True)
    assert aggregator.rounds.get("news", 2).state == "abandoned"
    assert aggregator.rounds.get("other", 1).state == "open"  # its secret is there
    aggregator.close()
