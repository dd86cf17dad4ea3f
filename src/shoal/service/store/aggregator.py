"""The aggregator's tables. No column of any of them can hold an individual reward.

``reports`` says who has reported in an open round, never what. ``sums`` holds a group's total so
far, blinded with a key that is not in the database, because the total of one reporter *is* an
individual reward. Both are emptied when the round is released.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()

# SQLite numbers rows by itself only where the type is exactly INTEGER.
RowId = BigInteger().with_variant(Integer, "sqlite")

keys = Table(
    "keys",
    metadata,
    Column("fingerprint", LargeBinary, primary_key=True),  # of the key that blinds the sums
)

tokens = Table(
    "tokens",
    metadata,
    Column("name", Text, primary_key=True),
    Column("role", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
)

campaigns = Table(
    "campaigns",
    metadata,
    Column("name", Text, primary_key=True),
    Column("definition", Text, nullable=False),
    Column("roster", Integer, nullable=False),  # grows with every change of the seats
    Column("created_at", BigInteger, nullable=False),
)

arms = Table(
    "arms",
    metadata,
    Column("campaign", ForeignKey("campaigns.name"), primary_key=True),
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("since", Integer, nullable=False),  # the first round that may play it
    Column("until", Integer),  # the first round that may not
    UniqueConstraint("campaign", "name"),
)

seats = Table(
    "seats",
    metadata,
    Column("campaign", ForeignKey("campaigns.name"), primary_key=True),
    Column("seat", Integer, primary_key=True, autoincrement=False),
    Column("user_id", Text, nullable=False),
    Column("active", Boolean, nullable=False),
    UniqueConstraint("campaign", "user_id"),
)

rounds = Table(
    "rounds",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("campaign", ForeignKey("campaigns.name"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("state", Text, nullable=False),  # wanted, open, released or abandoned
    Column("plan_hash", Text),
    Column("arms", LargeBinary),  # int32 per seat, -1 for a seat that has no part in the round
    Column("groups", LargeBinary),  # int32 per seat, -1 for a user in no group
    Column("wanted_at", BigInteger, nullable=False),
    Column("opened_at", BigInteger),
    Column("closed_at", BigInteger),
    UniqueConstraint("campaign", "number"),
)

reports = Table(
    "reports",
    metadata,
    Column("round_id", ForeignKey("rounds.id"), primary_key=True),
    Column("seat", Integer, primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)

sums = Table(
    "sums",
    metadata,
    Column("round_id", ForeignKey("rounds.id"), primary_key=True),
    Column("group_number", Integer, primary_key=True, autoincrement=False),
    Column("reporters", Integer, nullable=False),
    Column("salt", LargeBinary, nullable=False),
    Column("blinded", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

releases = Table(
    "releases",
    metadata,
    Column("round_id", ForeignKey("rounds.id"), primary_key=True),
    Column("document", LargeBinary, nullable=False),  # served as it is, for ever
    Column("reporters", LargeBinary, nullable=False),  # a bit per seat
    Column("counted", LargeBinary, nullable=False),  # a bit per seat: part of a released total
)

summaries = Table(
    "summaries",
    metadata,
    Column("campaign", ForeignKey("campaigns.name"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("arm", Integer, primary_key=True, autoincrement=False),  # those that someone played
    Column("users", Integer, nullable=False),
    Column("groups", Integer, nullable=False),
    Column("smallest_group", Integer),  # users, by the plan
    Column("totals", Integer, nullable=False),
    Column("smallest_total", Integer),  # reporters
    Column("merged", Integer, nullable=False),  # of the totals
    Column("withheld", Integer, nullable=False),  # of the groups
    Column("homogeneous", Integer, nullable=False),  # of the totals
    Column("reporters", Integer, nullable=False),  # behind all totals
    Column("total", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# Not beside the plan: a reader would have to pass over the seats' arms and groups.
estimates = Table(
    "estimates",
    metadata,
    Column("campaign", ForeignKey("campaigns.name"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    # int32 per arm, twice: the learner's means and half-widths, in millionths, -1 for none
    Column("millionths", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

checks = Table(
    "checks",
    metadata,
    Column("campaign", ForeignKey("campaigns.name"), primary_key=True),
    Column("rule", Text, primary_key=True),
    Column("ran_at", BigInteger, nullable=False),
    Column("rounds", Integer, nullable=False),  # that were looked at
    Column("fault", Text, nullable=False),  # empty where the rule holds
)

sessions = Table(
    "sessions",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("token", Text, nullable=False),  # its name
    Column("token_digest", LargeBinary, nullable=False),  # another token of that name is no login
    Column("expires_at", BigInteger, nullable=False),
)
