from __future__ import annotations

import pytest
from tests.support.service import even, start

from shoal.service.aggregator import Aggregator, audit_log
from shoal.service.aggregator.notes import MAX_LENGTH
from shoal.service.problems import ProblemError


def test_a_note_is_kept_at_its_round_and_audited_without_its_text(aggregator: Aggregator) -> None:
    start(aggregator, even(12, size=3))
    aggregator.notes.add("news", 1, "A holiday")
    aggregator.notes.add("news", 1, "and another")
    assert [(note.id, note.number, note.text) for note in aggregator.notes.read("news")] == [
        (1, 1, "A holiday"),
        (2, 1, "and another"),
    ]
    assert aggregator.notes.remove("news", 1)
    assert not aggregator.notes.remove("news", 1)
    for number, text in ((2, "no such round"), (0, "none"), (1, ""), (1, "x" * (MAX_LENGTH + 1))):
        with pytest.raises(ProblemError, match="a note must be"):
            aggregator.notes.add("news", number, text)
    with aggregator.database.read() as connection:
        entries = audit_log.read(connection, limit=100)
    notes = [(entry.action, entry.details) for entry in entries if "note" in entry.action]
    assert notes == [
        ("note.add", {"round": 1, "note": 1}),
        ("note.add", {"round": 1, "note": 2}),
        ("note.remove", {"note": 1}),
    ]
