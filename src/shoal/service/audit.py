"""The rules that a store can be checked against, round by round, as a privacy officer reads them.

``shoal doctor`` and the dashboard's anonymity page run the same checks. They read plans, releases
and who was counted, never a reward: there is none to read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from sqlalchemy import Connection, func, select
from sqlalchemy.exc import SQLAlchemyError

from shoal.arrays import BoolArray
from shoal.errors import InvalidInputError
from shoal.model import Plan
from shoal.service.aggregator import audit_log, campaigns, releases, rounds
from shoal.service.aggregator.rounds import ABANDONED, RELEASED, FrozenPlan, RoundRecord
from shoal.service.campaign import Campaign
from shoal.service.store import Database
from shoal.service.store import aggregator as store
from shoal.wire import ArmState, StoredRelease


@dataclass(frozen=True)
class Rule:
    """A rule, the threats that it answers, and how it is checked.

    It is ``exact`` if noise hides it, and ``of_plans`` if it can't be checked in an archived
    campaign, which has none.
    """

    title: str
    threats: tuple[int, ...]
    check: str
    exact: bool = False
    of_plans: bool = False


THREATS: dict[int, str] = {
    1: "a group shrinks below C",
    2: "duplicate report",
    3: "replay in another round",
    4: "overlapping groups in a round",
    5: "the same round with new groups",
    6: "late report",
    7: "totals from which a smaller set can be derived",
    8: "fixed rewards and regrouping",
    9: "homogeneous total",
    10: "sybils, or users that the learner controls",
    11: "out-of-range reward",
    12: "NaN, infinity, −0, huge numbers, booleans, strings",
    13: "fingerprints in low-order bits",
    14: "order or rounding of float sums",
    15: "crash between report and release",
    16: "fresh noise on every retry is averaged out",
    17: "an old backup reopens rounds",
    18: "logs, metrics, tracebacks",
    19: "database file and backups",
    20: "token confusion",
    21: "release time or count shows a reporter",
    22: "C lowered later",
    23: "forged reports isolate a user",
    24: "the learner claims a far round",
    25: "a snapshot restores both stores and the key",
    26: "one damaged state stops all",
    27: "groups chosen to isolate",
    28: "load without a token",
    29: "core dumps and swap",
    30: "a proxy hides the visitor",
    31: "low rates make totals homogeneous",
    32: "nobody can tell who did it",
}
"""As docs/service/privacy.md has them."""


RULES: dict[str, Rule] = {
    "least": Rule(
        "Every total is over at least C users who reported.", (1,),
        "Each release's totals are compared with C and with the users on record behind them.",
    ),
    "once": Rule(
        "No user is counted twice, and no smaller set can be derived.", (2, 7),
        "No group is in two totals, and the users on record add up to the reporters stated.",
    ),
    "groups": Rule(
        "Everyone is in at most one group, of one arm and of at least C users.", (4, 22),
        "Each stored plan is built again, which refuses any other.", of_plans=True,
    ),
    "frozen": Rule(
        "The groups were fixed before the first report.", (3, 5),
        "Each plan's hash is compared with the one under which it was frozen.", of_plans=True,
    ),
    "kept": Rule(
        "A release never changes.", (6, 16),
        "Each release is compared with the summary that was stored beside it.",
    ),
    "grid": Rule(
        "Totals are whole steps that rewards between 0 and 1 can give, and noise.", (11, 13, 14),
        "Each total is compared with its least and greatest possible value.", exact=True,
    ),
    "homogeneous": Rule(
        "Totals that show everyone's reward are counted.", (9,),
        "They are counted again in each release. They are not prevented.", exact=True,
    ),
    "noise": Rule(
        "Totals carry the noise that the campaign asks for, or none.", (8, 16),
        "Each release's statement is compared with the campaign's.",
    ),
    "forgotten": Rule(
        "What a round gathered is forgotten when it ends.", (15, 19),
        "No mark of a reporter and no blinded sum is left of any round that is over.",
    ),
    "order": Rule(
        "No round was played twice or left out.", (17,),
        "Round numbers follow each other; gaps are only where rounds were abandoned.",
    ),
    "contested": Rule(
        "Reports by a second source are counted, and in no total.", (23,),
        "The number in each release is compared with the one that was counted.",
    ),
    "log": Rule(
        "Who did what is on record.", (32,),
        "The chain of the audit log is computed again.",
    ),
}  # fmt: skip

Faults = dict[str, list[str]]  # by rule

UNREADABLE = "the release can't be read"
CHANGED = "the release is not what was summed up when it was made"


@dataclass(frozen=True)
class Audit:
    """The number of released rounds that were checked, and the faults of each rule that can be."""

    rounds: int
    faults: Faults


def audit(database: Database, name: str) -> Audit:
    """Check every round of a campaign."""
    table = store.rounds
    with database.read() as connection:
        has_ended = campaigns.ending_of(connection, name) is not None
        campaign, known_arms = campaigns.load(connection, name)
        query = select(table.c.number, table.c.state).where(table.c.campaign == name)
        states = connection.execute(query.order_by(table.c.number)).all()
    faults: Faults = {key: [] for key, rule in RULES.items() if not (has_ended and rule.of_plans)}
    before = 0
    for number, state in states:
        if number != before + 1 and state != ABANDONED:
            faults["order"].append(f"round {number} follows round {before}")
        before = number
        with database.read() as connection:  # short ones: the service goes on
            for rule, fault in check_round(connection, name, number, campaign, known_arms):
                faults[rule].append(f"round {number}: {fault}")
    with database.read() as connection:
        faults["log"] += audit_log.check(connection)
    return Audit(sum(state == RELEASED for _, state in states), faults)


def check_round(
    connection: Connection, name: str, number: int, campaign: Campaign, known_arms: list[ArmState]
) -> Iterator[tuple[str, str]]:
    """Yield the rules that a round breaks, and how."""
    round_ = rounds.find(connection, name, number)
    if round_.state in (RELEASED, ABANDONED) and _left_over(connection, round_.id):
        yield "forgotten", "marks of reporters or sums are left"
    plan = rounds.load_plan(connection, round_.id)
    if plan is None:
        if round_.state == RELEASED:  # and archived
            yield from _check_totals_alone(connection, round_, campaign)
        return
    frozen = plan.hash == round_.plan_hash
    if not frozen:
        yield "frozen", "the plan is not the one that was frozen"
    try:
        Plan(np.maximum(plan.arms, 0), plan.groups, problem=campaign.problem())
    except InvalidInputError as error:
        yield "groups", str(error)
        return
    offered = campaigns.offered(known_arms, number, campaign.n_arms)
    if not offered[plan.arms[plan.arms >= 0]].all():
        yield "groups", "an arm is played that was not on offer"
    if round_.state != RELEASED or not frozen:
        return
    try:
        document = _load_document(connection, round_.id)
        counted = releases.load_seats(connection, round_.id, campaign.seats, counted=True)
    except (SQLAlchemyError, msgspec.DecodeError):
        yield "kept", UNREADABLE
        return
    n_groups = len(plan.group_arms())
    if any(not 0 <= part < n_groups for total in document.totals for part in total.parts):
        yield "kept", "a total of a group that was not planned"
        return
    yield from _contested(document, round_, campaign)
    yield from _totals(document, campaign)
    yield from _reporters(document, plan, counted)
    crowds = releases.plan_crowds(plan, campaign, campaigns.load_blocks(connection, name))
    grouped = plan.groups >= 0
    together = crowds.of_groups(plan.groups)[plan.groups[grouped]]
    if (together != crowds.numbers[grouped]).any():
        yield "groups", "a group of users who are held out and of others"
        return
    if releases.summarise(document, plan, crowds) != _stored_summaries(connection, name, number):
        yield "kept", CHANGED


def _check_totals_alone(
    connection: Connection, round_: RoundRecord, campaign: Campaign
) -> Iterator[tuple[str, str]]:
    """Yield the rules that a release breaks whose plan was deleted, and how."""
    try:
        document = _load_document(connection, round_.id)
    except (SQLAlchemyError, msgspec.DecodeError):
        yield "kept", UNREADABLE
        return
    yield from _contested(document, round_, campaign)
    yield from _totals(document, campaign)
    totals = document.totals
    counts = {
        "totals": len(totals),
        "merged": sum(len(total.parts) > 1 for total in totals),
        "withheld": document.withheld,
        "homogeneous": document.homogeneous,
        "reporters": sum(total.reporters for total in totals),
        "total": sum(total.total for total in totals),
    }
    by_arm, blocks = _stored_summaries(connection, round_.campaign, round_.number)
    if counts != {column: sum(row[column] for row in by_arm + blocks) for column in counts}:
        yield "kept", CHANGED


def _load_document(connection: Connection, round_id: int) -> StoredRelease:
    stored = releases.load_document(connection, round_id)
    return msgspec.json.decode(stored, type=StoredRelease)


def _contested(
    document: StoredRelease, round_: RoundRecord, campaign: Campaign
) -> Iterator[tuple[str, str]]:
    if document.contested != round_.contested:
        yield "contested", f"{document.contested} contested reports, {round_.contested} counted"
    if round_.contested and campaign.contested == "refuse" and document.totals:
        yield "contested", "a contested round was released"


def _reporters(
    document: StoredRelease, plan: FrozenPlan, counted: BoolArray
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with who is behind the totals."""
    arm_of = plan.group_arms()
    behind = np.bincount(plan.groups[(plan.groups >= 0) & counted], minlength=len(arm_of))
    for total in document.totals:
        parts = list(total.parts)
        if int(behind[parts].sum()) != total.reporters:
            yield "least", "a total whose reporters are not those on record"
        if len({int(arm_of[part]) for part in parts}) > 1:
            yield "once", "a total over two arms"
    if int(counted.sum()) != sum(total.reporters for total in document.totals):
        yield "once", "more or fewer users on record than the totals state"


def _totals(document: StoredRelease, campaign: Campaign) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with totals, whoever is behind them."""
    all_parts = [part for total in document.totals for part in total.parts]
    if len(all_parts) != len(set(all_parts)):
        yield "once", "a group is in two totals"
    homogeneous = 0
    for total in document.totals:
        if total.reporters < campaign.min_reporters:
            yield (
                "least",
                f"a total of {total.reporters} users, fewer than {campaign.min_reporters}",
            )
        if campaign.noise is None:
            if not 0 <= total.total <= total.reporters * campaign.reward_steps:
                yield "grid", "a total that no rewards could have"
            homogeneous += releases.is_homogeneous(total, campaign.reward_steps)
    if homogeneous != document.homogeneous:
        yield "homogeneous", f"{homogeneous} homogeneous totals, {document.homogeneous} stated"
    epsilon = document.noise.epsilon if document.noise else None
    if epsilon != (campaign.noise.epsilon if campaign.noise else None):
        yield "noise", "a release with other noise than the campaign's"


def _left_over(connection: Connection, round_id: int) -> bool:
    return any(
        connection.scalar(
            select(func.count()).select_from(table).where(table.c.round_id == round_id)
        )
        for table in (store.reports, store.sum_blocks, store.sums)
    )


Summaries = tuple[list[dict[str, Any]], list[dict[str, Any]]]


def _stored_summaries(connection: Connection, name: str, number: int) -> Summaries:
    by_arm, blocks = (
        [
            dict(row._mapping)
            for row in connection.execute(
                select(*(column for column in table.c if column.name not in ("campaign", "number")))
                .where(table.c.campaign == name, table.c.number == number)
                .order_by(table.c[key])
            )
        ]
        for table, key in ((store.summaries, "arm"), (store.holdout_summaries, "block"))
    )
    return by_arm, blocks
