"""Everything the service refuses, as RFC 9457 problems with stable types and constant titles.

A problem never carries a value from a report: it might be a reward. Its detail may quote a name or
a definition that the caller sent, and the number that a rule allows.
"""

from dataclasses import dataclass

import msgspec

from shoal.errors import ShoalError
from shoal.wire import PROBLEM_TYPE, ProblemDocument


@dataclass(frozen=True, slots=True)
class Reason:
    """Why the service refuses something: the problem's name, HTTP status and text."""

    name: str
    status: int
    title: str

    @property
    def type(self) -> str:
        """Return the problem's type as a URI."""
        return f"{PROBLEM_TYPE}{self.name}"

    def document(self, detail: str = "") -> bytes:
        """Return the problem as JSON."""
        return msgspec.json.encode(ProblemDocument(self.type, self.title, self.status, detail))


MEDIA_TYPE = "application/problem+json"


class ProblemError(ShoalError):
    """A refusal; ``detail`` names fields and rules, never a report's values."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason.title} {detail}".strip())
        self.reason = reason
        self.detail = detail


NOT_HTTP = Reason("not-http", 400, "The request can't be read as HTTP/1.1.")
MALFORMED = Reason("malformed-body", 400, "The body can't be read.")
INVALID = Reason("invalid-input", 422, "A value breaks a stated rule.")
UNAUTHENTICATED = Reason("unauthenticated", 401, "A valid token is needed.")
FORBIDDEN = Reason("wrong-role", 403, "The token's role may not do this.")
WRONG_CAMPAIGN = Reason("wrong-campaign", 403, "The token is not bound to this campaign.")
CROSS_SITE = Reason("cross-site", 403, "The form must be sent from a page of this site.")
NOT_FOUND = Reason("not-found", 404, "There is no such address.")
METHOD = Reason("method-not-allowed", 405, "The address does not know this method.")
NOT_ACCEPTABLE = Reason("not-acceptable", 406, "None of the accepted media types can be given.")
SLOW = Reason("slow-body", 408, "The body took too long to arrive.")
TOO_LARGE = Reason("body-too-large", 413, "The body is larger than the limit.")
NOT_JSON = Reason("not-json", 415, "The body must be sent as Content-Type: application/json.")
FAULT = Reason("internal-error", 500, "The service failed; the request may be repeated.")

UNKNOWN_TOKEN = Reason("unknown-token", 404, "There is no such token.")
LAST_ADMIN = Reason("last-admin", 409, "The last admin token can be rotated, not revoked.")
UNKNOWN_CAMPAIGN = Reason("unknown-campaign", 404, "There is no such campaign.")
UNKNOWN_ROUND = Reason("unknown-round", 404, "There is no such round.")
UNKNOWN_USER = Reason("unknown-user", 404, "The user has no part in this round.")
UNKNOWN_ARM = Reason("unknown-arm", 404, "The campaign has no such arm.")
ARM_RETIRED = Reason("arm-retired", 409, "The arm was retired for good.")
ARMS_FIXED = Reason("arms-fixed", 409, "The campaign's policy can't do without any of its arms.")
ARMS_FULL = Reason("arms-full", 409, "The campaign has no free slot for an arm.")
LAST_ARM = Reason("last-arm", 409, "The campaign has no other arm left.")
CAMPAIGN_EXISTS = Reason("campaign-exists", 409, "The campaign exists and can't be changed.")
CAMPAIGN_FULL = Reason("campaign-full", 409, "The campaign has too few free seats.")
CAMPAIGN_OVER = Reason("campaign-over", 409, "All rounds of the campaign have been played.")
CAMPAIGN_ARCHIVED = Reason("campaign-archived", 409, "The campaign was archived; it has ended.")
CAMPAIGN_DELETED = Reason("campaign-deleted", 409, "A campaign of that name was deleted.")
CAMPAIGN_RUNNING = Reason(
    "campaign-running", 409, "The campaign has a round under way, or is not archived yet."
)
GROUP_FLOOR = Reason("below-floor", 422, "min_group_size is below the floor in the settings.")
ROUND_ORDER = Reason("round-order", 409, "Rounds open one after the other, each after a release.")
ROUND_NOT_OPEN = Reason("round-not-open", 409, "The round is not open.")
ROUND_ABANDONED = Reason("round-abandoned", 409, "The round was abandoned; it has no release.")
PLAN_FROZEN = Reason("plan-frozen", 409, "The round's plan is frozen and differs.")
ROSTER_CHANGED = Reason("roster-changed", 409, "Users joined or left; the plan must be made again.")
PLAN_REFUSED = Reason(
    "plan-refused", 422, "The plan breaks anonymity, or does not fit the seats and arms."
)
NOT_RELEASED = Reason("not-released", 409, "The round has not been released.")
STORE_UNAVAILABLE = Reason("store-away", 503, "The store can't be reached, or its disk is full.")
BUSY = Reason("busy", 503, "The service has too much to do at the moment; try again.")
LEARNER_AHEAD = Reason(
    "learner-ahead",
    409,
    "The learner knows of later rounds; an operator must abandon them.",
)
LEARNER_SILENT = Reason("learner-silent", 503, "The learner has not confirmed its rounds yet.")

OUT_OF_RANGE = Reason("reward-out-of-range", 422, "A reward must be between 0 and 1.")
CONTESTED = Reason("contested-report", 409, "Another token reports in this campaign.")
BAD_CAPABILITY = Reason("bad-capability", 403, "The report does not carry its user's capability.")
LATE = Reason("late-report", 409, "The round was closed before this report.")

REASONS = {reason.name: reason for reason in list(globals().values()) if isinstance(reason, Reason)}
