"""The learner's tables: how far each campaign is, and its policy's exact state.

The state is large and changes seldom, so it has a table of its own. Of a campaign that was deleted,
its name and its last round are kept: a restored aggregator may have forgotten both.
"""

from sqlalchemy import Column, ForeignKey, Integer, LargeBinary, MetaData, Table, Text

metadata = MetaData()

runs = Table(
    "runs",
    metadata,
    Column("campaign", Text, primary_key=True),
    Column("definition", Text, nullable=False),
    Column("planned", Integer, nullable=False),  # last round whose plan the aggregator has frozen
    Column("learnt", Integer, nullable=False),  # last round whose release is in the states below
    Column("reading", Integer, nullable=False, server_default="0"),  # last that may have been read
    Column("feedback", LargeBinary, nullable=False),  # gathered for the plan in play
    Column("feedback_digest", LargeBinary),  # none where version 0.1 wrote it
    # 1: it is asked for; 2: with the rounds; 3: it is done, and the aggregator is to be told
    Column("relearn", Integer, nullable=False, server_default="0"),
)

policies = Table(
    "policies",
    metadata,
    Column("campaign", ForeignKey("runs.campaign"), primary_key=True),
    Column("state", LargeBinary, nullable=False),  # at the last change of plan
    Column("version", Integer),  # of its form; none where version 0.1 wrote it
    Column("digest", LargeBinary),
)

deleted_campaigns = Table(
    "deleted_campaigns",
    metadata,
    Column("campaign", Text, primary_key=True),
    Column("last_round", Integer, nullable=False),  # that was planned, read or learnt
)
