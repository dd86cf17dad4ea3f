"""The aggregator's tables. No column of any of them can hold an individual reward.

``reports`` says who has reported in an open round, never what. ``sum_blocks`` holds each group's
total so far, blinded with a key that is not in the database, because the total of one reporter *is*
an individual reward. Both are emptied when the round is released.
"""

from typing import Any

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
_ROW_ID = BigInteger().with_variant(Integer, "sqlite")


def _table(name: str, *columns: Any, rowid: bool = True) -> Table:
    return Table(name, metadata, *columns, sqlite_with_rowid=rowid)


def _key(*names: str, of: Any = Integer) -> list[Column[Any]]:
    return [Column(name, of, primary_key=True, autoincrement=False) for name in names]


def _required(*names: str, of: Any = Integer) -> list[Column[Any]]:
    return [Column(name, of, nullable=False) for name in names]


def _campaign_key() -> Column[Any]:
    return Column("campaign", ForeignKey("campaigns.name"), primary_key=True)


def _round_key() -> Column[Any]:
    return Column("round_id", ForeignKey("rounds.id"), primary_key=True)


# The fingerprint of the key that blinds the sums, and the boot of the machine that had it last.
keys = _table(
    "keys",
    *_key("fingerprint", of=LargeBinary),
    Column("boot", Text),
    Column("mark", Text),  # of the key's file: a copy of it has another
)

tokens = _table(
    "tokens",
    *_key("name", of=Text),
    *_required("role", of=Text),
    *_required("digest", of=LargeBinary),
    Column("campaigns", Text, nullable=False, server_default='["*"]'),  # JSON; "*" is all of them
    Column("created_at", BigInteger),
    Column("expires_at", BigInteger),
    Column("last_used", BigInteger),  # the day, in milliseconds
    Column("succeeds", Text),  # the token whose reporting it may take over
    Column("former_digest", LargeBinary),  # before it was rotated
    Column("former_until", BigInteger),
)

# Who did what; each digest is of the one before and of the row. Rows are never changed or deleted.
audit = _table(
    "audit",
    *_key("number"),
    *_required("at", of=BigInteger),
    *_required("actor", "action", of=Text),
    Column("campaign", Text),
    *_required("details", of=Text),  # JSON
    *_required("digest", of=LargeBinary),
)

campaigns = _table(
    "campaigns",
    *_key("name", of=Text),
    *_required("definition", of=Text),
    *_required("roster"),  # grows with every change of the seats
    *_required("created_at", of=BigInteger),
    Column("source", Text),  # the name of the one token that reports, once it has
    Column("ending", Text),  # archived, or deleted: then the row is all there is
    Column("ended_at", BigInteger),
    Column("holdout", LargeBinary),  # int8 per seat: its block, -1 for one that is not held out
)

arms = _table(
    "arms",
    _campaign_key(),
    *_key("slot"),
    *_required("name", of=Text),
    *_required("since"),  # the first round that may play it
    Column("until", Integer),  # the first round that may not
    UniqueConstraint("campaign", "name"),
)

seats = _table(
    "seats",
    _campaign_key(),
    *_key("seat"),
    *_required("user_id", of=Text),
    *_required("active", of=Boolean),
    UniqueConstraint("campaign", "user_id"),
)

rounds = _table(
    "rounds",
    Column("id", _ROW_ID, primary_key=True),
    Column("campaign", ForeignKey("campaigns.name"), nullable=False),
    *_required("number"),
    *_required("state", of=Text),  # wanted, open, released or abandoned
    Column("plan_hash", Text),
    Column("arms", LargeBinary),  # int32 per seat, -1 for a seat that is not in the round
    Column("groups", LargeBinary),  # int32 per seat, -1 for a user in no group
    *_required("wanted_at", of=BigInteger),
    Column("opened_at", BigInteger),
    Column("closed_at", BigInteger),
    Column("contested", Integer, nullable=False, server_default="0"),  # reports by a second source
    Column("secret_mark", Text),  # which file holds the round's secret
    Column("proposal", Text),  # the hash of what the learner asked for, where it differs
    UniqueConstraint("campaign", "number"),
)

# No foreign key: each transaction that marks reporters has locked the row of their round.
reports = _table("reports", *_key("round_id", of=_ROW_ID), *_key("seat"), rowid=False)

# Of many groups each: how many have reported, as int32, and the blinded totals, as uint64.
sum_blocks = _table(
    "sum_blocks",
    _round_key(),
    *_key("block"),
    *_required("salt", "reporters", "blinded", of=LargeBinary),
    rowid=False,
)

# The sums of a round that version 0.1 opened, one a group; nothing is written here any more.
sums = _table(
    "sums",
    _round_key(),
    *_key("group_number"),
    *_required("reporters"),
    *_required("salt", of=LargeBinary),
    *_required("blinded", of=BigInteger),
    rowid=False,
)

# The document is served as it is, for ever; the others have a bit per seat, and those counted are
# part of a released total.
releases = _table(
    "releases", _round_key(), *_required("document", "reporters", "counted", of=LargeBinary)
)


def _summary() -> list[Column[Any]]:
    return [
        *_required("users", "groups"),
        Column("smallest_group", Integer),
        *_required("totals"),
        Column("smallest_total", Integer),
        *_required("merged", "withheld", "homogeneous", "reporters"),
        *_required("total", of=BigInteger),
    ]


# Of each arm that someone played. Group sizes are users by the plan; merged and homogeneous count
# totals, withheld groups; the smallest total and all reporters are users behind totals. Who is held
# out is in none of them: theirs are by block, as in a binary tree, and by the one arm they play.
summaries = _table("summaries", _campaign_key(), *_key("number", "arm"), *_summary(), rowid=False)
holdout_summaries = _table(
    "holdout_summaries", _campaign_key(), *_key("number", "block"), *_required("arm"), *_summary(),
    rowid=False,
)  # fmt: skip

# The learner's means, then its half-widths and, where it says what it believes of users, for which
# share an arm is the best and how they differ on it: int32 per slot in millionths, -1 for none.
# They are not beside the plan: a reader would have to pass over the seats' arms and groups.
estimates = _table(
    "estimates",
    _campaign_key(),
    *_key("number"),
    *_required("millionths", of=LargeBinary),
    rowid=False,
)

# When each round was released, once more: beside their plans, a reader would pass over all seats.
release_times = _table(
    "release_times", _campaign_key(), *_key("number"), *_required("at", of=BigInteger), rowid=False
)

# What an operator writes at a round, for those who read the curves.
notes = _table(
    "notes",
    _campaign_key(),
    *_key("id"),
    *_required("number"),
    *_required("at", of=BigInteger),
    *_required("author", "text", of=Text),
)

checks = _table(
    "checks",
    _campaign_key(),
    *_key("rule", of=Text),
    *_required("ran_at", of=BigInteger),
    *_required("rounds"),  # that were checked
    *_required("fault", of=Text),  # empty where the rule holds
)

# By a token's name, and its digest: another token of that name is no login.
sessions = _table(
    "sessions",
    *_key("digest", of=LargeBinary),
    *_required("token", of=Text),
    *_required("token_digest", of=LargeBinary),
    *_required("expires_at", of=BigInteger),
)
