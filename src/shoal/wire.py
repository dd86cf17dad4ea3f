"""The messages between the service, its clients and the learner, each defined once.

The service writes an answer from the class that a client reads it into, and a client writes a
request from the class that says what the service reads. What the service demands of a request
beyond its types (limits, patterns) is stated where it is read, in ``service/api``. Dataclasses are
the messages that FastAPI documents; structs those that msgspec reads and writes by itself.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Literal

import msgspec

PROBLEM_TYPE = "urn:shoal:problem:"  # and the problem's name
MAX_REPORTS = 10_000  # in one request

Role = Literal["admin", "operator", "app", "analyst", "learner", "monitor"]
BOUND: tuple[Role, ...] = ("app", "analyst", "learner")
"""Roles whose tokens must say for which campaigns they are."""
UNBOUND: tuple[Role, ...] = ("admin", "monitor")
"""Roles whose tokens are for all campaigns."""
EVERY_CAMPAIGN = "*"
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class ProblemDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """A refusal as an RFC 9457 document."""

    type: str = ""
    title: str = ""
    status: int = 0
    detail: str = ""

    @property
    def name(self) -> str:
        """Return the stable name of the problem."""
        return self.type.removeprefix(PROBLEM_TYPE)


class Message:
    """The base of messages that FastAPI documents: no other fields."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


# Campaigns and users


@dataclass(frozen=True)
class CampaignNames(Message):
    """The campaigns there are."""

    campaigns: list[str]


@dataclass(frozen=True)
class ArmState(Message):
    """An arm, the first round that may play it and, once it is retired, the first that may not."""

    name: str
    since: int
    until: int | None


class Abandonment(msgspec.Struct, frozen=True):
    """The last round that is given up, with all before it that are not released."""

    through: int


@dataclass(frozen=True)
class CapabilityKey(Message):
    """The key of ``report_capability`` for a campaign, in hexadecimal."""

    key: str


class Movement(msgspec.Struct, frozen=True):
    """Users who join and leave, from the next round on."""

    join: Sequence[str] = msgspec.field(default_factory=list)
    leave: Sequence[str] = msgspec.field(default_factory=list)
    erase: bool = False


@dataclass(frozen=True)
class Moved(Message):
    """How many users joined and left who had not before, and whose names were erased.

    ``unknown`` are those who were to leave and have no seat.
    """

    joined: int
    left: int
    erased: int = 0
    unknown: Sequence[str] = ()


# Rounds


@dataclass(frozen=True)
class RoundState(Message):
    """A round without anything about its reports."""

    campaign: str
    round: int
    state: str
    plan: str | None
    wanted_at: int
    opened_at: int | None
    closed_at: int | None


@dataclass(frozen=True)
class Assignment(Message):
    """What one user plays in a round."""

    round: int
    user: str
    arm: str


@dataclass(frozen=True)
class Page(Message):
    """A page of assignments, user to arm; ``next`` is None on the last one."""

    round: int
    assignments: dict[str, str]
    next: int | None


class Total(msgspec.Struct, frozen=True, omit_defaults=True):
    """A released total, in steps of the campaign's grid."""

    arm: str
    parts: tuple[int, ...]  # the plan's groups behind it
    reporters: int
    total: int
    holdout: bool = False  # of users who are held out, and play the best arm so far


class Noise(msgspec.Struct, frozen=True):
    """The noise in a release's totals: discrete Laplace, of this scale in steps of the grid."""

    epsilon: float
    scale: float


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """All that is ever published about the rewards of a round; ``plan`` is the plan's hash."""

    round: int
    plan: str
    reward_steps: int
    totals: list[Total]
    withheld: int  # groups whose total is never released
    homogeneous: int  # totals that show everyone's reward: all 0 or all 1
    noise: Noise | None = None
    contested: int = 0  # reports by another token than the campaign's; in no total


class StoredRelease(Release, frozen=True):
    """A release as it is stored and served; its one positional field is written first."""

    campaign: str


# Reports


class Report(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One user's reward; lives in memory only."""

    user: str
    reward: float
    capability: str = ""

    def __repr__(self) -> str:
        return "Report(...)"


def report_capability(key: bytes, campaign: str, number: int, user: str) -> str:
    """Return what lets a device report for one user in one round; the app's backend makes it."""
    return hmac.new(key, f"{campaign}\n{number}\n{user}".encode(), sha256).hexdigest()


class Batch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Reports for one round."""

    reports: Annotated[list[Report], msgspec.Meta(max_length=MAX_REPORTS)]


class Refusal(msgspec.Struct, frozen=True):
    """One refused report of a batch: its position, and the type of the problem."""

    index: int
    type: str

    @property
    def name(self) -> str:
        """Return the stable name of the problem."""
        return self.type.removeprefix(PROBLEM_TYPE)


class Refusals(msgspec.Struct, frozen=True):
    """The refused reports of a batch, in order."""

    refused: list[Refusal]


# Tokens and status


class TokenRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a new token may do: its role, its campaigns, until when, and in whose place it reports.

    An app's, a learner's or an analyst's token names its campaigns; ``["*"]`` is all of them.
    """

    role: str
    campaigns: Sequence[str] | None = None
    expires_days: float | None = None
    succeeds: str | None = None


class Rotation(msgspec.Struct, frozen=True):
    """For how long the former secret of a token works beside the new one."""

    grace_hours: float = 24.0


@dataclass(frozen=True)
class IssuedToken(Message):
    """A token, shown this once; ``unknown_campaigns`` of its campaigns do not exist yet."""

    name: str
    role: Role
    token: str
    campaigns: list[str]
    expires_at: int | None
    unknown_campaigns: list[str] = field(default_factory=list)  # an earlier release sends none


@dataclass(frozen=True)
class TokenRecord(Message):
    """What is known of a token; the day of its last use is given by its first millisecond."""

    role: Role
    campaigns: list[str]
    created_at: int | None
    expires_at: int | None
    last_used: int | None
    succeeds: str | None


@dataclass(frozen=True)
class TokenList(Message):
    """All tokens, by name."""

    tokens: dict[str, TokenRecord]


# The audit log


@dataclass(frozen=True)
class AuditEntry(Message):
    """Who did what and when; ``digest`` is of the entry before and of this one, in hexadecimal."""

    number: int
    at: int
    actor: str
    action: str
    campaign: str | None
    details: dict[str, Any]
    digest: str


@dataclass(frozen=True)
class AuditPage(Message):
    """Some entries of the audit log; ``next`` is None on the last page."""

    entries: list[AuditEntry]
    next: int | None


@dataclass(frozen=True)
class Status(Message):
    """Whether all is well."""

    ok: bool


@dataclass(frozen=True)
class Readiness(Status):
    """Whether the store takes writes, schedules are kept and the learner was lately in touch."""

    store: bool
    schedules: bool
    learner: bool


# The learner


class LearnerProgress(msgspec.Struct, frozen=True):
    """How far the learner is in a campaign.

    The last round whose plan is frozen, the last whose release has been learnt, and the last whose
    release may have been read.
    """

    planned: int
    learnt: int
    reading: int = 0

    @property
    def furthest(self) -> int:
        """Return the last round that the learner knows of."""
        return max(self.planned, self.learnt, self.reading)


class Sync(msgspec.Struct, frozen=True):
    """How far the learner is in each campaign, and how many seconds it will wait for work.

    Campaigns are ``quarantined`` whose state it can't read. Of those that were ``deleted`` it
    remembers the last round: a restored backup of the aggregator may still have them. An operator
    had it forget the rounds of those that are ``forgotten``: what it claimed of them was wrong.
    """

    campaigns: dict[str, LearnerProgress]
    wait: float = 0.0
    quarantined: list[str] = msgspec.field(default_factory=list)
    deleted: dict[str, int] = msgspec.field(default_factory=dict)
    forgotten: list[str] = msgspec.field(default_factory=list)


class Task(msgspec.Struct, frozen=True):
    """A campaign that waits for the learner, with all that a plan of its last round needs.

    ``eligible`` says who may play what in a round that is to be planned, and is empty in any other:
    a bit per seat, then, from a new byte on, a bit per arm.
    """

    campaign: str
    round: int
    state: str
    definition: dict[str, Any]
    eligible: bytes


class TaskList(msgspec.Struct, frozen=True):
    """Every campaign that waits for the learner, and those that it must forget.

    Of those that are ``archived`` it forgets what it has learnt, and not how far they were.
    """

    tasks: list[Task]
    deleted: list[str] = []
    archived: list[str] = []


class CountedRelease(msgspec.Struct, frozen=True):
    """A release as it is stored, a bit per seat that is part of one of its totals, and the groups.

    Each seat's group is a little-endian int32, -1 for none: as the learner proposed them, or as
    the aggregator has drawn them.
    """

    release: msgspec.Raw
    counted: bytes
    groups: bytes


class Estimates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Each arm's mean over the present users and half of its 95 % interval; None for none.

    Where the policy says what it believes of users: for which share of them the arm is the best,
    and by how much they differ on it (a deviation), of at least C users.
    """

    means: list[Share | None]
    half_widths: list[Share | None]
    best: list[Share | None] | None = None
    spread: list[Share | None] | None = None


class PlanWithEstimates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Each seat's arm and group as little-endian int32, -1 for none, and the arms' estimates."""

    arms: bytes
    groups: bytes
    estimates: Estimates | None = None
