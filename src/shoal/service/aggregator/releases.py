"""Rounds are closed once: merge, store the release, delete all else, in one transaction.

What is released are totals over disjoint sets of at least C reporters, so that no smaller set can
be derived from them. Which groups are merged and which are withheld depends on
the numbers of reporters alone (``shoal.model.merging``). The document is stored in the transaction
that closes the round and served as it is ever after: no late report, crash or retry gives another
total or fresh noise. Beside it is a summary of each arm: a page on thousands of rounds reads a few
numbers of each, never plans and documents.

Noise on totals, where a campaign asks for it, is OpenDP's discrete Laplace mechanism. A user is in
at most one total of a round and moves it by at most ``reward_steps``. So whole-number Laplace noise
of scale reward_steps / epsilon on every total makes a round's totals epsilon-differentially private
in what one user reported. It is drawn once, in the transaction of the release.
"""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import msgspec
import numpy as np
from sqlalchemy import Connection, func, insert, select, update

from shoal.arrays import BoolArray, LongArray, WholeArray
from shoal.errors import ShoalError
from shoal.service import problems
from shoal.service.aggregator import audit_log, rounds
from shoal.service.aggregator.campaigns import Directory, source_of
from shoal.service.aggregator.epochs import Epochs
from shoal.service.aggregator.group_sums import DAMAGED, DamagedSumsError, Sums, read_checked
from shoal.service.aggregator.holdout import (
    NO_BLOCKS,
    Crowds,
    common_block,
    crowds_of,
    merge_groups,
)
from shoal.service.aggregator.keys import RoundKeys
from shoal.service.aggregator.rounds import FrozenPlan, RoundRecord, Rounds
from shoal.service.aggregator.witness import Witness
from shoal.service.campaign import Campaign
from shoal.service.problems import ProblemError
from shoal.service.store import Clock, Database
from shoal.service.store import aggregator as store
from shoal.wire import Noise, StoredRelease, Total

log = logging.getLogger("shoal.service")

COUNTS = ("totals", "merged", "withheld", "homogeneous", "reporters", "total")


def make_release(
    name: str,
    number: int,
    plan: FrozenPlan,
    campaign: Campaign,
    sums: Sums,
    *,
    contested: int = 0,
    blocks: WholeArray = NO_BLOCKS,
) -> StoredRelease:
    """Merge the sums of a round into a release; noise, if any, is drawn here.

    Where the campaign refuses contested rounds, one contested report withholds all of it.
    """
    if contested and campaign.contested == "refuse":
        sums = {}
    arms = {group: arm for group, arm in enumerate(plan.group_arms().tolist()) if arm >= 0}
    full = campaign.reward_steps
    valid = possible(sums, full)
    counts = {group: valid.get(group, (0, 0)) for group in arms}
    crowds = plan_crowds(plan, campaign, blocks).of_groups(plan.groups)
    into = merge_groups(
        np.array([reporters for _, reporters in counts.values()], np.int64),
        crowds[list(arms)],
        campaign.min_reporters,
        campaign.n_arms,
    )
    merged: dict[int, list[int]] = {}
    for group, place in zip(arms, into.tolist(), strict=True):
        if place >= 0:
            merged.setdefault(place, []).append(group)
    exact = [sum(counts[group][0] for group in parts) for parts in merged.values()]
    totals = [
        Total(
            arm=campaign.arms[arms[parts[0]]],
            parts=tuple(parts),
            reporters=sum(counts[group][1] for group in parts),
            total=total,
            holdout=bool(crowds[parts[0]] >= campaign.n_arms),
        )
        for parts, total in zip(merged.values(), add_noise(exact, campaign), strict=True)
    ]
    homogeneous, noise = 0, None
    if campaign.noise is None:
        homogeneous = sum(is_homogeneous(total, full) for total in totals)
    else:  # the exact totals must not show in a count either
        noise = Noise(campaign.noise.epsilon, scale_of(campaign))
    return StoredRelease(
        name,
        round=number,
        plan=plan.hash,
        reward_steps=full,
        totals=totals,
        withheld=int((into < 0).sum()),
        homogeneous=homogeneous,
        noise=noise,
        contested=contested,
    )


def is_homogeneous(total: Total, reward_steps: int) -> bool:
    """Return whether a total shows everyone's reward: all 0 or all 1."""
    return total.total in (0, total.reporters * reward_steps)


def possible(sums: Sums, reward_steps: int) -> Sums:
    """Return the sums that rewards can give; any other shows that the store is damaged."""
    valid = {
        group: (total, reporters)
        for group, (total, reporters) in sums.items()
        if 0 <= total <= reporters * reward_steps
    }
    for _ in range(len(sums) - len(valid)):
        log.error("a sum that no rewards could give is withheld")
    return valid


def plan_crowds(plan: FrozenPlan, campaign: Campaign, blocks: WholeArray) -> Crowds:
    """Return with whom each seat may be counted."""
    return crowds_of(plan.arms, blocks, campaign.n_arms, campaign.min_reporters)


def summarise(
    document: StoredRelease, plan: FrozenPlan, crowds: Crowds
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the summary of each arm that someone plays, and of each block that is held out.

    A total over several blocks is of the smallest one that has them all.
    """
    crowd_of, n_arms = crowds.of_groups(plan.groups), crowds.n_arms
    users = np.bincount(crowds.numbers[crowds.numbers >= 0])
    sizes = np.bincount(plan.groups[plan.groups >= 0])
    released = np.zeros(len(sizes), bool)
    rows: dict[int, dict[str, Any]] = {}
    for crowd in np.flatnonzero(users).tolist():
        crowd_sizes = sizes[crowd_of == crowd]
        rows[crowd] = _row(int(users[crowd]), crowd_sizes)
    for total in document.totals:
        released[list(total.parts)] = True
        crowd = int(crowd_of[total.parts[0]])
        if crowd >= n_arms:
            crowd = n_arms + common_block(crowd_of[list(total.parts)] - n_arms)
        row = rows.setdefault(crowd, _row(0, sizes[:0]))
        smallest = row["smallest_total"]
        row["smallest_total"] = (
            total.reporters if smallest is None else min(smallest, total.reporters)
        )
        row["totals"] += 1
        row["merged"] += len(total.parts) > 1
        if document.noise is None:
            row["homogeneous"] += is_homogeneous(total, document.reward_steps)
        row["reporters"] += total.reporters
        row["total"] += total.total
    for crowd in crowd_of[(sizes > 0) & ~released].tolist():
        rows[crowd]["withheld"] += 1
    by_arm = [{"arm": arm, **row} for arm, row in rows.items() if arm < n_arms]
    played = plan.arms[crowds.numbers >= n_arms]  # one arm
    blocks = [
        {"block": crowd - n_arms, "arm": int(played[0]), **row}
        for crowd, row in sorted(rows.items())
        if crowd >= n_arms
    ]
    return by_arm, blocks


def _row(n_users: int, sizes: WholeArray) -> dict[str, Any]:
    return {
        "users": n_users,
        "groups": len(sizes),
        "smallest_group": int(sizes.min()) if len(sizes) else None,
        "smallest_total": None,
        **dict.fromkeys(COUNTS, 0),
    }


@dataclass(eq=False)
class Releases:
    """Closes rounds and reads what was released; ``on_release`` is called with each document."""

    _database: Database
    _directory: Directory
    _rounds: Rounds
    _epochs: Epochs
    _keys: RoundKeys
    _clock: Clock
    _witness: Witness | None = None
    on_release: Callable[[StoredRelease], None] = lambda document: None

    def close_round(self, name: str, number: int) -> StoredRelease | None:
        """Close a round and store its release; None where that has been done.

        A round whose sums are damaged is abandoned.
        """
        campaign, blocks = self._directory.campaign(name), self._directory.blocks(name)
        document = None
        try:
            with self._rounds.change(name) as connection:
                round_ = self._releasable(connection, name, number)
                if round_ is not None:
                    document = self._release(connection, round_, campaign, blocks)
        except DamagedSumsError as damage:
            self._rounds.give_up(damage.round_id, why=DAMAGED)
            self._keys.delete_ended()
            raise ProblemError(problems.ROUND_ABANDONED, f"Because {DAMAGED}.") from None
        self._keys.delete_ended()
        if document is not None:
            self._announce(document)
        return document

    def _announce(self, document: StoredRelease) -> None:
        """Call ``on_release``; the round is released, whatever comes of that."""
        try:
            self.on_release(document)
        except Exception as error:
            log.error("a release could not be announced: %s", type(error).__name__)

    def _releasable(self, connection: Connection, name: str, number: int) -> RoundRecord | None:
        """Return an open round, locked; None where it is released, or refuse."""
        progress = self._epochs.progress(name)
        if progress is None:
            raise ProblemError(self._epochs.reason(name))
        round_ = rounds.find(connection, name, number, lock=True)
        if round_.state == rounds.RELEASED:
            return None
        if round_.state == rounds.ABANDONED or number <= max(progress.learnt, progress.reading):
            raise ProblemError(problems.ROUND_ABANDONED)
        if round_.state == rounds.WANTED:
            raise ProblemError(problems.ROUND_NOT_OPEN)
        return round_

    def _release(
        self, connection: Connection, round_: RoundRecord, campaign: Campaign, blocks: WholeArray
    ) -> StoredRelease:
        plan = rounds.load_plan(connection, round_.id)
        assert plan is not None
        key = self._keys.get(connection, round_.id)
        sums, marked = read_checked(connection, round_.id, plan.groups, key)
        name, number, contested = round_.campaign, round_.number, round_.contested
        document = make_release(
            name, number, plan, campaign, sums, contested=contested, blocks=blocks
        )
        crowds = plan_crowds(plan, campaign, blocks)
        _store(connection, round_.id, document, plan, crowds, marked)
        rounds.delete_reports(connection, round_.id)
        _forget_reporters(connection, round_)
        table, now = store.rounds, self._clock()
        closed = update(table).where(table.c.id == round_.id)
        connection.execute(closed.values(state=rounds.RELEASED, closed_at=now))
        released = {"campaign": name, "number": number, "at": now}
        connection.execute(insert(store.release_times).values(released))
        details = {"round": number, "contested": contested, "source": source_of(connection, name)}
        audit_log.append(connection, "round.close", campaign=name, now=now, **details)
        if self._witness is not None:  # before anyone can see the release
            self._witness.note(connection, name, number)
        return document

    def read(self, name: str, number: int, *, to_learner: bool = False) -> bytes:
        """Return a release, byte for byte; people see it once the learner has it on record."""
        round_id = self._released(name, number)
        if not to_learner and (self.shown(name) or 0) < number:
            raise ProblemError(self._epochs.reason(name))
        with self._database.read() as connection:
            return load_document(connection, round_id)

    def shown(self, name: str) -> int | None:
        """Return the last round that people may see, None before the learner has synced."""
        self._directory.campaign(name)
        return self._epochs.shown(name)

    def n_contested(self, name: str) -> int:
        """Return how many reports were contested in the rounds that people may see."""
        table = store.rounds
        shown = (table.c.campaign == name, table.c.number <= (self.shown(name) or 0))
        with self._database.read() as connection:
            return connection.scalar(select(func.sum(table.c.contested)).where(*shown)) or 0

    def counted(self, name: str, number: int) -> BoolArray:
        """Return the seats that are part of a released total, (n_seats,); for the learner."""
        round_id = self._released(name, number)
        with self._database.read() as connection:
            seats = self._directory.campaign(name).seats
            return load_seats(connection, round_id, seats, counted=True)

    def _released(self, name: str, number: int) -> int:
        round_ = self._rounds.get(name, number)
        if round_.state == rounds.ABANDONED:
            raise ProblemError(problems.ROUND_ABANDONED)
        if round_.state != rounds.RELEASED:
            raise ProblemError(problems.NOT_RELEASED)
        return round_.id


def load_document(connection: Connection, round_id: int) -> bytes:
    """Return a release's document, byte for byte as it was stored."""
    table = store.releases
    query = select(table.c.document).where(table.c.round_id == round_id)
    return bytes(connection.execute(query).scalar_one())


def load_seats(connection: Connection, round_id: int, n_seats: int, *, counted: bool) -> BoolArray:
    """Return the seats that reported, none once forgotten, or are part of a total, (n_seats,)."""
    table = store.releases
    column = table.c.counted if counted else table.c.reporters
    packed = connection.execute(select(column).where(table.c.round_id == round_id)).scalar_one()
    return np.unpackbits(np.frombuffer(packed or b"\0", np.uint8), count=n_seats).astype(bool)


def _store(
    connection: Connection,
    round_id: int,
    document: StoredRelease,
    plan: FrozenPlan,
    crowds: Crowds,
    marked: LongArray,
) -> None:
    n_seats = plan.groups.size
    reporters, released = np.zeros(n_seats, bool), np.zeros(n_seats, bool)
    reporters[marked] = True
    released[[group for total in document.totals for group in total.parts]] = True  # by group
    counted = reporters & (plan.groups >= 0) & released[plan.groups]
    row = {
        "round_id": round_id,
        "document": msgspec.json.encode(document),
        "reporters": np.packbits(reporters).tobytes(),
        "counted": np.packbits(counted).tobytes(),
    }
    connection.execute(insert(store.releases).values(row))
    place = {"campaign": document.campaign, "number": document.round}
    tables = (store.summaries, store.holdout_summaries)
    for table, rows in zip(tables, summarise(document, plan, crowds), strict=True):
        if rows:
            connection.execute(insert(table), [place | row for row in rows])


def _forget_reporters(connection: Connection, last: RoundRecord) -> None:
    """Forget who reported in earlier rounds: a repeat of those reports is late by now.

    Who is behind a total stays while the campaign runs: a learner that has lost its store learns
    again from it.
    """
    table = store.rounds
    before = select(table.c.id).where(
        table.c.campaign == last.campaign, table.c.number < last.number
    )
    forgotten = update(store.releases).where(
        store.releases.c.round_id.in_(before), store.releases.c.reporters != b""
    )
    connection.execute(forgotten.values(reporters=b""))


def need_noise() -> None:
    """Refuse to go on without the package that makes noise."""
    if find_spec("opendp") is None:
        raise ShoalError("noise needs an extra: pip install 'shoal[service,dp]'.")


def scale_of(campaign: Campaign) -> float:
    """Return the scale of the noise in steps of the grid, 0 where there is none."""
    return campaign.reward_steps / campaign.noise.epsilon if campaign.noise else 0.0


def variance_of(campaign: Campaign) -> float:
    """Return the variance of a total's noise in squared steps of the grid, 0 where there is none.

    Discrete Laplace noise of scale s is k with a probability in proportion to exp(-|k| / s); its
    variance is 2a / (1 - a)^2 with a = exp(-1 / s).
    """
    if campaign.noise is None:
        return 0.0
    decay = 1 / scale_of(campaign)
    return 2 * math.exp(-decay) / math.expm1(-decay) ** 2


def add_noise(totals: Sequence[int], campaign: Campaign) -> list[int]:
    """Return the totals as they may be released."""
    if campaign.noise is None or not totals:
        return list(totals)
    need_noise()
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    mechanism = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale_of(campaign))
    noisy: list[int] = mechanism(list(totals))
    return noisy
