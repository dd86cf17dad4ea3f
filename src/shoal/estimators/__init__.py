"""From released totals to each user's mean reward."""

from shoal.estimators.elicitor import Elicitor
from shoal.estimators.leave_one_out import LeaveOneOut
from shoal.estimators.pooled import Pooled

__all__ = ["Elicitor", "LeaveOneOut", "Pooled"]
