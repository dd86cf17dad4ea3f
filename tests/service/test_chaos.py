"""Threat 15; ``make chaos`` runs the same with 200 rounds and 100 kills."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.chaos import Tree, campaign, killing, play
from tests.support.live import serve
from tests.support.stores import Stores

from shoal.client import Client
from shoal.service.learner.run import Records
from shoal.service.store import Database

# Three kills are one of each role and one of the whole tree.
KILLS = int(os.environ.get("SHOAL_CHAOS_KILLS", "3"))
ROUNDS = int(os.environ.get("SHOAL_CHAOS_ROUNDS", "4"))


def test_threat_15_crash_between_report_and_release(stores: Stores, tmp_path: Path) -> None:
    """Kill -9 at any moment: each acknowledged report counts once, and nothing is forgotten."""
    (tmp_path / "tree").mkdir()
    tree = Tree(stores, tmp_path / "tree")
    kills: list[int] = []
    rounds: list[int] = []
    url = f"http://127.0.0.1:{tree.port}"
    with (
        tree,
        Client(url, tree.tokens["operator"], patience=120) as operator,
        Client(url, tree.tokens["app"], patience=120) as app,
        Client(url, tree.tokens["analyst"], patience=120) as analyst,
    ):
        campaign(operator)
        with killing(tree, 15, kills, rounds):
            while len(rounds) < ROUNDS or len(kills) < KILLS:
                play(operator, app, len(rounds) + 1)
                rounds.append(len(rounds) + 1)
        number = len(rounds)
        releases = [analyst.release("chaos", n) for n in range(1, number + 1)]
    assert len(kills) >= KILLS
    assert all(total.reporters >= 5 for release in releases for total in release.totals)
    database = Database(stores.learner)
    disturbed = Records(database).load("chaos")
    database.close()
    (tmp_path / "calm").mkdir()
    calm = Stores(f"sqlite:///{tmp_path}/calm/a.db", f"sqlite:///{tmp_path}/calm/l.db")
    key = (tmp_path / "tree" / "aggregator.key").read_bytes()  # which groups are drawn with
    with serve(calm, key=key) as live:
        operator, app = live.client("operator"), live.client("app")
        campaign(operator)
        for again in range(1, number + 1):
            operator.open_round("chaos", again, wait=0)
            live.work()
            play(operator, app, again)
            live.work()
        assert [
            live.client("analyst").release("chaos", n) for n in range(1, number + 1)
        ] == releases
        undisturbed = live.learner.runs["chaos"]
        assert disturbed.learnt == undisturbed.learnt == number
        for run in (disturbed, undisturbed):
            run.policy.ask()
        assert disturbed.policy_state() == undisturbed.policy_state()
        assert disturbed.feedback_state() == undisturbed.feedback_state()
